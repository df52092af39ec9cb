//! Replaces operators that ONNX Runtime computes with too few bits: sums of large integers, and
//! what it has for float32 only.

pub(super) mod sums;
pub(super) mod wrapping;
