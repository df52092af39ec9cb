//! Searching in sorted sequences, membership, unique elements.

use crate::math::control::repeat;
use crate::math::reduce::{any_true, neighbours, reduce, running_sums};
use crate::math::shape::flat;
use crate::math::sort::{gather_elements, sort};
use crate::meta::{fresh, sized, typed, with_size};
use crate::{
    AtenOp, Cx, Lowered, TensorOrScalar, args::Ignored, arguments, checks, cx::Outputs, op,
};
use pt2onnx_ir::{Reduction, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_unique2, unique, meta = meta_unique),
    op!(aten::bucketize_Scalar, bucketize),
    op!(aten::bucketize_Tensor, bucketize),
    op!(aten::isin_Scalar_Tensor, isin),
    op!(aten::isin_Tensor_Scalar, isin),
    op!(aten::isin_Tensor_Tensor, isin),
    op!(aten::searchsorted_Scalar, searchsorted),
    op!(aten::searchsorted_Tensor, searchsorted),
    op!(aten::unique_consecutive, unique_consecutive, meta = meta_unique),
    op!(aten::unique_dim, unique_dim, meta = meta_unique),
];

/// Up to this many elements, comparing with each is cheaper than bisection.
const COMPARED: i64 = 64;

/// The index in the last dimension of `sorted` where `x` belongs: the number of elements that are
/// smaller than `x`, or with `right` not larger. NaN sorts after all other elements. If `sorted`
/// may have NaN, the index is the one that PyTorch's bisection finds.
fn search(cx: &Cx, sorted: Value, x: TensorOrScalar, right: bool, out_int32: bool) -> Value {
    let value = match &x {
        TensorOrScalar::Tensor(v) => *v,
        number => cx.as_tensor(number, cx.result_type(std::slice::from_ref(number))),
    };
    // PyTorch's decomposition of `isin` does not find what stands before NaN, its kernel does.
    let of_isin = cx.propagates_nan(sorted) && cx.is_part_of("aten.isin.");
    let sorted = if of_isin { cx.select(cx.is_nan(sorted), f64::INFINITY, sorted) } else { sorted };
    let ordered = of_isin || !cx.propagates_nan(sorted) || is_without_nan(cx, sorted);
    let (value, sorted) = cx.promote(value, sorted);
    let behind = |element, value| {
        if right { cx.greater(element, value) } else { cx.greater_or_equal(element, value) }
    };
    let n = cx.dim(sorted, -1);
    let found = match n.as_int() {
        Some(..=COMPARED) if ordered => compare_all(cx, sorted, value, behind),
        _ => bisect(cx, sorted, value, &n, behind),
    };
    cx.cast(found, if out_int32 { DType::I32 } else { DType::I64 })
}

/// Whether `x` is a constant that has no NaN.
fn is_without_nan(cx: &Cx, x: Value) -> bool {
    cx.constant_of(x).is_some_and(|tensor| {
        let single = tensor.to_vec::<f32>().is_some_and(|all| all.iter().all(|e| !e.is_nan()));
        single || tensor.to_vec::<f64>().is_some_and(|all| all.iter().all(|e| !e.is_nan()))
    })
}

/// [`search`] by comparing each value with each element.
fn compare_all(
    cx: &Cx,
    sorted: Value,
    value: Value,
    behind: impl Fn(Value, Value) -> Value,
) -> Value {
    let last = cx.rank(value);
    let among = match cx.rank(sorted) {
        1 => sorted,
        rank => cx.unsqueeze(sorted, &[rank - 1]),
    };
    let before = cx.not(behind(among, cx.unsqueeze(value, &[last])));
    reduce(cx, Reduction::Sum, cx.cast(before, DType::I64), &[last], false)
}

