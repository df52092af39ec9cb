//! Warnings: what a model does not have or do as the program does, by kind.

use serde::Serialize;
use std::fmt;

/// A warning of an export, or of reading a model.
///
/// ```
/// use pt2onnx::{Exporter, WarningKind};
///
/// # let archive = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/models/mlp.pt2");
/// let program = Exporter::new().export(archive)?;
/// for warning in program.warnings().iter().filter(|w| w.kind != WarningKind::Training) {
///     eprintln!("{warning}");
/// }
/// # Ok::<(), pt2onnx::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Warning {
    /// What it is about.
    pub kind: WarningKind,
    /// The whole text.
    pub message: String,
}

/// What a warning is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WarningKind {
    /// An output of the program is no tensor, and left out.
    Output,
    /// A TorchScript program does for some sizes what the model does not.
    Specialised,
    /// The archive has other programs, too.
    Programs,
    /// The program was exported in training mode.
    Training,
    /// The program writes into tensors, and the new values are lost.
    State,
    /// The archive has no values for weights.
    Weights,
    /// The model draws random numbers.
    Random,
    /// A version is given for a domain that no node uses.
    Domain,
    /// No function was made of a module.
    Functions,
    /// The runtime has no kernel for a node.
    Target,
    /// A file has what is not kept.
    NotKept,
    /// A part of a model cannot be optimised.
    Unoptimised,
}

impl Warning {
    /// A warning.
    pub fn new(kind: WarningKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// Warnings of one kind.
    pub(crate) fn all(
        kind: WarningKind,
        messages: impl IntoIterator<Item = String>,
    ) -> impl Iterator<Item = Self> {
        messages.into_iter().map(move |message| Self { kind, message })
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
