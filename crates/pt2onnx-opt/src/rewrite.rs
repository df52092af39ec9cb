//! Replacing values and nodes.

use crate::Changed;
use pt2onnx_ir::{Model, NodeId, Value};

/// Lets the users of node `node`'s only output use `new`, and erases the node. Returns whether anything changed.
pub(crate) fn bypass(model: &mut Model, node: NodeId, new: Value) -> Changed {
    model.replace_all_uses(model[node].outputs()[0], new);
    model.erase(node)
}

/// Makes `node` another operator of ONNX's own domain; its outputs stay.
pub(crate) fn become_node(
    model: &mut Model,
    node: NodeId,
    op: &'static str,
    inputs: &[Option<Value>],
    attributes: pt2onnx_ir::Attributes,
) {
    model.set_inputs(node, inputs);
    model.set_op(node, op);
    model[node].domain = "".into();
    model[node].attributes = attributes;
}
