//! Runtimes: the parts of ONNX that they do not support, and their own operators.
//!
//! For ONNX Runtime, casts are inserted around nodes whose element type has no kernel
//! ([`kernels`]), and quantised weights lose their sign ([`unsigned`]). Its optimiser is kept from
//! what it does wrong: zeros stay that it would take for the padding of a pool ([`padding`]), a
//! transposition stays in front of what has no kernel for the other order ([`cubic`]), and sizes
//! get names where it would give them wrong ones ([`slices`]). For runtimes that support less of
//! ONNX ([`runtime`]), nodes that they cannot run are errors, and all of them are reported.

mod coreml;
mod cubic;
mod error;
mod explicit;
mod fit;
mod iree;
mod kernels;
mod mnn;
mod name;
mod outputs;
pub(crate) mod padding;
mod portable;
mod reference;
mod runtime;
mod slices;
mod tensorrt;
mod tflite;
mod tract;
mod unsigned;
mod web;

pub use error::{TargetError, Unrunnable};
pub use fit::{fit, fit_imported};
pub use name::Target;
