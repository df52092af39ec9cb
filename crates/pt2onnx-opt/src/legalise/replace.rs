//! Replacing a node by others, and what a rule reports.

use super::error::Reason;
use crate::rewrite;
use pt2onnx_ir::{Builder, InsertPoint, Model, Node, NodeId, Value};
use pt2onnx_symbolic::Constraints;

/// What became of a node.
pub(super) enum Done {
    /// It stands, in the form of an older opset.
    Kept,
    /// It stands so, and other nodes, in the canonical form, feed it or take what it gives.
    Fed,
    /// Other nodes, in the canonical form, do what it did.
    Replaced,
}

/// Replaces a node by what `emit` builds in its place: one value for each of its outputs, in the canonical form.
pub(super) fn replace(
    model: &mut Model,
    id: NodeId,
    emit: impl FnOnce(&Builder, &Node) -> Result<Vec<Value>, Reason>,
) -> Result<Done, Reason> {
    let node = model[id].clone();
    let cx = Builder::new(model, InsertPoint::Before(id), Constraints::default());
    cx.set_origins(&node.origins);
    for value in node.inputs().iter().flatten() {
        cx.bind_dims(*value);
    }
    let made = emit(&cx, &node)?;
    if let Some(fault) = cx.take_faults().first() {
        return Err(fault.to_string().into());
    }
    drop(cx);
    for (&old, new) in node.outputs().iter().zip(made) {
        if model[new].name.is_none() && model.producer(new).is_some() {
            model[new].name = model[old].name.take();
            model[new].ty = model[old].ty.clone().or(model[new].ty.clone());
        }
        rewrite::substitute(model, old, new);
    }
    match model.erase(id) {
        true => Ok(Done::Replaced),
        false => Err("not all of its outputs have an older form".into()),
    }
}
