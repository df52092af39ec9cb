//! Where values belong and how often they occur: searching in sorted sequences, histograms, unique values, membership.

use super::common_reduce::{all_axes, flat, iota, neighbours, reduce, total};
use crate::{AtenOp, Cx, LowerError, Lowered, TensorOrScalar, registry::aten};
use pt2onnx_ir::{Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Scalar};

pub(super) static OPS: &[AtenOp] = &[
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
    aten!(
        "aten::histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor",
        histc
    ),
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
        |cx: &Cx, x: Value, inverse: bool, counts: bool, dim: Option<i64>| {
            unique_consecutive(cx, x, dim, inverse, counts)
        }
    ),
    aten!(
        "aten::unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
        unique_dim
    ),
];

/// How many elements of the last dimension of `sorted` are not behind `x`: all that are smaller, or (`right`) not larger.
/// Each `x` is compared with each element; nothing is smaller than NaN, so that it belongs behind all.
fn search(cx: &Cx, sorted: Value, x: TensorOrScalar, right: bool) -> Lowered {
    let value = match &x {
        TensorOrScalar::Tensor(v) => *v,
        number => cx.as_tensor(number, cx.result_type(std::slice::from_ref(number))),
    };
    let (value, sorted) = cx.promote(value, sorted);
    let vector = cx.rank(sorted) == 1;
    let last = cx.rank(value);
    let each = cx.unsqueeze(value, &[last]);
    let among = if vector {
        sorted
    } else {
        cx.unsqueeze(sorted, &[cx.rank(sorted) - 1])
    };
    let behind = if right {
        cx.greater(among, each)
    } else {
        cx.greater_or_equal(among, each)
    };
    let before = cx.cast(cx.not(behind), DType::I64);
    Ok(cx.cast(
        reduce(cx, "ReduceSum", before, &[last], false),
        cx.out_dtype()?,
    ))
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
        Some(order) => {
            super::common_reduce::gather_elements(cx, sorted, order, cx.rank(sorted) - 1)
        }
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
    let found = reduce(cx, "ReduceMax", equal, &[last], false);
    Ok(if invert { cx.not(found) } else { found })
}

/// Zeros of `size` (a vector of one) with `weights` added up at `indices`.
fn counted(cx: &Cx, size: Value, indices: Value, weights: Value) -> Value {
    let zeros = cx.emit1(
        "Expand",
        &[Some(cx.scalar(0, cx.dtype(weights))), Some(size)],
        Default::default(),
    );
    let options = attrs::ScatterElements {
        axis: 0,
        reduction: "add",
    };
    cx.scatter_elements(zeros, indices, weights, options)
}

/// As many bins as the largest number needs, at least `minlength`.
fn bincount(cx: &Cx, x: Value, weights: Option<Value>, minlength: Expr) -> Lowered {
    let x = cx.cast(x, DType::I64);
    // In one list with `minlength - 1`, there is a largest of no numbers, too.
    let least = cx.sizes(&[minlength - 1]);
    let largest = cx.reduce("ReduceMax", cx.concat(&[x, least], 0), &[0], true);
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
    let (low, high) = (
        reduce(cx, "ReduceMin", x, &axes, false),
        reduce(cx, "ReduceMax", x, &axes, false),
    );
    let same = cx.equal(low, high);
    Ok((
        cx.select(same, cx.sub(low, 1.0), low),
        cx.select(same, cx.add(high, 1.0), high),
    ))
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
                reduce(cx, "ReduceMin", x, &axes, false),
                reduce(cx, "ReduceMax", x, &axes, false),
            );
            let same = cx.equal(low, high);
            (
                cx.select(same, cx.sub(low, 0.5), low),
                cx.select(same, cx.add(high, 0.5), high),
            )
        }
    };
    Ok(super::creation::spaced(cx, low, high, bins + 1, dtype))
}

