//! Replaces a node by its results.

use crate::graph::Changed;
use pt2onnx_ir::{Model, NodeId};
use pt2onnx_tensor::Tensor;

/// Makes the used outputs of a node constants, and erases the node.
pub(super) fn by_constants(model: &mut Model, node: NodeId, results: Vec<Tensor>) -> Changed {
    let outputs = model[node].outputs().to_vec();
    for (output, tensor) in outputs.into_iter().zip(results) {
        if model[output].uses().len() > 0 {
            let constant = model.add_constant(tensor);
            model.replace_all_uses(output, constant);
        }
    }
    model.erase(node)
}
