//! Tensors with a part replaced. Writes into views become these ops.

use crate::math::shape::{SPELLED_OUT, broadcast_along, counted, set_recorded};
use crate::meta;
use crate::{AtenOp, Complex, Cx, Lowered, checks, cx::axis_of, op};
use pt2onnx_ir::{Type, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::copy, copy, meta = meta::same),
    op!(aten::select_scatter, select_scatter, parts, meta = meta::same),
    op!(aten::slice_scatter, slice_scatter, parts),
];

/// `source` in the element type and shape of `x`.
fn copy(cx: &Cx, x: Complex, source: Complex) -> Lowered {
    let complex = x.im.is_some();
    let converted = source.converted(cx, cx.dtype(x.re), complex).expand(cx, &cx.shape(x.re));
    Ok(if complex { cx.pairs(converted) } else { converted.re })
}

/// `x` with `source` in place of element `index` along `dim`: a `ScatterND` along the first
/// dimension, else a `Where` over a mask if the size is known, else a `Concat` of the pieces before
/// and after it with `source`.
fn select_scatter(cx: &Cx, x: Value, source: Value, dim: i64, index: Expr) -> Lowered {
    let axis = axis_of(cx.rank(x), dim)?;
    let mut inner = cx.shape(x);
    let size = inner.remove(axis);
    let source = cx.cast(source, cx.dtype(x));
    let index = match (index.as_int(), size.as_int()) {
        (Some(i), Some(n)) if i < 0 => Expr::int(i + n),
        _ => index,
    };
    if axis == 0 {
        let source = cx.expand(source, &inner);
        return Ok(cx.scatter_nd(x, cx.sizes(&[index]), source, Default::default()));
    }
    if size.as_int() == Some(1) {
        return Ok(cx.unsqueeze(cx.expand(source, &inner), &[axis]));
    }
    // A source of fewer dimensions broadcasts without a dimension for `axis`.
    let behind = inner.len() - axis;
    let slab = match cx.rank(source).checked_sub(behind) {
        Some(before @ 1..) => cx.unsqueeze(source, &[before]),
        _ => source,
    };
    if let (Some(index), Some(size)) = (index.as_int(), size.as_int().filter(|&n| n <= SPELLED_OUT))
    {
        let source = number(cx, source).unwrap_or(slab);
        return chosen(cx, x, axis, (0..size).map(|i| i == index).collect(), source);
    }
    let mut one = cx.shape(x);
    one[axis] = Expr::int(1);
    let slab = cx.expand(slab, &one);
    // Nothing follows the last element, -1. Else what follows starts at `index + 1`, counted from
    // the same side.
    let next = match index.as_int() {
        Some(-1) => Expr::int(i64::MAX),
        _ => &index + 1,
    };
    joined(cx, x, axis, &index, slab, &next)
}

/// `x` with `src` in place of a range along `dim`: a `Concat` of the pieces before and after it
/// with `src`; `ScatterElements` or `ScatterND` if the range has steps, or if it is not known from
/// which end a bound counts.
fn slice_scatter(
    cx: &Cx,
    x: Value,
    source: Value,
    dim: i64,
    start: Option<Expr>,
    end: Option<Expr>,
    step: Expr,
) -> Lowered {
    let axis = axis_of(cx.rank(x), dim)?;
    let size = cx.dim(x, axis as i64);
    let stepped = step != Expr::int(1);
    if !(counts(cx, start.as_ref()) && counts(cx, end.as_ref())) {
        // `Slice` decides at run time from which end the bounds count.
        let bound = |e: Option<Expr>, open: i64| cx.sizes(&[e.unwrap_or(Expr::int(open))]);
        let (start, end, step) = (bound(start, 0), bound(end, i64::MAX), cx.sizes(&[step]));
        let all = counted(cx, &Expr::ZERO, &size, 1);
        let indices = cx.slice_op(all, start, end, cx.ints(&[0]), Some(step));
        let source = cx.cast(source, cx.dtype(x));
        let mut written = cx.shape(x);
        let given =
            cx.shape(source).get(axis).filter(|_| cx.rank(source) == written.len()).cloned();
        match given.filter(|size| size.as_int() != Some(1)) {
            Some(size) => {
                cx.set_type(indices, Type::tensor(DType::I64, [size.clone()]));
                written[axis] = size;
            }
            None => written[axis] = cx.dim(indices, 0),
        }
        return Ok(scattered(cx, x, axis, indices, cx.expand(source, &written)));
    }
    let range = Range::new(cx, &size, start, end, &step);
    let mut written = cx.shape(x);
    written[axis] = range.length.clone();
    let source = cx.expand(cx.cast(source, cx.dtype(x)), &written);
    if range.length.as_int() == Some(0) {
        return Ok(x);
    }
    if range.length == size {
        return Ok(source);
    }
    if let (Some(number), Some(size)) =
        (number(cx, source), size.as_int().filter(|&n| n <= SPELLED_OUT))
        && let (Some(start), Some(end), Some(step)) =
            (range.start.as_int(), range.end.as_int(), step.as_int())
    {
        let front = |bound: i64| if bound < 0 { bound.saturating_add(size) } else { bound };
        let (start, end) = (front(start), front(end));
        let written = |i: i64| (start..end).contains(&i) && (i - start) % step == 0;
        return chosen(cx, x, axis, (0..size).map(written).collect(), number);
    }
    if !stepped {
        return joined(cx, x, axis, &range.start, source, &range.end);
    }
    let length = match cx.dim(source, axis as i64) {
        one if one.as_int() == Some(1) => range.length,
        given => given,
    };
    let indices = counted(cx, &range.start, &length, step);
    Ok(scattered(cx, x, axis, indices, source))
}

