//! Order along a dimension: sorting, the k-th smallest, medians, quantiles, the most frequent
//! element.

use crate::math::elementary::between;
use crate::math::reduce::{
    Extreme, any_nan, as_axis, lowest, may_be_empty_along, reduce, running_sums,
};
use crate::math::shape::flat;
use crate::math::sort::{
    self, Order, arg_extreme, first, gather_elements, numbers_first, sorted_values,
};
use crate::{AtenOp, Cx, LowerError, Lowered, TensorOrScalar, checks, op};
use pt2onnx_ir::{Reduction, Type, Value};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::argsort, argsort),
    op!(aten::argsort_stable, argsort),
    op!(aten::kthvalue, kthvalue),
    op!(aten::median, median_of_all),
    op!(aten::median_dim, median),
    op!(aten::mode, mode),
    op!(aten::msort, sort, dim = 0, descending = false),
    op!(aten::nanmedian, nanmedian_of_all),
    op!(aten::nanmedian_dim, nanmedian),
    op!(aten::nanquantile, quantile, ignore_nan = true),
    op!(aten::nanquantile_scalar, quantile, ignore_nan = true),
    op!(aten::quantile, quantile, ignore_nan = false),
    op!(aten::quantile_scalar, quantile, ignore_nan = false),
    op!(aten::sort, sort),
    op!(aten::sort_stable, sort),
    op!(aten::topk, topk),
];

/// The elements in order along `dim`, and the index of each. Elements that are equal keep their
/// order, whether PyTorch's op is stable or not.
fn sort(cx: &Cx, x: Value, dim: i64, descending: bool) -> Lowered<[Value; 2]> {
    Ok(sort::sort(cx, x, cx.axis(x, dim)?, descending))
}

/// The indices of [`sort`].
fn argsort(cx: &Cx, x: Value, dim: i64, descending: bool) -> Lowered {
    Ok(sort(cx, x, dim, descending)?[1])
}

/// The `k` largest (or smallest) elements along `dim`, and their indices: `TopK`. A 0-d tensor is
/// returned as it is.
fn topk(cx: &Cx, x: Value, k: Expr, dim: i64, largest: bool, sorted: bool) -> Lowered<[Value; 2]> {
    let axis = cx.axis(x, dim)?;
    Ok(match cx.rank(x) {
        0 => [x, cx.scalar(0, DType::I64)],
        _ => first(cx, x, &k, Order { axis, largest, sorted }),
    })
}

/// Removes dimension `axis`, which has one element, unless `keepdim`.
fn drop_axis(cx: &Cx, x: Value, axis: usize, keepdim: bool) -> Value {
    if keepdim { x } else { cx.squeeze(x, &[axis]) }
}

/// The `k`-th smallest element along `dim`, counted from 1, and its index: the last of the `k`
/// smallest.
fn kthvalue(cx: &Cx, x: Value, k: Expr, dim: i64, keepdim: bool) -> Lowered<[Value; 2]> {
    let axis = cx.axis(x, dim)?;
    if cx.rank(x) == 0 {
        return Ok([x, cx.scalar(0, DType::I64)]);
    }
    let smallest = first(cx, x, &k, Order { axis, largest: false, sorted: true });
    Ok(smallest.map(|found| last_of(cx, found, &k, axis, keepdim)))
}

/// The last of `k` elements along `axis`.
fn last_of(cx: &Cx, x: Value, k: &Expr, axis: usize, keepdim: bool) -> Value {
    let last = k - 1;
    if keepdim { cx.slice(x, axis, &last, k, 1) } else { cx.take(x, axis, &last) }
}

/// [`median`] of all elements.
fn median_of_all(cx: &Cx, x: Value) -> Lowered<[Value; 2]> {
    median(cx, at_least_one(cx, x), 0, false)
}

/// The elements, or what the median of none is: NaN, which a cast makes the lowest of int32 and
/// int64, and 0 for narrower types.
fn at_least_one(cx: &Cx, x: Value) -> Value {
    let (elements, dtype) = (flat(cx, x), cx.dtype(x));
    if !may_be_empty_along(cx, elements, &[0]) {
        return elements;
    }
    let nothing = match dtype {
        DType::I32 | DType::I64 => lowest(dtype),
        _ => f64::NAN.into(),
    };
    let missing = Expr::max(&(1 - cx.dim(elements, 0)), &Expr::int(0));
    let joined = cx.concat(&[elements, cx.full(&[missing], nothing, dtype)], 0);
    cx.set_type(joined, Type::tensor(dtype, [Expr::max(&cx.dim(elements, 0), &Expr::int(1))]));
    joined
}

