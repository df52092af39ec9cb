//! Order along a dimension: the largest elements, sorting.

use crate::Cx;
use crate::math::reduce::Extreme;
use pt2onnx_ir::{Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

/// The index of the first largest or smallest element along `axis`, by `ArgMax` or `ArgMin`.
pub(crate) fn arg_extreme(cx: &Cx, of: Extreme, x: Value, axis: usize, keepdims: bool) -> Value {
    let axis = axis as i64;
    // ONNX orders no bools.
    let x = if cx.dtype(x) == DType::Bool { cx.cast(x, DType::U8) } else { x };
    match of {
        Extreme::Max => {
            let options = attrs::ArgMax { axis, keepdims, ..Default::default() };
            cx.arg_max(x, options)
        }
        Extreme::Min => {
            let options = attrs::ArgMin { axis, keepdims, ..Default::default() };
            cx.arg_min(x, options)
        }
    }
}

/// The `k` largest or smallest elements along `axis`, with their indices, by `TopK`. Equal elements keep their order. The order
/// of NaN depends on the runtime.
pub(crate) fn top_k(
    cx: &Cx,
    x: Value,
    k: &Expr,
    axis: usize,
    largest: bool,
    sorted: bool,
) -> [Value; 2] {
    let options = attrs::TopK { axis: axis as i64, largest, sorted };
    let bools = cx.dtype(x) == DType::Bool;
    let numbers = if bools { cx.cast(x, DType::U8) } else { x };
    let [values, indices] = cx.top_k(numbers, cx.sizes(std::slice::from_ref(k)), options);
    let values = if bools { cx.cast(values, DType::Bool) } else { values };
    [values, indices]
}

/// `x` in ascending or descending order along `axis`, with the indices of its elements. NaN counts as infinite, since runtimes
/// do not sort inputs with NaN.
pub(crate) fn sort(cx: &Cx, x: Value, axis: usize, descending: bool) -> [Value; 2] {
    let ordered = |x| top_k(cx, x, &cx.dim(x, axis as i64), axis, descending, true);
    match cx.rank(x) {
        0 => [x, cx.scalar(0, DType::I64)],
        _ if !cx.dtype(x).is_float() => ordered(x),
        _ => {
            let [_, indices] = ordered(cx.select(cx.is_nan(x), f64::INFINITY, x));
            [gather_elements(cx, x, indices, axis), indices]
        }
    }
}

/// The elements of `x` in ascending order along `axis`, with infinity instead of NaN.
pub(crate) fn sorted_values(cx: &Cx, x: Value, axis: usize) -> Value {
    let numbers =
        if cx.dtype(x).is_float() { cx.select(cx.is_nan(x), f64::INFINITY, x) } else { x };
    top_k(cx, numbers, &cx.dim(x, axis as i64), axis, false, true)[0]
}

/// The elements of `x` at `indices`, which differ along `axis` only.
pub(crate) fn gather_elements(cx: &Cx, x: Value, indices: Value, axis: usize) -> Value {
    let options = attrs::GatherElements { axis: axis as i64 };
    cx.gather_elements(x, indices, options)
}
