//! The runtimes that models can be made for.

use std::fmt;

/// The runtime that a model is made for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Target {
    /// Any runtime that follows the ONNX standard.
    #[default]
    Standard,
    /// ONNX Runtime with its own attention operator, and casts as for [`Target::OrtCpu`].
    Ort,
    /// ONNX Runtime on the CPU, with standard operators only. Casts are inserted around nodes whose element type has no kernel.
    OrtCpu,
    /// NVIDIA TensorRT.
    #[serde(rename = "tensorrt")]
    TensorRt,
    /// tract, in Rust.
    Tract,
}

/// The name of the `--target` option.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Standard => "standard",
            Self::Ort => "ort",
            Self::OrtCpu => "ort-cpu",
            Self::TensorRt => "tensorrt",
            Self::Tract => "tract",
        })
    }
}
