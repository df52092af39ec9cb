//! The ONNX protobuf messages, as prost makes them from `proto/onnx.proto`.
//!
//! Layer 0: knows no other crate of the workspace, and only pt2onnx-writer knows it. Nothing here
//! reads or writes files; [`prost::Message`] encodes and decodes. Alone it serves whoever wants
//! ONNX's messages without `protoc` and without a build script.
//!
//! ```
//! use prost::Message;
//! use pt2onnx_proto::{GraphProto, ModelProto};
//!
//! let graph = GraphProto { name: Some("main".to_owned()), ..Default::default() };
//! let model = ModelProto { ir_version: Some(10), graph: Some(graph), ..Default::default() };
//! assert_eq!(ModelProto::decode(&*model.encode_to_vec())?, model);
//! # Ok::<(), prost::DecodeError>(())
//! ```

#[path = "generated/onnx.rs"]
mod onnx;

pub use onnx::*;
pub use prost;

/// A message in memory.
#[derive(Debug)]
pub struct MessageFields {
    /// The bytes of the struct.
    pub size: usize,
    /// The fields that may take far more memory than bytes of a file, by their numbers.
    pub fields: &'static [(u32, InMemory)],
}

/// A field in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InMemory {
    /// A message, by its place in [`MESSAGES`].
    Message(usize),
    /// A list of texts.
    Text,
}

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
