//! Errors of the translation from FX to ONNX.

use pt2onnx_fx::graph::Site;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

/// The result of a lowering: its outputs, or why it cannot translate the node.
pub type Lowered<T = pt2onnx_ir::Value> = Result<T, LowerError>;

/// An argument that does not fit its parameter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("argument `{name}`: {what}")]
pub struct ArgError {
    /// The parameter's name.
    pub name: String,
    /// The problem.
    pub what: String,
}

/// Why a lowering cannot translate its node.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LowerError {
    /// The op is not in the registry.
    #[error("no translation is registered for {op}{}", hint(.nearest))]
    UnknownOp {
        /// The op as FX prints it.
        op: String,
        /// The most similar op that is registered.
        nearest: Option<String>,
    },
    /// This use of the op cannot be translated.
    #[error("{0}")]
    Unsupported(String),
    /// The lowering does not take this argument: it has another type, or is out of range.
    #[error(transparent)]
    Argument(#[from] ArgError),
    /// An output does not have the type that PyTorch recorded. This is a bug of the lowering.
    #[error(
        "output {output} has type {emitted}, but PyTorch recorded {recorded} (a bug of pt2onnx: please report it)"
    )]
    WrongType {
        /// The output's number, from 0.
        output: usize,
        /// Its type in the model.
        emitted: String,
        /// Its type in the archive.
        recorded: String,
    },
    /// The op needs an argument that the node does not have: the archive is not valid.
    #[error("the argument `{0}` is missing, which the op needs")]
    MissingArgument(String),
    /// A problem that the builder found.
    #[error(transparent)]
    Diagnostic(#[from] pt2onnx_ir::Diagnostic),
}

impl LowerError {
    /// An error that says why this use of the op cannot be translated.
    pub fn unsupported(what: impl Into<String>) -> Self {
        LowerError::Unsupported(what.into())
    }

    /// An error for the name or number of a mode that PyTorch does not have: ``there is no padding
    /// mode `even` ``.
    pub fn unknown(what: &str, name: impl fmt::Display) -> Self {
        LowerError::Unsupported(format!("there is no {what} `{name}`"))
    }
}

fn hint(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|n| format!(" (the most similar supported op: {n})")).unwrap_or_default()
}

/// A node that was not translated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{site}: {reason}")]
pub struct NodeError {
    /// The node, and where it is in the user's model.
    pub site: Site,
    /// Why.
    pub reason: LowerError,
}

/// An input, output, weight or state of the program that an ONNX model cannot have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} `{name}`: {reason}")]
pub struct SignatureError {
    /// `input`, `output`, `weight` or `state`.
    pub what: &'static str,
    /// Its name.
    pub name: String,
    /// Why.
    pub reason: String,
}

impl SignatureError {
    /// The error that the input, output, weight or state `name` cannot be in the model.
    pub fn new(what: &'static str, name: &str, reason: &str) -> Self {
        Self { what, name: name.to_owned(), reason: reason.to_owned() }
    }
}

/// The operators that the nodes of each op became: `Gemm` for `aten.linear.default`. The keys are
/// ops as FX prints them.
pub type Emitted = BTreeMap<String, BTreeSet<String>>;

/// Everything that prevents the translation of a program.
#[derive(Debug, Default, thiserror::Error)]
pub struct Error {
    /// Errors of inputs, outputs, weights and state.
    pub signature: Vec<SignatureError>,
    /// Errors of nodes.
    pub nodes: Vec<NodeError>,
    /// The result for the other nodes.
    pub emitted: Emitted,
}

impl Error {
    /// Whether there is no error.
    pub fn is_empty(&self) -> bool {
        self.signature.is_empty() && self.nodes.is_empty()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("parts of the program cannot be translated:")?;
        self.signature.iter().try_for_each(|e| write!(f, "\n  {e}"))?;
        self.nodes.iter().try_for_each(|e| write!(f, "\n  {e}"))
    }
}
