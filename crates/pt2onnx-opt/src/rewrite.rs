//! Replacing values and nodes.

use crate::graph::Changed;
use pt2onnx_ir::{Attributes, Model, NodeId, Value};

/// Makes everything that uses `old` use `new`, a new value that takes its place: if a node computes `new` and it has no name, it
/// gets the name and type of `old`. `new` must dominate the users. Region outputs keep their names and types in any case.
///
/// To use an existing value instead, [`Model::replace_all_uses`] is enough. The node of `old` is not erased.
pub fn substitute(model: &mut Model, old: Value, new: Value) {
    // First, because region outputs take their names from `old`.
    model.replace_all_uses(old, new);
    if model[new].name.is_none() && model.producer(new).is_some() {
        model[new].name = model[old].name.take();
        model[new].ty = model[old].ty.clone().or(model[new].ty.take());
    }
}

/// Makes all users of a node's only output use the existing value `new` instead, and erases the node. `new` must dominate the
/// users. Returns whether anything changed; a node with another number of outputs is left as it is.
pub fn bypass(model: &mut Model, node: NodeId, new: Value) -> Changed {
    let [old] = *model[node].outputs() else {
        return false;
    };
    model.replace_all_uses(old, new);
    model.erase(node)
}

/// Makes a node another operator of ONNX's own domain, with these inputs and attributes. Its outputs stay.
pub fn become_node(
    model: &mut Model,
    node: NodeId,
    op: &'static str,
    inputs: &[Option<Value>],
    attributes: Attributes,
) {
    model.set_inputs(node, inputs);
    model.set_op(node, op);
    model[node].domain = "".into();
    model[node].attributes = attributes;
}
