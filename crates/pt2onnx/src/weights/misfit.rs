//! Why a model cannot take a weight.

use pt2onnx_tensor::{DType, Tensor};
use std::fmt;

/// Why the model cannot have a weight.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Misfit {
    /// It is not among those given.
    #[error("weight `{name}`, {ty}: is not among those given")]
    Missing {
        /// As the model calls it.
        name: String,
        /// What it should be.
        ty: WeightType,
    },
    /// It is of another element type or of other sizes.
    #[error("weight `{name}`: is {wanted} in the model, {found} was given")]
    Type {
        /// As the model calls it.
        name: String,
        /// What it should be.
        wanted: WeightType,
        /// What was given.
        found: WeightType,
    },
    /// The model has other values for it, which may have gone into others as well.
    #[error(
        "weight `{0}`: has other values in the model, and other constants may have been computed from them"
    )]
    Filled(
        /// As the model calls it.
        String,
    ),
}

/// Element type and sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightType {
    /// Element type.
    pub dtype: DType,
    /// Sizes.
    pub shape: Vec<usize>,
}

impl WeightType {
    pub(super) fn of(tensor: &Tensor) -> Self {
        Self { dtype: tensor.dtype(), shape: tensor.shape().to_vec() }
    }
}

impl fmt::Display for WeightType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.dtype, self.shape)
    }
}
