//! Builds programs from the records of their JSON, node by node while it is read.
//!
//! Names are shared, and each distinct expression, target and module stack is parsed once.

mod arguments;
mod beside;
mod builder;
mod enums;
mod nodes;
mod program;
mod read;
mod stream;
mod values;

pub(crate) use enums::dtype;
pub(crate) use read::{Parsed, program};
