//! RMS normalization of heads that are beside each other, in ONNX Runtime's own operator.

use super::{Measure, Pass, Phase, Run};
use crate::{Changed, GraphMut, Options, Target, analysis::known, rewrite};
use pt2onnx_ir::{Attributes, Builder, InsertPoint, Model, NodeId, attrs};
use pt2onnx_symbolic::{Constraints, Expr};
use pt2onnx_tensor::DType;

pub(crate) static BRANCHWISE_RMS_NORM: Pass = Pass {
    name: "branchwise-rms-norm",
    description: "Replaces RMSNormalization between two Reshape by com.microsoft.BranchwiseRMSNorm, \
                  for the target `ort-genai` only.",
    precondition: "The first Reshape splits the last dimension into heads, which the second joins \
                   again. Each head is normalized, by the same scale.",
    lowers: Measure::Operators(&["RMSNormalization"]),
    targets: &[Target::OrtGenai],
    phase: Phase::Last,
    run: Run::Graph(run),
    ..Pass::FUSION
};

fn run(graph: &mut GraphMut<'_>, _: &Options) -> Changed {
    graph.change_each(replace)
}

/// Replaces a normalization, and the two changes of shape around it.
fn replace(model: &mut Model, id: NodeId) -> Option<()> {
    let node = Some(&model[id]).filter(|n| n.is("RMSNormalization"))?;
    let options = attrs::RMSNormalization::read(node).ok()?;
    let (heads, scale, normalised) = (node.input(0)?, node.input(1)?, node.outputs()[0]);
    let (apart, joined) = (model.producer(heads)?, model[normalised].only_use()?.0);
    let reshape = |at: NodeId| model[at].is("Reshape") && model[at].region() == node.region();
    let (x, result) = (model[apart].input(0)?, model[joined].outputs()[0]);
    let (dtype, wide) = model.tensor_type(x)?;
    let (_, split) = model.tensor_type(heads)?;
    let (width, outer) = wide.split_last()?;
    let (front, [count, size]) = split.split_last_chunk()?;
    let ints = [width, count, size].map(Expr::as_int);
    let [Some(width), Some(count), Some(size)] = ints else { return None };
    let fits = reshape(apart)
        && reshape(joined)
        && matches!(dtype, DType::F32 | DType::F16)
        && matches!(options.axis, -1 | 3)
        && outer.len() == 2
        && outer == front
        && outer.iter().all(known)
        && count.checked_mul(size) == Some(width)
        && model.tensor_type(result)? == (dtype, wide)
        && model.shape(scale)?.len() == 1;
    fits.then_some(())?;
    let origins: Vec<_> =
        [apart, id, joined].iter().flat_map(|&n| model[n].origins.clone()).collect();
    let ty = model[result].ty.clone();
    let cx = Builder::new(model, InsertPoint::Before(id), Constraints::default());
    cx.set_origins(&origins);
    let attributes = Attributes::from_iter([
        ("epsilon".into(), options.epsilon.into()),
        ("num_branches".into(), count.into()),
    ]);
    let (domain, op) = ("com.microsoft", "BranchwiseRMSNorm");
    let made = cx.emit_custom(domain, op, &[Some(x), Some(scale)], attributes, &[ty]);
    drop(cx);
    rewrite::substitute(model, result, made[0]);
    model.erase(joined);
    model.erase(id);
    if model[heads].uses().len() == 0 {
        model.erase(apart);
    }
    Some(())
}
