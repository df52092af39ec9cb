//! Replaces a node by its results.

use crate::graph::Changed;
use pt2onnx_ir::{FOLDED_FROM, Metadata, Model, NodeId, ORIGINAL_NAME};
use pt2onnx_tensor::Tensor;

/// At most this many weights or source nodes are named.
const MAX_NAMED: usize = 16;

/// Makes the used outputs of a node constants, and erases the node. `cone` has the nodes from which
/// they were computed.
pub(super) fn by_constants(
    model: &mut Model,
    node: NodeId,
    cone: &[NodeId],
    results: Vec<Tensor>,
) -> Changed {
    let outputs = model[node].outputs().to_vec();
    let metadata = provenance(model, cone);
    for (output, tensor) in outputs.into_iter().zip(results) {
        if model[output].uses().len() > 0 {
            let constant = model.add_constant(tensor);
            model[constant].metadata.clone_from(&metadata);
            model.replace_all_uses(output, constant);
        }
    }
    model.erase(node)
}

/// What a constant computed by these nodes says of itself: the weights that went into it, or else
/// the source nodes, if the model tells about those.
fn provenance(model: &Model, cone: &[NodeId]) -> Metadata {
    let mut weights: Vec<&str> = Vec::new();
    let inputs = cone.iter().rev().flat_map(|n| model[*n].inputs()).flatten();
    for data in inputs.map(|v| &model[*v]).filter(|d| d.constant().is_some()) {
        let said = |key: &str| data.metadata.iter().find(|(k, _)| k == key).map(|(_, t)| &**t);
        let names = match (&data.name, said(ORIGINAL_NAME)) {
            (Some(name), _) => name.as_str(),
            (None, Some(_)) => said(FOLDED_FROM).unwrap_or_default(),
            (None, None) => continue,
        };
        for name in names.split(", ").filter(|n| !n.is_empty()) {
            if weights.len() < MAX_NAMED && !weights.contains(&name) {
                weights.push(name);
            }
        }
    }
    if let Some(first) = weights.first() {
        return vec![
            (ORIGINAL_NAME.into(), (*first).into()),
            (FOLDED_FROM.into(), weights.join(", ").into()),
        ];
    }
    let mut nodes: Vec<&str> = Vec::new();
    let origins = cone.iter().rev().flat_map(|n| &model[*n].origins).map(|o| &model[*o]);
    for origin in origins.filter(|o| !o.metadata.is_empty() && !o.node.is_empty()) {
        if nodes.len() < MAX_NAMED && !nodes.contains(&origin.node.as_str()) {
            nodes.push(&origin.node);
        }
    }
    if nodes.is_empty() {
        Metadata::new()
    } else {
        vec![(FOLDED_FROM.into(), nodes.join(", ").into())]
    }
}
