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
    /// onnxruntime-genai: as `ort`, with attention that has past and present in one buffer.
    OrtGenai,
    /// NVIDIA TensorRT: report an error for operators that it cannot run.
    #[serde(rename = "tensorrt")]
    TensorRt,
    /// tract, in Rust: report an error for operators that it cannot run.
    Tract,
    /// The operators that the runtimes below all run right: report an error for others.
    Portable,
    /// Intel's OpenVINO: as `portable`, and more operators.
    #[serde(rename = "openvino")]
    OpenVino,
    /// rten, in Rust: as `portable`, and more operators.
    Rten,
    /// Alibaba's MNN: as `portable`, and more operators.
    Mnn,
    /// OpenCV's module for networks: as `portable`, and more operators.
    #[serde(rename = "opencv")]
    OpenCv,
    /// IREE, a compiler: as `portable`, and other operators.
    Iree,
    /// TensorFlow Lite (LiteRT) by onnx2tf: as `portable`, and other operators.
    #[serde(rename = "tflite")]
    TfLite,
    /// onnx's reference evaluator: as `portable`, and more operators.
    Reference,
    /// onnxruntime-web on the CPU: as `ort-cpu`, with inputs and outputs that JavaScript has.
    Web,
    /// ONNX Runtime's provider for Apple's Core ML: report an error for what it does not take.
    #[serde(rename = "coreml")]
    CoreMl,
}

impl Target {
    /// The targets whose runtime has ONNX Runtime's own operators.
    pub(crate) const CONTRIB: &[Self] = &[Self::Ort, Self::OrtGenai];

    /// Whether its runtime is ONNX Runtime.
    pub fn is_ort(self) -> bool {
        matches!(self, Self::Ort | Self::OrtCpu | Self::OrtGenai | Self::Web)
    }

    /// Whether operators of ONNX Runtime's own domain may be used.
    pub fn takes_contrib_ops(self) -> bool {
        Self::CONTRIB.contains(&self)
    }
}

serde_plain::derive_display_from_serialize!(Target);
serde_plain::derive_fromstr_from_deserialize!(Target);
