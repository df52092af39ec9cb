//! Reads ONNX files: models of any producer, IR version and opset.

mod decoded_size;
mod error;
mod files;
mod graph;
mod node;
mod open;
mod order;
mod reading;
mod sparse;
mod tensor;
mod types;

pub use error::{Invalid, ReadError};
pub(crate) use open::decode;
pub use open::{from_bytes, read, read_parts, read_with};
pub use reading::{ExternalData, Reading};
