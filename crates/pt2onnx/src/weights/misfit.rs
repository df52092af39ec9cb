//! Why a model cannot take a weight.

use pt2onnx_tensor::{DType, Tensor};
use std::fmt;

/// Why a model cannot take a weight.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Misfit {
    /// It was not given.
    #[error("weight `{name}`, {ty}: was not given")]
    Missing {
        /// Its name in the model.
        name: String,
        /// What it should be.
        ty: WeightType,
    },
    /// Its element type or shape differs.
    #[error("weight `{name}`: the model needs {wanted}, but {found} was given")]
    Type {
        /// Its name in the model.
        name: String,
        /// What it should be.
        wanted: WeightType,
        /// What was given.
        found: WeightType,
    },
    /// The model has other values for it already, from which other constants may have been computed.
    #[error(
        "weight `{0}`: has other values in the model already, from which other constants may have been computed"
    )]
    Filled(
        /// Its name in the model.
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
