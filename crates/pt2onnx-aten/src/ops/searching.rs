//! Where values belong and how often they occur: searching in sorted sequences, histograms, unique values, membership.

use super::common_reduce::{all_axes, flat, gather_elements, neighbours, reduce, total};
use super::loops::repeat;
use crate::{AtenOp, Cx, LowerError, Lowered, TensorOrScalar, registry::aten};
use pt2onnx_ir::{Reduction, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Scalar};

pub(super) static OPS: &[AtenOp] = &[
    aten!(
        "aten::_histogramdd_bin_edges(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, bool density=False) -> Tensor[]",
        |cx: &Cx, x: Value, bins: Vec<i64>, range: Option<Vec<f64>>, _: Option<Value>, _: bool| {
            all_edges(cx, rows(cx, x), &bins, range.as_deref())
        }
    ),
    aten!(
        "aten::_histogramdd_from_bin_cts(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, bool density=False) -> Tensor",
        |cx: &Cx,
         x: Value,
         bins: Vec<i64>,
         range: Option<Vec<f64>>,
         weight: Option<Value>,
         density: bool|
         -> Lowered {
            let points = rows(cx, x);
            let edges = all_edges(cx, points, &bins, range.as_deref())?;
            Ok(histogram(cx, points, &edges, weight, density))
        }
    ),
    aten!(
        "aten::_histogramdd_from_bin_tensors(Tensor self, Tensor[] bins, *, Tensor? weight=None, bool density=False) -> Tensor",
        |cx: &Cx, x: Value, bins: Vec<Value>, weight: Option<Value>, density: bool| -> Lowered {
            Ok(histogram(cx, rows(cx, x), &bins, weight, density))
        }
    ),
    aten!(
        "aten::_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
        unique
    ),
    aten!(
        "aten::bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor",
        bincount
    ),
    aten!(
        "aten::bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
        |cx: &Cx, x: TensorOrScalar, boundaries: Value, _: bool, right: bool| {
            search(cx, boundaries, x, right)
        }
    ),
    aten!(
        "aten::bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
        |cx: &Cx, x: TensorOrScalar, boundaries: Value, _: bool, right: bool| {
            search(cx, boundaries, x, right)
        }
    ),
    aten!("aten::histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor", histc),
    aten!(
        "aten::histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)",
        |cx: &Cx,
         x: Value,
         bins: i64,
         range: Option<Vec<f64>>,
         weight: Option<Value>,
         density: bool|
         -> Lowered<[Value; 2]> {
            let points = cx.reshape(x, &[cx.numel(x), Expr::int(1)]);
            let edges = vec![edges(cx, flat(cx, x), bins, range.as_deref())?];
            let counts = histogram(cx, points, &edges, weight, density);
            Ok([counts, edges[0]])
        }
    ),
    aten!(
        "aten::histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)",
        |cx: &Cx,
         x: Value,
         bins: Value,
         weight: Option<Value>,
         density: bool|
         -> Lowered<[Value; 2]> {
            let points = cx.reshape(x, &[cx.numel(x), Expr::int(1)]);
            Ok([histogram(cx, points, &[bins], weight, density), bins])
        }
    ),
    aten!(
        "aten::histogramdd(Tensor self, int[] bins, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor[] bin_edges)",
        histogramdd
    ),
    aten!(
        "aten::histogramdd.TensorList_bins(Tensor self, Tensor[] bins, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor[] bin_edges)",
        |cx: &Cx,
         x: Value,
         bins: Vec<Value>,
         _: Option<Vec<f64>>,
         weight: Option<Value>,
         density: bool|
         -> Lowered<Vec<Value>> {
            let counts = histogram(cx, rows(cx, x), &bins, weight, density);
            Ok([counts].into_iter().chain(bins).collect())
        }
    ),
    aten!(
        "aten::histogramdd.int_bins(Tensor self, int bins, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor[] bin_edges)",
        |cx: &Cx,
         x: Value,
         bins: i64,
         range: Option<Vec<f64>>,
         weight: Option<Value>,
         density: bool| {
            let Some(n) = cx.dim(x, -1).as_int() else {
                return Err(LowerError::unsupported(
                    "histograms of a dynamic number of dimensions",
                ));
            };
            histogramdd(cx, x, vec![bins; n.max(0) as usize], range, weight, density)
        }
    ),
    aten!(
        "aten::isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor",
        isin
    ),
    aten!(
        "aten::isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, bool invert=False) -> Tensor",
        isin
    ),
    aten!(
        "aten::isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor",
        isin
    ),
    aten!(
        "aten::searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> Tensor",
        searchsorted
    ),
    aten!(
        "aten::searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> Tensor",
        searchsorted
    ),
    aten!(
        "aten::unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> (Tensor, Tensor, Tensor)",
        unique_consecutive
    ),
    aten!(
        "aten::unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
        unique_dim
    ),
];

