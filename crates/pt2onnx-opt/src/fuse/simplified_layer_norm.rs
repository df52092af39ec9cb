//! Writes RMS normalization as ONNX Runtime's own operator where the opset has none.

use super::{Measure, Pass, Phase, Run};
use crate::{Changed, GraphMut, Options, Target, rewrite};
use pt2onnx_ir::{Attributes, Model, NodeId, attrs};
use pt2onnx_tensor::DType;

pub(crate) static SIMPLIFIED_LAYER_NORM: Pass = Pass {
    name: "simplified-layer-norm",
    description: "Replaces RMSNormalization by SimplifiedLayerNormalization below opset 23, for \
                  the targets `ort` and `ort-genai` only.",
    precondition: "The normalization is over the last dimension.",
    lowers: Measure::Operators(&["RMSNormalization"]),
    targets: Target::CONTRIB,
    phase: Phase::Last,
    run: Run::Graph(run),
    ..Pass::FUSION
};

/// The opset that has `RMSNormalization`.
const STANDARD: u32 = 23;

fn run(graph: &mut GraphMut<'_>, options: &Options) -> Changed {
    let nodes = graph.nodes();
    let model = &mut *graph.model;
    let older = options.opset < STANDARD;
    nodes.into_iter().filter(|_| older).filter(|&id| rename(model, id).is_some()).count() > 0
}

fn rename(model: &mut Model, id: NodeId) -> Option<()> {
    let node = Some(&model[id]).filter(|n| n.is("RMSNormalization"))?;
    let options = attrs::RMSNormalization::read(node).ok()?;
    let (dtype, shape) = model.tensor_type(node.input(0)?)?;
    let float = matches!(dtype, DType::F32 | DType::F64 | DType::F16 | DType::BF16);
    let last = options.axis == -1 || options.axis + 1 == shape.len() as i64;
    (float && last).then_some(())?;
    let inputs = node.inputs().to_vec();
    let attributes = Attributes::from_iter([
        ("axis".into(), (-1).into()),
        ("epsilon".into(), options.epsilon.into()),
        ("stash_type".into(), options.stash_type.into()),
    ]);
    rewrite::become_node(model, id, "SimplifiedLayerNormalization", &inputs, attributes);
    Some(())
}
