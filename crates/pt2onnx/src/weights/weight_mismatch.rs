//! Weights that a model cannot take.

use pt2onnx_tensor::{DType, Tensor};
use std::fmt;

/// The reason why a model cannot take a weight.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Misfit {
    /// It was not given.
    #[error("weight `{name}`, {ty}: was not given")]
    Missing {
        /// Its name in the model.
        name: String,
        /// The expected type.
        ty: WeightType,
    },
    /// Its element type or shape differs.
    #[error("weight `{name}`: the model needs {wanted}, but {found} was given")]
    Type {
        /// Its name in the model.
        name: String,
        /// The expected type.
        wanted: WeightType,
        /// The given type.
        found: WeightType,
    },
    /// The model has other values for it already, from which other constants may have been
    /// computed.
    #[error(
        "weight `{0}`: has other values in the model already, from which other constants may have been computed"
    )]
    Filled(
        /// Its name in the model.
        String,
    ),
    /// It was given, and the model does not have it ([`Unused`]).
    #[error(
        "weight `{0}`: the model has no weight of this name; it may have another name, or other constants were computed from it"
    )]
    Unused(
        /// The name that was given.
        String,
    ),
    /// It is tied to another weight in the program, and the two were given different values.
    #[error("weight `{name}`: is the same as `{other}` in the program, but was given other values")]
    Tied {
        /// Its name in the program.
        name: String,
        /// The weight that it is tied to.
        other: String,
    },
}

/// The treatment of given weights that the model does not have under their names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unused {
    /// They are errors ([`Misfit::Unused`]), except for weights that the model lists as unused.
    #[default]
    Error,
    /// They are ignored.
    Allow,
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
