//! Computes norms of vectors, and distances between rows.

use crate::math::reduce::{Extreme, extreme, reduce};
use crate::{Complex, Cx, Lowered};
use pt2onnx_ir::{Reduction, Value};
use pt2onnx_tensor::DType;

/// The p-norm over `axes`, `sum(|x|^p)^(1/p)`. For `p` 0 it is the number of elements that are not
/// 0, for infinity the largest `|x|`, for minus infinity the smallest.
pub fn norm(cx: &Cx, x: Value, p: f64, axes: &[usize], keepdim: bool) -> Value {
    let dtype = cx.dtype(x);
    let sum = |v| reduce(cx, Reduction::Sum, v, axes, keepdim);
    if p == 0.0 {
        return sum(cx.cast(cx.cast(x, DType::Bool), dtype));
    }
    if axes.is_empty() {
        return cx.abs(x);
    }
    if p == 2.0 {
        reduce(cx, Reduction::L2, x, axes, keepdim)
    } else if p == 1.0 {
        reduce(cx, Reduction::L1, x, axes, keepdim)
    } else if p == f64::INFINITY {
        extreme(cx, Extreme::Max, cx.abs(x), axes, keepdim)
    } else if p == f64::NEG_INFINITY {
        extreme(cx, Extreme::Min, cx.abs(x), axes, keepdim)
    } else {
        // An even power does not need |x|.
        let even = p > 0.0 && p % 2.0 == 0.0;
        let base = if even { x } else { cx.abs(x) };
        cx.pow(sum(cx.pow(base, p)), 1.0 / p)
    }
}

/// [`norm`] of real or complex numbers. The 2-norm of complex ones is computed from all parts in
/// float64, where squares of narrower floats neither overflow nor vanish.
pub fn complex_norm(cx: &Cx, x: Complex, p: f64, axes: &[usize], keepdim: bool) -> Value {
    if x.im.is_none() {
        return norm(cx, x.re, p, axes, keepdim);
    }
    if p != 2.0 {
        return norm(cx, x.abs(cx), p, axes, keepdim);
    }
    let last = cx.rank(x.re);
    let all: Vec<usize> = axes.iter().copied().chain([last]).collect();
    let length = reduce(cx, Reduction::L2, cx.cast(cx.pairs(x), DType::F64), &all, keepdim);
    let length = if keepdim { cx.squeeze(length, &[last]) } else { length };
    cx.cast(length, cx.dtype(x.re))
}

/// The p-norm of `a - b + eps` over the last dimension.
pub fn pairwise_distance(cx: &Cx, a: Value, b: Value, p: f64, eps: f64, keepdim: bool) -> Lowered {
    let (a, b) = cx.promote(a, b);
    // As in PyTorch, integers are subtracted before they become floats.
    let off = cx.add(cx.to_float(cx.sub(a, b)), eps);
    let last = cx.rank(off).saturating_sub(1);
    Ok(norm(cx, off, p, &[last], keepdim))
}

/// [`pairwise_distance`] of complex numbers.
pub fn pairwise_distance_complex(
    cx: &Cx,
    a: Complex,
    b: Complex,
    p: f64,
    eps: f64,
    keepdim: bool,
) -> Lowered {
    let off = a.sub(cx, b).shift(cx, eps);
    let last = cx.rank(off.re).saturating_sub(1);
    Ok(complex_norm(cx, off, p, &[last], keepdim))
}
