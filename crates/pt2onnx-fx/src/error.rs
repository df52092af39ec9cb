//! Errors of reading archives and of passes.

use crate::{
    graph::{Name, Site},
    schema::MAJOR,
};
use pt2onnx_symbolic::ParseError;
use pt2onnx_tensor::TensorError;
use std::{fmt, path::PathBuf, sync::Arc};

/// An error: what is wrong, where, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages are the documentation of variants and fields")]
#[non_exhaustive]
pub enum Error {
    #[error("{}: {error}", path.display())]
    Io { path: Arc<PathBuf>, error: std::io::Error },

    #[error(
        "{place}: not a .pt2 archive: {found}. Write one with `torch.export.save(exported_program, path)`"
    )]
    Layout { place: Place, found: NotAnArchive },

    #[error(
        "{place}: not tensors as PyTorch 1.6 and newer save them: {found}. \
         Load it in PyTorch and write it with `torch.save(model.state_dict(), path)`"
    )]
    Saved { place: Place, found: NotAnArchive },

    #[error(
        "{place}: the zip directory cannot be read, the file may be truncated or damaged: {error}"
    )]
    Zip { place: Place, error: zip::result::ZipError },

    #[error("{place}: record `{record}` {problem}")]
    Record { place: Place, record: String, problem: RecordProblem },

    #[error("{place}: {problem}")]
    Pickle { place: Place, problem: PickleProblem },

    #[error("{place}: the archive holds several models, name one of: {}", models.join(", "))]
    WhichModel { place: Place, models: Vec<String> },

    #[error("{place}: no model `{model}` in the archive, it holds: {}", models.join(", "))]
    NoModel { place: Place, model: String, models: Vec<String> },

    #[error("{place}: does not match the export schema: {error}")]
    Json { place: Place, error: serde_json::Error },

    #[error(
        "{place}: written with export schema {}.{} by torch {torch_version}, this reads up to {}.x. \
         Use a newer pt2onnx, or an older PyTorch to export",
        found.0, found.1, MAJOR
    )]
    SchemaVersion { place: Place, found: (u32, u32), torch_version: String },

    #[error("{place}: {what} {name}: {error}")]
    Tensor {
        place: Place,
        /// "weight", "constant".
        what: &'static str,
        name: String,
        error: Box<TensorError>,
    },

    #[error(
        "{place}: {what} {name} is stored as a Python pickle (a tensor subclass?), which is never executed. \
         Export the model with plain tensors"
    )]
    Pickled { place: Place, what: &'static str, name: String },

    #[error("{place}: the archive has no data for {what} {name}, which the program uses")]
    MissingTensor { place: Place, what: &'static str, name: String },

    #[error(
        "{place}: the tensors need {bytes} bytes more than their records hold, because views repeat elements; \
         the limit is {limit}"
    )]
    Repeated { place: Place, bytes: usize, limit: usize },

    #[error("{place}: {invalid}")]
    Invalid { place: Place, invalid: Box<Invalid> },

    #[error("{site}: {problem}")]
    Pass { site: Box<Site>, problem: PassProblem },
}

/// The result of reading an archive or of a pass.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Where in the input something is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// A file.
    File(Arc<PathBuf>),
    /// A record of an archive.
    Record(Arc<PathBuf>, String),
    /// A program given in memory.
    Memory,
}

impl Place {
    /// The place of a record in it.
    pub fn within(&self, name: &str) -> Self {
        match self {
            Place::File(path) => Place::Record(path.clone(), name.to_owned()),
            Place::Record(path, zip) => Place::Record(path.clone(), format!("{zip}/{name}")),
            Place::Memory => Place::Memory,
        }
    }

    /// The error that no tensor can be made of what is stored for one.
    pub(crate) fn tensor(&self, what: &'static str, name: &str, error: TensorError) -> Error {
        Error::Tensor { place: self.clone(), what, name: name.to_owned(), error: Box::new(error) }
    }

    /// The error that something is wrong with a record in it.
    pub(crate) fn record(&self, record: &str, problem: RecordProblem) -> Error {
        Error::Record { place: self.clone(), record: record.to_owned(), problem }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File(path) => write!(f, "{}", path.display()),
            Place::Record(path, record) => write!(f, "{}, record `{record}`", path.display()),
            Place::Memory => f.write_str("the program's JSON"),
        }
    }
}

/// Kinds of files that are not readable `.pt2` archives.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages are the documentation")]
#[non_exhaustive]
pub enum NotAnArchive {
    #[error("it is empty")]
    Empty,
    #[error("it is not a zip file")]
    NotZip,
    #[error("it is {0}")]
    Other(&'static str),
    #[error("it is JSON text; give the archive instead")]
    Json,
    #[error("it is already an ONNX model or another protobuf file")]
    Protobuf,
    #[error("it is a safetensors file, which holds tensors but no program")]
    Safetensors,
    #[error("it is a Python pickle, as old versions of `torch.save` wrote")]
    Pickle,
    #[error("it is a tar file, as the oldest versions of `torch.save` wrote")]
    Tar,
    #[error("it is what `torch.jit.save` writes (TorchScript)")]
    TorchScript,
    #[error(
        "it is a mobile module of PyTorch (a flatbuffer `.ptl`), which has no code that can be read"
    )]
    Mobile,
    #[error("it is what `torch.save` writes, which holds tensors but no program")]
    TorchSave,
    #[error("it holds an AOTInductor package (compiled code), not an exported program")]
    AotInductor,
    #[error("it is a zip file without `models/NAME.json`; it holds {0}")]
    NoProgram(String),
    #[error("it is a zip file without `data.pkl`; it holds {0}")]
    NoPickle(String),
    #[error("it says to be in format `{0}`, version `{1}`; `pt2`, version `0` is known")]
    Format(String, String),
    #[error("its data are big-endian")]
    BigEndian,
}

