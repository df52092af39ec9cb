//! Runs ONNX models in ONNX Runtime.
//!
//! Layer 4. [`Session`] runs a model, [`compute_values`] computes its intermediate values,
//! [`Verification`] compares outputs with expected ones, and [`calibrate`] finds the ranges of
//! activations on samples. The library of ONNX Runtime is loaded when it is first needed
//! ([`ort_environment`]).
//!
//! ```no_run
//! use pt2onnx_ir::Model;
//! use pt2onnx_ort::{Session, SessionOptions};
//! use pt2onnx_tensor::Tensor;
//!
//! let model: Model = "g (float[2] x) => (float[2] y) { y = Relu (x) }".parse()?;
//! let mut session = Session::new(&model, &SessionOptions::default(), &[])?;
//! let outputs = session.run(&[Tensor::vector(&[-1f32, 2.0])])?;
//! assert_eq!(outputs[0].to_vec(), Some(vec![0f32, 2.0]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![deny(missing_debug_implementations)]

mod arrays;
mod bodies;
mod calibration;
mod compute_values;
mod error;
mod library;
mod random;
mod session;
mod tensors;
mod verification;

pub use arrays::{ArrayError, read_npz, to_npz, to_safetensors};
pub use calibration::calibrate;
pub use compute_values::compute_values;
pub use error::RunError;
pub use library::{load_ort, ort_environment};
pub use ort;
pub use pt2onnx_ir as ir;
pub use pt2onnx_tensor as tensor;
pub use random::random_inputs;
pub use session::{Dim, InputType, Session, SessionOptions};
pub use verification::{OutputCheck, Tolerance, Verdict, Verification, as_doubles};

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
