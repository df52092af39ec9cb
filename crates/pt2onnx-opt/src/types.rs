//! Types of models that others made: what follows from the inputs, instead of what a file claims.

use crate::{
    aside,
    sizes::{self, Contents},
};
use pt2onnx_ir::{Builder, InsertPoint, Model, NodeId, RegionId};
use pt2onnx_symbolic::Constraints;

/// Gives values the types that follow from those of inputs and constants. Where nothing follows, as of operators of other
/// domains, the model's own claims stay.
pub fn infer_types(model: &mut Model) {
    aside::each_graph(model, |model| {
        infer(model);
    });
}

/// [`infer_types`] of the graph that passes work on, and the sizes it computes.
pub(crate) fn infer(model: &mut Model) -> Contents {
    let root = model.root();
    let cx = Builder::new(model, InsertPoint::End(root), Constraints::default());
    let mut found = Contents::default();
    region(&cx, root, &mut found);
    found
}

fn region(cx: &Builder, region_id: RegionId, found: &mut Contents) {
    let nodes: Vec<NodeId> = cx.model().nodes(region_id).collect();
    for id in nodes {
        let bodies: Vec<RegionId> = cx.model()[id].regions().collect();
        bodies.into_iter().for_each(|body| region(cx, body, found));
        if !known(&cx.model(), id) {
            continue;
        }
        // Inputs that do not fit, in a model that nobody proved, are its maker's business.
        let Ok(types) = cx.inferred(id) else {
            continue;
        };
        let outputs = cx.model()[id].outputs().to_vec();
        for (&value, ty) in outputs.iter().zip(types) {
            if let Some(ty) = ty {
                cx.set_type(value, ty);
            }
        }
        if let (Some(elements), [value]) = (sizes::contents(cx, id), outputs.as_slice()) {
            cx.set_contents(*value, elements.clone());
            found.insert(*value, elements);
        }
    }
}

/// Whether the rules for types hold of the node.
fn known(model: &Model, id: NodeId) -> bool {
    let node = &model[id];
    // Values that a loop carries may change their sizes; how many windows there are with `ceil_mode`, opsets differ in.
    let carries = matches!(node.op(), "Loop" | "Scan");
    let rounds = node.int("ceil_mode").is_some_and(|c| c != 0);
    node.domain.is_empty() && !carries && !rounds
}
