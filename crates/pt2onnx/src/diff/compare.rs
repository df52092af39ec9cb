//! Compares two models.

use super::{DiffOptions, Differences, Section, facts::Facts};
use pt2onnx_ir::Model;
use similar::{Algorithm, TextDiff};

/// Compares two models whose values have names. Types of inner values are compared where both models have a value of
/// that name. Other inner values show up in the text of their nodes.
pub fn diff(a: &Model, b: &Model, options: &DiffOptions) -> Differences {
    let facts = Facts::of(a, options).into_iter();
    let sections = facts
        .zip(Facts::of(b, options))
        .map(|(a, b)| Section { name: a.name, changes: a.changes(b) });
    let (a, b) = (nodes(a), nodes(b));
    let graph =
        TextDiff::configure().algorithm(Algorithm::Patience).diff_lines(a.as_str(), b.as_str());
    Differences {
        sections: sections.filter(|s| !s.changes.is_empty()).collect(),
        graph: graph.unified_diff().context_radius(1).to_string(),
    }
}

/// The text of a model without its header.
fn nodes(model: &Model) -> String {
    let text = model.to_string();
    let nodes = text.split_once("\n{\n").map(|(_, nodes)| nodes);
    nodes.unwrap_or_default().to_owned()
}