/// A fault of a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages are the documentation")]
#[non_exhaustive]
pub enum RecordProblem {
    #[error("is missing")]
    Missing,
    #[error("is compressed; archives of `torch.export.save` never are, store it (`zip -0`)")]
    Compressed,
    #[error("cannot be inflated; the archive is damaged")]
    Deflate,
    #[error("has more than {limit} bytes")]
    Large { limit: usize },
    #[error("is encrypted")]
    Encrypted,
    #[error("claims bytes {start} to {end} of a file of {len}; the file may be truncated")]
    OutOfFile { start: u64, end: u64, len: u64 },
    #[error("overlaps record `{0}`; the archive is damaged")]
    Overlaps(String),
    #[error("occurs twice; the archive is damaged")]
    Twice,
    #[error("has a wrong checksum; the archive is damaged")]
    Checksum,
}

/// A fault of a pickle. Pickles are read as data: nothing in them is imported or called.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages are the documentation")]
#[non_exhaustive]
pub enum PickleProblem {
    #[error("a pickle of protocol {0}, 2 to 5 are read")]
    Protocol(u8),
    #[error("ends in the middle of a pickle, the file may be damaged")]
    Truncated,
    #[error("the pickle's opcode {code} at byte {at} is not supported")]
    Opcode { code: u8, at: usize },
    #[error("the pickle refers to `{0}`, a class that is not supported: only plain tensors are")]
    Global(String),
    #[error("the pickle makes an object in an unsupported way")]
    Call,
    #[error("the pickle sets attributes of {0}")]
    Attributes(String),
    #[error("the pickle reads values from an empty stack, the file may be damaged")]
    Stack,
    #[error("the pickle reads value {0} that it has not stored, the file may be damaged")]
    Memo(u32),
    #[error("text in the pickle is not UTF-8")]
    Utf8,
    #[error("the pickle has an integer of more than 64 bits")]
    Number,
    #[error("the values of the pickle take more than {limit} bytes, far more than the file has")]
    Large { limit: usize },
    #[error("its storages are big-endian")]
    BigEndian,
    #[error("holds {0}, not a dict of tensors: save `model.state_dict()`")]
    NoDict(String),
    #[error("a name in the dict is {0}, not a str")]
    Key(String),
    #[error("`{name}` is {what}, not a plain tensor")]
    NoTensor { name: String, what: String },
    #[error("constant `{0}` is not in base 64")]
    Base64(String),
    #[error("`{0}` is described in an unsupported way")]
    Malformed(String),
}

/// A fault of a program in well-formed JSON.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages are the documentation")]
#[non_exhaustive]
pub enum Invalid {
    #[error("{owner}: `{text}` cannot be parsed: {error}")]
    Expression { owner: String, text: String, error: ParseError },
    #[error("{owner}: {value} is not among the values of {of} that are known")]
    Enum { owner: String, of: &'static str, value: i64 },
    #[error("{owner}: {value} has more than 64 bits")]
    Integer { owner: String, value: i128 },
    #[error("{owner}: {what} must be a known integer, 0 or more")]
    NotStatic { owner: String, what: &'static str },
    #[error("{owner}: no tensor has the sizes {sizes}")]
    Impossible { owner: String, sizes: String },
    #[error("{owner}: has no `tensor_meta`")]
    NoTensorMeta { owner: String },
    #[error("the signature has {specs} {what} specifications, the graph {what}s: {graph}")]
    Arity { what: &'static str, specs: usize, graph: usize },
    #[error("the value {0} is defined twice")]
    DefinedTwice(Name),
    #[error("node {node} reads {name}, which nothing before it defines")]
    Undefined { node: Name, name: Name },
}

/// Why a pass cannot handle a node.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages are the documentation")]
#[non_exhaustive]
pub enum PassProblem {
    #[error(
        "writes into memory that `{view}` shares, or may share, with `{base}` in an unsupported way. \
         Use the out-of-place operation in the model, or `clone()` one of them"
    )]
    WriteThroughView { base: Name, view: Name },
    #[error(
        "writes into `{view}`, whose elements share memory (`expand`, `unfold`, `as_strided`), so that the result is \
         undefined. `clone()` it first"
    )]
    Overlap { view: Name },
    #[error(
        "writes into `{name}`, an argument of its body, but {why}. Use the out-of-place operation and return the result"
    )]
    WriteToOperand { name: Name, why: &'static str },
    #[error("makes its tensor larger, and the new elements are undefined")]
    Grows,
    #[error(
        "returns nothing, so it must write into one of its tensors, but the archive does not say into which. \
         Let the operator return the new value"
    )]
    NothingReturned,
    #[error("uses `{name}`, but the archive does not give its type")]
    NoMeta { name: Name },
    #[error("has no known functional variant. Use another operation in the model")]
    NoVariant,
    #[error("passes arguments to its body in an unsupported way")]
    Body,
    #[error(
        "runs under autocast, but the archive records its result as if it did not (PyTorch 2.15 does so with `strict=True`). \
         Export the model with `strict=False`"
    )]
    WithoutAutocast,
}