/// Up to this many elements, comparing with each is cheaper than a search.
const COMPARED: i64 = 64;

/// How many elements of the last dimension of `sorted` are not behind `x`: all that are smaller, or (`right`) not larger.
/// Nothing is smaller than NaN, so that it belongs behind all.
fn search(cx: &Cx, sorted: Value, x: TensorOrScalar, right: bool) -> Lowered {
    let value = match &x {
        TensorOrScalar::Tensor(v) => *v,
        number => cx.as_tensor(number, cx.result_type(std::slice::from_ref(number))),
    };
    let (value, sorted) = cx.promote(value, sorted);
    let behind = |element, value| match right {
        true => cx.greater(element, value),
        false => cx.greater_or_equal(element, value),
    };
    let n = cx.dim(sorted, -1);
    let found = match n.as_int() {
        Some(..=COMPARED) => compare_all(cx, sorted, value, behind),
        _ => bisect(cx, sorted, value, &n, behind),
    };
    Ok(cx.cast(found, cx.out_dtype()?))
}

/// Each value is compared with each element.
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

/// PyTorch's bisection, of all values at once: halves of the `n` elements until nothing is left between both ends.
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
        // Where nothing is left, the middle may be the end.
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

fn searchsorted(
    cx: &Cx,
    sorted: Value,
    x: TensorOrScalar,
    _out_int32: bool,
    right: bool,
    side: Option<String>,
    sorter: Option<Value>,
) -> Lowered {
    let sorted = match sorter {
        Some(order) => gather_elements(cx, sorted, order, cx.rank(sorted) - 1),
        None => sorted,
    };
    search(cx, sorted, x, right || side.as_deref() == Some("right"))
}

/// Whether each element is one of `among`.
fn isin(
    cx: &Cx,
    x: TensorOrScalar,
    among: TensorOrScalar,
    _assume_unique: bool,
    invert: bool,
) -> Lowered {
    let (x, among) = cx.promote(x, among);
    let last = cx.rank(x);
    let equal = cx.equal(cx.unsqueeze(x, &[last]), flat(cx, among));
    let found = reduce(cx, Reduction::Max, equal, &[last], false);
    Ok(if invert { cx.not(found) } else { found })
}

/// Zeros of `size` (a vector of one) with `weights` added up at `indices`.
fn counted(cx: &Cx, size: Value, indices: Value, weights: Value) -> Value {
    let zeros = cx.emit1(
        "Expand",
        &[Some(cx.scalar(0, cx.dtype(weights))), Some(size)],
        Default::default(),
    );
    let options = attrs::ScatterElements { axis: 0, reduction: "add" };
    cx.scatter_elements(zeros, indices, weights, options)
}

/// As many bins as the largest number needs, at least `minlength`.
fn bincount(cx: &Cx, x: Value, weights: Option<Value>, minlength: Expr) -> Lowered {
    let x = cx.cast(x, DType::I64);
    // In one list with `minlength - 1`, there is a largest of no numbers, too.
    let least = cx.sizes(&[minlength - 1]);
    let largest = cx.reduce(Reduction::Max, cx.concat(&[x, least], 0), &[0], true);
    let weights = match weights {
        Some(w) => cx.cast(w, cx.out_dtype()?),
        None => cx.full(&cx.shape(x), 1, DType::I64),
    };
    Ok(counted(cx, cx.add(largest, 1), x, weights))
}

/// `bins` of equal widths between `min` and `max`; where both are equal, between the smallest and the largest element.
fn histc(cx: &Cx, x: Value, bins: i64, min: Scalar, max: Scalar) -> Lowered {
    let dtype = cx.dtype(x);
    let wide = match dtype {
        DType::F16 | DType::BF16 | DType::F32 => DType::F32,
        _ => DType::F64,
    };
    let x = cx.cast(flat(cx, x), wide);
    let (low, high) = range(cx, x, [min.to_f64(), max.to_f64()])?;
    let place = cx.div(cx.mul(cx.sub(x, low), bins as f64), cx.sub(high, low));
    let inside = cx.and(cx.greater_or_equal(x, low), cx.less_or_equal(x, high));
    // The last bin has its upper edge, too; what lies outside is counted as nothing in the first.
    let place = cx.minimum(cx.floor(place), (bins - 1) as f64);
    let place = cx.cast(cx.select(inside, place, 0.0), DType::I64);
    let counts = counted(cx, cx.ints(&[bins]), place, cx.cast(inside, wide));
    Ok(cx.cast(counts, dtype))
}

