//! Running models in ONNX Runtime (feature `ort`): its library, sessions, inputs and outputs,
//! intermediate values; and arrays in files.

mod arrays;
mod bodies;
mod calibration;
mod error;
mod library;
mod program;
mod random;
mod session;
mod tensors;

pub use arrays::{ArraysError, read_arrays, to_npz, to_safetensors};
pub(crate) use calibration::ranges;
pub use error::RunError;
pub use library::{load_ort, ort_environment};
pub use random::random_inputs;
pub use session::{Dim, InputType, Session, SessionOptions};
