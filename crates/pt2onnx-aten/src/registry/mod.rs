//! The registry: finds the translation of an op by the op's name. A translation is a lowering or an
//! ONNX function.

mod custom;
mod nearest;
mod table;
mod translation;

pub use table::Registry;
pub(crate) use translation::Custom;
pub use translation::{RegisterError, Translation};