/// The given range, or that of the elements; a half on both sides where it is empty.
fn range(cx: &Cx, x: Value, [min, max]: [f64; 2]) -> Lowered<(Value, Value)> {
    let dtype = cx.dtype(x);
    if min != max {
        return Ok((cx.scalar(min, dtype), cx.scalar(max, dtype)));
    }
    if cx.numel(x).as_int() == Some(0) {
        return Ok((cx.scalar(min - 1.0, dtype), cx.scalar(max + 1.0, dtype)));
    }
    let axes = all_axes(cx, x);
    let (low, high) =
        (reduce(cx, Reduction::Min, x, &axes, false), reduce(cx, Reduction::Max, x, &axes, false));
    let same = cx.equal(low, high);
    Ok((cx.select(same, cx.sub(low, 1.0), low), cx.select(same, cx.add(high, 1.0), high)))
}

/// `bins + 1` edges of equal distances.
fn edges(cx: &Cx, x: Value, bins: i64, given: Option<&[f64]>) -> Lowered {
    let dtype = cx.dtype(x);
    let (low, high) = match given {
        Some([min, max]) if min == max => {
            (cx.scalar(min - 0.5, dtype), cx.scalar(max + 0.5, dtype))
        }
        Some([min, max]) => (cx.scalar(*min, dtype), cx.scalar(*max, dtype)),
        _ if cx.numel(x).as_int() == Some(0) => (cx.scalar(0.0, dtype), cx.scalar(1.0, dtype)),
        _ => {
            let axes = all_axes(cx, x);
            let (low, high) = (
                reduce(cx, Reduction::Min, x, &axes, false),
                reduce(cx, Reduction::Max, x, &axes, false),
            );
            let same = cx.equal(low, high);
            (cx.select(same, cx.sub(low, 0.5), low), cx.select(same, cx.add(high, 0.5), high))
        }
    };
    Ok(super::creation::spaced(cx, low, high, bins + 1, dtype))
}

/// Points, one in each row.
fn rows(cx: &Cx, x: Value) -> Value {
    let n = cx.dim(x, -1);
    let lead: Vec<Expr> =
        cx.shape(x).split_last().map(|(_, lead)| lead.to_vec()).unwrap_or_default();
    cx.reshape(x, &[Expr::product(lead), n])
}

/// The edges of each dimension; `range` holds both ends of each.
fn all_edges(cx: &Cx, points: Value, bins: &[i64], range: Option<&[f64]>) -> Lowered<Vec<Value>> {
    let one = |(i, &n): (usize, &i64)| {
        let given = range.and_then(|r| r.get(2 * i..2 * i + 2));
        edges(cx, cx.take(points, 1, &Expr::int(i as i64)), n, given)
    };
    bins.iter().enumerate().map(one).collect()
}

fn histogramdd(
    cx: &Cx,
    x: Value,
    bins: Vec<i64>,
    range: Option<Vec<f64>>,
    weight: Option<Value>,
    density: bool,
) -> Lowered<Vec<Value>> {
    let points = rows(cx, x);
    let edges = all_edges(cx, points, &bins, range.as_deref())?;
    let counts = histogram(cx, points, &edges, weight, density);
    Ok([counts].into_iter().chain(edges).collect())
}

