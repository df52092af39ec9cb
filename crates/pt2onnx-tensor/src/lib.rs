//! Element types, scalars and tensors whose bytes may live in a mapped file.
//!
//! Layer 0: knows neither PyTorch nor ONNX, does no IO. Values are little-endian in memory, as in both formats.

mod dtype;
mod element;
mod scalar;
mod tensor;

pub use dtype::DType;
pub use element::Element;
pub use scalar::Scalar;
pub use tensor::{FileRange, Storage, Tensor, TensorError};
