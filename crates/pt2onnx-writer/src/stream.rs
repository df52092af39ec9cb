//! Bytes of a model, one tensor at a time.
//!
//! Protobuf writes the length of a message in front of it, so the sizes of all parts are added up first. `prost` does
//! every message but the two that hold weights, the model and its graph: those are framed here, initialisers last.

use crate::{
    Error,
    proto::{Initialiser, Parts, entry, parts},
};
use bytes::Bytes;
use prost::Message;
use pt2onnx_ir::Model;
use pt2onnx_proto::{TensorProto, tensor_proto::DataLocation};
use pt2onnx_tensor::{FileRange, Tensor};
use std::{
    borrow::Cow,
    collections::HashMap,
    fs::File,
    io::{self, Write},
};

/// Protobuf counts the bytes of a message in an `int`.
pub(crate) const MAX_MODEL: u64 = 0x7fff_ffff;

/// Tensors of fewer bytes stay in the model file: shapes and scalars, which runtimes want to see without opening a second
/// file, and which would waste most of an aligned place.
pub(crate) const MIN_EXTERNAL: u64 = 1024;

/// External tensors begin at multiples of this, a page, so that runtimes can map them.
pub(crate) const ALIGNMENT: u64 = 4096;

/// How much of a weight is in memory at a time.
const PIECE: usize = 1 << 20;

/// Keys of length-delimited fields: `field << 3 | 2`.
const MODEL_GRAPH: u8 = 7 << 3 | 2;
const GRAPH_INITIALIZER: u8 = 5 << 3 | 2;
const TENSOR_RAW_DATA: u8 = 9 << 3 | 2;

/// The model as one file, weights and all.
///
/// # Errors
/// [`Error::TooLarge`] above 2 GiB, and what else [`Error`] has besides files.
pub fn to_bytes(model: &Model) -> Result<Bytes, Error> {
    let stream = Stream::new(model)?;
    stream.complete()?;
    let size = stream.size();
    if size > MAX_MODEL {
        return Err(Error::TooLarge(size));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    stream.write(&mut bytes).map_err(Error::Weight)?;
    Ok(bytes.into())
}

/// A model ready to be written.
pub(crate) struct Stream<'a> {
    parts: Parts<'a>,
    external: Vec<External<'a>>,
}

/// A tensor that goes to the data file.
struct External<'a> {
    offset: u64,
    tensor: &'a Tensor,
}

impl<'a> Stream<'a> {
    pub fn new(model: &'a Model) -> Result<Self, Error> {
        Ok(Self {
            parts: parts(model)?,
            external: Vec::new(),
        })
    }

    /// Whether all weights have values.
    pub fn complete(&self) -> Result<(), Error> {
        match self.parts.declared.as_slice() {
            [] => Ok(()),
            absent => Err(Error::NoData(absent.to_vec())),
        }
    }

    /// Moves all but the small initialisers to a file of that name. Tensors over the same bytes get one place.
    pub fn externalise(&mut self, location: &str) {
        let (mut end, mut places) = (0u64, HashMap::new());
        for Initialiser { proto, tensor } in &mut self.parts.initialisers {
            let length = wide(tensor.nbytes());
            if length < MIN_EXTERNAL || tensor.storage().is_none() {
                continue;
            }
            let mut place = || {
                let offset = end.next_multiple_of(ALIGNMENT);
                end = offset + length;
                self.external.push(External { offset, tensor });
                offset
            };
            let offset = match contiguous(tensor) {
                Some(bytes) => *places
                    .entry((bytes.as_ptr(), bytes.len()))
                    .or_insert_with(place),
                None => place(),
            };
            proto.data_location = Some(DataLocation::External.into());
            proto.external_data = vec![
                entry("location", location.to_owned()),
                entry("offset", offset.to_string()),
                entry("length", length.to_string()),
            ];
        }
    }

    /// Bytes of the model file.
    pub fn size(&self) -> u64 {
        let graph = self.graph_size();
        wide(self.parts.model.encoded_len()) + framed(graph)
    }

    /// Bytes of the data file, 0 if there is none.
    pub fn data_size(&self) -> u64 {
        self.external
            .last()
            .map_or(0, |e| e.offset + wide(e.tensor.nbytes()))
    }

    fn graph_size(&self) -> u64 {
        let initialisers = self.parts.initialisers.iter().map(|i| framed(i.size()));
        wide(self.parts.graph.encoded_len()) + initialisers.sum::<u64>()
    }

