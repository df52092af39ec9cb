//! Results with the sizes or the element type of an operand.

use super::types::{broadcast, sized, typed};
use crate::{Cx, Lowered, arguments};
use pt2onnx_ir::Value;
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

arguments! {
    /// A tensor, and the element type of the result if it is another one.
    pub struct Like {
        /// The tensor.
        pub input: Value,
        /// The element type.
        pub dtype: Option<DType>,
    }

    /// Sizes and element type of a new tensor.
    pub struct New {
        /// The sizes.
        pub size: Vec<Expr>,
        /// The element type; `torch.get_default_dtype()` if there is none.
        pub dtype: Option<DType>,
    }
}

/// Type and sizes of `x`.
pub fn same(cx: &Cx, x: Value) -> Lowered {
    Ok(sized(cx, x, &cx.shape(x)))
}

/// The sizes of the operand, and its type if no other is given.
pub fn like(cx: &Cx, args: Like) -> Lowered {
    Ok(typed(cx, args.dtype.unwrap_or(cx.dtype(args.input)), &cx.shape(args.input)))
}

/// The type of `x`, the sizes of `other`.
pub fn like_other(cx: &Cx, x: Value, other: Value) -> Lowered {
    Ok(sized(cx, x, &cx.shape(other)))
}

/// The type of `x`, broadcast with the mask.
pub fn masked(cx: &Cx, x: Value, mask: Value) -> Lowered {
    Ok(sized(cx, x, &broadcast(cx, &[x, mask].map(|v| cx.shape(v)))))
}

/// The type of `x`, or that of its parts if `x` is complex.
pub fn real(cx: &Cx, x: Value) -> Lowered {
    Ok(typed(cx, cx.dtype(x).to_real(), &cx.shape(x)))
}

/// A new tensor of the given sizes.
pub fn new(cx: &Cx, args: New) -> Lowered {
    Ok(typed(cx, args.dtype.unwrap_or_else(|| cx.default_float()), &args.size))
}

/// The type of `x`, and the given sizes.
pub fn resized(cx: &Cx, x: Value, size: Vec<Expr>) -> Lowered {
    Ok(sized(cx, x, &size))
}
