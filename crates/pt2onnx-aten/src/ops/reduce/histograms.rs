//! Histograms: how many elements, or how much of their weight, fall into each bin.

use crate::math::progression::{known_spaced, spaced};
use crate::math::reduce::{all_axes, as_axis, neighbours, reduce, total};
use crate::math::shape::flat;
use crate::meta::{fresh, typed};
use crate::{AtenOp, Cx, FromArg, LowerError, Lowered, ParamType, arguments, checks, op};
use pt2onnx_fx::graph::Argument;
use pt2onnx_ir::{Reduction, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Scalar};

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_histogramdd_bin_edges, histogramdd_edges),
    op!(aten::_histogramdd_from_bin_cts, histogramdd),
    op!(aten::_histogramdd_from_bin_tensors, histogramdd),
    op!(aten::bincount, bincount, meta = meta_bincount),
    op!(aten::histc, histc),
    op!(aten::histogram_bin_ct, histogram),
    op!(aten::histogram_bins_tensor, histogram),
    op!(aten::histogramdd, histogramdd),
    op!(aten::histogramdd_TensorList_bins, histogramdd),
    op!(aten::histogramdd_int_bins, histogramdd),
];

/// Bins: how many each dimension has, or their edges.
#[derive(Debug, Clone)]
enum Bins {
    /// So many bins of equal width along each dimension; one number is for all dimensions.
    Counts(Vec<i64>),
    /// The edges along each dimension: one more than there are bins.
    Edges(Vec<Value>),
}

impl FromArg for Bins {
    fn accepts(ty: &ParamType) -> bool {
        Vec::<i64>::accepts(ty) || Value::accepts(ty) || Vec::<Value>::accepts(ty)
    }

    fn from_arg(cx: &Cx, arg: &Argument) -> Result<Self, String> {
        match arg {
            Argument::Tensor(_) => Ok(Bins::Edges(vec![Value::from_arg(cx, arg)?])),
            Argument::Tensors(_) => Vec::from_arg(cx, arg).map(Bins::Edges),
            _ => Vec::from_arg(cx, arg).map(Bins::Counts),
        }
    }
}

arguments! {
    /// Arguments of histograms.
    struct HistogramArgs {
        input: Value,
        bins: Bins,
        range: Option<Vec<f64>>,
        weight: Option<Value>,
        density: bool,
    }
}

/// Zeros, `size` (a vector of one) of them, with `weights` added up at `indices`.
fn counted(cx: &Cx, size: Value, indices: Value, weights: Value) -> Value {
    let zeros = cx.emit1(
        "Expand",
        &[Some(cx.scalar(0, cx.dtype(weights))), Some(size)],
        Default::default(),
    );
    let options = attrs::ScatterElements { axis: 0, reduction: "add" };
    cx.scatter_elements(zeros, indices, weights, options)
}

/// How often each number occurs, or the sum of its weights: up to the largest number, but at least
/// `minlength` results.
fn bincount(cx: &Cx, x: Value, weights: Option<Value>, minlength: Expr) -> Lowered {
    let x = cx.cast(x, DType::I64);
    // `minlength - 1` joins the list, so that it has a largest number even if `x` is empty.
    let least = cx.sizes(&[minlength - 1]);
    let largest = cx.reduce(Reduction::Max, cx.concat(&[x, least], 0), &[0], true);
    let weights = match weights {
        Some(w) => cx.cast(w, cx.out_dtype()?),
        None => cx.full(&cx.shape(x), 1, DType::I64),
    };
    Ok(counted(cx, cx.add(largest, 1), x, weights))
}

