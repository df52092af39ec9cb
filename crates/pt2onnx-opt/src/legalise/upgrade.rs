//! Rewrites nodes of older opsets into the canonical form.

use super::{
    Outcome, Reason, Rewritten,
    semantics::{conforms_to, means_the_same},
    steps,
    up::extensions,
};
use crate::OPSETS;
use pt2onnx_ir::{
    Model, NodeId,
    schema::{self, CANONICAL_OPSET},
};

/// Makes a node that was written for an older opset one of the canonical form. Types of its inputs
/// are known. `reversible` allows only single nodes that legalisation can make the older one again.
///
/// # Errors
/// The canonical form has no such node, or too little is known of it. The node is then unchanged.
pub(crate) fn upgrade(
    model: &mut Model,
    id: NodeId,
    written: u32,
    reversible: bool,
) -> Result<(), String> {
    let before = model[id].clone();
    let conforming = match rewrite(model, id, written, reversible) {
        Ok(Rewritten::Replaced) => return Ok(()),
        Ok(_) => conforms_to(model, id, schema::lookup(model[id].op(), CANONICAL_OPSET)),
        Err(Reason(reason)) => Err(reason),
    };
    if conforming.is_err() {
        model.set_op(id, before.op().to_owned());
        model.set_inputs(id, before.inputs());
        model[id].attributes = before.attributes;
    }
    conforming
}

/// Goes to opset 7 first, then to the canonical one.
fn rewrite(model: &mut Model, id: NodeId, written: u32, reversible: bool) -> Outcome {
    let oldest = *OPSETS.start();
    if written < oldest {
        // These attributes only specified how to compute.
        for name in ["consumed_inputs", "output_sequence"] {
            model[id].remove_attribute(name);
        }
        if let Some(up) = steps::up(model[id].op(), form(model, id, written), oldest)
            && let Rewritten::Replaced = up(model, id, reversible)?
        {
            return Ok(Rewritten::Replaced);
        }
    }
    let written = written.max(oldest);
    if means_the_same(model, id, written, CANONICAL_OPSET) {
        return Ok(Rewritten::InPlace);
    }
    let form = form(model, id, written);
    let op = model[id].op();
    match steps::up(op, form.max(oldest), CANONICAL_OPSET) {
        Some(up) => up(model, id, reversible),
        None if form == 0 && !reversible => extensions::upgrade(model, id, written),
        None if form > CANONICAL_OPSET => {
            Err(format!("the change of {op} in opset {form} has no older form").into())
        }
        None => Err(format!("{op} of opset {form} has no newer form").into()),
    }
}

fn form(model: &Model, id: NodeId, opset: u32) -> u32 {
    schema::lookup(model[id].op(), opset).filter(|s| !s.deprecated).map_or(0, |s| s.since)
}
