//! Names that the user gives to inputs, outputs and other values.

mod assign;
mod caches;
mod error;
mod find;
mod spec;
mod tree;

pub(crate) use assign::{finish, name};
pub use error::NameError;
pub(crate) use find::{entry, find, target};
