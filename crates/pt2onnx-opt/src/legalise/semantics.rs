//! Whether a node has the same meaning in two opsets.

use super::steps::{self, When};
use crate::OPSETS;
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
    let kept = |since: u32| {
        steps::at(op, since).is_none_or(|step| {
            let superset = match step.when {
                When::IfUnsupported => true,
                When::Superset | When::NegativeIndices(_) => written == low,
                When::Always => false,
            };
            superset && !step.changed_meaning.is_some_and(|changed| changed(model, node))
        })
    };
    let mut between = schema::versions(op).iter().filter(|s| (low + 1..=high).contains(&s.since));
    // No steps are known before the oldest opset that is written.
    low >= *OPSETS.start()
        && conforms_to(model, node, schema::lookup(op, low)).is_ok()
        && between.all(|form| kept(form.since) && conforms_to(model, node, Some(form)).is_ok())
}

pub(super) fn conforms_to(
    model: &Model,
    id: NodeId,
    schema: Option<&OpSchema>,
) -> Result<(), String> {
    match schema.filter(|s| !s.deprecated) {
        Some(schema) => conforms(model, &model[id], schema),
        None => Err(format!("the opset has no operator {}", model[id].op())),
    }
}
