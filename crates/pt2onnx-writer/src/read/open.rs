//! Opens a file or bytes and reads the model.

use super::{
    decoded_size::decoded_size,
    error::{ReadError, Result},
    files::Files,
    graph::Reader,
    reading::{ExternalData, Reading},
};
use bytes::Bytes;
use prost::Message;
use pt2onnx_ir::Model;
use pt2onnx_proto::{MODEL, ModelProto};
use std::path::Path;

/// Reads a model. Weights, in the model's file or in others beside it, are mapped and not read: the
/// files must not change while the model lives.
///
/// Opsets, nodes, names, types, metadata and doc strings are those of the file. Types of inner
/// values are the file's; nothing is inferred. Weights without values become
/// [`Tensor::absent`](pt2onnx_tensor::Tensor::absent): tensors without data, and values that have a
/// type but nothing computes.
///
/// Not kept, with a warning: training information, device configurations, quantization annotations
/// and denotations. Not kept, because nothing depends on them: unused initialisers, doc strings of
/// attributes, and types of values inside functions. Initialisers of a body become constants of the
/// model.
///
/// # Errors
/// See [`ReadError`]. No file makes it panic.
pub fn read(path: impl AsRef<Path>) -> Result<Model> {
    Ok(warned(read_with(path, ExternalData::Mapped)?))
}

/// As [`read`], with a choice about data in other files. Parts that are not kept are returned
/// instead of logged.
///
/// # Errors
/// As [`read`].
pub fn read_with(path: impl AsRef<Path>, external: ExternalData) -> Result<Reading> {
    let (files, bytes) = Files::open(path.as_ref(), external)?;
    model(files, bytes)
}

/// Reads a model from memory. It cannot refer to other files.
///
/// # Errors
/// As [`read`].
pub fn from_bytes(bytes: impl Into<Bytes>) -> Result<Model> {
    Ok(warned(model(Files::default(), bytes.into())?))
}

/// Reads a model from memory, whose external data are `data`, by location: what
/// [`to_parts`](crate::to_parts) gives. Nothing of these is copied.
///
/// # Errors
/// As [`read`].
pub fn read_parts(
    bytes: impl Into<Bytes>,
    data: impl IntoIterator<Item = (String, Bytes)>,
) -> Result<Reading> {
    model(Files::in_memory(data), bytes.into())
}

/// A model may take so many times the bytes of its file in memory, and this many bytes besides.
const MAX_GROWTH: usize = 20;
const ALWAYS: usize = 16 << 20;

fn warned(reading: Reading) -> Model {
    for lost in &reading.lost {
        tracing::warn!("the model has {lost}, which are not kept");
    }
    reading.model
}

fn model(files: Files, bytes: Bytes) -> Result<Reading> {
    let proto = decode(bytes)?;
    Reader::new(files).model(proto)
}

/// The messages of a model's file.
pub(crate) fn decode(bytes: Bytes) -> Result<ModelProto> {
    let most = bytes.len().saturating_mul(MAX_GROWTH).saturating_add(ALWAYS);
    if decoded_size(&bytes, MODEL, most) > most {
        return Err(ReadError::Memory(bytes.len()));
    }
    ModelProto::decode(bytes).map_err(|error| {
        // `prost` has no kind of errors.
        if error.to_string().contains("recursion limit reached") {
            ReadError::Nested
        } else {
            ReadError::Decode { error }
        }
    })
}
