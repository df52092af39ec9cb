//! Order along a dimension: the largest elements, sorting.

use crate::Cx;
use crate::math::precision::largest;
use crate::math::reduce::{Extreme, reduce};
use pt2onnx_ir::{Reduction, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

/// The index of the first largest or smallest element along `axis`, or of the first NaN, by `ArgMax` or `ArgMin`. Where there
/// is a NaN, they search for it.
pub(crate) fn arg_extreme(cx: &Cx, of: Extreme, x: Value, axis: usize, keepdims: bool) -> Value {
    let x = match cx.dtype(x) {
        // ONNX orders no bools.
        DType::Bool => cx.cast(x, DType::U8),
        dtype if cx.minds_nan(x) => {
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
pub(crate) struct Order {
    pub(crate) axis: usize,
    /// Whether the largest come first.
    pub(crate) largest: bool,
    /// Whether the elements that are taken are in order.
    pub(crate) sorted: bool,
}

/// The first `k` elements and their indices, by one `TopK`. Equal elements keep their order. The order of NaN depends on the
/// runtime.
pub(crate) fn numbers_first(cx: &Cx, x: Value, k: &Expr, order: Order) -> [Value; 2] {
    let Order { axis, largest, sorted } = order;
    let options = attrs::TopK { axis: axis as i64, largest, sorted };
    let bools = cx.dtype(x) == DType::Bool;
    let numbers = if bools { cx.cast(x, DType::U8) } else { x };
    let [values, indices] = cx.top_k(numbers, cx.sizes(std::slice::from_ref(k)), options);
    let values = if bools { cx.cast(values, DType::Bool) } else { values };
    [values, indices]
}

/// The first `k` elements and their indices. Equal elements keep their order, and NaN is larger than all numbers: elements are
/// sorted by keys in a wider type, where infinity, which stands for NaN, is above all. Keys of float64 have no wider type: they are
/// sorted as numbers first, then by whether they are NaN.
pub(crate) fn first(cx: &Cx, x: Value, k: &Expr, order: Order) -> [Value; 2] {
    if !cx.minds_nan(x) {
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

/// `x` in ascending or descending order along `axis`, with the indices of its elements; see [`first`].
pub(crate) fn sort(cx: &Cx, x: Value, axis: usize, descending: bool) -> [Value; 2] {
    match cx.rank(x) {
        0 => [x, cx.scalar(0, DType::I64)],
        _ => {
            let order = Order { axis, largest: descending, sorted: true };
            first(cx, x, &cx.dim(x, axis as i64), order)
        }
    }
}

/// The elements of `x` in ascending order along `axis`, with infinity instead of NaN.
pub(crate) fn sorted_values(cx: &Cx, x: Value, axis: usize) -> Value {
    let numbers = if cx.minds_nan(x) { cx.select(cx.is_nan(x), f64::INFINITY, x) } else { x };
    let order = Order { axis, largest: false, sorted: true };
    numbers_first(cx, numbers, &cx.dim(x, axis as i64), order)[0]
}

/// The elements of `x` at `indices`, which differ along `axis` only.
pub(crate) fn gather_elements(cx: &Cx, x: Value, indices: Value, axis: usize) -> Value {
    let options = attrs::GatherElements { axis: axis as i64 };
    cx.gather_elements(x, indices, options)
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn nan_is_larger_than_all_numbers() {
        check!("aten.topk(x: f32[s0, 8], 2, 1) -> (f32[s0, 2], i64[s0, 2])", @"
        (float[s0,8] x) => (float[s0,2] topk_0, int64[s0,2] topk_1)
        <
          double val_0 = {1e300},
          double val_1 = {inf},
          int64[1] val_2 = {2}
        >
        {
          val_3 = IsNaN (x)
          val_4 = Cast <to: int = 11> (x)
          val_5 = Min (val_4, val_0)
          val_6 = Where (val_3, val_1, val_5)
          val_7, topk_1 = TopK <axis: int = 1> (val_6, val_2)
          topk_0 = GatherElements <axis: int = 1> (x, topk_1)
        }
        ");
        check!("aten.topk(x: f32[s0, 8], 2, 1) -> (f32[s0, 2], i64[s0, 2])", assume_finite, @"
        (float[s0,8] x) => (float[s0,2] topk_0, int64[s0,2] topk_1)
        <
          int64[1] val_0 = {2}
        >
        {
          topk_0, topk_1 = TopK <axis: int = 1> (x, val_0)
        }
        ");
        check!("aten.sort(x: f64[4]) -> (f64[4], i64[4])", @"
        (double[4] x) => (double[4] sort_0, int64[4] sort_1)
        <
          double val_0 = {inf},
          int64[1] val_1 = {4}
        >
        {
          val_2 = IsNaN (x)
          val_3 = Where (val_2, val_0, x)
          val_4, val_5 = TopK <axis: int = 0, largest: int = 0> (val_3, val_1)
          val_6 = GatherElements (val_2, val_5)
          val_7 = Cast <to: int = 6> (val_6)
          val_8, val_9 = TopK <axis: int = 0, largest: int = 0> (val_7, val_1)
          sort_1 = GatherElements (val_5, val_9)
          sort_0 = GatherElements (x, sort_1)
        }
        ");
    }

    #[test]
    fn the_first_nan_is_the_extreme() {
        check!("aten.argmin(x: f32[s0, 8], 1) -> i64[s0]", @"
        (float[s0,8] x) => (int64[s0] argmin)
        <
          int64[1] val_0 = {1}
        >
        {
          val_1 = IsNaN (x)
          val_2 = Not (val_1)
          val_3 = ReduceMax <keepdims: int = 1> (val_1, val_0)
          val_4 = Cast <to: int = 1> (val_2)
          val_5 = Where (val_3, val_4, x)
          argmin = ArgMin <axis: int = 1, keepdims: int = 0> (val_5)
        }
        ");
        check!("aten.argmin(x: f32[s0, 8], 1) -> i64[s0]", assume_finite, @"
        (float[s0,8] x) => (int64[s0] argmin)
        {
          argmin = ArgMin <axis: int = 1, keepdims: int = 0> (x)
        }
        ");
    }
}
