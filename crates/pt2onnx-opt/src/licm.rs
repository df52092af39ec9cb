//! Loop-invariant code motion: nodes of bodies that can stand before the node of the body.

use crate::{Changed, cse};
use pt2onnx_ir::{Attribute, Def, Model, NodeId, RegionId, Traits, Value};
use pt2onnx_tensor::DType;

pub(crate) fn body(model: &Model, id: NodeId, name: &str) -> Option<RegionId> {
    match model[id].attribute(name)? {
        Attribute::Region(region) => Some(*region),
        _ => None,
    }
}

/// Whether a node of a body can stand before the body's node: it uses nothing of the body, computes
/// the same each time, and is not an output of the body, which would need another node.
pub(crate) fn is_movable(model: &Model, node: NodeId, region: RegionId) -> bool {
    let outside = |v: &Value| match model[*v].def() {
        Def::Node(n, _) => model[*n].region() != region,
        Def::Input(r, _) => *r != region,
        Def::Constant(_) => true,
    };
    let data = &model[node];
    data.regions().next().is_none()
        && cse::repeatable(model, node)
        && data.inputs().iter().flatten().all(outside)
        && !data.outputs().iter().any(|v| model[*v].is_output())
}

/// Moves nodes that compute the same in each iteration before the loop, if they cannot fail.
pub(crate) fn hoist(model: &mut Model, id: NodeId) -> Changed {
    let Some(region) = body(model, id, "body") else { return false };
    let of_text = |model: &Model, node: NodeId| {
        let input = model[node].input(0);
        model[node].is("Cast")
            && input.and_then(|x| model.dtype(x)).is_none_or(|t| t == DType::String)
    };
    let mut changed = false;
    for node in model.nodes(region).collect::<Vec<_>>() {
        let fails = !model[node].traits().contains(Traits::SPECULATABLE) || of_text(model, node);
        if !fails && is_movable(model, node, region) {
            changed |= model.move_before(node, id);
        }
    }
    changed
}
