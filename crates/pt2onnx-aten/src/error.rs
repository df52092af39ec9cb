//! What can go wrong between FX and ONNX.

use pt2onnx_fx::graph::Site;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

/// What a lowering gives: its output, or why there is none.
pub type Lowered<T = pt2onnx_ir::Value> = Result<T, LowerError>;

/// An argument that does not fit its parameter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("argument `{name}`: {what}")]
pub struct ArgError {
    /// The parameter.
    pub name: String,
    /// What is wrong.
    pub what: String,
}

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
    Argument(#[from] ArgError),
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
    Diagnostic(#[from] pt2onnx_ir::Diagnostic),
}

impl LowerError {
    /// This use of the op cannot be translated, for that reason.
    pub fn unsupported(what: impl Into<String>) -> Self {
        LowerError::Unsupported(what.into())
    }
}

fn hint(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|n| format!(" (the nearest that is: {n})")).unwrap_or_default()
}

/// A node that was not translated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{site}: {reason}")]
pub struct NodeError {
    /// The node.
    pub site: Site,
    /// Why.
    #[source]
    pub reason: LowerError,
}

/// An input, output or weight of the program that ONNX has nothing for.
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

/// The operators that nodes of each op became, by op as FX prints it: `aten.linear.default`, `Gemm`.
pub type Emitted = BTreeMap<String, BTreeSet<String>>;

/// Why a program cannot be translated: all that is in the way.
#[derive(Debug, Default, thiserror::Error)]
pub struct Error {
    /// Inputs and outputs.
    pub signature: Vec<SignatureError>,
    /// Nodes.
    pub nodes: Vec<NodeError>,
    /// What the others became.
    pub emitted: Emitted,
}

impl Error {
    /// Whether nothing is in the way.
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