/// Whether it is known from which end a bound counts.
fn counts(cx: &Cx, bound: Option<&Expr>) -> bool {
    let zero = Expr::ZERO;
    bound.is_none_or(|b| cx.constraints().prove_ge(b, &zero) || cx.constraints().prove_gt(&zero, b))
}

/// `x` with the slabs of `source` at `indices` along `axis`.
fn scattered(cx: &Cx, x: Value, axis: usize, indices: Value, source: Value) -> Value {
    if axis == 0 {
        return cx.scatter_nd(x, cx.unsqueeze(indices, &[1]), source, Default::default());
    }
    let written = cx.shape(source);
    let indices = cx.expand(broadcast_along(cx, indices, axis, cx.rank(x)), &written);
    let options = attrs::ScatterElements { axis: axis as i64, ..Default::default() };
    cx.scatter_elements(x, indices, source, options)
}

/// A range of a dimension.
struct Range {
    /// With steps of 1 counted as given: what comes before it is `x[:start]`.
    start: Expr,
    /// With steps of 1, what comes after it is `x[end:]`.
    end: Expr,
    length: Expr,
}

impl Range {
    fn new(cx: &Cx, size: &Expr, start: Option<Expr>, end: Option<Expr>, step: &Expr) -> Self {
        let zero = Expr::int(0);
        let constraints = cx.constraints();
        let negative = |e: &Expr| constraints.prove_gt(&zero, e);
        let (start, end) = (start.unwrap_or(zero.clone()), end.unwrap_or(Expr::int(i64::MAX)));
        // Counted from the front and between 0 and the size.
        let held = |bound: &Expr| {
            let bound = if negative(bound) { size + bound } else { bound.clone() };
            let low =
                if constraints.prove_ge(&bound, &zero) { bound } else { Expr::max(&bound, &zero) };
            match (constraints.prove_ge(size, &low), constraints.prove_ge(&low, size)) {
                (true, _) => low,
                (_, true) => size.clone(),
                _ => Expr::min(&low, size),
            }
        };
        let (from, to) = (held(&start), held(&end));
        let to = if constraints.prove_ge(&to, &from) { to } else { Expr::max(&to, &from) };
        let span = &to - &from;
        let dense = *step == Expr::int(1);
        let length = if dense { span } else { (span + (step - 1)).floor_div(step) };
        // `Slice` clamps bounds in the same way: given ones can stay if end is not before start.
        // Indices of steps are not clamped.
        let ordered = constraints.prove_ge(&end, &start) && negative(&start) == negative(&end);
        if dense && ordered && to != *size {
            Range { start, end, length }
        } else {
            Range { start: from, end: to, length }
        }
    }
}

/// The number that all elements of a computed tensor are, as a 0-d tensor.
fn number(cx: &Cx, x: Value) -> Option<Value> {
    let model = cx.model();
    let node = model.producer(x).filter(|node| model[*node].is("Expand"))?;
    let number = model[node].input(0)?;
    drop(model);
    (cx.rank(number) == 0).then_some(number)
}

/// `source` where a mask along `axis` is true, `x` elsewhere.
fn chosen(cx: &Cx, x: Value, axis: usize, mask: Vec<bool>, source: Value) -> Lowered {
    let mask = broadcast_along(cx, cx.vector(&mask), axis, cx.rank(x));
    set_recorded(cx, cx.select(mask, source, x))
}

/// A `Concat` of `x[:start]`, `source` and `x[end:]` along `axis`.
fn joined(cx: &Cx, x: Value, axis: usize, start: &Expr, source: Value, end: &Expr) -> Lowered {
    let size = cx.dim(x, axis as i64);
    let bound = |e: &Expr| cx.sizes(std::slice::from_ref(e));
    let piece = |from: &Expr, to: &Expr| {
        cx.slice_op(x, bound(from), bound(to), cx.ints(&[axis as i64]), None)
    };
    let zero = Expr::int(0);
    let mut pieces = Vec::with_capacity(3);
    if *start != zero {
        pieces.push(piece(&zero, start));
    }
    pieces.push(source);
    if *end != size && end.as_int() != Some(i64::MAX) {
        pieces.push(piece(end, &Expr::int(i64::MAX)));
    }
    let result = cx.concat(&pieces, axis);
    cx.set_type(result, Type::tensor(cx.dtype(x), cx.shape(x)));
    Ok(result)
}

