//! PyTorch's default element type.

use pt2onnx_tensor::DType;
use serde::{Deserialize, Serialize};

/// PyTorch's default element type: `torch.get_default_dtype()`.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    strum::EnumMessage,
    strum::VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum DefaultDtype {
    /// The default of a new process.
    #[default]
    Float32,
    /// Double precision.
    Float64,
    /// IEEE's half.
    Float16,
    /// The upper half of a float32.
    Bfloat16,
}

serde_plain::derive_display_from_serialize!(DefaultDtype);
serde_plain::derive_fromstr_from_deserialize!(DefaultDtype);

impl DefaultDtype {
    /// The element type.
    pub fn dtype(self) -> DType {
        match self {
            Self::Float32 => DType::F32,
            Self::Float64 => DType::F64,
            Self::Float16 => DType::F16,
            Self::Bfloat16 => DType::BF16,
        }
    }
}
