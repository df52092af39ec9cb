//! Errors of ONNX Runtime.

use std::path::PathBuf;

/// The reason why a model does not run in ONNX Runtime.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The library of ONNX Runtime cannot be loaded.
    #[error(
        "ONNX Runtime cannot be loaded from {path}: {reason}; set ORT_DYLIB_PATH to its library, version 1.{} or newer: `pip install onnxruntime` has it as onnxruntime/capi/libonnxruntime.so.*",
        ort::MINOR_VERSION
    )]
    Library {
        /// The path or name that was tried.
        path: String,
        /// The reason that the system gives.
        reason: String,
    },
    /// ONNX Runtime refuses the model.
    #[error("ONNX Runtime refuses the model: {0}")]
    Load(ort::Error),
    /// This ONNX Runtime is older than the model's format.
    #[error(
        "the model has IR version {version}, and this ONNX Runtime reads versions up to {newest}: use a newer ONNX Runtime, or write the model with a lower one"
    )]
    IrVersion {
        /// The IR version of the model.
        version: u64,
        /// The newest that ONNX Runtime reads.
        newest: u64,
    },
    /// The number of tensors is not the number of inputs.
    #[error("the number of tensors is {given}, that of the inputs is {}: {}", .names.len(), .names.join(", "))]
    Inputs {
        /// The number of tensors.
        given: usize,
        /// The names of the inputs.
        names: Vec<String>,
    },
    /// An input is not given.
    #[error("the input {name} is not given")]
    Missing {
        /// The name of the input.
        name: String,
    },
    /// The model has no such input.
    #[error("the model has no input {name}; its inputs are {}", .names.join(", "))]
    Unknown {
        /// The name that is given.
        name: String,
        /// The names of the inputs.
        names: Vec<String>,
    },
    /// A tensor cannot be passed to ONNX Runtime.
    #[error("input {name}: {reason}")]
    Input {
        /// The name of the input.
        name: String,
        /// The reason.
        reason: String,
    },
    /// The number of expected tensors is not the number of outputs.
    #[error("the number of expected tensors is {given}, that of the outputs is {}: {}", .names.len(), .names.join(", "))]
    Outputs {
        /// The number of tensors.
        given: usize,
        /// The names of the outputs.
        names: Vec<String>,
    },
    /// ONNX Runtime fails while it runs the model.
    #[error("ONNX Runtime cannot run the model: {0}")]
    Run(ort::Error),
    /// An output is not a tensor, or has an element type that cannot be read.
    #[error("output {name}: {reason}")]
    Output {
        /// The output.
        name: String,
        /// The reason.
        reason: String,
    },
    /// No value outside of functions has this name.
    #[error("the model computes no value {0}; values in functions cannot be computed: inline them")]
    NoValue(
        /// The name asked for.
        String,
    ),
    /// Samples for a calibration cannot be read, or are not those of the model.
    #[error("the samples in {} cannot be used: {reason}", .path.display())]
    Samples {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The model cannot be written for ONNX Runtime: weights have no values.
    #[error(transparent)]
    Write(#[from] pt2onnx_writer::Error),
    /// The activations of the model cannot be quantised as asked.
    #[error(transparent)]
    Compress(pt2onnx_compress::Error),
    /// A temporary folder for weights that exceed a model in memory cannot be made.
    #[error("no temporary folder for the weights: {0}")]
    Folder(std::io::Error),
}

impl RunError {
    /// The error of a model that ONNX Runtime refuses.
    pub(crate) fn refused(error: ort::Error) -> Self {
        Self::of_ir_version(&error.to_string()).unwrap_or(Self::Load(error))
    }

    /// The error of a model whose IR version is too new, from the text of ONNX Runtime.
    fn of_ir_version(text: &str) -> Option<Self> {
        let (_, text) = text.split_once("Unsupported model IR version: ")?;
        let (version, text) = text.split_once(", max supported IR version: ")?;
        let newest = text.split(|c: char| !c.is_ascii_digit()).next()?;
        Some(Self::IrVersion { version: version.parse().ok()?, newest: newest.parse().ok()? })
    }
}