/// Points, one in each row.
fn rows(cx: &Cx, x: Value) -> Value {
    let n = cx.dim(x, -1);
    let lead: Vec<Expr> = cx
        .shape(x)
        .split_last()
        .map(|(_, lead)| lead.to_vec())
        .unwrap_or_default();
    cx.reshape(x, &[Expr::product(lead), n])
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
    let edges = bins.iter().enumerate().map(|(i, &n)| {
        let given = range.as_ref().and_then(|r| r.get(2 * i..2 * i + 2));
        edges(cx, cx.take(points, 1, &Expr::int(i as i64)), n, given)
    });
    let edges = edges.collect::<Lowered<Vec<_>>>()?;
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
        let found = cx.sub(reduce(cx, "ReduceSum", not_behind, &[1], false), 1);
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
    let counts = counted(
        cx,
        cx.sizes(&[Expr::product(sizes.clone())]),
        place,
        weights,
    );
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

/// ONNX's `Unique`; always sorted, as PyTorch's on CPUs.
fn unique(cx: &Cx, x: Value, _sorted: bool, inverse: bool, counts: bool) -> Lowered<[Value; 3]> {
    let dtype = cx.dtype(x);
    let nothing = cx.full(&[Expr::int(0)], 0, DType::I64);
    let bools = dtype == DType::Bool;
    let found = cx.unique_n(
        4,
        if bools { cx.cast(x, DType::U8) } else { x },
        attrs::Unique::default(),
    );
    Ok([
        if bools {
            cx.cast(found[0], dtype)
        } else {
            found[0]
        },
        if inverse {
            cx.reshape(found[2], &cx.shape(x))
        } else {
            nothing
        },
        if counts { found[3] } else { nothing },
    ])
}

fn unique_dim(
    cx: &Cx,
    x: Value,
    dim: i64,
    _sorted: bool,
    inverse: bool,
    counts: bool,
) -> Lowered<[Value; 3]> {
    let axis = Some(cx.axis(x, dim)? as i64);
    let dtype = cx.dtype(x);
    let nothing = cx.full(&[Expr::int(0)], 0, DType::I64);
    let bools = dtype == DType::Bool;
    let options = attrs::Unique {
        axis,
        ..Default::default()
    };
    let found = cx.unique_n(4, if bools { cx.cast(x, DType::U8) } else { x }, options);
    let _ = (inverse, counts);
    Ok([
        if bools {
            cx.cast(found[0], dtype)
        } else {
            found[0]
        },
        if cx.recorded(1).is_some() {
            found[2]
        } else {
            nothing
        },
        if cx.recorded(2).is_some() {
            found[3]
        } else {
            nothing
        },
    ])
}

/// The first of each run of equal elements (or slices along `dim`); the run each belongs to; the runs' lengths.
fn unique_consecutive(
    cx: &Cx,
    x: Value,
    dim: Option<i64>,
    _inverse: bool,
    _counts: bool,
) -> Lowered<[Value; 3]> {
    // What is not asked for is empty; but PyTorch gives some of it all the same.
    let wanted = |i: usize| cx.recorded(i).is_some_and(|m| m.sizes != [Expr::int(0)]);
    let (inverse, counts) = (wanted(1), wanted(2));
    let shape = cx.shape(x);
    let nothing = cx.full(&[Expr::int(0)], 0, DType::I64);
    let (x, axis) = match dim {
        Some(dim) if !shape.is_empty() => (x, cx.axis(x, dim)?),
        _ => (flat(cx, x), 0),
    };
    let n = cx.dim(x, axis as i64);
    if n.as_int() == Some(0) {
        return Ok([
            x,
            if inverse {
                cx.full(&shape, 0, DType::I64)
            } else {
                nothing
            },
            nothing,
        ]);
    }
    let [before, after] = neighbours(cx, x, axis, 1);
    let differ = cx.not(cx.equal(before, after));
    let others: Vec<usize> = (0..cx.rank(x)).filter(|&a| a != axis).collect();
    let differ = reduce(cx, "ReduceMax", differ, &others, false);
    let yes = cx.constant(pt2onnx_tensor::Tensor::vector(&[true]));
    let first = cx.concat(&[yes, differ], 0);
    let options = attrs::Compress {
        axis: Some(axis as i64),
    };
    let values = cx.compress(x, first, options);
    let runs = if inverse {
        let run = cx.cum_sum(
            cx.cast(first, DType::I64),
            cx.scalar(0, DType::I64),
            Default::default(),
        );
        let run = cx.sub(run, 1);
        if dim.is_none() {
            cx.reshape(run, &shape)
        } else {
            run
        }
    } else {
        nothing
    };
    let lengths = if counts {
        let places = cx.compress(
            iota(cx, &n, DType::I64),
            first,
            attrs::Compress { axis: Some(0) },
        );
        let ends = cx.concat(&[places, cx.sizes(&[n])], 0);
        let [from, to] = neighbours(cx, ends, 0, 1);
        cx.sub(to, from)
    } else {
        nothing
    };
    Ok([values, runs, lengths])
}
