//! Comparing two models: named facts, and the nodes as text.

mod compare;
mod differences;
mod facts;

pub use compare::diff;
pub use differences::{Change, DiffOptions, Differences, Section};
pub use facts::fingerprint;