    /// Writes the model file.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(&self.parts.model.encode_to_vec())?;
        frame(out, MODEL_GRAPH, self.graph_size())?;
        out.write_all(&self.parts.graph.encode_to_vec())?;
        for initialiser in &self.parts.initialisers {
            frame(out, GRAPH_INITIALIZER, initialiser.size())?;
            out.write_all(&initialiser.proto.encode_to_vec())?;
            if let Some(length) = initialiser.raw() {
                frame(out, TENSOR_RAW_DATA, length)?;
                elements(initialiser.tensor, out)?;
            }
        }
        Ok(())
    }

    /// Writes the data file.
    pub fn write_data(&self, out: &mut impl Write) -> io::Result<()> {
        let mut at = 0;
        for External { offset, tensor } in &self.external {
            io::copy(&mut io::Read::take(io::repeat(0), offset - at), out)?;
            elements(tensor, out)?;
            at = offset + wide(tensor.nbytes());
        }
        Ok(())
    }
}

impl Initialiser<'_> {
    /// Bytes of its `raw_data`, if it has that field.
    fn raw(&self) -> Option<u64> {
        let TensorProto { data_location, .. } = &self.proto;
        (data_location.is_none() && self.tensor.as_strings().is_none())
            .then(|| wide(self.tensor.nbytes()))
    }

    fn size(&self) -> u64 {
        wide(self.proto.encoded_len()) + self.raw().map_or(0, framed)
    }
}

/// Bytes of a length-delimited field with a key of one byte.
fn framed(length: u64) -> u64 {
    let digits = (64 - (length | 1).leading_zeros()).div_ceil(7);
    1 + u64::from(digits) + length
}

fn frame(out: &mut impl Write, key: u8, length: u64) -> io::Result<()> {
    let mut head = vec![key];
    prost::encode_length_delimiter(
        usize::try_from(length).map_err(io::Error::other)?,
        &mut head,
    )?;
    out.write_all(&head)
}

/// The bytes of a tensor that lies contiguous.
fn contiguous(tensor: &Tensor) -> Option<&[u8]> {
    match tensor.to_bytes() {
        Cow::Borrowed(bytes) if tensor.is_contiguous() => Some(bytes),
        _ => None,
    }
}

/// Writes a tensor's elements in row-major order, in pieces. Those of a file are read, not mapped: the memory stays free,
/// and a file that was cut short meanwhile is an error instead of a fault.
fn elements(tensor: &Tensor, out: &mut impl Write) -> io::Result<()> {
    let source = tensor.storage().and_then(|s| s.source());
    if let (Some(source), true) = (source, tensor.is_contiguous() && tensor.nbytes() > PIECE) {
        return copy(
            source,
            wide(tensor.offset() * tensor.dtype().bits() / 8),
            tensor.nbytes(),
            out,
        );
    }
    match (rows(tensor), tensor.nbytes() > PIECE) {
        (Some(mut rows), true) if !tensor.is_contiguous() => {
            rows.try_for_each(|row| elements(&row, out))
        }
        _ => out.write_all(&tensor.to_bytes()),
    }
}

/// The sub-tensors along the first dimension that is not 1.
fn rows(tensor: &Tensor) -> Option<impl Iterator<Item = Tensor> + '_> {
    let (storage, strides) = (tensor.storage()?, tensor.strides().into_owned());
    let axis = tensor.shape().iter().position(|&s| s > 1)?;
    let (&size, shape) = tensor.shape().get(axis..)?.split_first()?;
    let (&stride, inner) = strides.get(axis..)?.split_first()?;
    let inner = inner.to_vec();
    Some((0..size).filter_map(move |i| {
        let offset = tensor.offset() + i * stride;
        // Part of a view that was checked, so it cannot fail.
        Tensor::strided(
            tensor.dtype(),
            shape,
            inner.clone(),
            offset,
            storage.clone(),
        )
        .ok()
    }))
}

fn copy(source: &FileRange, start: u64, length: usize, out: &mut impl Write) -> io::Result<()> {
    let mut buffer = vec![0; PIECE.min(length)];
    let (mut at, mut left) = (source.offset + start, length);
    while left > 0 {
        let piece = &mut buffer[..PIECE.min(left)];
        read_exact_at(&source.file, piece, at)
            .map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", source.path.display())))?;
        out.write_all(piece)?;
        at += wide(piece.len());
        left -= piece.len();
    }
    Ok(())
}

/// Reads without moving the file's cursor, which others share.
#[cfg(unix)]
fn read_exact_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, at)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut buffer: &mut [u8], mut at: u64) -> io::Result<()> {
    while !buffer.is_empty() {
        let n = std::os::windows::fs::FileExt::seek_read(file, buffer, at)?;
        if n == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        buffer = &mut buffer[n..];
        at += wide(n);
    }
    Ok(())
}

/// No platform has a `usize` of more than 64 bits.
fn wide(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}