/// How many points (or how much of their weight) lie between the edges; the last edge belongs to the last bin.
fn histogram(
    cx: &Cx,
    points: Value,
    edges: &[Value],
    weight: Option<Value>,
    density: bool,
) -> Value {
    let dtype = cx.dtype(points);
    let one = Expr::int(1);
    let sizes: Vec<Expr> = edges.iter().map(|&e| cx.dim(e, 0) - 1).collect();
    let mut place = cx.scalar(0, DType::I64);
    let mut inside: Option<Value> = None;
    for (i, (&edges, size)) in edges.iter().zip(&sizes).enumerate() {
        let x = cx.slice(points, 1, &Expr::int(i as i64), &Expr::int(i as i64 + 1), 1);
        let not_behind = cx.cast(cx.less_or_equal(edges, x), DType::I64);
        let found = cx.sub(reduce(cx, Reduction::Sum, not_behind, &[1], false), 1);
        let x = cx.reshape(x, &[cx.dim(points, 0)]);
        let (first, last) = (cx.take(edges, 0, &Expr::int(0)), cx.take(edges, 0, size));
        let here = cx.and(cx.greater_or_equal(x, first), cx.less_or_equal(x, last));
        let bin = cx.minimum(found, cx.size(&(size - &one)));
        place = cx.add(cx.mul(place, cx.size(size)), bin);
        inside = Some(inside.map_or(here, |before| cx.and(before, here)));
    }
    let inside = inside.unwrap_or_else(|| cx.scalar(true, DType::Bool));
    let weights = match weight {
        Some(w) => cx.select(inside, flat(cx, w), 0.0),
        None => cx.cast(inside, dtype),
    };
    let place = cx.select(inside, place, 0);
    let counts = counted(cx, cx.sizes(&[Expr::product(sizes.clone())]), place, weights);
    let counts = cx.reshape(counts, &sizes);
    if !density {
        return counts;
    }
    let widths = edges.iter().enumerate().map(|(i, &e)| {
        let [a, b] = neighbours(cx, e, 0, 1);
        super::common_reduce::along(cx, cx.sub(b, a), edges.len(), i)
    });
    let share = cx.div(counts, total(cx, counts));
    widths.fold(share, |share, width| cx.div(share, width))
}

/// What the family of `unique` gives: values, the place of each element among them, how often each is met. PyTorch
/// records sizes of outputs that nobody asked for, too: only those that are read are made.
type UniqueOutputs = Lowered<[Option<Value>; 3]>;

/// ONNX's `Unique`, along an axis or of all elements; always sorted, as PyTorch's on CPUs.
fn unique_along(cx: &Cx, x: Value, axis: Option<usize>) -> [Value; 3] {
    let dtype = cx.dtype(x);
    // Bools have no order in ONNX.
    let numbers = if dtype == DType::Bool { cx.cast(x, DType::I64) } else { x };
    let options = attrs::Unique { axis: axis.map(|a| a as i64), ..Default::default() };
    let found = cx.unique_n(4, numbers, options);
    [cx.cast(found[0], dtype), found[2], found[3]]
}

/// An output if it is read: `made` if it has a size, else what is empty.
fn if_read(cx: &Cx, i: usize, made: impl FnOnce() -> Value) -> Option<Value> {
    let empty = cx.recorded(i).is_some_and(|m| m.sizes == [Expr::int(0)]);
    cx.is_used(i).then(|| match empty {
        true => cx.full(&[Expr::int(0)], 0, DType::I64),
        false => made(),
    })
}

fn unique(cx: &Cx, x: Value, _sorted: bool, _inverse: bool, _counts: bool) -> UniqueOutputs {
    let [values, inverse, counts] = unique_along(cx, x, None);
    Ok([
        Some(values),
        if_read(cx, 1, || cx.reshape(inverse, &cx.shape(x))),
        if_read(cx, 2, || counts),
    ])
}

fn unique_dim(
    cx: &Cx,
    x: Value,
    dim: i64,
    _sorted: bool,
    _inverse: bool,
    _counts: bool,
) -> UniqueOutputs {
    let axis = cx.axis(x, dim)?;
    let [values, inverse, counts] = unique_along(cx, x, Some(axis));
    Ok([Some(values), if_read(cx, 1, || inverse), if_read(cx, 2, || counts)])
}

/// The first of each run of equal elements (or slices along `dim`); the run each belongs to; the runs' lengths.
fn unique_consecutive(
    cx: &Cx,
    x: Value,
    _inverse: bool,
    _counts: bool,
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
    let first = cx.concat(&[cx.vector(&[true]), differ], 0);
    let along = |axis: usize| attrs::Compress { axis: Some(axis as i64) };
    let inverse = || {
        let (ones, axis) = (cx.cast(first, DType::I64), cx.scalar(0, DType::I64));
        let run = cx.sub(cx.cum_sum(ones, axis, Default::default()), 1);
        match dim {
            None => cx.reshape(run, &shape),
            Some(_) => run,
        }
    };
    let counts = || {
        let places = cx.compress(cx.cast(cx.iota(&n), DType::I64), first, along(0));
        let ends = cx.concat(&[places, cx.sizes(std::slice::from_ref(&n))], 0);
        let [from, to] = neighbours(cx, ends, 0, 1);
        cx.sub(to, from)
    };
    Ok([Some(cx.compress(x, first, along(axis))), if_read(cx, 1, inverse), if_read(cx, 2, counts)])
}
