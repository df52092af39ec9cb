//! Writes a model, one tensor at a time.
//!
//! In protobuf, the length of a message comes before it, so the sizes of all parts are computed
//! first. `prost` encodes all messages but the two that contain weights, the model and its graph.
//! These are written here, with the initialisers at the end.

use crate::{
    compute::computed,
    copy::wide,
    error::{Error, MAX_MODEL},
    gather::{gather, gather_int4},
    options::{SaveOptions, is_alignment},
    parts::{Initialiser, Parts},
    scratch::Scratch,
    sink::{FileSink, Sink},
    strings::entry,
};
use bytes::Bytes;
use prost::Message;
use pt2onnx_ir::Model;
use pt2onnx_proto::{TensorProto, tensor_proto::DataLocation};
use pt2onnx_tensor::{FileRange, Tensor};
use std::{
    collections::HashMap,
    io::{self, Write},
};

/// Keys of length-delimited fields: `field << 3 | 2`.
const MODEL_GRAPH: u8 = 7 << 3 | 2;
const GRAPH_INITIALIZER: u8 = 5 << 3 | 2;
const TENSOR_RAW_DATA: u8 = 9 << 3 | 2;

/// The model with its weights as one file.
///
/// # Errors
/// [`Error::Invalid`], [`Error::TooLarge`] above 2 GiB, and other errors that do not concern files.
pub fn to_bytes(model: &Model) -> Result<Bytes, Error> {
    bytes(model, &SaveOptions::default())
}

/// Does the same as [`to_bytes`], for a model that was verified.
///
/// # Errors
/// Those of [`to_bytes`] but [`Error::Invalid`].
pub fn to_bytes_unverified(model: &Model) -> Result<Bytes, Error> {
    bytes(model, &SaveOptions { verify: false, ..SaveOptions::default() })
}

fn bytes(model: &Model, options: &SaveOptions) -> Result<Bytes, Error> {
    let stream = Stream::new(model, options)?;
    stream.complete()?;
    stream.into_bytes()
}

/// A model whose larger weights stand beside it: what a runtime takes that can be given weights in
/// memory.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InParts {
    /// The model file. Each of the weights below is external data there.
    pub model: Bytes,
    /// The weights, in the order of the initialisers. Their elements are where they were; those
    /// that are computed are in memory.
    pub weights: Vec<Apart>,
}

/// A weight that stands beside its model.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Apart {
    /// The name of the initialiser.
    pub name: String,
    /// The `location` of its external data in the model: `pt2onnx:0`. All of it is this weight, in
    /// row-major order.
    pub location: String,
    /// The weight.
    pub tensor: Tensor,
}

/// The model, and its weights of at least `threshold` bytes beside it. Nothing of these is copied.
///
/// ```
/// use pt2onnx_ir::Model;
///
/// let text = r#"<ir_version: 9, opset_import: ["" : 20]>
/// main_graph (float[2] x) => (float[2] y) <float[2] w = {1.0, 2.0}> { y = Add (x, w) }"#;
/// let parts = pt2onnx_writer::to_parts(&text.parse::<Model>()?, 8)?;
/// assert_eq!((parts.weights[0].name.as_str(), parts.weights[0].tensor.nbytes()), ("w", 8));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`Error::Invalid`], [`Error::TooLarge`] if what is left exceeds 2 GiB, and other errors that do
/// not concern files.
pub fn to_parts(model: &Model, threshold: u64) -> Result<InParts, Error> {
    parts(model, threshold, &SaveOptions::default())
}

/// Does the same as [`to_parts`], for a model that was verified.
///
/// # Errors
/// Those of [`to_parts`] but [`Error::Invalid`].
pub fn to_parts_unverified(model: &Model, threshold: u64) -> Result<InParts, Error> {
    parts(model, threshold, &SaveOptions { verify: false, ..SaveOptions::default() })
}

fn parts(model: &Model, threshold: u64, options: &SaveOptions) -> Result<InParts, Error> {
    let mut stream = Stream::new(model, options)?;
    stream.complete()?;
    let mut weights = Vec::new();
    for Initialiser { proto, tensor } in &mut stream.parts.initialisers {
        pt2onnx_cancel::check();
        if let Some(length) = external_length(tensor, threshold) {
            let location = format!("pt2onnx:{}", weights.len());
            refer(proto, &location, 0, length);
            let name = proto.name().to_owned();
            let tensor = tensor.evaluated().map_err(Error::weight)?;
            weights.push(Apart { name, location, tensor });
        }
    }
    Ok(InParts { model: stream.into_bytes()?, weights })
}

