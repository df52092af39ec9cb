//! Results with the sizes or the element type of an operand.

use super::types::{broadcast, sized, typed};
use crate::{Cx, Lowered, arguments};
use pt2onnx_ir::Value;
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

arguments! {
    /// A new tensor.
    pub struct Made {
        /// A tensor whose sizes and type it gets if no others are given.
        pub input: Option<Value>,
        /// The sizes.
        pub size: Option<Vec<Expr>>,
        /// The element type.
        pub dtype: Option<DType>,
    }
}

/// Type and sizes of `x`.
pub fn same(cx: &Cx, x: Value) -> Lowered {
    Ok(sized(cx, x, &cx.shape(x)))
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

/// A new tensor. Its type is `torch.get_default_dtype()` if nothing gives another one.
pub fn made(cx: &Cx, args: Made) -> Lowered {
    let dtype = args.dtype.or_else(|| Some(cx.dtype(args.input?)));
    let sizes = args.size.or_else(|| Some(cx.shape(args.input?)));
    Ok(typed(cx, dtype.unwrap_or_else(|| cx.default_float()), &sizes.unwrap_or_default()))
}

/// The type of `x`, and the given sizes.
pub fn resized(cx: &Cx, x: Value, size: Vec<Expr>) -> Lowered {
    Ok(sized(cx, x, &size))
}
