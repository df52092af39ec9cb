//! Differences, integrals and gradients along a dimension, from samples.

use crate::math::reduce::{as_axis, neighbours, reduce, running_sums};
use crate::meta::{self, sized, typed, with_size};
use crate::{AtenOp, Complex, Cx, FromArg, LowerError, Lowered, ParamType, arguments, checks, op};
use pt2onnx_fx::graph::Argument;
use pt2onnx_ir::{Reduction, Type, Value};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::cumulative_trapezoid_dx, cumulative_dx, parts, meta = meta_cumulative_trapezoid),
    op!(aten::cumulative_trapezoid_x, cumulative_x, meta = meta_cumulative_trapezoid),
    op!(aten::diff, diff, parts, meta = meta_diff),
    op!(aten::gradient_array, gradient, parts, meta = meta_gradient),
    op!(aten::gradient_scalararray, gradient, parts, meta = meta_gradient),
    op!(aten::gradient_scalarint, gradient, parts, meta = meta_gradient),
    op!(aten::gradient_scalarrayarray, gradient, parts, meta = meta_gradient),
    op!(aten::gradient_scalarrayint, gradient, parts, meta = meta_gradient),
    op!(aten::gradient_tensorarray, gradient, parts, meta = meta_gradient),
    op!(aten::gradient_tensorarrayint, gradient, parts, meta = meta_gradient),
    op!(aten::trapezoid_dx, trapezoid_dx, parts, meta = meta_trapezoid),
    op!(aten::trapezoid_x, trapezoid_x, meta = meta_trapezoid),
    op!(aten::trapz_dx, trapezoid_dx, parts, meta = meta_trapezoid),
    op!(aten::trapz_x, trapezoid_x, meta = meta_trapezoid),
];

/// Differences of neighbours along `dim`, taken `n` times. For bools: whether neighbours differ.
/// `prepend` and `append` come before and behind the input.
fn diff(
    cx: &Cx,
    x: Value,
    n: i64,
    dim: i64,
    prepend: Option<Value>,
    append: Option<Value>,
) -> Lowered {
    let axis = cx.axis(x, dim)?;
    // PyTorch joins nothing then.
    if n == 0 {
        return Ok(x);
    }
    let dtype = cx.out_dtype()?;
    let parts = [prepend, Some(x), append].into_iter().flatten();
    let parts: Vec<Value> = parts.map(|part| cx.cast(part, dtype)).collect();
    let mut result = cx.concat(&parts, axis);
    // More differences than elements leave nothing.
    let size = cx.dim(result, axis as i64);
    let nothing_left = cx.constraints().prove_ge(&Expr::int(n), &size);
    if nothing_left {
        let nothing = cx.slice(result, axis, &Expr::int(0), &Expr::int(0), 1);
        cx.set_type(nothing, Type::tensor(dtype, cx.out_shape()?));
        return Ok(nothing);
    }
    for _ in 0..n {
        if cx.dim(result, axis as i64).as_int() == Some(0) {
            break;
        }
        let [earlier, later] = neighbours(cx, result, axis, 1);
        result = match dtype {
            DType::Bool => cx.xor(later, earlier),
            _ => cx.sub(later, earlier),
        };
    }
    Ok(result)
}

/// Where samples are.
#[derive(Debug, Clone, Copy)]
enum Spacing {
    /// They are this far apart.
    Number(f64),
    /// At these points.
    Points(Value),
}

/// Where samples are along each dimension, or along all.
#[derive(Debug, Clone)]
struct Spacings(Vec<Spacing>);

impl FromArg for Spacings {
    fn accepts(ty: &ParamType) -> bool {
        f64::accepts(ty) || Vec::<f64>::accepts(ty) || Vec::<Value>::accepts(ty)
    }

    fn from_arg(cx: &Cx, arg: &Argument) -> Result<Self, String> {
        Ok(Self(match arg {
            Argument::Tensors(_) => {
                Vec::from_arg(cx, arg)?.into_iter().map(Spacing::Points).collect()
            }
            _ => Vec::from_arg(cx, arg)?.into_iter().map(Spacing::Number).collect(),
        }))
    }
}