/// The median along `dim` (of two in the middle, the lower one) and its index; the first NaN if
/// there is one.
fn median(cx: &Cx, x: Value, dim: i64, keepdim: bool) -> Lowered<[Value; 2]> {
    let axis = cx.axis(x, dim)?;
    if cx.rank(x) == 0 {
        return Ok([x, cx.scalar(0, DType::I64)]);
    }
    let n = cx.dim(x, axis as i64);
    let k = (n + 1).floor_div(&Expr::int(2));
    let smallest = numbers_first(cx, x, &k, Order { axis, largest: false, sorted: true });
    let [value, index] = smallest.map(|found| last_of(cx, found, &k, axis, keepdim));
    if !cx.propagates_nan(x) {
        return Ok([value, index]);
    }
    let nan = any_nan(cx, x, &[axis], keepdim);
    let first = arg_extreme(cx, Extreme::Max, cx.cast(cx.is_nan(x), DType::U8), axis, keepdim);
    Ok([cx.select(nan, f64::NAN, value), cx.select(nan, first, index)])
}

/// [`nanmedian`] of all elements.
fn nanmedian_of_all(cx: &Cx, x: Value) -> Lowered<[Value; 2]> {
    nanmedian(cx, at_least_one(cx, x), 0, false)
}

/// The median along `dim` of all elements that are not NaN, and its index. In ascending order NaN
/// come last, so it is at index `(n - 1) / 2`, where n is the number of the other elements.
fn nanmedian(cx: &Cx, x: Value, dim: i64, keepdim: bool) -> Lowered<[Value; 2]> {
    let axis = cx.axis(x, dim)?;
    if !cx.dtype(x).is_float() || cx.rank(x) == 0 {
        return median(cx, x, dim, keepdim);
    }
    let known = cx.cast(cx.not(cx.is_nan(x)), DType::I64);
    let known = reduce(cx, Reduction::Sum, known, &[axis], true);
    let rank = cx.div(cx.maximum(cx.sub(known, 1), 0), 2);
    let keys = if cx.propagates_nan(x) { x } else { cx.select(cx.is_nan(x), f64::INFINITY, x) };
    Ok(sort::sort(cx, keys, axis, false)
        .map(|sorted| drop_axis(cx, gather_elements(cx, sorted, rank, axis), axis, keepdim)))
}

/// The most frequent element along `dim` (of several, the smallest), and the index of its last
/// occurrence.
fn mode(cx: &Cx, x: Value, dim: i64, keepdim: bool) -> Lowered<[Value; 2]> {
    let axis = cx.axis(x, dim)?;
    let rank = cx.rank(x);
    if rank == 0 {
        return Ok([x, cx.scalar(0, DType::I64)]);
    }
    if cx.propagates_nan(x) {
        let index = mode_with_nan(cx, x, axis);
        let found = [gather_elements(cx, x, index, axis), index];
        return Ok(found.map(|v| drop_axis(cx, v, axis, keepdim)));
    }
    let sorted = sorted_values(cx, x, axis);
    // How many are equal: each with each, the others in a dimension behind `axis`.
    let equal = cx.equal(cx.unsqueeze(sorted, &[axis + 1]), cx.unsqueeze(sorted, &[axis]));
    let counts = reduce(cx, Reduction::Sum, cx.cast(equal, DType::I32), &[axis + 1], false);
    let most = arg_extreme(cx, Extreme::Max, counts, axis, true);
    let value = gather_elements(cx, sorted, most, axis);
    let here = as_axis(cx, cx.cast(cx.iota(&cx.dim(x, axis as i64)), DType::I64), axis, rank);
    let places = cx.select(cx.equal(x, value), here, 0);
    let index = reduce(cx, Reduction::Max, places, &[axis], keepdim);
    Ok([drop_axis(cx, value, axis, keepdim), index])
}

