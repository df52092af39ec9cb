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

/// What becomes of data that lie in other files than the model's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExternalData {
    /// The files are mapped, and must be there.
    #[default]
    Mapped,
    /// The files are not looked for: such tensors have no values ([`Tensor::absent`](pt2onnx_tensor::Tensor::absent)).
    Ignored,
}

/// A model that was read.
#[derive(Debug)]
pub struct Reading {
    /// The model.
    pub model: Model,
    /// What the file has besides, and the model does not: `training information`.
    pub lost: Vec<&'static str>,
}

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
    Ok(warned(read_with(path, ExternalData::Mapped)?))
}

/// As [`read`], with a choice about data in other files; what is not kept is told, not logged.
///
/// # Errors
/// As [`read`].
pub fn read_with(path: impl AsRef<Path>, external: ExternalData) -> Result<Reading> {
    let (files, bytes) = Files::open(path.as_ref(), external)?;
    model(files, bytes)
}

/// Reads a model out of memory. It cannot refer to other files.
///
/// # Errors
/// As [`read`].
pub fn from_bytes(bytes: impl Into<Bytes>) -> Result<Model> {
    Ok(warned(model(Files::default(), bytes.into())?))
}

fn warned(reading: Reading) -> Model {
    for lost in &reading.lost {
        tracing::warn!("the model has {lost}, which are not kept");
    }
    reading.model
}

fn model(files: Files, bytes: Bytes) -> Result<Reading> {
    let proto = ModelProto::decode(bytes).map_err(|source| ReadError::Decode { source })?;
    Reader::new(files).model(proto)
}
