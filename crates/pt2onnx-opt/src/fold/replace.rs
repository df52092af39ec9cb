//! Replaces a node by its results.

use crate::{
    Changed,
    rewrite::{Operand, Rewrite},
};
use pt2onnx_ir::{FOLDED_FROM, Metadata, Model, NodeId, ORIGINAL_NAME};
use pt2onnx_tensor::Tensor;

/// At most this many weights or source nodes are named.
const MAX_NAMED: usize = 16;

/// Makes the used outputs of a node constants, which the nodes of `cone` compute.
pub(super) fn by_constants(
    model: &mut Model,
    node: NodeId,
    cone: &[NodeId],
    results: Vec<Tensor>,
) -> Changed {
    let outputs = model[node].outputs().to_vec();
    let metadata = provenance(model, cone);
    let constants = results.into_iter().map(|t| Operand::Folded(t, metadata.clone()));
    Rewrite::replace(node, &outputs, constants).apply(model)
}

/// The metadata of a constant: the weights that went into it, or else the source nodes.
fn provenance(model: &Model, cone: &[NodeId]) -> Metadata {
    let mut weights: Vec<&str> = Vec::new();
    let inputs = cone.iter().rev().flat_map(|n| model[*n].inputs()).flatten();
    for data in inputs.map(|v| &model[*v]).filter(|d| d.constant().is_some()) {
        let entry = |key: &str| data.metadata.iter().find(|(k, _)| k == key).map(|(_, t)| &**t);
        let names = match (&data.name, entry(ORIGINAL_NAME)) {
            (Some(name), _) => name.as_str(),
            (None, Some(_)) => entry(FOLDED_FROM).unwrap_or_default(),
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
