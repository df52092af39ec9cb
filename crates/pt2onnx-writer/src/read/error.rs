//! Errors of reading a model.

use pt2onnx_ir::MAX_NESTING;
use pt2onnx_symbolic::MAX_RANK;
use pt2onnx_tensor::{DType, TensorError};
use std::path::PathBuf;

pub(super) type Result<T> = std::result::Result<T, ReadError>;

/// Why a model could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The operating system reported an error.
    #[error("{}: cannot be {doing}: {error}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The action, such as `opened`.
        doing: &'static str,
        /// The error.
        error: std::io::Error,
    },
    /// The bytes are not a protobuf message of this kind.
    #[error("not an ONNX model, or a damaged one: {error}")]
    Decode {
        /// The error of prost.
        error: prost::DecodeError,
    },
    /// Bodies, types or other messages are within each other more often than protobuf's readers
    /// allow.
    #[error("bodies or types nest deeper than {MAX_NESTING}, the limit of protobuf")]
    Nested,
    /// The file would take far more memory than its size: it has very many empty messages.
    #[error(
        "the file has {0} bytes, and so many empty nodes, values or tensors that they take more \
         than 20 times as much memory"
    )]
    Memory(usize),
    /// The model is not valid, or uses parts of the standard that are not supported.
    #[error("{place}: {invalid}")]
    Invalid {
        /// The node, value or function, as it is named in the file.
        place: String,
        /// The problem.
        invalid: Invalid,
    },
}

/// The problem of a part of a model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Invalid {
    #[error("there is no graph; is this an ONNX model?")]
    NoGraph,
    #[error("the version {0} is out of range")]
    Version(i64),
    #[error("the domain `{0}` is imported with two versions")]
    TwoVersions(String),
    #[error("has no name")]
    Unnamed,
    #[error("has no operator type")]
    NoOperator,
    #[error("two values have the name `{0}`")]
    TwoValues(String),
    #[error("two functions are called so")]
    TwoFunctions,
    #[error("uses `{0}`, which nothing in front of it defines")]
    Undefined(String),
    #[error("two attributes are called `{0}`")]
    TwoAttributes(String),
    #[error("attribute `{0}` has no value of a known type")]
    Attribute(String),
    #[error("the sparse tensor has an index or sizes that do not fit, or too many elements")]
    Sparse,
    #[error("tensors in segments are not supported")]
    Segment,
    #[error("a default for an input of a body is not supported")]
    DefaultOfBody,
    #[error("the element type {0} is not known")]
    ElementType(i32),
    #[error("has {0} dimensions; {MAX_RANK} are the most")]
    Rank(usize),
    #[error("a size is {0}")]
    Size(i64),
    #[error(transparent)]
    Tensor(#[from] TensorError),
    #[error("its field for {dtype} has {found} entries, {wanted} are wanted")]
    Entries { dtype: DType, found: usize, wanted: usize },
    #[error("the entry {value} is no {dtype}")]
    Entry { dtype: DType, value: String },
    #[error("its data is in another file, which a model in memory does not have")]
    NoFolder,
    #[error("`{0}` is not the name of a file in the model's folder or below")]
    Location(String),
    #[error("`{0}` leads out of the model's folder")]
    Outside(String),
    #[error(
        "`{0}` is a hard link: the file has another name outside of the model's folder. Copy the \
         file"
    )]
    LinkedOutside(String),
    #[error("`{0}` is not a file")]
    NotAFile(String),
    #[error(
        "its data is in the file `{location}`, which cannot be opened: {error}. Copy this file beside the model as well"
    )]
    Unread { location: String, error: std::io::Error },
    #[error("external data has two entries `{0}`")]
    TwoEntries(String),
    #[error("external data has `{key}` {value}, which is no number")]
    NoNumber { key: String, value: String },
    #[error("external data has no location")]
    NoLocation,
    #[error("takes bytes {start} to {end} of `{location}`, which has {length}")]
    OutOfFile { location: String, start: u64, end: u64, length: usize },
    #[error("strings cannot be in another file")]
    ExternalStrings,
}

impl Invalid {
    /// Adds the place.
    pub(super) fn at(self, place: impl Into<String>) -> ReadError {
        ReadError::Invalid { place: place.into(), invalid: self }
    }
}