/// [`search`] by PyTorch's bisection, for all values at once: the `n` elements are halved until
/// nothing is left between both ends.
fn bisect(
    cx: &Cx,
    sorted: Value,
    value: Value,
    n: &Expr,
    behind: impl Fn(Value, Value) -> Value,
) -> Value {
    let (size, last) = (cx.size(n), cx.size(&(n - 1)));
    let shape = cx.shape(value);
    let (start, end) = (cx.full(&shape, 0, DType::I64), cx.expand(size, &shape));
    let found = repeat(cx, Some(size), &[size, start, end], |_, state| {
        let &[span, start, end] = state else {
            return (None, state.to_vec());
        };
        let middle = cx.div(cx.add(start, end), 2);
        // If the range is empty, the middle may be its end.
        let at = cx.minimum(middle, last);
        let element = match cx.rank(sorted) {
            1 => cx.gather(sorted, at, 0),
            rank => gather_elements(cx, sorted, at, rank - 1),
        };
        let behind = behind(element, value);
        let start = cx.minimum(cx.select(behind, start, cx.add(middle, 1)), end);
        let half = cx.div(span, 2);
        let next = vec![half, start, cx.select(behind, middle, end)];
        (Some(cx.greater(half, 0)), next)
    });
    found.get(1).copied().unwrap_or(start)
}

/// The bin of each element of `x` between the sorted `boundaries`.
fn bucketize(
    cx: &Cx,
    x: TensorOrScalar,
    boundaries: Value,
    out_int32: bool,
    right: bool,
) -> Lowered {
    Ok(search(cx, boundaries, x, right, out_int32))
}

/// The index where each element of `input` belongs in the sorted sequence; `sorter` holds the order
/// that sorts it.
fn searchsorted(
    cx: &Cx,
    sequence: Value,
    x: TensorOrScalar,
    out_int32: bool,
    right: bool,
    side: Option<String>,
    sorter: Option<Value>,
) -> Lowered {
    let sorted = match sorter {
        Some(order) => gather_elements(cx, sequence, order, cx.rank(sequence) - 1),
        None => sequence,
    };
    let right = right || side.as_deref() == Some("right");
    Ok(search(cx, sorted, x, right, out_int32))
}

/// Whether each element is one of `among`.
fn isin(cx: &Cx, x: TensorOrScalar, among: TensorOrScalar, invert: bool) -> Lowered {
    let (x, among) = cx.promote(x, among);
    let last = cx.rank(x);
    let equal = cx.equal(cx.unsqueeze(x, &[last]), flat(cx, among));
    let found = any_true(cx, equal, &[last], false);
    Ok(if invert { cx.not(found) } else { found })
}

/// Unique elements, the index of each element of the input among them, and how often each occurs.
/// Only outputs that are read are emitted.
type UniqueOutputs = Lowered<[Option<Value>; 3]>;

/// [`UniqueOutputs`] by ONNX's `Unique`, along an axis or of all elements; always sorted, as
/// PyTorch's on CPUs.
fn unique_along(cx: &Cx, x: Value, axis: Option<usize>) -> [Value; 3] {
    let dtype = cx.dtype(x);
    // Bools have no order in ONNX.
    let numbers = if dtype == DType::Bool { cx.cast(x, DType::I64) } else { x };
    let options = attrs::Unique { axis: axis.map(|a| a as i64), ..Default::default() };
    let found = cx.unique_n(4, numbers, options);
    [cx.cast(found[0], dtype), found[2], found[3]]
}

/// Output `i` if it is read: an empty vector if that is what PyTorch recorded, else what `made`
/// emits.
fn if_read(cx: &Cx, i: usize, made: impl FnOnce() -> Value) -> Option<Value> {
    let empty = cx.recorded(i).is_some_and(|m| m.sizes == [Expr::int(0)]);
    cx.is_used(i).then(|| if empty { cx.full(&[Expr::int(0)], 0, DType::I64) } else { made() })
}

/// The places of elements that differ from the one before, in order; the first one counts.
fn run_starts(cx: &Cx, sorted: Value, n: &Expr) -> Value {
    let places = cx.cast(cx.iota(n), DType::I64);
    let before = cx.gather(sorted, cx.maximum(cx.sub(places, 1), 0), 0);
    let differ = cx.not(cx.equal(sorted, before));
    cx.or(differ, cx.equal(places, 0))
}

