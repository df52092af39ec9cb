//! Why a model does not run in ONNX Runtime.

/// Why a model does not run in ONNX Runtime.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// ONNX Runtime is not there.
    #[error(
        "ONNX Runtime cannot be loaded from {path}: {reason}; set ORT_DYLIB_PATH to its library, version {} or newer",
        ort::MINOR_VERSION
    )]
    Library {
        /// Where it was looked for.
        path: String,
        /// The system's reason.
        reason: String,
    },
    /// ONNX Runtime does not take the model.
    #[error("ONNX Runtime refuses the model: {0}")]
    Load(#[source] ort::Error),
    /// More or fewer tensors than the model has inputs.
    #[error("{given} tensors for the {} inputs {}", .names.len(), .names.join(", "))]
    Inputs {
        /// How many were given.
        given: usize,
        /// The inputs.
        names: Vec<String>,
    },
    /// A tensor that cannot be passed on.
    #[error("input {name}: {reason}")]
    Input {
        /// The input.
        name: String,
        /// What is wrong.
        reason: String,
    },
    /// More or fewer tensors expected than the model has outputs.
    #[error("{given} tensors are expected of the {} outputs {}", .names.len(), .names.join(", "))]
    Outputs {
        /// How many were given.
        given: usize,
        /// The outputs.
        names: Vec<String>,
    },
    /// ONNX Runtime fails.
    #[error("ONNX Runtime cannot run the model: {0}")]
    Run(#[source] ort::Error),
    /// An output that is no tensor, or of a type that tensors cannot have here.
    #[error("output {name}: {reason}")]
    Output {
        /// The output.
        name: String,
        /// What is wrong.
        reason: String,
    },
    /// There is no such value outside of the bodies of control flow.
    #[error(
        "the model computes no value {0}; only values outside of the bodies of If, Loop and Scan can be computed"
    )]
    NoValue(
        /// The name asked for.
        String,
    ),
    /// A folder for weights that do not fit into a model in memory.
    #[error("no temporary folder for the weights: {0}")]
    Folder(#[source] std::io::Error),
}
