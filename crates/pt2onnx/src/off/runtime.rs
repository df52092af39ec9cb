//! The types of ONNX Runtime in a build without it.

/// An error of ONNX Runtime, which this build does not use (feature `ort`).
#[derive(Debug, thiserror::Error)]
pub enum RunError {}

/// Nothing is loaded.
pub(crate) type Loaded = ();
