//! Why a runtime cannot run a model.

use super::name::Target;
use std::{fmt, ops::RangeInclusive};

/// Why a runtime cannot run a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// The runtime does not read models of that opset.
    #[error("{target} reads opsets {} to {}, not {opset}", reads.start(), reads.end())]
    Opset {
        /// The runtime.
        target: Target,
        /// The model's opset.
        opset: u32,
        /// The opsets that the runtime reads.
        reads: RangeInclusive<u32>,
    },
    /// The runtime cannot run these nodes.
    #[error("{target} cannot run the model:{}", List(failures))]
    Nodes {
        /// The runtime.
        target: Target,
        /// All nodes that it cannot run.
        failures: Vec<Unrunnable>,
    },
}

/// A node that a runtime cannot run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unrunnable {
    /// The node, with its source line if that is known.
    pub place: String,
    /// The reason.
    pub reason: String,
}

struct List<'a>(&'a [Unrunnable]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Unrunnable { place, reason } in self.0 {
            write!(f, "\n  {place}: {reason}")?;
        }
        Ok(())
    }
}
