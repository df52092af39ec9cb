//! Running models in ONNX Runtime (feature `ort`): sessions, inputs and outputs, intermediate values.

mod bodies;
mod error;
mod program;
mod session;
mod tensors;

pub use error::RunError;
pub use session::{Session, SessionOptions, ort_environment};
