//! Why a model cannot be written for an opset.

use crate::opsets::OPSETS;
use pt2onnx_ir::AttributeError;
use std::fmt;

/// Why a model cannot be taken to an opset.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LegaliseError {
    /// The opset is not one that this version writes.
    #[error("opset {0} is not supported: it must be one of {first} to {last}", first = OPSETS.start(), last = OPSETS.end())]
    Opset(u32),
    /// The model is for a newer opset than the canonical one, or for an older one than it is asked to become.
    #[error("a model of opset {from} cannot be taken to opset {to}")]
    Direction {
        /// The model's opset.
        from: u32,
        /// The opset asked for.
        to: u32,
    },
    /// Some nodes have no form at that opset.
    #[error("the model needs opset {lowest}, opset {opset} cannot express:{}", List(failures))]
    Nodes {
        /// The opset asked for.
        opset: u32,
        /// The lowest opset that works.
        lowest: u32,
        /// Every node in the way.
        failures: Vec<Failure>,
    },
}

/// A node that an opset cannot express.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The node, with the source line it comes from if that is known.
    pub place: String,
    /// What is in the way.
    pub reason: String,
    /// The lowest opset that has it.
    pub lowest: u32,
}

struct List<'a>(&'a [Failure]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Failure { place, reason, lowest } in self.0 {
            write!(f, "\n  {place}: {reason} (opset {lowest} can)")?;
        }
        Ok(())
    }
}

/// Why a node has no older form.
#[derive(Debug)]
pub(super) struct Reason(pub String);

impl From<String> for Reason {
    fn from(reason: String) -> Self {
        Self(reason)
    }
}

impl From<&str> for Reason {
    fn from(reason: &str) -> Self {
        Self(reason.to_owned())
    }
}

impl From<AttributeError> for Reason {
    fn from(error: AttributeError) -> Self {
        Self(error.to_string())
    }
}
