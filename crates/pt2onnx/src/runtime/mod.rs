//! Models in ONNX Runtime (feature `ort`): a session for a program, tensors in and out, values in between.

mod error;
mod program;
mod session;
mod tensors;

pub use error::RunError;
pub use session::{Session, SessionOptions, ort_environment};
