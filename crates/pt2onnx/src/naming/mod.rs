//! Names that the user gives to inputs, outputs and other values.

mod caches;
mod error;
mod find;
mod give;
mod spec;
mod tree;

pub use error::NameError;
pub(crate) use find::{entry, find, target};
pub(crate) use give::{finish, name};