/// A model ready to be written.
pub(crate) struct Stream<'a> {
    parts: Parts<'a>,
    files: Vec<DataFile<'a>>,
}

/// A data file.
#[derive(Default)]
pub(crate) struct DataFile<'a> {
    pub name: String,
    tensors: Vec<External<'a>>,
}

/// A tensor that goes to a data file.
struct External<'a> {
    offset: u64,
    tensor: &'a Tensor,
}

impl<'a> Stream<'a> {
    pub fn new(model: &'a Model, options: &SaveOptions) -> Result<Self, Error> {
        if !is_alignment(options.alignment) {
            return Err(Error::Alignment(options.alignment));
        }
        let parts = Parts::new(model, options)?;
        if options.verify {
            pt2onnx_ir::verify_imported(model).map_err(Error::Invalid)?;
        }
        Ok(Self { parts, files: Vec::new() })
    }

    /// Checks that all weights have values.
    pub fn complete(&self) -> Result<(), Error> {
        match self.parts.declared.as_slice() {
            [] => Ok(()),
            absent => Err(Error::NoData(absent.to_vec())),
        }
    }

    /// Assigns all but the small initialisers to data files. Equal views of the same bytes are
    /// written once. `name` is the name of the file; if there are several, each gets a number.
    pub fn externalise(&mut self, options: &SaveOptions, name: &str) {
        let mut places: HashMap<Look, (usize, u64)> = HashMap::new();
        let mut placed = Vec::new();
        for Initialiser { proto, tensor } in &mut self.parts.initialisers {
            let Some(length) = external_length(tensor, options.threshold) else {
                continue;
            };
            let mut place = || {
                let end = self.files.last().map_or(0, DataFile::size);
                let most = options.shard_size.unwrap_or(u64::MAX);
                let offset = end
                    .checked_next_multiple_of(options.alignment)
                    .filter(|offset| offset.checked_add(length).is_some_and(|end| end <= most));
                let offset = offset.filter(|_| !self.files.is_empty()).unwrap_or_else(|| {
                    self.files.push(DataFile::default());
                    0
                });
                if let Some(file) = self.files.last_mut() {
                    file.tensors.push(External { offset, tensor });
                }
                (self.files.len() - 1, offset)
            };
            let (file, offset) = *places.entry(look(tensor)).or_insert_with(&mut place);
            placed.push((proto, file, offset, length));
        }
        let count = self.files.len();
        for (i, file) in self.files.iter_mut().enumerate() {
            file.name = match count {
                1 => name.to_owned(),
                _ => numbered(name, i + 1, count),
            };
        }
        for (proto, file, offset, length) in placed {
            let name = self.files.get(file).map_or("", |f| f.name.as_str());
            refer(proto, name, offset, length);
        }
    }

    /// Makes initialisers refer to the files that they come from, under the names that `locate`
    /// gives. Small ones, and those that are not contiguous there, are written to the model file.
    pub fn link(
        &mut self,
        options: &SaveOptions,
        mut locate: impl FnMut(&FileRange) -> Result<String, Error>,
    ) -> Result<(), Error> {
        for Initialiser { proto, tensor } in &mut self.parts.initialisers {
            let source = tensor.storage().and_then(|s| s.source());
            let length = external_length(tensor, options.threshold);
            let (Some(source), Some(length), true) = (source, length, tensor.is_contiguous())
            else {
                continue;
            };
            let offset = source.offset.saturating_add(wide(start(tensor)));
            refer(proto, &locate(source)?, offset, length);
        }
        Ok(())
    }

    /// Bytes of the model file.
    pub fn size(&self) -> u64 {
        let graph = self.graph_size();
        wide(self.parts.model.encoded_len()) + framed(graph)
    }

    /// The data files, in order.
    pub fn files(&self) -> &[DataFile<'a>] {
        &self.files
    }

    fn graph_size(&self) -> u64 {
        let initialisers = self.parts.initialisers.iter().map(|i| framed(i.size()));
        wide(self.parts.graph.len()) + initialisers.sum::<u64>()
    }

