//! What can go wrong between FX and ONNX.

use std::fmt;

/// What a lowering gives: its output, or why there is none.
pub type Lowered<T = pt2onnx_ir::Value> = Result<T, LowerError>;

/// Why a lowering cannot translate its node.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LowerError {
    /// The op is not in the registry.
    #[error("no translation is registered for {op}{}", hint(.nearest))]
    UnknownOp {
        /// The op.
        op: String,
        /// The most similar op that is registered.
        nearest: Option<String>,
    },
    /// This use of the op cannot be translated.
    #[error("{0}")]
    Unsupported(String),
    /// An argument is of a kind that the lowering does not take, or out of range.
    #[error(transparent)]
    Argument(#[from] crate::ArgError),
    /// What was emitted has another type than what PyTorch recorded: a bug of the lowering.
    #[error(
        "output {output} came out as {emitted}, PyTorch recorded {recorded} (a bug of pt2onnx: please report it)"
    )]
    WrongType {
        /// Which output.
        output: usize,
        /// Its type as emitted.
        emitted: String,
        /// Its type in the archive.
        recorded: String,
    },
    /// Something that the builder could not do.
    #[error(transparent)]
    Fault(#[from] pt2onnx_ir::Fault),
}

impl LowerError {
    /// This use of the op cannot be translated, for that reason.
    pub fn unsupported(what: impl Into<String>) -> Self {
        LowerError::Unsupported(what.into())
    }
}

fn hint(nearest: &Option<String>) -> String {
    nearest
        .as_ref()
        .map(|n| format!(" (the nearest that is: {n})"))
        .unwrap_or_default()
}

/// A node that was not translated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeError {
    /// Name of the FX node.
    pub node: String,
    /// Its op.
    pub op: String,
    /// Innermost line of the user's source, as `file.py:12`, and that line's text.
    pub location: Option<String>,
    /// Path of the module it ran in.
    pub module: Option<String>,
    /// Why.
    pub reason: LowerError,
}

impl fmt::Display for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (node `{}`", self.op, self.node)?;
        if let Some(module) = self.module.as_ref().filter(|m| !m.is_empty()) {
            write!(f, " in module {module}")?;
        }
        if let Some(location) = &self.location {
            write!(f, ", {location}")?;
        }
        write!(f, "): {}", self.reason)
    }
}

/// Why a program cannot be translated.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nodes without translation, all that there are.
    #[error("{} of the program's nodes cannot be translated:{}", .0.len(), lines(.0))]
    Nodes(Vec<NodeError>),
    /// The program's inputs or outputs are of a kind that ONNX has nothing for.
    #[error("{what} `{name}`: {reason}")]
    Signature {
        /// `input` or `output`.
        what: &'static str,
        /// Its name.
        name: String,
        /// Why.
        reason: String,
    },
}

fn lines(errors: &[NodeError]) -> String {
    errors.iter().map(|e| format!("\n  {e}")).collect()
}
