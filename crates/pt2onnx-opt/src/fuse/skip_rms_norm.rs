//! Joins RMS normalization with the sum before it, in ONNX Runtime's own operator.

use super::{Measure, Pass, Phase, Run};
use crate::{Changed, GraphMut, Options, Target, analysis::known, rewrite};
use pt2onnx_ir::{Attributes, Builder, InsertPoint, Model, NodeId, Value, attrs};
use pt2onnx_symbolic::Constraints;
use pt2onnx_tensor::DType;

pub(crate) static SKIP_RMS_NORM: Pass = Pass {
    name: "skip-rms-norm",
    description: "Replaces Add and RMSNormalization by \
                  com.microsoft.SkipSimplifiedLayerNormalization, for the targets `ort` and \
                  `ort-genai` only.",
    precondition: "The normalization is over the last dimension, its scale is a constant, and the \
                   operands of the sum have the same three sizes.",
    lowers: Measure::Operators(&["RMSNormalization"]),
    targets: Target::CONTRIB,
    phase: Phase::Last,
    run: Run::Graph(run),
    ..Pass::FUSION
};

fn run(graph: &mut GraphMut<'_>, _: &Options) -> Changed {
    graph.change_each(join)
}

/// Replaces a normalization, and the sum that it is of.
fn join(model: &mut Model, id: NodeId) -> Option<()> {
    let node = Some(&model[id]).filter(|n| n.is("RMSNormalization"))?;
    let options = attrs::RMSNormalization::read(node).ok()?;
    let (x, scale) = (node.input(0)?, node.input(1)?);
    let normalised = node.outputs()[0];
    let (dtype, shape) = model.tensor_type(x)?;
    let float = matches!(dtype, DType::F32 | DType::F64 | DType::F16 | DType::BF16);
    let last = matches!(options.axis, -1 | 2) && shape.len() == 3 && shape.iter().all(known);
    let sum = model.producer(x)?;
    let added = &model[sum];
    let (a, b) = (added.input(0)?, added.input(1)?);
    let same = |v: Value| model.tensor_type(v).is_some_and(|(d, s)| d == dtype && s == shape);
    let fits = added.is("Add")
        && added.domain.is_empty()
        && added.region() == model[id].region()
        && model[scale].constant().is_some()
        && model.shape(scale)?.len() == 1;
    (float && last && fits && same(a) && same(b)).then_some(())?;
    let origins = model[sum].origins.iter().chain(&model[id].origins).copied();
    let origins: Vec<_> = origins.collect();
    let (ty, alone) = (model[x].ty.clone(), model[x].only_use().is_some());
    let cx = Builder::new(model, InsertPoint::Before(sum), Constraints::default());
    cx.set_origins(&origins);
    let attributes = Attributes::from_iter([("epsilon".into(), options.epsilon.into())]);
    let inputs = [Some(a), Some(b), Some(scale)];
    let types = [ty.clone(), None, None, ty];
    // The sum is the last output, behind mean and deviation.
    let types = if alone { &types[..1] } else { &types };
    let op = "SkipSimplifiedLayerNormalization";
    let made = cx.emit_custom("com.microsoft", op, &inputs, attributes, types);
    drop(cx);
    rewrite::substitute(model, normalised, made[0]);
    if let &[_, mean, deviation, total] = &made[..] {
        [mean, deviation].into_iter().for_each(|v| model[v].name = Some("".into()));
        rewrite::substitute(model, x, total);
    }
    model.erase(id);
    model.erase(sum);
    Some(())
}
