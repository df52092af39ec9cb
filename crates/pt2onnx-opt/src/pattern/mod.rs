//! Patterns of nodes: read from text or from rules, and found in models.

mod attributes;
mod find;
mod function;
mod parse;
mod part;

pub use parse::PatternError;
pub use part::{Match, Pattern};
