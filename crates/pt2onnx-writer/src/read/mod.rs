//! From ONNX files to the IR: models of any producer, IR version and opset.

mod error;
mod files;
mod graph;
mod tensor;
mod types;

pub use error::{Invalid, ReadError};

use bytes::Bytes;
use error::Result;
use files::Files;
use graph::Reader;
use prost::Message;
use pt2onnx_ir::Model;
use pt2onnx_proto::ModelProto;
use std::path::Path;

/// Reads a model. Its weights, in the file itself or in others beside it, are mapped and not read: the files must not change
/// while the model lives.
///
/// What the file says is kept as it is: opsets, nodes, names, types, metadata and words. Types of inner values are the
/// file's claim; nothing is inferred. What a model that was saved without weights says of them, a tensor without data or the
/// type of a value that nothing makes, is read as [`Tensor::absent`](pt2onnx_tensor::Tensor::absent). Not kept, with a warning: training information, device configurations,
/// quantisation annotations and denotations. Not kept, as nothing depends on them: initialisers that nothing uses, words
/// about attributes, and types of values inside functions. Initialisers of a body become constants of the model.
///
/// # Errors
/// See [`ReadError`]. No content of a file makes it panic.
pub fn read(path: impl AsRef<Path>) -> Result<Model> {
    let (files, bytes) = Files::open(path.as_ref())?;
    model(files, bytes)
}

/// Reads a model out of memory. It cannot refer to other files.
///
/// # Errors
/// As [`read`].
pub fn from_bytes(bytes: impl Into<Bytes>) -> Result<Model> {
    model(Files::default(), bytes.into())
}

fn model(files: Files, bytes: Bytes) -> Result<Model> {
    let proto = ModelProto::decode(bytes).map_err(|source| ReadError::Decode { source })?;
    Reader::new(files).model(proto)
}