checks! {
    // Copies of complex numbers.
    "aten.copy(x: b8[s0], y: c64[s0]) -> b8[s0]" => "
    val_0 = Gather <axis: int = 1> (y, 0)
    val_1 = Gather <axis: int = 1> (y, 1)
    val_2 = Cast <to: int = 9> (val_0)
    val_3 = Cast <to: int = 9> (val_1)
    copy = Or (val_2, val_3)
    ";
    "aten.copy(x: f64[3, s0], y: c64[s0]) -> f64[3, s0]" => "
    val_0 = Gather <axis: int = 1> (y, 0)
    val_1 = Gather <axis: int = 1> (y, 1)
    val_2 = Cast <to: int = 11> (val_0)
    copy = Expand (val_2, [3, 1])
    ";
    "aten.copy(x: c64[3, s0], y: f64[s0]) -> c64[3, s0]" => "
    val_0 = Gather <axis: int = 2> (x, 0)
    val_1 = Gather <axis: int = 2> (x, 1)
    val_2 = Cast <to: int = 1> (y)
    val_3 = Expand (val_2, [3, 1])
    val_4 = Shape <start: int = 0, end: int = 2> (x)
    val_5 = Expand (0.0, val_4)
    val_6 = Unsqueeze (val_3, [2])
    copy = Pad (val_6, [0, 0, 0, 0, 0, 1])
    ";
    "aten.copy(x: c64[3, s0], y: c64[s0]) -> c64[3, s0]" => "
    val_0 = Gather <axis: int = 2> (x, 0)
    val_1 = Gather <axis: int = 2> (x, 1)
    val_2 = Gather <axis: int = 1> (y, 0)
    val_3 = Gather <axis: int = 1> (y, 1)
    val_4 = Expand (val_2, [3, 1])
    val_5 = Expand (val_3, [3, 1])
    val_6 = Unsqueeze (val_4, [2])
    val_7 = Unsqueeze (val_5, [2])
    copy = Concat <axis: int = 2> (val_6, val_7)
    ";

    // A range is written between what stays.
    "aten.slice_scatter(x: f32[4, s0], y: f32[4, Min(20, s0) - Min(10, s0)], 1, 10, 20) -> f32[4, s0]" => "
    val_0 = Slice (x, [0], [10], [1])
    val_1 = Slice (x, [20], [9223372036854775807], [1])
    slice_scatter = Concat <axis: int = 1> (val_0, y, val_1)
    ";

    // Bounds that may cross write nothing.
    "aten.slice_scatter(x: f32[4, s0], y: f32[4, Max(0, s0 - 5)], 1, 3, -2) -> f32[4, s0]" => "
    val_0 = Shape <start: int = 1, end: int = 2> (x)
    val_1 = Sub (val_0, [2])
    val_2 = Max ([0], val_1)
    val_3 = Min ([3], val_0)
    val_4 = Max (val_2, val_3)
    val_5 = Sub (val_4, val_3)
    val_6 = Concat <axis: int = 0> ([1], val_5)
    val_7 = Expand (y, val_6)
    val_8 = Slice (x, [0], val_3, [1])
    val_9 = Slice (x, val_4, [9223372036854775807], [1])
    slice_scatter = Concat <axis: int = 1> (val_8, val_7, val_9)
    ";

    // One row or column.
    "aten.select_scatter(x: f32[s0, s1], y: f32[s1], 0, 1) -> f32[s0, s1]" => "
    select_scatter = ScatterND (x, [1], y)
    ";
    "aten.select_scatter(x: f32[s0, s1], y: f32[s0], 1, 1) -> f32[s0, s1]" => "
    val_0 = Unsqueeze (y, [1])
    val_1 = Slice (x, [0], [1], [1])
    val_2 = Slice (x, [2], [9223372036854775807], [1])
    select_scatter = Concat <axis: int = 1> (val_1, val_0, val_2)
    ";
    "aten.select_scatter(x: f32[s0, 3], y: f32[s0], 1, -1) -> f32[s0, 3]" => "
    val_0 = Unsqueeze (y, [1])
    select_scatter = Where (bool[3] {0, 0, 1}, val_0, x)
    ";

    // Steps begin inside.
    "aten.slice_scatter(x: f32[2, 5], y: f32[2, 2], 1, -100, -1, 2) -> f32[2, 5]" => "
    val_0 = Expand ([0, 2], [2, 1])
    slice_scatter = ScatterElements <axis: int = 1> (x, val_0, y)
    ";
}