/// The index of the mode along `axis`, as PyTorch's CPU kernel finds it in up to 16 elements. It
/// sorts by insertion, which never moves an element past a NaN, unless it is smaller than the first
/// element: then it comes first. So NaN divide the order into segments, and the mode is the longest
/// run of equal elements, of several the first one.
fn mode_with_nan(cx: &Cx, x: Value, axis: usize) -> Value {
    let rank = cx.rank(x);
    let along = |op, v, keepdim| reduce(cx, op, v, &[axis], keepdim);
    let as_number = |v| cx.cast(v, DType::I64);
    let places = cx.iota(&cx.dim(x, axis as i64));
    let here = as_axis(cx, places, axis, rank);
    let nan = cx.is_nan(x);
    // Each element with each other one, which lies along `axis + 1`.
    let [each, other] = [axis + 1, axis].map(|a| cx.unsqueeze(x, &[a]));
    let [at, of_other] = [0, 1].map(|i| {
        let pair = cx.unsqueeze(places, &[1 - i]);
        cx.unsqueeze(
            pair,
            &(0..rank - 1).map(|a| if a < axis { a } else { a + 2 }).collect::<Vec<_>>(),
        )
    });
    let starts_with_nan = cx.slice(nan, axis, &Expr::int(0), &Expr::int(1), 1);
    let stays = cx.or(cx.less_or_equal(other, each), cx.unsqueeze(starts_with_nan, &[axis]));
    let stays = cx.and(stays, cx.less(of_other, at));
    let stays = reduce(
        cx,
        Reduction::Max,
        cx.or(stays, cx.unsqueeze(nan, &[axis + 1])),
        &[axis + 1],
        false,
    );
    let behind = running_sums(cx, as_number(nan), axis);
    let segment = cx.select(stays, behind, 0);
    let [own, theirs] = [axis + 1, axis].map(|a| cx.unsqueeze(segment, &[a]));
    let equal = cx.and(cx.equal(each, other), cx.equal(own, theirs));
    let counts = reduce(cx, Reduction::Sum, as_number(equal), &[axis + 1], false);
    // A NaN is a run of one, before the elements of its segment.
    let counts = cx.maximum(counts, 1);
    let longest = cx.equal(counts, along(Reduction::Max, counts, true));
    let far = i64::MAX;
    let segments = cx.select(longest, segment, far);
    let first = cx.equal(segments, along(Reduction::Min, segments, true));
    let candidate = cx.and(longest, first);
    let with_nan = cx.and(candidate, nan);
    let any = along(Reduction::Max, with_nan, true);
    let numbers = cx.select(cx.and(candidate, cx.not(nan)), x, f64::INFINITY);
    let least = cx.and(candidate, cx.equal(x, along(Reduction::Min, numbers, true)));
    let chosen = cx.or(with_nan, cx.and(least, cx.not(any)));
    along(Reduction::Max, cx.select(chosen, here, 0), true)
}

/// The `q`-quantiles: between the two neighbours of `q * (n - 1)` in sorted order, where `n` counts
/// all elements, or those that are not NaN.
fn quantile(
    cx: &Cx,
    x: Value,
    q: TensorOrScalar,
    dim: Option<i64>,
    keepdim: bool,
    how: String,
    ignore_nan: bool,
) -> Lowered {
    let dtype = cx.dtype(x);
    let q = cx.as_tensor(&q, dtype);
    let rank = cx.rank(x);
    let (x, axis) = match dim {
        Some(dim) if rank > 0 => (x, cx.axis(x, dim)?),
        _ => (flat(cx, x), 0),
    };
    let last = cx.rank(x) - 1;
    let axis_last: Vec<usize> = (0..=last).filter(|&a| a != axis).chain([axis]).collect();
    let x = cx.transpose(x, &axis_last);
    let sorted = sorted_values(cx, x, last);
    // In float32, 0.1 * 10 would be 1: PyTorch's is above it.
    let spread = cx.cast(flat(cx, q), DType::F64);
    let (ranks, nothing) = if ignore_nan {
        let numbers = cx.cast(cx.not(cx.is_nan(x)), DType::F64);
        let known = reduce(cx, Reduction::Sum, numbers, &[last], true);
        let ranks = cx.mul(spread, cx.sub(known, 1.0));
        (cx.maximum(ranks, 0.0), cx.equal(known, 0.0))
    } else {
        let end = cx.cast(cx.size(&(cx.dim(x, -1) - 1)), DType::F64);
        (cx.mul(spread, end), any_nan(cx, x, &[last], true))
    };
    let at = |ranks: Value| {
        if ignore_nan {
            gather_elements(cx, sorted, cx.cast(ranks, DType::I64), last)
        } else {
            cx.gather(sorted, cx.cast(ranks, DType::I64), last)
        }
    };
    let found = match how.as_str() {
        "lower" => at(cx.floor(ranks)),
        "higher" => at(cx.ceil(ranks)),
        "nearest" => at(cx.round(ranks)),
        "linear" | "midpoint" => {
            let below = cx.floor(ranks);
            let (low, high) = (at(below), at(cx.ceil(ranks)));
            let weight = match how.as_str() {
                "linear" => cx.cast(cx.sub(ranks, below), dtype),
                _ => cx.scalar(0.5, dtype),
            };
            between(cx, [low, high, weight])
        }
        _ => {
            return Err(LowerError::unsupported(format!(
                "the interpolation `{how}` of quantiles is not supported"
            )));
        }
    };
    let found = cx.select(nothing, f64::NAN, found);
    // The quantiles come first where there are several; then `x`'s dimensions without `axis`, or
    // with 1 there.
    let several = usize::from(cx.rank(q) > 0);
    let found = match several {
        1 => cx.transpose(found, &[last].into_iter().chain(0..last).collect::<Vec<_>>()),
        _ => cx.squeeze(found, &[last]),
    };
    Ok(match (keepdim, dim) {
        (false, _) => found,
        (true, Some(_)) if rank > 0 => cx.unsqueeze(found, &[axis + several]),
        _ => cx.unsqueeze(found, &(several..rank + several).collect::<Vec<_>>()),
    })
}

