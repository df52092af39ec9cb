//! The types of ONNX Runtime that programs and errors hold (feature `ort`).

pub use pt2onnx_ort::RunError;

/// The model in ONNX Runtime, if it was run.
pub(crate) type Loaded = Option<pt2onnx_ort::Session>;