/// [`unique`] of floats, where each NaN is a separate element: the first of each run in sorted
/// order.
fn unique_floats(cx: &Cx, x: Value) -> UniqueOutputs {
    let elements = flat(cx, x);
    let n = cx.numel(x);
    let [sorted, order] = sort(cx, elements, 0, false);
    let starts = run_starts(cx, sorted, &n);
    let values = cx.compress(sorted, starts, attrs::Compress { axis: Some(0) });
    let inverse = || {
        let run = cx.sub(running_sums(cx, cx.cast(starts, DType::I64), 0), 1);
        let zeros = cx.full(std::slice::from_ref(&n), 0, DType::I64);
        let found = cx.scatter_elements(zeros, order, run, attrs::ScatterElements::default());
        cx.reshape(found, &cx.shape(x))
    };
    let counts = || run_lengths(cx, starts, &n);
    Ok([Some(values), if_read(cx, 1, inverse), if_read(cx, 2, counts)])
}

/// The lengths of the runs of `n` elements, given where each run starts.
fn run_lengths(cx: &Cx, starts: Value, n: &Expr) -> Value {
    let along = attrs::Compress { axis: Some(0) };
    let places = cx.compress(cx.cast(cx.iota(n), DType::I64), starts, along);
    let ends = cx.concat(&[places, cx.sizes(std::slice::from_ref(n))], 0);
    let [from, to] = neighbours(cx, ends, 0, 1);
    cx.sub(to, from)
}

/// The unique elements of all dimensions.
fn unique(
    cx: &Cx,
    x: Value,
    _sorted: Ignored,
    _inverse: Ignored,
    _counts: Ignored,
) -> UniqueOutputs {
    if cx.propagates_nan(x) {
        return unique_floats(cx, x);
    }
    let [values, inverse, counts] = unique_along(cx, x, None);
    Ok([
        Some(values),
        if_read(cx, 1, || cx.reshape(inverse, &cx.shape(x))),
        if_read(cx, 2, || counts),
    ])
}

/// [`unique_along`] of floats. A slice with NaN is another one than all others: its place is one
/// more element of it.
fn unique_slices_of_floats(cx: &Cx, x: Value, axis: usize) -> [Value; 3] {
    let mut sizes = cx.shape(x);
    let n = sizes.remove(axis);
    let others = (0..cx.rank(x)).filter(|&a| a != axis);
    let slices = cx.transpose(x, &[axis].into_iter().chain(others).collect::<Vec<_>>());
    let slices = cx.reshape(slices, &[n.clone(), Expr::product(&sizes)]);
    let nan = cx.is_nan(slices);
    let places = cx.cast(cx.add(cx.iota(&n), 1), DType::F64);
    let place = cx.select(any_true(cx, nan, &[1], false), places, 0.0);
    let numbers = cx.cast(cx.select(nan, 0.0, slices), DType::F64);
    let keys = cx.concat(&[numbers, cx.unsqueeze(place, &[1])], 1);
    let options = attrs::Unique { axis: Some(0), ..Default::default() };
    let found = cx.unique_n(4, keys, options);
    [cx.gather(x, found[1], axis), found[2], found[3]]
}

/// The unique slices along `dim`.
fn unique_dim(
    cx: &Cx,
    x: Value,
    dim: i64,
    _sorted: Ignored,
    _inverse: Ignored,
    _counts: Ignored,
) -> UniqueOutputs {
    let axis = cx.axis(x, dim)?;
    let [values, inverse, counts] = if cx.propagates_nan(x) {
        unique_slices_of_floats(cx, x, axis)
    } else {
        unique_along(cx, x, Some(axis))
    };
    Ok([Some(values), if_read(cx, 1, || inverse), if_read(cx, 2, || counts)])
}