checks! {
    // The median is the lower one in the middle.
    "aten.median.dim(x: i64[s0, 4], 1) -> (i64[s0], i64[s0])" => "
    val_0, val_1 = TopK <axis: int = 1, largest: int = 0> (x, [2])
    median_0 = Gather <axis: int = 1> (val_0, 1)
    median_1 = Gather <axis: int = 1> (val_1, 1)
    ";

    // Quantiles lie between neighbours.
    "aten.quantile.scalar(x: f32[5], 0.25) -> f32[]" => "
    val_0 = IsNaN (x)
    val_1 = Where (val_0, inf, x)
    val_2, val_3 = TopK <axis: int = 0, largest: int = 0> (val_1, [5])
    val_4 = Cast <to: int = 11> ([0.25])
    val_5 = Cast <to: int = 11> (4)
    val_6 = Mul (val_4, val_5)
    val_7 = IsNaN (x)
    val_8 = ReduceMax <keepdims: int = 1> (val_7)
    val_9 = Floor (val_6)
    val_10 = Cast <to: int = 7> (val_9)
    val_11 = Gather <axis: int = 0> (val_2, val_10)
    val_12 = Ceil (val_6)
    val_13 = Cast <to: int = 7> (val_12)
    val_14 = Gather <axis: int = 0> (val_2, val_13)
    val_15 = Sub (val_6, val_9)
    val_16 = Cast <to: int = 1> (val_15)
    val_17 = Sub (val_14, val_11)
    val_18 = Abs (val_16)
    val_19 = Less (val_18, 0.5)
    val_20 = Sub (val_16, 1.0)
    val_21 = Where (val_19, val_16, val_20)
    val_22 = Where (val_19, val_11, val_14)
    val_23 = Mul (val_21, val_17)
    val_24 = Add (val_22, val_23)
    val_25 = Where (val_8, NaN, val_24)
    quantile = Squeeze (val_25, [0])
    ";

    // The mode among NaN.
    "aten.mode(x: f32[4], 0) -> (f32[], i64[])" => "
    val_0 = IsNaN (x)
    val_1 = Unsqueeze (x, [1])
    val_2 = Unsqueeze (x, [0])
    val_3 = Slice (val_0, [0], [1], [0])
    val_4 = LessOrEqual (val_2, val_1)
    val_5 = Unsqueeze (val_3, [0])
    val_6 = Or (val_4, val_5)
    val_7 = Less (int64[1,4] {0, 1, 2, 3}, int64[4,1] {0, 1, 2, 3})
    val_8 = And (val_6, val_7)
    val_9 = Unsqueeze (val_0, [1])
    val_10 = Or (val_8, val_9)
    val_11 = ReduceMax <keepdims: int = 0> (val_10, [1])
    val_12 = Cast <to: int = 7> (val_0)
    val_13 = CumSum (val_12, 0)
    val_14 = Where (val_11, val_13, 0)
    val_15 = Unsqueeze (val_14, [1])
    val_16 = Unsqueeze (val_14, [0])
    val_17 = Equal (val_1, val_2)
    val_18 = Equal (val_15, val_16)
    val_19 = And (val_17, val_18)
    val_20 = Cast <to: int = 7> (val_19)
    val_21 = ReduceSum <keepdims: int = 0> (val_20, [1])
    val_22 = Max (val_21, 1)
    val_23 = ReduceMax <keepdims: int = 1> (val_22)
    val_24 = Equal (val_22, val_23)
    val_25 = Where (val_24, val_14, 9223372036854775807)
    val_26 = ReduceMin <keepdims: int = 1> (val_25)
    val_27 = Equal (val_25, val_26)
    val_28 = And (val_24, val_27)
    val_29 = And (val_28, val_0)
    val_30 = ReduceMax <keepdims: int = 1> (val_29)
    val_31 = Not (val_0)
    val_32 = And (val_28, val_31)
    val_33 = Where (val_32, x, inf)
    val_34 = ReduceMin <keepdims: int = 1> (val_33)
    val_35 = Equal (x, val_34)
    val_36 = And (val_28, val_35)
    val_37 = Not (val_30)
    val_38 = And (val_36, val_37)
    val_39 = Or (val_29, val_38)
    val_40 = Where (val_39, [0, 1, 2, 3], 0)
    val_41 = ReduceMax <keepdims: int = 1> (val_40)
    val_42 = GatherElements (x, val_41)
    mode_0 = Squeeze (val_42, [0])
    mode_1 = Squeeze (val_41, [0])
    ";
    "aten.mode(x: f32[4], 0) -> (f32[], i64[])", assume_finite => "
    val_0, val_1 = TopK <axis: int = 0, largest: int = 0> (x, [4])
    val_2 = Unsqueeze (val_0, [1])
    val_3 = Unsqueeze (val_0, [0])
    val_4 = Equal (val_2, val_3)
    val_5 = Cast <to: int = 6> (val_4)
    val_6 = ReduceSum <keepdims: int = 0> (val_5, [1])
    val_7 = ArgMax (val_6)
    val_8 = GatherElements (val_0, val_7)
    val_9 = Equal (x, val_8)
    val_10 = Where (val_9, [0, 1, 2, 3], 0)
    mode_1 = ReduceMax <keepdims: int = 0> (val_10)
    mode_0 = Squeeze (val_8, [0])
    ";

    // NaN is larger than all numbers.
    "aten.topk(x: f32[s0, 8], 2, 1) -> (f32[s0, 2], i64[s0, 2])" => "
    val_0 = IsNaN (x)
    val_1 = Cast <to: int = 11> (x)
    val_2 = Min (val_1, double {1e300})
    val_3 = Where (val_0, double {inf}, val_2)
    val_4, topk_1 = TopK <axis: int = 1> (val_3, [2])
    topk_0 = GatherElements <axis: int = 1> (x, topk_1)
    ";
    "aten.topk(x: f32[s0, 8], 2, 1) -> (f32[s0, 2], i64[s0, 2])", assume_finite => "
    topk_0, topk_1 = TopK <axis: int = 1> (x, [2])
    ";
    "aten.sort(x: f64[4]) -> (f64[4], i64[4])" => "
    val_0 = IsNaN (x)
    val_1 = Where (val_0, double {inf}, x)
    val_2, val_3 = TopK <axis: int = 0, largest: int = 0> (val_1, [4])
    val_4 = GatherElements (val_0, val_3)
    val_5 = Cast <to: int = 6> (val_4)
    val_6, val_7 = TopK <axis: int = 0, largest: int = 0> (val_5, [4])
    sort_1 = GatherElements (val_3, val_7)
    sort_0 = GatherElements (x, sort_1)
    ";

    // The first NaN is the extreme.
    "aten.argmin(x: f32[s0, 8], 1) -> i64[s0]" => "
    val_0 = IsNaN (x)
    val_1 = Not (val_0)
    val_2 = ReduceMax <keepdims: int = 1> (val_0, [1])
    val_3 = Cast <to: int = 1> (val_1)
    val_4 = Where (val_2, val_3, x)
    argmin = ArgMin <axis: int = 1, keepdims: int = 0> (val_4)
    ";
    "aten.argmin(x: f32[s0, 8], 1) -> i64[s0]", assume_finite => "
    argmin = ArgMin <axis: int = 1, keepdims: int = 0> (x)
    ";
}
