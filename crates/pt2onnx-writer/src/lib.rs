//! ONNX graphs to protobuf files and external data.
//!
//! Layer 2, and the one crate that knows both the IR and protobuf. [`save`] streams: the graph is encoded in memory, weights go
//! from where they lie (mostly a mapped archive) to the file in pieces, so that memory is O(graph), never O(weights).
//! The same model gives the same bytes. [`read`](read()) is the way back, for models of any origin.
#![warn(clippy::as_conversions)]

mod error;
mod proto;
mod read;
mod save;
mod stream;

pub use error::Error;
pub use read::{Invalid, ReadError, from_bytes, read};
pub use save::{Saved, Weights, check, check_file, save, write_file};
pub use stream::to_bytes;