/// The areas of the trapezoids under `y`, `(y[i] + y[i + 1]) / 2 * (x[i + 1] - x[i])`, added up by
/// `total` along the axis that it is given, in the recorded type. As in PyTorch, integers wrap, and
/// are halved after they are added up.
fn areas(
    cx: &Cx,
    y: Value,
    spacing: Spacing,
    dim: i64,
    total: impl Fn(Value, usize) -> Value,
) -> Lowered {
    let axis = cx.axis(y, dim)?;
    let dtype = cx.out_dtype()?;
    let rank = cx.rank(y);
    let [left, right] = neighbours(cx, y, axis, 1);
    let sums = cx.add(left, right);
    match spacing {
        Spacing::Number(dx) => Ok(total(cx.mul(cx.cast(sums, dtype), dx / 2.0), axis)),
        Spacing::Points(x) => {
            let own = cx.rank(x);
            // A vector of points lies along `dim`; other shapes broadcast.
            let (widths, axis) = if own == 1 {
                let [a, b] = neighbours(cx, x, 0, 1);
                (as_axis(cx, cx.sub(b, a), axis, rank), axis)
            } else {
                let own_axis = cx.axis(x, dim)?;
                let [a, b] = neighbours(cx, x, own_axis, 1);
                (cx.sub(b, a), axis + own.saturating_sub(rank))
            };
            let (sums, widths) = cx.promote(sums, widths);
            let doubled = cx.mul(sums, widths);
            let exact = if cx.dtype(doubled).is_float() { dtype } else { DType::I64 };
            Ok(cx.mul(cx.cast(total(cx.cast(doubled, exact), axis), dtype), 0.5))
        }
    }
}

/// The integral of `y` along `dim`, by the trapezoidal rule.
fn trapezoid(cx: &Cx, y: Value, spacing: Spacing, dim: i64) -> Lowered {
    if cx.dim(y, dim).as_int() == Some(0) {
        return Ok(cx.full(&cx.out_shape()?, 0, cx.out_dtype()?));
    }
    if let Spacing::Number(dx) = spacing
        && (cx.propagates_nan(y) || !cx.dtype(y).is_float())
    {
        return trapezoid_of_sum(cx, y, dx, dim);
    }
    areas(cx, y, spacing, dim, |areas, axis| reduce(cx, Reduction::Sum, areas, &[axis], false))
}

/// [`trapezoid`] as PyTorch computes it: `(sum(y) - (first + last) / 2) * dx`. It is NaN if an end
/// is infinite. The sum of the ends has the type of `y`, so integers wrap.
fn trapezoid_of_sum(cx: &Cx, y: Value, dx: f64, dim: i64) -> Lowered {
    let (axis, dtype) = (cx.axis(y, dim)?, cx.out_dtype()?);
    let sum = |x| reduce(cx, Reduction::Sum, x, &[axis], false);
    // Sums of one element, or of none.
    let ends = [(0, 1), (-1, i64::MAX)].map(|(start, end)| {
        let [start, end, axes] = [start, end, axis as i64].map(|i| cx.ints(&[i]));
        sum(cx.slice_op(y, start, end, axes, None))
    });
    let half = cx.mul(cx.cast(cx.add(ends[0], ends[1]), dtype), 0.5);
    let total =
        if cx.dtype(y).is_float() { sum(y) } else { cx.cast(sum(cx.cast(y, DType::I64)), dtype) };
    Ok(cx.mul(cx.sub(total, half), dx))
}

fn trapezoid_dx(cx: &Cx, y: Value, dx: f64, dim: i64) -> Lowered {
    trapezoid(cx, y, Spacing::Number(dx), dim)
}

/// [`trapezoid`] of real or complex numbers at points: it is bilinear in both.
fn trapezoid_x(cx: &Cx, y: Complex, x: Complex, dim: i64) -> Lowered {
    Ok(y.try_bilinear(cx, x, |y, x| trapezoid(cx, y, Spacing::Points(x), dim))?.value(cx))
}

/// The integral of `y` from its first sample to each later one.
fn cumulative(cx: &Cx, y: Value, spacing: Spacing, dim: i64) -> Lowered {
    areas(cx, y, spacing, dim, |areas, axis| running_sums(cx, areas, axis))
}

fn cumulative_dx(cx: &Cx, y: Value, dx: f64, dim: i64) -> Lowered {
    cumulative(cx, y, Spacing::Number(dx), dim)
}

/// [`cumulative`] of real or complex numbers at points.
fn cumulative_x(cx: &Cx, y: Complex, x: Complex, dim: i64) -> Lowered {
    Ok(y.try_bilinear(cx, x, |y, x| cumulative(cx, y, Spacing::Points(x), dim))?.value(cx))
}

arguments! {
    /// Arguments of `gradient`.
    struct GradientArgs {
        input: Value,
        spacing: Option<Spacings>,
        dim: Option<Vec<i64>>,
        edge_order: i64,
    }
}

