//! Everything that can be wrong with an archive or a program.

use crate::{
    graph::{Name, Site},
    schema::MAJOR,
};
use pt2onnx_symbolic::ParseError;
use pt2onnx_tensor::TensorError;
use std::{fmt, path::PathBuf, sync::Arc};

/// What is wrong, where, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages are the documentation of variants and fields")]
#[non_exhaustive]
pub enum Error {
    #[error("{}: {source}", path.display())]
    Io { path: Arc<PathBuf>, source: std::io::Error },

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
        "{place}: the zip directory cannot be read, the file may be truncated or damaged: {source}"
    )]
    Zip { place: Place, source: zip::result::ZipError },

    #[error("{place}: record `{record}` {problem}")]
    Record { place: Place, record: String, problem: RecordProblem },

    #[error("{place}: {problem}")]
    Pickle { place: Place, problem: PickleProblem },

    #[error("{place}: the archive holds several models, name one of: {}", models.join(", "))]
    WhichModel { place: Place, models: Vec<String> },

    #[error("{place}: no model `{model}` in the archive, it holds: {}", models.join(", "))]
    NoModel { place: Place, model: String, models: Vec<String> },

    #[error("{place}: not what the export schema asks for: {source}")]
    Json { place: Place, source: serde_json::Error },

    #[error(
        "{place}: written with export schema {}.{} by torch {torch_version}, this reads up to {}.x. \
         Use a newer pt2onnx, or an older PyTorch to export",
        found.0, found.1, MAJOR
    )]
    SchemaVersion { place: Place, found: (u32, u32), torch_version: String },

    #[error("{place}: {what} {name}: {source}")]
    Tensor {
        place: Place,
        /// "weight", "constant".
        what: &'static str,
        name: String,
        source: Box<TensorError>,
    },

    #[error(
        "{place}: {what} {name} is stored as a Python pickle (a tensor subclass?), which is never executed. \
         Export the model with plain tensors"
    )]
    Pickled { place: Place, what: &'static str, name: String },

    #[error("{place}: the program uses {what} {name}, of which there is no data")]
    MissingTensor { place: Place, what: &'static str, name: String },

    #[error(
        "{place}: the tensors take {bytes} bytes more than the records that they are views of hold; \
         an archive that repeats more than {limit} is refused"
    )]
    Repeated { place: Place, bytes: usize, limit: usize },

    #[error("{place}: {invalid}")]
    Invalid { place: Place, invalid: Box<Invalid> },

    #[error("{site}: {problem}")]
    Pass { site: Box<Site>, problem: PassProblem },
}

/// Shorthand.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Where in the input something is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A file.
    File(Arc<PathBuf>),
    /// A record of an archive.
    Record(Arc<PathBuf>, String),
    /// A program given in memory.
    Memory,
}

impl Place {
    /// The record of this name there.
    pub(crate) fn within(&self, name: &str) -> Self {
        match self {
            Place::File(path) => Place::Record(path.clone(), name.to_owned()),
            Place::Record(path, zip) => Place::Record(path.clone(), format!("{zip}/{name}")),
            Place::Memory => Place::Memory,
        }
    }

    /// That something is wrong with a record there.
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

/// What a file that is not a readable `.pt2` archive is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages are the documentation")]
pub enum NotAnArchive {
    #[error("it is empty")]
    Empty,
    #[error("it is not a zip file")]
    NotZip,
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

/// What is wrong with a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages are the documentation")]
pub enum RecordProblem {
    #[error("is missing")]
    Missing,
    #[error("is compressed; archives of `torch.export.save` never are, store it (`zip -0`)")]
    Compressed,
    #[error("is encrypted")]
    Encrypted,
    #[error("claims bytes {start} to {end} of a file of {len}; the file may be truncated")]
    OutOfFile { start: u64, end: u64, len: u64 },
    #[error("overlaps record `{0}`; the archive is damaged")]
    Overlaps(String),
    #[error("is there twice; the archive is damaged")]
    Twice,
    #[error("is not what was written: its checksum differs; the archive is damaged")]
    Checksum,
}

/// What is wrong with a pickle, of which only data are read and nothing is called.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages are the documentation")]
pub enum PickleProblem {
    #[error("a pickle of protocol {0}, 2 to 5 are read")]
    Protocol(u8),
    #[error("ends in the middle of a pickle, the file may be damaged")]
    Truncated,
    #[error("the pickle's opcode {code} at byte {at} is not among those that are read")]
    Opcode { code: u8, at: usize },
    #[error(
        "the pickle refers to `{0}`, which is not among the classes that are read: only plain tensors are"
    )]
    Global(String),
    #[error("the pickle calls something in a way that is not understood")]
    Call,
    #[error("the pickle sets attributes of {0}")]
    Attributes(String),
    #[error("the pickle takes values that are not there, the file may be damaged")]
    Stack,
    #[error("the pickle takes value {0} that it has not remembered, the file may be damaged")]
    Memo(u32),
    #[error("text in the pickle is not UTF-8")]
    Utf8,
    #[error("the pickle has an integer of more than 64 bits")]
    Number,
    #[error("the pickle has more values than any set of tensors needs")]
    Large,
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
    #[error("`{0}` is described in a way that is not understood")]
    Malformed(String),
}

/// What is wrong in a program that is well-formed JSON.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages are the documentation")]
pub enum Invalid {
    #[error("{owner}: `{text}` is not understood: {source}")]
    Expression { owner: String, text: String, source: ParseError },
    #[error("{owner}: {value} is not among the values of {of} that are known")]
    Enum { owner: String, of: &'static str, value: i64 },
    #[error("{owner}: {what} should be a known number that is not negative")]
    NotStatic { owner: String, what: &'static str },
    #[error("{owner}: has no `tensor_meta`")]
    NoTensorMeta { owner: String },
    #[error("the signature has {specs} {what} specifications, the graph {what}s: {graph}")]
    Arity { what: &'static str, specs: usize, graph: usize },
    #[error("the value {0} is defined twice")]
    DefinedTwice(Name),
    #[error("node {node} reads {name}, which nothing before it defines")]
    Undefined { node: Name, name: Name },
}

/// What a pass cannot treat.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages are the documentation")]
pub enum PassProblem {
    #[error(
        "writes into memory that `{view}` shares with `{base}`, or may share, in a way that is not followed. \
         Use the out-of-place operation in the model, or `clone()` one of them"
    )]
    WriteThroughView { base: Name, view: Name },
    #[error(
        "writes into `{view}`, elements of which share memory (`expand`, `unfold`, `as_strided`): what the tensor behind \
         it holds then is not defined. `clone()` it first"
    )]
    Overlap { view: Name },
    #[error(
        "writes into `{name}`, an operand of the body it is in: a body can only write into tensors of its own. \
         Use the out-of-place operation and return the result"
    )]
    WriteToOperand { name: Name },
    #[error("makes its tensor larger; what the new elements hold is not defined")]
    Grows,
    #[error(
        "returns nothing, so it should write into one of its tensors, and which one it is the archive does not say. \
         Let the operator return the new value"
    )]
    NothingReturned,
    #[error("uses `{name}`, of which the archive does not say what it is")]
    NoMeta { name: Name },
    #[error("has no known functional variant. Use another operation in the model")]
    NoVariant,
    #[error("takes its body's arguments in a way that is not understood")]
    Body,
}