    /// The model file.
    fn into_bytes(self) -> Result<Bytes, Error> {
        let size = self.size();
        if size > MAX_MODEL {
            return Err(Error::TooLarge(size));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
        self.write(&mut bytes).map_err(Error::weight)?;
        Ok(bytes.into())
    }

    /// Writes the model file. Each part is dropped after it is written.
    pub fn write(self, out: &mut impl Sink) -> io::Result<()> {
        out.write_all(&self.parts.model.encode_to_vec())?;
        frame(out, MODEL_GRAPH, self.graph_size())?;
        self.parts.graph.write(out)?;
        let mut scratch = Scratch::default();
        for initialiser in self.parts.initialisers {
            pt2onnx_cancel::check();
            frame(out, GRAPH_INITIALIZER, initialiser.size())?;
            out.write_all(&initialiser.proto.encode_to_vec())?;
            if let Some(length) = initialiser.raw() {
                frame(out, TENSOR_RAW_DATA, length)?;
                elements(initialiser.tensor, out, &mut scratch)?;
            }
        }
        Ok(())
    }
}

impl DataFile<'_> {
    /// The bytes of the file.
    pub fn size(&self) -> u64 {
        let last = self.tensors.last();
        last.map_or(0, |e| e.offset + wide(e.tensor.nbytes()))
    }

    /// Writes the file.
    pub fn write(&self, out: &mut FileSink) -> io::Result<()> {
        let (mut at, mut scratch) = (0, Scratch::default());
        for External { offset, tensor } in &self.tensors {
            out.skip(offset - at)?;
            elements(tensor, out, &mut scratch)?;
            at = offset + wide(tensor.nbytes());
        }
        Ok(())
    }
}

/// Bytes of a tensor that is written to a data file; `None` for strings and for tensors that stay
/// in the model file.
fn external_length(tensor: &Tensor, threshold: u64) -> Option<u64> {
    let length = wide(tensor.nbytes());
    let bytes = tensor.storage().is_some() || tensor.compute().is_some();
    (length >= threshold.max(1) && bytes).then_some(length)
}

fn refer(proto: &mut TensorProto, location: &str, offset: u64, length: u64) {
    proto.data_location = Some(DataLocation::External.into());
    proto.external_data = vec![
        entry("location", location.to_owned()),
        entry("offset", offset.to_string()),
        entry("length", length.to_string()),
    ];
}

/// Equal for tensors with the same bytes when written: address of the first element, number of
/// bytes, and shape and strides if not contiguous.
type Look = (usize, usize, Option<(Vec<usize>, Vec<usize>)>);

fn look(tensor: &Tensor) -> Look {
    let begin = tensor.address() + start(tensor);
    let lie = || (tensor.shape().to_vec(), tensor.strides().into_owned());
    let strided = (!tensor.is_contiguous()).then(lie);
    (begin, tensor.nbytes(), strided)
}

/// `NAME-00001-of-00002.data` for `NAME.data`.
fn numbered(name: &str, number: usize, count: usize) -> String {
    let (stem, end) = match name.rsplit_once('.') {
        Some((stem, end)) => (stem, format!(".{end}")),
        None => (name, String::new()),
    };
    format!("{stem}-{number:05}-of-{count:05}{end}")
}

impl Initialiser<'_> {
    /// Bytes of the field `raw_data`, if there is one.
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
    prost::encode_length_delimiter(usize::try_from(length).map_err(io::Error::other)?, &mut head)?;
    out.write_all(&head)
}

/// Writes a tensor's elements in row-major order. Elements in a file are read or copied, not
/// mapped: this keeps memory free, and a truncated file is an error instead of a crash.
fn elements(tensor: &Tensor, out: &mut impl Sink, scratch: &mut Scratch) -> io::Result<()> {
    if !tensor.is_contiguous() {
        return gather(tensor, out, scratch);
    }
    if let Some(compute) = tensor.compute() {
        let codes = compute.unpacked().filter(|codes| !codes.is_contiguous());
        if codes.map_or(Ok(false), |codes| gather_int4(codes, out, scratch))? {
            return Ok(());
        }
        return computed(&**compute, tensor.nbytes(), out, scratch);
    }
    match tensor.storage().and_then(|s| s.source()) {
        Some(source) => out.copy(source, wide(start(tensor)), wide(tensor.nbytes())),
        None => out.write_all(&tensor.to_bytes()),
    }
}

/// Bytes from the start of the storage to the first element.
fn start(tensor: &Tensor) -> usize {
    tensor.offset() * tensor.dtype().bits() / 8
}