/// The first of each run of equal elements (or slices along `dim`), the run that each element
/// belongs to, and the runs' lengths.
fn unique_consecutive(
    cx: &Cx,
    x: Value,
    _inverse: Ignored,
    _counts: Ignored,
    dim: Option<i64>,
) -> UniqueOutputs {
    let shape = cx.shape(x);
    let (x, axis) = match dim {
        Some(dim) if !shape.is_empty() => (x, cx.axis(x, dim)?),
        _ => (flat(cx, x), 0),
    };
    let n = cx.dim(x, axis as i64);
    if n.as_int() == Some(0) {
        let nothing = |dims: &[Expr]| cx.full(dims, 0, DType::I64);
        return Ok([
            Some(x),
            if_read(cx, 1, || nothing(&shape)),
            if_read(cx, 2, || nothing(std::slice::from_ref(&n))),
        ]);
    }
    let [before, after] = neighbours(cx, x, axis, 1);
    let differ = cx.not(cx.equal(before, after));
    let others: Vec<usize> = (0..cx.rank(x)).filter(|&a| a != axis).collect();
    let differ = reduce(cx, Reduction::Max, differ, &others, false);
    // An empty tensor has no first element.
    let start = if cx.constraints().prove_ge(&n, &Expr::int(1)) {
        cx.vector(&[true])
    } else {
        cx.full(&[Expr::min(&n, &Expr::int(1))], true, DType::Bool)
    };
    let first = cx.concat(&[start, differ], 0);
    let along = |axis: usize| attrs::Compress { axis: Some(axis as i64) };
    let inverse = || {
        let run = cx.sub(running_sums(cx, cx.cast(first, DType::I64), 0), 1);
        match dim {
            None => cx.reshape(run, &shape),
            Some(_) => run,
        }
    };
    let counts = || run_lengths(cx, first, &n);
    Ok([Some(cx.compress(x, first, along(axis))), if_read(cx, 1, inverse), if_read(cx, 2, counts)])
}

arguments! {
    struct MetaUnique { input: Value, dim: Option<i64>, return_inverse: bool, return_counts: bool }
}

/// Elements or slices, where each element is, and how many there are.
fn meta_unique(cx: &Cx, args: MetaUnique) -> Lowered<Outputs> {
    let count = fresh(cx);
    // With a dimension, all results are there.
    let all = args.dim.is_some();
    let (values, places) = match args.dim {
        None => (vec![count.clone()], cx.shape(args.input)),
        Some(dim) => {
            let axis = cx.axis(args.input, dim)?;
            let size = cx.dim(args.input, axis as i64);
            (with_size(cx, args.input, axis, count.clone()), vec![size])
        }
    };
    let second =
        |on: bool, size: &[Expr]| typed(cx, DType::I64, if on { size } else { &[Expr::ZERO] });
    Ok([
        sized(cx, args.input, &values),
        second(all || args.return_inverse, &places),
        second(all || args.return_counts, &[count]),
    ]
    .into())
}

