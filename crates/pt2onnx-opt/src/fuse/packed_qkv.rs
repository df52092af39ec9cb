//! Joins the layers of queries, keys and values, which `GroupQueryAttention` takes as one operand.

use super::{Measure, Pass, Phase, Run, merge_linears};
use crate::{Changed, GraphMut, Options, Target};
use pt2onnx_ir::{Model, NodeId};

pub(crate) static PACKED_QKV: Pass = Pass {
    name: "packed-qkv",
    description: "Replaces the MatMul of queries, keys and values of \
                  com.microsoft.GroupQueryAttention by one, for the target `ort-genai` only.",
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
    let packed = merge_linears::side_by_side(model, &[queries, keys, values], id)?;
    inputs[..3].copy_from_slice(&[Some(packed), None, None]);
    model.set_inputs(id, &inputs);
    Some(())
}