/// How many elements are in each of `bins` bins of equal width between `min` and `max`; where both
/// are equal, between the smallest and the largest element.
fn histc(cx: &Cx, x: Value, bins: i64, min: Scalar, max: Scalar) -> Lowered {
    let dtype = cx.dtype(x);
    let wide = match dtype {
        DType::F16 | DType::BF16 | DType::F32 => DType::F32,
        _ => DType::F64,
    };
    let x = cx.cast(flat(cx, x), wide);
    // As in PyTorch, every step of the formula is rounded to float16 or bfloat16.
    let kept = if dtype.is_float() { dtype } else { wide };
    let step = |v: Value| cx.cast(cx.cast(v, kept), wide);
    let (low, high) = range(cx, x, [min.to_f64(), max.to_f64()])?;
    let (low, high) = (step(low), step(high));
    let scaled = step(cx.mul(step(cx.sub(x, low)), step(cx.scalar(bins, wide))));
    let place = step(cx.div(scaled, step(cx.sub(high, low))));
    let inside = cx.and(cx.greater_or_equal(x, low), cx.less_or_equal(x, high));
    // The last bin includes its upper edge. Elements outside are counted in the first bin with
    // weight 0.
    let place = cx.minimum(cx.floor(place), (bins - 1) as f64);
    let place = cx.cast(cx.select(inside, place, 0.0), DType::I64);
    let counts = counted(cx, cx.ints(&[bins]), place, cx.cast(inside, wide));
    Ok(cx.cast(counts, dtype))
}

/// The given range, or that of the elements; one more on both sides where that is empty.
fn range(cx: &Cx, x: Value, [min, max]: [f64; 2]) -> Lowered<(Value, Value)> {
    let dtype = cx.dtype(x);
    if min != max {
        return Ok((cx.scalar(min, dtype), cx.scalar(max, dtype)));
    }
    if cx.numel(x).as_int() == Some(0) {
        return Ok((cx.scalar(min - 1.0, dtype), cx.scalar(max + 1.0, dtype)));
    }
    Ok(extent(cx, x, 1.0))
}

/// The smallest and the largest element, each moved by `margin` if they are equal.
fn extent(cx: &Cx, x: Value, margin: f64) -> (Value, Value) {
    let axes = all_axes(cx, x);
    let of = |op| reduce(cx, op, x, &axes, false);
    let (low, high) = (of(Reduction::Min), of(Reduction::Max));
    let same = cx.equal(low, high);
    (cx.select(same, cx.sub(low, margin), low), cx.select(same, cx.add(high, margin), high))
}

/// `bins + 1` edges of equal distances, over the given range or that of the elements.
fn edges(cx: &Cx, x: Value, bins: i64, given: Option<&[f64]>) -> Lowered {
    let (dtype, steps) = (cx.dtype(x), Expr::int(bins + 1));
    let ends = match given {
        Some([min, max]) if min == max => Some((min - 0.5, max + 0.5)),
        Some([min, max]) => Some((*min, *max)),
        _ => (cx.numel(x).as_int() == Some(0)).then_some((0.0, 1.0)),
    };
    if let Some(known) = ends.and_then(|(low, high)| known_spaced(cx, low, high, &steps, dtype)) {
        return Ok(known);
    }
    let (low, high) = match ends {
        Some((low, high)) => (cx.scalar(low, dtype), cx.scalar(high, dtype)),
        None => extent(cx, x, 0.5),
    };
    Ok(spaced(cx, low, high, &steps, dtype))
}

/// The points as a matrix: one in each row, of as many coordinates as the last dimension of `x`
/// has.
fn points(cx: &Cx, x: Value) -> Value {
    let n = cx.dim(x, -1);
    let lead: Vec<Expr> =
        cx.shape(x).split_last().map(|(_, lead)| lead.to_vec()).unwrap_or_default();
    cx.reshape(x, &[Expr::product(lead), n])
}

/// The edges of the bins along each dimension of the points; `range` holds both ends of each
/// dimension.
fn all_edges(cx: &Cx, points: Value, bins: Bins, range: Option<&[f64]>) -> Lowered<Vec<Value>> {
    let counts = match bins {
        Bins::Edges(edges) => return Ok(edges),
        Bins::Counts(n) if n.len() == 1 => {
            let dims = cx.dim(points, 1).as_int();
            let unknown = || {
                LowerError::unsupported(
                    "histograms of a dynamic number of dimensions are not supported",
                )
            };
            vec![n[0]; dims.ok_or_else(unknown)?.max(0) as usize]
        }
        Bins::Counts(n) => n,
    };
    let one = |(i, &n): (usize, &i64)| {
        let given = range.and_then(|r| r.get(2 * i..2 * i + 2));
        edges(cx, cx.take(points, 1, &Expr::int(i as i64)), n, given)
    };
    counts.iter().enumerate().map(one).collect()
}

