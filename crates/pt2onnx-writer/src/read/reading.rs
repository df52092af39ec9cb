//! How a model is read, and what reading gives.

use crate::inputs::Inputs;
use pt2onnx_ir::Model;

/// Treatment of data in other files than the model's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExternalData {
    /// The files are mapped. They must exist.
    #[default]
    Mapped,
    /// The files are not opened. Their tensors have no values
    /// ([`Tensor::absent`](pt2onnx_tensor::Tensor::absent)).
    Ignored,
}

/// A model that was read.
#[derive(Debug)]
pub struct Reading {
    /// The model.
    pub model: Model,
    /// Parts of the file that the model does not keep, such as `training information`.
    pub lost: Vec<&'static str>,
    /// The files that were read: the model and its data.
    pub inputs: Inputs,
}
