//! Why a model cannot be written for an opset.

use crate::OPSETS;
use pt2onnx_ir::AttributeError;
use std::fmt;

/// Why a model cannot be written for an opset.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LegaliseError {
    /// The opset is not one of [`OPSETS`].
    #[error("opset {0} is not supported: it must be one of {first} to {last}", first = OPSETS.start(), last = OPSETS.end())]
    Opset(u32),
    /// The model is for an opset above the canonical one, or below the one asked for.
    #[error("a model of opset {from} cannot be rewritten for opset {to}")]
    Direction {
        /// The model's opset.
        from: u32,
        /// The opset asked for.
        to: u32,
    },
    /// Nodes that have no newer form.
    #[error("the model of opset {from} cannot be rewritten for another opset:{}", Places(failures))]
    Newer {
        /// The model's opset.
        from: u32,
        /// The nodes.
        failures: Vec<Inexpressible>,
    },
    /// The model has functions, which are not rewritten.
    #[error("the functions of a model cannot be rewritten for another opset: inline them first")]
    Functions,
    /// Nodes that the opset cannot express.
    #[error("the model needs opset {lowest}; opset {opset} cannot express:{}", List(failures))]
    Nodes {
        /// The opset asked for.
        opset: u32,
        /// The lowest opset that works.
        lowest: u32,
        /// All nodes that cannot be expressed.
        failures: Vec<Inexpressible>,
    },
}

/// A node that an opset cannot express.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inexpressible {
    /// The node, with its source line if that is known.
    pub place: String,
    /// Why it cannot be expressed.
    pub reason: String,
    /// The lowest opset that can express it.
    pub lowest: u32,
}

struct List<'a>(&'a [Inexpressible]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Inexpressible { place, reason, lowest } in self.0 {
            write!(f, "\n  {place}: {reason} (opset {lowest} or newer)")?;
        }
        Ok(())
    }
}

struct Places<'a>(&'a [Inexpressible]);

impl fmt::Display for Places<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Inexpressible { place, reason, .. } in self.0 {
            write!(f, "\n  {place}: {reason}")?;
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
