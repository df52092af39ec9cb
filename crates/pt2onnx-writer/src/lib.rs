//! Writes and reads ONNX files: protobuf with external data.
//!
//! The crate is named after what is most of it. The module `read` is the other direction: it is
//! here because both share the protobuf messages, the names of external data, and the list of files
//! that were read and must not be written ([`Inputs`]).
//!
//! Layer 3, and the one crate that knows both the IR and protobuf. It works on any model in
//! `pt2onnx-ir`; `examples/build.rs` builds, optimises and writes one.
//!
//! - [`save`] verifies a model and writes it, completely or not at all. Large graphs are encoded in
//!   parts, weights are copied from where they are (mostly a mapped archive) in pieces: memory is
//!   O(graph), not O(weights). The same model gives the same bytes.
//! - [`read`](read()) reads models of any producer.
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
#![warn(clippy::as_conversions, missing_debug_implementations)]

mod arrange;
mod batch;
mod compute;
mod copy;
mod encoded;
mod error;
mod fields;
mod file_identity;
mod gather;
mod inputs;
mod moored;
mod options;
mod output_file;
mod parts;
mod proto;
mod read;
mod save;
mod scratch;
mod sink;
mod stream;
mod strings;
mod types;

pub use arrange::goes_external;
pub use batch::{Batch, Saved};
pub use error::Error;
pub use inputs::Inputs;
pub use options::{MAX_ALIGNMENT, SaveOptions, Weights, is_alignment};
pub use output_file::Output;
pub use proto::is_initializer;
pub use pt2onnx_ir as ir;
pub use read::{
    ExternalData, Invalid, ReadError, Reading, from_bytes, read, read_parts, read_with,
};
pub use save::{check, save};
pub use stream::{Apart, InParts, to_bytes, to_bytes_unverified, to_parts, to_parts_unverified};

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
