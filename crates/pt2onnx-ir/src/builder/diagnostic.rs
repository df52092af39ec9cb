//! Collects diagnostics: what the builder could not do.

use pt2onnx_symbolic::{MAX_DEPTH, MAX_SIZE};
use std::{fmt, ops::Deref};

/// Something that the builder could not do, such as a cast to a type that ONNX does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Diagnostic {
    /// The mistake of the caller.
    #[error("{0}")]
    Wrong(String),
    /// The expression of a size is a symbol that stands for one beyond the limits.
    #[error(
        "computes a size that is an expression of more than {MAX_SIZE} parts, or nested more than {MAX_DEPTH} deep. \
         Compute with fewer sizes, or make some static"
    )]
    LargeSize,
}

/// The diagnostics of a builder, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl std::error::Error for Diagnostics {}

/// One line for each.
impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, diagnostic) in self.0.iter().enumerate() {
            f.write_str(if i == 0 { "" } else { "\n" })?;
            diagnostic.fmt(f)?;
        }
        Ok(())
    }
}

impl Deref for Diagnostics {
    type Target = [Diagnostic];

    fn deref(&self) -> &[Diagnostic] {
        &self.0
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
