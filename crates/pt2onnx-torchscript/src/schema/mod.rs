//! Schemas of PyTorch's operators, in the order in which PyTorch tries them.

mod list;
mod parse;
mod types;

pub use crate::schema::list::overloads;
pub use crate::schema::parse::{Param, Return, Schema};
pub use crate::schema::types::Type;
