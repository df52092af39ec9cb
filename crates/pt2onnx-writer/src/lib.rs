//! ONNX graphs to protobuf files and external data.
//!
//! Layer 2, and the one crate that knows both the IR and protobuf. [`save`] streams: the graph is encoded in memory, weights go
//! from where they lie (mostly a mapped archive) to the file in pieces, so that memory is O(graph), never O(weights).
//! The same model gives the same bytes. [`read`](read()) is the way back, for models of any origin.
//! Alone it serves whoever has models in `pt2onnx-ir`; `examples/build.rs` builds, optimises and writes one.
//!
//! ```
//! use pt2onnx_ir::Model;
//!
//! let text = r#"<ir_version: 9, opset_import: ["" : 20]>
//! main_graph (float[n] x) => (float[n] y) { y = Relu (x) }"#;
//! let model: Model = text.parse()?;
//! let bytes = pt2onnx_writer::to_bytes(&model)?;
//! assert_eq!(pt2onnx_writer::from_bytes(bytes)?.to_string(), model.to_string());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![warn(clippy::as_conversions)]

mod copy;
mod error;
mod gather;
mod options;
mod pieces;
mod proto;
mod read;
mod save;
mod stream;
mod target;
mod texts;
mod types;

pub use error::Error;
pub use options::{SaveOptions, Weights};
pub use read::{ExternalData, Invalid, ReadError, Reading, from_bytes, read, read_with};
pub use save::{Saved, check, goes_external, save, save_observed};
pub use stream::to_bytes;
pub use target::{check_file, write_file};
