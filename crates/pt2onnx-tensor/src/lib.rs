//! Element types, scalars, and tensors whose bytes may be in a memory-mapped file.
//!
//! Layer 0: this crate knows neither PyTorch nor ONNX. Values are little-endian in memory, as in
//! both formats. The crate can be used alone to read and write weights: tensors that share a
//! storage stay shared, and mapped bytes know their file and position.
//!
//! ```
//! use pt2onnx_tensor::{DType, Storage, Tensor};
//!
//! // A 2x2 tensor and its transpose over one storage: nothing is copied.
//! let bytes: Vec<u8> = [1.0f32, 2.0, 3.0, 4.0].iter().flat_map(|x| x.to_le_bytes()).collect();
//! let storage = Storage::new(bytes);
//! let x = Tensor::strided(DType::F32, vec![2, 2], vec![2, 1], 0, storage.clone())?;
//! let t = Tensor::strided(DType::F32, vec![2, 2], vec![1, 2], 0, storage)?;
//! assert_eq!(x.to_vec::<f32>(), Some(vec![1.0, 2.0, 3.0, 4.0]));
//! assert_eq!(t.to_vec::<f32>(), Some(vec![1.0, 3.0, 2.0, 4.0]));
//! assert!(!t.is_contiguous());
//! # Ok::<(), pt2onnx_tensor::TensorError>(())
//! ```

#![deny(missing_debug_implementations)]

mod dtype;
mod element;
mod file;
mod float_format;
mod narrow;
mod promotion;
mod read;
mod scalar;
mod storage;
mod tensor;
mod transpose;

pub use dtype::DType;
pub use element::Element;
pub use file::{open, read, read_text};
pub use float_format::{FloatFormat, NonFinite};
pub use narrow::{Narrow, pack_halves};
pub use promotion::{Category, promote_types, result_type};
pub use scalar::Scalar;
pub use storage::{FileRange, Storage};
pub use tensor::{Compute, Tensor, TensorError};
pub use transpose::{CACHE_LINE, transpose};

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