checks! {
    // A search of `isin` finds what stands before NaN.
    "aten.searchsorted.Tensor(sorted: f32[3], x: f32[s0]) -> i64[s0]", from = "aten.isin.Tensor_Tensor" => "
    val_0 = IsNaN (sorted)
    val_1 = Where (val_0, inf, sorted)
    val_2 = Unsqueeze (x, [1])
    val_3 = GreaterOrEqual (val_1, val_2)
    val_4 = Not (val_3)
    val_5 = Cast <to: int = 7> (val_4)
    searchsorted = ReduceSum <keepdims: int = 0> (val_5, [1])
    ";

    // Few boundaries are all compared.
    "aten.bucketize.Tensor(x: f32[s0], boundaries: f32[3], out_int32 = True, right = True) -> i32[s0]" => "
    val_0 = Shape <start: int = 0, end: int = 1> (x)
    val_1 = Expand (0, val_0)
    val_2 = Expand (3, val_0)
    val_3, val_4, val_5 = Loop <body: graph = body (int64 val_6, bool val_7, int64 val_8, int64[s0] val_9, int64[s0] val_10) => (bool val_11, int64 val_12, int64[s0] val_13, int64[s0] val_14)
    {
      val_15 = Add (val_9, val_10)
      val_16 = Div (val_15, 2)
      val_17 = Min (val_16, 2)
      val_18 = Gather <axis: int = 0> (boundaries, val_17)
      val_19 = Greater (val_18, x)
      val_20 = Add (val_16, 1)
      val_21 = Where (val_19, val_9, val_20)
      val_13 = Min (val_21, val_10)
      val_12 = Div (val_8, 2)
      val_14 = Where (val_19, val_16, val_10)
      val_11 = Greater (val_12, 0)
    }> (3, true, 3, val_1, val_2)
    bucketize = Cast <to: int = 6> (val_4)
    ";

    // Many boundaries are bisected.
    "aten.searchsorted.Scalar(sorted: f32[s0], 0.5, side = 'right') -> i64[]" => "
    val_0 = Shape <start: int = 0, end: int = 1> (sorted)
    val_1 = Reshape (val_0, [])
    val_2 = Sub (val_0, [1])
    val_3 = Reshape (val_2, [])
    val_4, searchsorted, val_5 = Loop <body: graph = body (int64 val_6, bool val_7, int64 val_8, int64 val_9, int64 val_10) => (bool val_11, int64 val_12, int64 val_13, int64 val_14)
    {
      val_15 = Add (val_9, val_10)
      val_16 = Div (val_15, 2)
      val_17 = Min (val_16, val_3)
      val_18 = Gather <axis: int = 0> (sorted, val_17)
      val_19 = Greater (val_18, 0.5)
      val_20 = Add (val_16, 1)
      val_21 = Where (val_19, val_9, val_20)
      val_13 = Min (val_21, val_10)
      val_12 = Div (val_8, 2)
      val_14 = Where (val_19, val_16, val_10)
      val_11 = Greater (val_12, 0)
    }> (val_1, true, val_1, 0, val_1)
    ";

    // Each slice with NaN is unique.
    "aten.unique_dim(x: f32[4, 2], 0, True, True, False) -> (f32[u0, 2], i64[4], i64[0])" => "
    val_0 = IsNaN (x)
    val_1 = Add ([0, 1, 2, 3], 1)
    val_2 = Cast <to: int = 11> (val_1)
    val_3 = ReduceMax <keepdims: int = 0> (val_0, [1])
    val_4 = Where (val_3, val_2, double {0.0})
    val_5 = Where (val_0, 0.0, x)
    val_6 = Cast <to: int = 11> (val_5)
    val_7 = Unsqueeze (val_4, [1])
    val_8 = Concat <axis: int = 1> (val_6, val_7)
    val_9, val_10, unique_dim_1, val_11 = Unique <axis: int = 0> (val_8)
    unique_dim_0 = Gather <axis: int = 0> (x, val_10)
    unique_dim_2 = Expand (0, [0])
    ";

    // Each NaN is unique.
    "aten._unique2(x: f32[6], True, True) -> (f32[u0], i64[6], i64[0])" => "
    val_0 = IsNaN (x)
    val_1 = Cast <to: int = 11> (x)
    val_2 = Min (val_1, double {1e300})
    val_3 = Where (val_0, double {inf}, val_2)
    val_4, val_5 = TopK <axis: int = 0, largest: int = 0> (val_3, [6])
    val_6 = GatherElements (x, val_5)
    val_7 = Sub ([0, 1, 2, 3, 4, 5], 1)
    val_8 = Max (val_7, 0)
    val_9 = Gather <axis: int = 0> (val_6, val_8)
    val_10 = Equal (val_6, val_9)
    val_11 = Not (val_10)
    val_12 = Equal ([0, 1, 2, 3, 4, 5], 0)
    val_13 = Or (val_11, val_12)
    _unique2_0 = Compress <axis: int = 0> (val_6, val_13)
    val_14 = Cast <to: int = 7> (val_13)
    val_15 = CumSum (val_14, 0)
    val_16 = Sub (val_15, 1)
    val_17 = Expand (0, [6])
    _unique2_1 = ScatterElements (val_17, val_5, val_16)
    _unique2_2 = Expand (0, [0])
    ";
    "aten._unique2(x: f32[6], True, True) -> (f32[u0], i64[6], i64[0])", assume_finite => "
    _unique2_0, val_0, _unique2_1, val_1 = Unique (x)
    _unique2_2 = Expand (0, [0])
    ";
}
