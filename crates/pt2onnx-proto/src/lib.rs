//! The ONNX protobuf messages, as prost makes them from `proto/onnx.proto`.
//!
//! Layer 0: knows no other crate of the workspace, and only pt2onnx-writer knows it. Nothing here
//! reads or writes files; [`prost::Message`] encodes and decodes.

mod onnx;

pub use onnx::*;
