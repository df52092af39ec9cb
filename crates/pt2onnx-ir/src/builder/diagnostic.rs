//! Collects diagnostics: what the builder could not do.

use std::{fmt, ops::Deref};

/// Something that the builder could not do, such as a cast to a type that ONNX does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Diagnostic(pub String);

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
