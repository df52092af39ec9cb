//! Rewrites models of older opsets for the canonical one.

mod extensions;
mod oldest;
mod raise;

use super::{error::Reason, meaning::means_the_same, replace::Done};
use crate::opsets::OPSETS;
use pt2onnx_ir::{
    Model, NodeId, conforms,
    schema::{self, CANONICAL_OPSET},
};
use raise::raise;

/// Makes a node that was written for an older opset one of the canonical form. With `alike`, only
/// if legalisation can make it the older one again.
///
/// # Errors
/// What cannot be expressed. The node is then unchanged.
pub(crate) fn ascend(
    model: &mut Model,
    id: NodeId,
    written: u32,
    alike: bool,
) -> Result<(), String> {
    let before = model[id].clone();
    let done = canonical(model, id, written, alike);
    let conforming = match &done {
        Ok(Done::Replaced) => return Ok(()),
        Ok(_) => fits(model, id),
        Err(Reason(reason)) => Err(reason.clone()),
    };
    if conforming.is_err() {
        model.set_op(id, before.op().to_owned());
        model.set_inputs(id, before.inputs());
        model[id].attributes = before.attributes;
    }
    conforming
}

/// One version after the other.
fn canonical(model: &mut Model, id: NodeId, written: u32, alike: bool) -> Result<Done, Reason> {
    if written < *OPSETS.start()
        && let Done::Replaced = oldest::raise(model, id, written)?
    {
        return Ok(Done::Replaced);
    }
    let written = written.max(*OPSETS.start());
    if means_the_same(model, id, written, CANONICAL_OPSET) {
        Ok(Done::Kept)
    } else {
        raise(model, id, written, alike)
    }
}

fn fits(model: &Model, id: NodeId) -> Result<(), String> {
    let node = &model[id];
    match schema::lookup(node.op(), CANONICAL_OPSET) {
        Some(schema) => conforms(model, node, schema),
        None => Err(format!("opset {CANONICAL_OPSET} has no operator {}", node.op())),
    }
}
