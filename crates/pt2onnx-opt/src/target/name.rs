//! The runtimes that models can be made for.

use serde::{Deserialize, Serialize};
use strum::{EnumMessage, VariantArray};

/// The runtime that a model is made for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(EnumMessage, VariantArray)]
#[non_exhaustive]
pub enum Target {
    /// Any runtime; a warning lists operators that ONNX Runtime has no kernel for.
    #[default]
    Standard,
    /// ONNX Runtime: as `ort-cpu`, and with its own attention operator.
    Ort,
    /// ONNX Runtime on the CPU: with casts where it has no kernel for an element type.
    OrtCpu,
    /// NVIDIA TensorRT: report an error for operators that it cannot run.
    #[serde(rename = "tensorrt")]
    TensorRt,
    /// tract, in Rust: report an error for operators that it cannot run.
    Tract,
}

serde_plain::derive_display_from_serialize!(Target);
serde_plain::derive_fromstr_from_deserialize!(Target);
