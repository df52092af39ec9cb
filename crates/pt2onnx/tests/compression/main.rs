//! Compressed models in ONNX Runtime, against the same models before.
#![expect(clippy::panic, clippy::unwrap_used, reason = "tests")]

mod activations;
mod limits;
mod models;
mod weights;
