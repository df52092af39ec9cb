//! Types of models of other producers: they follow from the inputs, instead of being read from the file.

use crate::{
    graph::GraphMut,
    opaque,
    sizes::{self, Computed},
};
use pt2onnx_ir::{Builder, InsertPoint, Model, NodeId, RegionId};
use pt2onnx_symbolic::Constraints;

/// Sets the types that follow from the types of inputs and constants. Where nothing follows, as for operators of other domains,
/// the model's types are kept.
pub fn infer_types(model: &mut Model) {
    opaque::each_graph(model, |graph| {
        infer(graph, None);
    });
}

/// [`infer_types`] for one graph; returns the sizes that it computes. Opaque nodes that were written for opset `raised` become
/// nodes of the canonical form where that is possible.
pub(crate) fn infer(graph: &mut GraphMut<'_>, raised: Option<u32>) -> Computed {
    let at = InsertPoint::End(graph.region);
    let cx = Builder::new(&mut *graph.model, at, Constraints::default());
    let mut found = Computed::default();
    region(&cx, graph.region, raised, &mut found);
    found
}

fn region(cx: &Builder, region_id: RegionId, raised: Option<u32>, found: &mut Computed) {
    let nodes: Vec<NodeId> = cx.model().nodes(region_id).collect();
    for id in nodes {
        if let Some(written) = raised {
            cx.edit(|model| opaque::raise(model, id, written));
        }
        let bodies: Vec<RegionId> = cx.model()[id].regions().collect();
        let own = raised.filter(|_| cx.model()[id].domain.is_empty());
        bodies.into_iter().for_each(|body| region(cx, body, own, found));
        if !known(&cx.model(), id) {
            continue;
        }
        // Nobody has verified the model: a type that cannot be inferred is not an error.
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

/// Whether the rules for types hold for the node.
fn known(model: &Model, id: NodeId) -> bool {
    let node = &model[id];
    // Values that a loop carries may change their sizes. Opsets count windows differently with `ceil_mode`.
    let carries = matches!(node.op(), "Loop" | "Scan");
    let rounds = node.read("ceil_mode") == Ok(Some(true));
    node.domain.is_empty() && !carries && !rounds
}