/// The derivative along each of `dim`, estimated from the differences with both neighbours; at the
/// edges, with one neighbour (`edge_order` 1) or the next two (2).
fn gradient(cx: &Cx, args: GradientArgs) -> Lowered<Vec<Value>> {
    let axes = cx.axes(args.input, args.dim.as_deref())?;
    let x = cx.cast(args.input, cx.out_dtype()?);
    let spacing = args.spacing.map_or_else(Vec::new, |s| s.0);
    let found = axes.iter().enumerate().map(|(i, &axis)| {
        let here = if spacing.len() == 1 { spacing.first() } else { spacing.get(i) };
        gradient_along(cx, x, here.copied().unwrap_or(Spacing::Number(1.0)), axis, args.edge_order)
    });
    found.collect()
}

/// [`gradient`] along one dimension.
fn gradient_along(cx: &Cx, x: Value, spacing: Spacing, axis: usize, edge_order: i64) -> Lowered {
    if !matches!(edge_order, 1 | 2) {
        return Err(LowerError::unsupported("the edge order of gradients must be 1 or 2"));
    }
    let x = Samples { values: x, axis, count: cx.dim(x, axis as i64) };
    let pieces = match spacing {
        Spacing::Number(h) => evenly_spaced(cx, &x, h, edge_order == 2),
        Spacing::Points(points) => unevenly_spaced(cx, &x, points, edge_order == 2),
    };
    Ok(cx.concat(&pieces, axis))
}

/// The samples along an axis. Their places are counted from the end if they are negative.
struct Samples {
    values: Value,
    axis: usize,
    count: Expr,
}

impl Samples {
    fn place(&self, i: i64) -> Expr {
        if i < 0 { &self.count + i } else { Expr::int(i) }
    }

    fn cut(&self, cx: &Cx, from: &Expr, to: &Expr) -> Value {
        cx.slice(self.values, self.axis, from, to, 1)
    }

    fn at(&self, cx: &Cx, i: i64) -> Value {
        let place = self.place(i);
        self.cut(cx, &place, &(&place + 1))
    }

    /// Those before the inner samples, the inner samples, and those behind them.
    fn inner(&self, cx: &Cx) -> [Value; 3] {
        let (last, end) = (self.place(-1), &self.count);
        let before = self.cut(cx, &self.place(0), &self.place(-2));
        let inner = self.cut(cx, &self.place(1), &last);
        [before, inner, self.cut(cx, &self.place(2), end)]
    }
}

/// The sum of three products.
fn weighted(cx: &Cx, terms: [(Value, Value); 3]) -> Value {
    let [a, b, c] = terms.map(|(weight, x)| cx.mul(weight, x));
    cx.add(cx.add(a, b), c)
}

/// The gradients of the first, the inner and the last samples, which are `h` apart.
fn evenly_spaced(cx: &Cx, x: &Samples, h: f64, parabolas: bool) -> [Value; 3] {
    let [before, _, behind] = x.inner(cx);
    let at = |i| x.at(cx, i);
    let step = |a, b, h: f64| cx.div(cx.sub(b, a), h);
    let inside = step(before, behind, 2.0 * h);
    if !parabolas {
        return [step(at(0), at(1), h), inside, step(at(-2), at(-1), h)];
    }
    let c = |w: f64| cx.scalar(w / h, cx.dtype(x.values));
    [
        weighted(cx, [(c(-1.5), at(0)), (c(2.0), at(1)), (c(-0.5), at(2))]),
        inside,
        weighted(cx, [(c(1.5), at(-1)), (c(-2.0), at(-2)), (c(0.5), at(-3))]),
    ]
}

