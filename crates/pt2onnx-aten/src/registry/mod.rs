//! The registry: from an op's name to its translation.

mod custom;
mod nearest;
mod table;
mod translation;

pub use table::Registry;
pub(crate) use translation::Custom;
pub use translation::{RegisterError, Translation};
