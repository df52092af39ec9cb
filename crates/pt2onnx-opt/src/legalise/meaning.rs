//! Whether a node has the same meaning in two opsets.

use super::rules::{self, When};
use crate::opsets::OPSETS;
use pt2onnx_ir::{
    Model, NodeId, conforms,
    schema::{self, OpSchema},
};

/// Whether a node that was written for opset `written` means the same in opset `other`: all forms
/// of its operator between them take the node, and none changes its meaning.
pub fn means_the_same(model: &Model, node: NodeId, written: u32, other: u32) -> bool {
    let op = model[node].op();
    let (low, high) = (written.min(other), written.max(other));
    let since = |opset| schema::lookup(op, opset).map(|s| s.since);
    let oldest = since(low);
    if !model[node].domain.is_empty() || (oldest.is_some() && oldest == since(high)) {
        return true;
    }
    let steps = schema::versions(op).iter().map(|s| s.since);
    let mut between = steps.filter(|s| (low + 1..=high).contains(s));
    // There are no rules for changes before the oldest opset that is written.
    !outdated(model, node, low, high)
        && low >= *OPSETS.start()
        && fits(model, node, schema::lookup(op, low)).is_ok()
        && between.all(|step| {
            let kept = rules::at(op, step).is_none_or(|r| match r.when {
                When::Needed => true,
                When::Wider | When::Counted(_) => written == low,
                When::Always => false,
            });
            kept && fits(model, node, schema::lookup(op, step)).is_ok()
        })
}

/// Values of attributes that an operator has lost: operator, the opset without it, attribute,
/// value.
const LOST: &[(&str, u32, &str, &str)] =
    &[("Resize", 13, "coordinate_transformation_mode", "tf_half_pixel_for_nn")];

/// Whether a node has a value of an attribute that only the older one of two opsets knows, says too
/// little for the newer one, or has an output of another type there.
fn outdated(model: &Model, node: NodeId, low: u32, high: u32) -> bool {
    let untold = || {
        let data = &model[node];
        data.is("Split") && data.input(1).is_none() && data.attribute("num_outputs").is_none()
    };
    if low < 18 && high >= 18 && untold() {
        return true;
    }
    // Newer forms take one of scales and sizes.
    let scaled = || {
        let data = &model[node];
        data.is("Resize") && data.input(2).is_some() && data.input(3).is_some()
    };
    if low < 13 && high >= 13 && scaled() {
        return true;
    }
    // The mask was of the type of the data.
    let masked = || model[node].is("Dropout") && model[node].outputs().len() > 1;
    if low < 10 && high >= 10 && masked() {
        return true;
    }
    LOST.iter().any(|&(op, since, name, value)| {
        let between = low < since && since <= high;
        let has = || model[node].read::<&str>(name) == Ok(Some(value));
        between && model[node].is(op) && has()
    })
}

/// Checks whether a node conforms to a form of its operator.
pub(super) fn fits(model: &Model, id: NodeId, schema: Option<&OpSchema>) -> Result<(), String> {
    match schema.filter(|s| !s.deprecated) {
        Some(schema) => conforms(model, &model[id], schema),
        None => Err(format!("the opset has no operator {}", model[id].op())),
    }
}
