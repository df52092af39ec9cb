//! Schemas of PyTorch's operators, in the order in which PyTorch tries them.

mod list;
mod parse;
mod types;

pub use list::overloads;
pub use parse::{Param, Return, Schema};
pub use types::Type;
