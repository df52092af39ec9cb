//! Errors of writing a model.

use pt2onnx_ir::VerifyError;
use pt2onnx_tensor::DType;
use std::path::PathBuf;

/// The most bytes of a file: protobuf counts the bytes of a message in an `int`.
pub(crate) const MAX_MODEL: u64 = 0x7fff_ffff;

/// Why a model could not be written. No new file is left, and existing files are unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system reported an error.
    #[error("{}: cannot {doing}: {error}", .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The action, such as `create a file in this folder`.
        doing: &'static str,
        /// The error.
        error: std::io::Error,
    },
    /// The values of a weight could not be read.
    #[error("a weight cannot be read: {0}")]
    Weight(std::io::Error),
    /// A weight is computed when it is written, and its element type cannot hold the result.
    #[error(transparent)]
    Values(std::io::Error),
    /// There cannot be a file at the path.
    #[error("{}: {what}", .path.display())]
    Target {
        /// The path.
        path: PathBuf,
        /// The present contents.
        what: &'static str,
    },
    /// A data file cannot have the name.
    #[error("a data file cannot be called `{name}`, which {what}")]
    DataName {
        /// The name.
        name: String,
        /// The problem.
        what: &'static str,
    },
    /// [`SaveOptions::alignment`](crate::SaveOptions::alignment) is not one.
    #[error("an alignment must be a power of two of at most 1 GiB, but {0} is not")]
    Alignment(
        /// The alignment asked for, in bytes.
        u64,
    ),
    /// A file to be written is one that is read, or that is written as well.
    #[error("{}: the {output} would overwrite {other}, {}: give another name", .path.display(), .other_path.display())]
    Overwrites {
        /// The path to be written.
        path: PathBuf,
        /// The new file: `output`, `data file`, `report`.
        output: &'static str,
        /// The present file: `the archive to be read`.
        other: String,
        /// Its path, which may be another name of the file.
        other_path: PathBuf,
    },
    /// Weights shall be outside of a model that goes to a device, a pipe or standard output.
    #[error(
        "{}: weights cannot be beside a model that is written to a stream. Embed them (`Weights::Embed`), or give the name of a file",
        .0.display()
    )]
    NoFolder(
        /// The path of the output.
        PathBuf,
    ),
    /// The model file cannot refer to the file that weights are in.
    #[error("{}: {what}, so that the model cannot refer to it", .path.display())]
    Link {
        /// The file with the weights.
        path: PathBuf,
        /// The problem of its path.
        what: &'static str,
    },
    /// Weights without values in the archive.
    #[error(
        "no values to write for {}: weights saved under FakeTensorMode have none. Save the program with real weights",
        few(.0)
    )]
    NoData(
        /// Their names.
        Vec<String>,
    ),
    /// The file would be larger than protobuf allows.
    #[error(
        "one file with all weights would have {0} bytes, an ONNX file has at most {max}. Write the weights to a file of \
         their own (`Weights::External`)",
        max = MAX_MODEL
    )]
    TooLarge(
        /// The bytes it would have.
        u64,
    ),
    /// The graph without weights would be larger than protobuf allows.
    #[error("the graph without its weights has {0} bytes, an ONNX file has at most {max}", max = MAX_MODEL)]
    GraphTooLarge(
        /// The bytes it would have.
        u64,
    ),
    /// The model is not valid ([`verify_imported`](pt2onnx_ir::verify_imported)).
    #[error("the model is not valid ONNX: {}", first(.0))]
    Invalid(
        /// All errors.
        Vec<VerifyError>,
    ),
    /// ONNX has no such element type.
    #[error("ONNX has no element type {dtype}, which `{name}` has")]
    NoSuchType {
        /// The value or attribute.
        name: String,
        /// Its element type.
        dtype: DType,
    },
    /// A value has no name, because `Model::assign_names` was not called: a bug of the caller.
    #[error("value {0} has no name; `Model::assign_names` gives one")]
    Unnamed(
        /// Its number in the arena.
        usize,
    ),
}

impl Error {
    /// The error of a weight: one of its values if it is of the kind that
    /// [`Compute::fill`](pt2onnx_tensor::Compute::fill) gives.
    pub(crate) fn weight(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::InvalidData => Self::Values(error),
            _ => Self::Weight(error),
        }
    }
}

/// The first error, and the number of others.
fn first(errors: &[VerifyError]) -> String {
    match errors {
        [] => String::new(),
        [only] => only.to_string(),
        [first, rest @ ..] => format!("{first} (and {} more errors)", rest.len()),
    }
}

/// The first five names.
fn few(names: &[String]) -> String {
    match names.get(..5) {
        Some(first) if names.len() > 5 => {
            format!("{} and {} more", first.join(", "), names.len() - 5)
        }
        _ => names.join(", "),
    }
}
