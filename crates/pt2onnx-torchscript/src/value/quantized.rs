//! Quantised tensors as the interpreter holds them: small integers, and how they stand for numbers.

use pt2onnx_fx::Name;
use pt2onnx_torchscript_archive::quantized::Kind;

/// A quantised tensor.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Quantized {
    /// The tensor of its integers.
    pub(crate) ints: Name,
    pub(crate) kind: Kind,
    pub(crate) scheme: Scheme,
}

/// How integers stand for numbers: `(q - zero_point) * scale`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scheme {
    /// One scale and zero point that are known.
    Known { scale: f64, zero_point: i64 },
    /// One scale and zero point that the program computes: tensors of one element.
    Computed { scale: Name, zero_point: Name },
    /// Vectors of them along a dimension.
    Channels { scales: Name, zero_points: Name, axis: i64 },
}