/// The gradients of the first, the inner and the last samples, which are at these points.
fn unevenly_spaced(cx: &Cx, x: &Samples, points: Value, parabolas: bool) -> [Value; 3] {
    let [before, inner, behind] = x.inner(cx);
    let at = |i| x.at(cx, i);
    let points = cx.cast(points, cx.dtype(x.values));
    let [a, b] = neighbours(cx, points, 0, 1);
    let widths = as_axis(cx, cx.sub(b, a), x.axis, cx.rank(x.values));
    let widths = Samples { values: widths, axis: x.axis, count: x.place(-1) };
    let width = |i| widths.at(cx, i);
    let d1 = widths.cut(cx, &x.place(0), &x.place(-2));
    let d2 = widths.cut(cx, &x.place(1), &x.place(-1));
    let both = cx.add(d1, d2);
    let inside = [
        (cx.neg(cx.div(d2, cx.mul(d1, both))), before),
        (cx.div(cx.sub(d2, d1), cx.mul(d1, d2)), inner),
        (cx.div(d1, cx.mul(d2, both)), behind),
    ];
    let inside = weighted(cx, inside);
    if !parabolas {
        let step = |i, j, between| cx.div(cx.sub(at(j), at(i)), width(between));
        return [step(0, 1, 0), inside, step(-2, -1, -1)];
    }
    // The parabola through the three points next to the edge; `p` is the width at the edge.
    let edge = |p: Value, q: Value, f: [Value; 3], sign: f64| {
        let both = cx.add(p, q);
        let terms = [
            (cx.div(cx.add(cx.mul(p, 2.0), q), cx.mul(p, both)), f[0]),
            (cx.neg(cx.div(both, cx.mul(p, q))), f[1]),
            (cx.div(p, cx.mul(q, both)), f[2]),
        ];
        cx.mul(weighted(cx, terms), sign)
    };
    let (first, last) = ([0, 1, 2].map(at), [-1, -2, -3].map(at));
    [edge(width(0), width(1), first, -1.0), inside, edge(width(-1), width(-2), last, 1.0)]
}

arguments! {
    struct Diff { input: Value, n: i64, dim: i64, prepend: Option<Value>, append: Option<Value> }
    struct Dims { input: Value, dim: Option<Vec<i64>> }
    struct Trapezoid { y: Value, x: Option<Value>, dim: i64 }
}

/// The type of the trapezoids between neighbours.
fn meta_trapezoids(cx: &Cx, args: &Trapezoid) -> DType {
    let operands = [Some(args.y), args.x].into_iter().flatten().map(Into::into).collect::<Vec<_>>();
    cx.float_type(cx.result_type(&operands))
}

fn meta_trapezoid(cx: &Cx, args: Trapezoid) -> Lowered {
    let y = typed(cx, meta_trapezoids(cx, &args), &cx.shape(args.y));
    let dim = Some(vec![args.dim]);
    meta::mean(cx, meta::Reduced { input: y, dim, keepdim: None, dtype: None })
}

fn meta_cumulative_trapezoid(cx: &Cx, args: Trapezoid) -> Lowered {
    let y = typed(cx, meta_trapezoids(cx, &args), &cx.shape(args.y));
    let axis = cx.axis(y, args.dim)?;
    Ok(sized(cx, y, &with_size(cx, y, axis, cx.dim(y, axis as i64) - 1)))
}

/// Differences of neighbours, `n` times.
fn meta_diff(cx: &Cx, args: Diff) -> Lowered {
    let axis = cx.axis(args.input, args.dim)?;
    // PyTorch joins nothing then.
    if args.n == 0 {
        return Ok(args.input);
    }
    let parts: Vec<Value> =
        [args.prepend, Some(args.input), args.append].into_iter().flatten().collect();
    let total = Expr::sum(parts.iter().map(|&v| cx.dim(v, axis as i64)));
    let left = cx.constraints().simplify(&Expr::max(&(total - args.n), &Expr::ZERO));
    let operands: Vec<_> = parts.iter().map(|&v| v.into()).collect();
    Ok(typed(cx, cx.result_type(&operands), &with_size(cx, args.input, axis, left)))
}

/// A tensor as the operand for each dimension.
fn meta_gradient(cx: &Cx, args: Dims) -> Lowered<Vec<Value>> {
    let count = args.dim.map_or(cx.rank(args.input), |dims| dims.len());
    let dtype = cx.float_type(cx.dtype(args.input));
    Ok((0..count).map(|_| typed(cx, dtype, &cx.shape(args.input))).collect())
}

checks! {
    // A gradient is one-sided at the edges.
    "aten.gradient.scalarint(x: f32[5], spacing = 2.0) -> [f32[5]]" => "
    val_0 = Slice (x, [0], [3], [0])
    val_1 = Slice (x, [1], [4], [0])
    val_2 = Slice (x, [2], [5], [0])
    val_3 = Sub (val_2, val_0)
    val_4 = Div (val_3, 4.0)
    val_5 = Slice (x, [0], [1], [0])
    val_6 = Slice (x, [1], [2], [0])
    val_7 = Sub (val_6, val_5)
    val_8 = Div (val_7, 2.0)
    val_9 = Slice (x, [3], [4], [0])
    val_10 = Slice (x, [4], [5], [0])
    val_11 = Sub (val_10, val_9)
    val_12 = Div (val_11, 2.0)
    gradient_0 = Concat <axis: int = 0> (val_8, val_4, val_12)
    ";
}
