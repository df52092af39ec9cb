//! Joins the layers of queries, keys and values, which `GroupQueryAttention` takes as one operand.

use super::{Measure, Pass, Phase, Run, merge_linears};
use crate::{Changed, GraphMut, Options, Target, slices};
use pt2onnx_ir::{Model, NodeId, Value, attrs};

pub(crate) static PACKED_QKV: Pass = Pass {
    name: "packed-qkv",
    description: "Replaces the MatMul of queries, keys and values of \
                  com.microsoft.GroupQueryAttention by one, for the target `ort-genai` only; its \
                  result is split where queries and keys are normalised.",
    precondition: "The weights are constants that nothing else uses. All three have a bias, or \
                   none.",
    lowers: Measure::Nodes,
    targets: &[Target::OrtGenai],
    phase: Phase::Late,
    run: Run::Graph(run),
    ..Pass::FUSION
};

fn run(graph: &mut GraphMut<'_>, _: &Options) -> Changed {
    graph.change_each(pack)
}

fn pack(model: &mut Model, id: NodeId) -> Option<()> {
    let node = &model[id];
    let &[Some(queries), Some(keys), Some(values), ..] = node.inputs() else { return None };
    let fits = node.domain == "com.microsoft" && node.op() == "GroupQueryAttention";
    let mut inputs = fits.then(|| node.inputs().to_vec())?;
    let parts = [queries, keys, values];
    let Some(packed) =
        whole(model, parts).or_else(|| merge_linears::side_by_side(model, &parts, id))
    else {
        let layers = parts.map(|part| layer(model, part));
        return merge_linears::beside_split(model, &layers);
    };
    inputs[..3].copy_from_slice(&[Some(packed), None, None]);
    model.set_inputs(id, &inputs);
    Some(())
}

/// The tensor whose last dimension is taken apart to these parts, for one node.
fn whole(model: &Model, parts: [Value; 3]) -> Option<Value> {
    let (mut whole, mut at) = (None, 0);
    for part in parts {
        let (x, from, to) = columns(model, part)?;
        let follows =
            from == at && *whole.get_or_insert(x) == x && model[part].only_use().is_some();
        at = follows.then_some(to)?;
    }
    whole.filter(|&x| model.shape(x).and_then(|s| s.last()?.as_int()) == Some(at))
}

/// The tensor whose last dimension a value is a part of, with the bounds of the part.
fn columns(model: &Model, part: Value) -> Option<(Value, i64, i64)> {
    let width = |v: Value| model.shape(v)?.last()?.as_int();
    let node = &model[model.producer(part)?];
    let x = node.input(0)?;
    let (axis, from) = match node.op() {
        "Slice" => slices::single(model, node).map(|(from, _, axis)| (axis, from))?,
        "Split" => {
            let before = node.outputs().iter().take_while(|&&other| other != part);
            let from = before.map(|&v| width(v)).sum::<Option<i64>>()?;
            (attrs::Split::read(node).ok()?.axis, from)
        }
        _ => return None,
    };
    let last = axis == -1 || axis + 1 == model.shape(x)?.len() as i64;
    (last && from >= 0).then_some((x, from, from.checked_add(width(part)?)?))
}

/// The value that another is computed of by operators that keep the elements of a head together.
fn layer(model: &Model, mut value: Value) -> Value {
    let between = ["Reshape", "Transpose", "RMSNormalization", "RotaryEmbedding"];
    while let Some(id) = model.producer(value)
        && between.contains(&model[id].op())
        && let Some(operand) = model[id].input(0)
    {
        value = operand;
    }
    value
}
