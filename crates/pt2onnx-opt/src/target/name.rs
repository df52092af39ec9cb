//! The runtimes that models can be made for.

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
    /// ONNX Runtime on the CPU, with standard operators only. Casts are inserted around nodes whose
    /// element type has no kernel.
    OrtCpu,
    /// NVIDIA TensorRT.
    #[serde(rename = "tensorrt")]
    TensorRt,
    /// tract, in Rust.
    Tract,
}

serde_plain::derive_display_from_serialize!(Target);
serde_plain::derive_fromstr_from_deserialize!(Target);
