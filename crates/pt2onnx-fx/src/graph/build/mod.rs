//! From the JSON's records to the model: names interned, each distinct expression, target and module stack parsed once.

mod arguments;
mod builder;
mod enums;
mod nodes;
mod program;
mod read;
mod values;

pub(crate) use enums::dtype;
pub(crate) use read::{Parsed, program};
