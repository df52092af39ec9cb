//! Compares two models.

use super::{DiffOptions, Differences, Section, facts::Facts};
use crate::edits::unified;
use pt2onnx_ir::Model;

/// Compares two models whose values have names. Types of inner values are compared where both
/// models have a value of that name. Other inner values show up in the text of their nodes.
pub fn diff(a: &Model, b: &Model, options: &DiffOptions) -> Differences {
    let facts = Facts::of(a, options).into_iter();
    let sections = facts
        .zip(Facts::of(b, options))
        .map(|(a, b)| Section { name: a.name, changes: a.changes(b) });
    let (a, b) = (nodes(a), nodes(b));
    Differences {
        sections: sections.filter(|s| !s.changes.is_empty()).collect(),
        graph: unified(&a, &b),
    }
}

/// The text of a model without its header.
fn nodes(model: &Model) -> String {
    let text = model.to_string();
    let nodes = text.split_once("\n{\n").map(|(_, nodes)| nodes);
    nodes.unwrap_or_default().to_owned()
}