/// The histogram of all elements, and the edges of its bins.
fn histogram(cx: &Cx, args: HistogramArgs) -> Lowered<[Value; 2]> {
    let x = args.input;
    let points = cx.reshape(x, &[cx.numel(x), Expr::int(1)]);
    let edges = match args.bins {
        Bins::Edges(edges) => edges,
        Bins::Counts(n) => n
            .iter()
            .map(|&n| edges(cx, flat(cx, x), n, args.range.as_deref()))
            .collect::<Lowered<Vec<_>>>()?,
    };
    let &[along] = edges.as_slice() else {
        return Err(LowerError::unsupported("histograms of several dimensions are not supported"));
    };
    Ok([counts(cx, points, &edges, args.weight, args.density), along])
}

/// The histogram of points of several dimensions, and the edges of its bins along each dimension.
fn histogramdd(cx: &Cx, args: HistogramArgs) -> Lowered<Vec<Value>> {
    let points = points(cx, args.input);
    let edges = all_edges(cx, points, args.bins, args.range.as_deref())?;
    let counts = counts(cx, points, &edges, args.weight, args.density);
    Ok([counts].into_iter().chain(edges).collect())
}

/// The edges that [`histogramdd`] uses.
fn histogramdd_edges(cx: &Cx, args: HistogramArgs) -> Lowered<Vec<Value>> {
    all_edges(cx, points(cx, args.input), args.bins, args.range.as_deref())
}

/// How many points (or how much of their weight) lie between the edges. The last edge belongs to
/// the last bin. `density` divides by the sum of all counts and by the size of each bin.
fn counts(cx: &Cx, points: Value, edges: &[Value], weight: Option<Value>, density: bool) -> Value {
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
        as_axis(cx, cx.sub(b, a), i, edges.len())
    });
    let share = cx.div(counts, total(cx, counts));
    widths.fold(share, |share, width| cx.div(share, width))
}

/// Counts, or sums of weights.
fn meta_bincount(cx: &Cx, _: Value, weights: Option<Value>) -> Lowered {
    let dtype = match weights.map(|w| cx.dtype(w)) {
        None => DType::I64,
        Some(DType::F32) => DType::F32,
        Some(_) => DType::F64,
    };
    Ok(typed(cx, dtype, &[fresh(cx)]))
}

checks! {
    // There are as many counts as asked for.
    "aten.bincount(x: i64[s0], None, 4) -> i64[u0]" => r#"
    val_0 = Concat <axis: int = 0> (x, [3])
    val_1 = ReduceMax <keepdims: int = 1> (val_0, [0])
    val_2 = Shape <start: int = 0, end: int = 1> (x)
    val_3 = Expand (1, val_2)
    val_4 = Add (val_1, 1)
    val_5 = Expand (0, val_4)
    bincount = ScatterElements <reduction: string = "add"> (val_5, x, val_3)
    "#;

    // Elements outside of the range do not count.
    "aten.histc(x: f32[s0], 4, 0, 1) -> f32[4]" => r#"
    val_0 = Sub (x, 0.0)
    val_1 = Mul (val_0, 4.0)
    val_2 = Sub (1.0, 0.0)
    val_3 = Div (val_1, val_2)
    val_4 = GreaterOrEqual (x, 0.0)
    val_5 = LessOrEqual (x, 1.0)
    val_6 = And (val_4, val_5)
    val_7 = Floor (val_3)
    val_8 = Min (val_7, 3.0)
    val_9 = Where (val_6, val_8, 0.0)
    val_10 = Cast <to: int = 7> (val_9)
    val_11 = Cast <to: int = 1> (val_6)
    val_12 = Expand (0.0, [4])
    histc = ScatterElements <reduction: string = "add"> (val_12, val_10, val_11)
    "#;
}
