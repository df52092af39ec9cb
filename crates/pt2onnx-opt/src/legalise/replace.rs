//! Replaces a node by others.

use super::error::Reason;
use crate::rewrite;
use pt2onnx_ir::{Builder, InsertPoint, Model, Node, NodeId, Value};
use pt2onnx_symbolic::Constraints;

pub(super) enum Rewritten {
    InPlace,
    /// The node has the wanted form, and new nodes in the canonical form stand before or after it.
    Surrounded,
    /// Nodes in the canonical form replace it.
    Replaced,
}

/// The result of a rule; the error is the reason why it does not apply.
pub(super) type Outcome = Result<Rewritten, Reason>;

/// The values that replace the outputs of a node.
pub(super) type Emitted = Result<Vec<Value>, Reason>;

/// Emits nodes before a node, in the canonical form, with its origins.
pub(super) fn before<T>(
    model: &mut Model,
    id: NodeId,
    emit: impl FnOnce(&Builder, &Node) -> Result<T, Reason>,
) -> Result<T, Reason> {
    let node = model[id].clone();
    // `s0` may not follow from a size such as `s0 // 2 + 1`, but other sizes need it.
    let around = if node.region() == Model::MAIN { model.inputs().to_vec() } else { Vec::new() };
    let cx = Builder::new(model, InsertPoint::Before(id), Constraints::default());
    cx.set_origins(&node.origins);
    for value in node.inputs().iter().flatten().chain(&around) {
        cx.bind_dims(*value);
    }
    let made = emit(&cx, &node)?;
    match cx.take_diagnostics().first() {
        Some(diagnostic) => Err(diagnostic.to_string().into()),
        None => Ok(made),
    }
}

/// Replaces a node by what `emit` emits in the canonical form: a value for each output.
pub(super) fn replace(
    model: &mut Model,
    id: NodeId,
    emit: impl FnOnce(&Builder, &Node) -> Emitted,
) -> Outcome {
    let made = before(model, id, emit)?;
    let outputs = model[id].outputs().to_vec();
    for (old, new) in outputs.into_iter().zip(made) {
        rewrite::substitute(model, old, new);
    }
    if model.erase(id) {
        Ok(Rewritten::Replaced)
    } else {
        Err("not all of its outputs can be expressed in older opsets".into())
    }
}
