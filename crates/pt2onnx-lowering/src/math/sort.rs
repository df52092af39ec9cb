//! Order along a dimension: the largest elements, sorting.

use crate::Cx;
use crate::math::precision::largest;
use crate::math::reduce::{Extreme, reduce};
use pt2onnx_ir::{Reduction, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

/// The index of the first largest or smallest element along `axis`, or of the first NaN, by
/// `ArgMax` or `ArgMin`. Where there is a NaN, they search for it.
pub fn arg_extreme(cx: &Cx, of: Extreme, x: Value, axis: usize, keepdims: bool) -> Value {
    let x = match cx.dtype(x) {
        // ONNX orders no bools.
        DType::Bool => cx.cast(x, DType::U8),
        dtype if cx.propagates_nan(x) => {
            let nan = cx.is_nan(x);
            let sought = if of == Extreme::Max { nan } else { cx.not(nan) };
            let there = reduce(cx, Reduction::Max, nan, &[axis], true);
            cx.select(there, cx.cast(sought, dtype), x)
        }
        _ => x,
    };
    let axis = axis as i64;
    match of {
        Extreme::Max => cx.arg_max(x, attrs::ArgMax { axis, keepdims, ..Default::default() }),
        Extreme::Min => cx.arg_min(x, attrs::ArgMin { axis, keepdims, ..Default::default() }),
    }
}

/// The order in which elements are taken.
#[derive(Clone, Copy)]
pub struct Order {
    /// The axis along which they are.
    pub axis: usize,
    /// Whether the largest come first.
    pub largest: bool,
    /// Whether the elements that are taken are in order.
    pub sorted: bool,
}

/// The first `k` elements and their indices, by one `TopK`. Equal elements keep their order. The
/// order of NaN depends on the runtime.
pub fn numbers_first(cx: &Cx, x: Value, k: &Expr, order: Order) -> [Value; 2] {
    let Order { axis, largest, sorted } = order;
    let options = attrs::TopK { axis: axis as i64, largest, sorted };
    let bools = cx.dtype(x) == DType::Bool;
    let numbers = if bools { cx.cast(x, DType::U8) } else { x };
    let [values, indices] = cx.top_k(numbers, cx.sizes(std::slice::from_ref(k)), options);
    let values = if bools { cx.cast(values, DType::Bool) } else { values };
    [values, indices]
}

/// The first `k` elements and their indices. Equal elements keep their order, and NaN is larger
/// than all numbers: elements are sorted by keys in a wider type, where infinity, which stands for
/// NaN, is above all. Keys of float64 have no wider type: they are sorted as numbers first, then by
/// whether they are NaN.
pub fn first(cx: &Cx, x: Value, k: &Expr, order: Order) -> [Value; 2] {
    if !cx.propagates_nan(x) {
        return numbers_first(cx, x, k, order);
    }
    let axis = order.axis;
    let nan = cx.is_nan(x);
    let indices = match cx.dtype(x) {
        DType::F64 => {
            let all = Order { sorted: true, ..order };
            let keys = cx.select(nan, f64::INFINITY, x);
            let [_, by_number] = numbers_first(cx, keys, &cx.dim(x, axis as i64), all);
            let nan = cx.cast(gather_elements(cx, nan, by_number, axis), DType::I32);
            let [_, by_nan] = numbers_first(cx, nan, k, all);
            gather_elements(cx, by_number, by_nan, axis)
        }
        dtype => {
            let (wide, above) = match dtype {
                DType::F32 => (DType::F64, 1e300),
                _ => (DType::F32, largest(DType::F32)),
            };
            let numbers = cx.minimum(cx.cast(x, wide), above);
            numbers_first(cx, cx.select(nan, f64::INFINITY, numbers), k, order)[1]
        }
    };
    [gather_elements(cx, x, indices, axis), indices]
}

/// `x` in ascending or descending order along `axis`, with the indices of its elements; see
/// [`first`].
pub fn sort(cx: &Cx, x: Value, axis: usize, descending: bool) -> [Value; 2] {
    match cx.rank(x) {
        0 => [x, cx.scalar(0, DType::I64)],
        _ => {
            let order = Order { axis, largest: descending, sorted: true };
            first(cx, x, &cx.dim(x, axis as i64), order)
        }
    }
}

/// The elements of `x` in ascending order along `axis`, with infinity instead of NaN.
pub fn sorted_values(cx: &Cx, x: Value, axis: usize) -> Value {
    let numbers = if cx.propagates_nan(x) { cx.select(cx.is_nan(x), f64::INFINITY, x) } else { x };
    let order = Order { axis, largest: false, sorted: true };
    numbers_first(cx, numbers, &cx.dim(x, axis as i64), order)[0]
}

/// The elements of `x` at `indices`, which differ along `axis` only.
pub fn gather_elements(cx: &Cx, x: Value, indices: Value, axis: usize) -> Value {
    let options = attrs::GatherElements { axis: axis as i64 };
    cx.gather_elements(x, indices, options)
}
