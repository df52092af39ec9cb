//! The differences between two models, and options of the comparison.

use crate::printable::line;
use std::fmt::{self, Display, Formatter};

/// The optional parts that [`diff`](crate::diff()) compares, besides opsets, inputs, outputs,
/// operators, nodes, names and types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiffOptions {
    /// Whether to compare the elements of weights, which reads all of them.
    pub weights: bool,
    /// Whether to compare the metadata and `doc_string`s of models, graphs, values and nodes.
    pub metadata: bool,
}

impl Default for DiffOptions {
    fn default() -> Self {
        Self { weights: true, metadata: false }
    }
}

/// How two models differ. It displays as text for people.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Differences {
    /// The kinds of differences. Kinds without differences are left out.
    pub sections: Vec<Section>,
    /// A unified diff of the text of nodes, bodies and functions; empty if all are the same.
    pub graph: String,
}

/// Differences of one kind.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Section {
    /// Their kind: `opsets`, `inputs`, `outputs`, `operators`, `weights`, `values`, `nodes` or
    /// `metadata`.
    pub name: &'static str,
    /// Each difference.
    pub changes: Vec<Change>,
}

/// A fact in which the models differ.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Change {
    /// The name of a value, of an operator or of a key.
    pub what: String,
    /// The fact in the first model; `None` if it has no such thing.
    pub a: Option<String>,
    /// The fact in the second model; `None` if it has no such thing.
    pub b: Option<String>,
}

impl Differences {
    /// Whether the models do not differ.
    pub fn is_empty(&self) -> bool {
        self.sections.is_empty() && self.graph.is_empty()
    }
}

impl Display for Differences {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for section in &self.sections {
            writeln!(f, "{}:", section.name)?;
            for Change { what, a, b } in &section.changes {
                let says = |said: &Option<String>| said.clone().unwrap_or_else(|| "-".to_owned());
                writeln!(f, "  {}: {} | {}", line(what), line(&says(a)), line(&says(b)))?;
            }
        }
        if !self.graph.is_empty() {
            writeln!(f, "graph:")?;
        }
        for text in self.graph.lines() {
            writeln!(f, "  {}", line(text))?;
        }
        Ok(())
    }
}
