//! Running sums, products and extremes; differences, integrals and gradients along a dimension.

use crate::math::arcs::log_add_exp;
use crate::math::control::scan;
use crate::math::reduce::{Extreme, as_axis, highest, lowest, neighbours, reduce, running_sums};
use crate::{
    AtenOp, Complex, Cx, FromArg, LowerError, Lowered, ParamType, args::Ignored, arguments, checks,
    op,
};
use pt2onnx_fx::graph::Argument;
use pt2onnx_ir::{Reduction, Type, Value};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Scalar};

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_logcumsumexp, logcumsumexp, complex = logcumsumexp_complex),
    op!(aten::cummax, cummax),
    op!(aten::cummin, cummin),
    op!(aten::cumprod, cumprod, complex = cumprod_complex),
    op!(aten::cumsum, cumsum, parts),
    op!(aten::cumulative_trapezoid_dx, cumulative_trapezoid, parts),
    op!(aten::cumulative_trapezoid_x, cumulative_trapezoid, complex = cumulative_trapezoid_complex),
    op!(aten::diff, diff, parts),
    op!(aten::gradient_array, gradient, parts),
    op!(aten::gradient_scalararray, gradient, parts),
    op!(aten::gradient_scalarint, gradient, parts),
    op!(aten::gradient_scalarrayarray, gradient, parts),
    op!(aten::gradient_scalarrayint, gradient, parts),
    op!(aten::gradient_tensorarray, gradient, parts),
    op!(aten::gradient_tensorarrayint, gradient, parts),
    op!(aten::logcumsumexp, logcumsumexp, complex = logcumsumexp_complex),
    op!(aten::trapezoid_dx, trapezoid, parts),
    op!(aten::trapezoid_x, trapezoid, complex = trapezoid_complex),
    op!(aten::trapz_dx, trapezoid, parts),
    op!(aten::trapz_x, trapezoid, complex = trapezoid_complex),
];

/// `f(x)` in the type in which PyTorch's CPU kernels carry floats from element to element (`at::acc_type`): float64 for float32.
fn acrunning_sums(cx: &Cx, x: Value, f: impl FnOnce(Value) -> Value) -> Value {
    let wide = match cx.dtype(x) {
        DType::F32 => DType::F64,
        DType::F16 | DType::BF16 => DType::F32,
        other => other,
    };
    cx.cast(f(cx.cast(x, wide)), cx.dtype(x))
}

/// The sums of the first 1, 2, .. elements along `dim`, in the recorded type.
fn cumsum(cx: &Cx, x: Value, dim: i64, _dtype: Ignored) -> Lowered {
    let x = cx.cast(x, cx.out_dtype()?);
    let axis = cx.axis(x, dim)?;
    Ok(match cx.rank(x) {
        0 => x,
        _ => acrunning_sums(cx, x, |x| running_sums(cx, x, axis)),
    })
}

/// The products of the first 1, 2, .. elements along `dim`, in the recorded type. `Scan` multiplies: few runtimes have
/// `CumProd`.
fn cumprod(cx: &Cx, x: Value, dim: i64, _dtype: Ignored) -> Lowered {
    let x = cx.cast(x, cx.out_dtype()?);
    let axis = cx.axis(x, dim)?;
    if cx.rank(x) == 0 {
        return Ok(x);
    }
    Ok(acrunning_sums(cx, x, |x| {
        scan(cx, axis, &[x], &[Scalar::Int(1)], |state, slice| vec![cx.mul(state[0], slice[0])])[0]
    }))
}

/// [`cumprod`] of complex numbers.
fn cumprod_complex(cx: &Cx, x: Complex, dim: i64, _dtype: Ignored) -> Lowered {
    let dtype = cx.out_dtype()?;
    let shape = cx.shape(x.re);
    let x = x.cast(cx, dtype).complex(cx);
    let axis = cx.axis(x.re, dim)?;
    if shape.is_empty() {
        return Ok(cx.pairs(x));
    }
    let start = [Scalar::Int(1), Scalar::Int(0)];
    let found = scan(cx, axis, &x.parts(), &start, |product, factor| {
        let of = |v: &[Value]| Complex::new(v[0], v[1]);
        of(product).mul(cx, of(factor)).parts()
    });
    Ok(cx.pairs(Complex::new(found[0], found[1])))
}

/// The largest of the first 1, 2, .. elements along `dim`, and its index.
fn cummax(cx: &Cx, x: Value, dim: i64) -> Lowered<[Value; 2]> {
    cumulative_extreme(cx, Extreme::Max, x, dim)
}

/// The smallest of the first 1, 2, .. elements along `dim`, and its index.
fn cummin(cx: &Cx, x: Value, dim: i64) -> Lowered<[Value; 2]> {
    cumulative_extreme(cx, Extreme::Min, x, dim)
}

/// The extreme so far and the index of its last occurrence. From the first NaN on, it is NaN.
fn cumulative_extreme(cx: &Cx, of: Extreme, x: Value, dim: i64) -> Lowered<[Value; 2]> {
    let axis = cx.axis(x, dim)?;
    if cx.rank(x) == 0 {
        return Ok([x, cx.scalar(0, DType::I64)]);
    }
    let dtype = cx.dtype(x);
    // ONNX orders no bools.
    let numbers = if dtype == DType::Bool { cx.cast(x, DType::I32) } else { x };
    let kind = cx.dtype(numbers);
    let first = match of {
        Extreme::Max => lowest(kind),
        Extreme::Min => highest(kind),
    };
    let indices = cx.cast(cx.iota(&cx.dim(x, axis as i64)), DType::I64);
    let found = scan(cx, axis, &[numbers, indices], &[first, Scalar::Int(0)], |state, slice| {
        let better = match of {
            Extreme::Max => cx.greater_or_equal(slice[0], state[0]),
            Extreme::Min => cx.less_or_equal(slice[0], state[0]),
        };
        let better = if kind.is_float() { cx.or(better, cx.is_nan(slice[0])) } else { better };
        vec![cx.select(better, slice[0], state[0]), cx.select(better, slice[1], state[1])]
    });
    Ok([cx.cast(found[0], dtype), found[1]])
}

/// `log(sum(exp(x)))` of the first 1, 2, .. elements along `dim`: a `Scan` of [`log_add_exp`] of the result so far
/// and the next slice.
fn logcumsumexp(cx: &Cx, x: Value, dim: i64) -> Lowered {
    let axis = cx.axis(x, dim)?;
    if cx.rank(x) == 0 {
        return Ok(x);
    }
    Ok(acrunning_sums(cx, x, |x| {
        scan(cx, axis, &[x], &[Scalar::Float(f64::NEG_INFINITY)], |state, slice| {
            vec![log_add_exp(cx, state[0], slice[0])]
        })[0]
    }))
}

/// [`logcumsumexp`] of complex numbers: a `Scan` of [`Complex::log_add_exp`]. The imaginary parts are not reduced to an angle.
fn logcumsumexp_complex(cx: &Cx, x: Complex, dim: i64) -> Lowered {
    let axis = cx.axis(x.re, dim)?;
    if cx.rank(x.re) == 0 {
        return Ok(cx.pairs(x));
    }
    let start = [Scalar::Float(f64::NEG_INFINITY), Scalar::Int(0)];
    let found = scan(cx, axis, &x.complex(cx).parts(), &start, |state, slice| {
        let of = |v: &[Value]| Complex::new(v[0], v[1]);
        of(slice).log_add_exp(cx, of(state)).parts()
    });
    Ok(cx.pairs(Complex::new(found[0], found[1])))
}

/// Differences of neighbours along `dim`, taken `n` times. For bools: whether neighbours differ. `prepend` and `append` come before
/// and behind the input.
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

impl FromArg for Spacing {
    fn accepts(ty: &ParamType) -> bool {
        Value::accepts(ty)
    }

    fn from_arg(cx: &Cx, arg: &Argument) -> Result<Self, String> {
        match arg {
            Argument::Tensor(_) => Value::from_arg(cx, arg).map(Spacing::Points),
            _ => f64::from_arg(cx, arg).map(Spacing::Number),
        }
    }
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

/// The areas of the trapezoids under `y`, `(y[i] + y[i + 1]) / 2 * (x[i + 1] - x[i])`, added up by `total` along the axis that it is
/// given, in the recorded type. As in PyTorch, integers wrap, and are halved after they are added up.
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
        && (cx.minds_nan(y) || !cx.dtype(y).is_float())
    {
        return trapezoid_of_sum(cx, y, dx, dim);
    }
    areas(cx, y, spacing, dim, |areas, axis| reduce(cx, Reduction::Sum, areas, &[axis], false))
}

/// [`trapezoid`] as PyTorch computes it: `(sum(y) - (first + last) / 2) * dx`. It is NaN if an end is infinite. The sum of the
/// ends has the type of `y`, so integers wrap.
fn trapezoid_of_sum(cx: &Cx, y: Value, dx: f64, dim: i64) -> Lowered {
    let (axis, dtype) = (cx.axis(y, dim)?, cx.out_dtype()?);
    let sum = |x| reduce(cx, Reduction::Sum, x, &[axis], false);
    // Sums of one element, or of none.
    let ends = [(0, 1), (-1, i64::MAX)].map(|(start, end)| {
        let [start, end, axes] = [start, end, axis as i64].map(|i| cx.ints(&[i]));
        sum(cx.slice_op(y, start, end, axes, None))
    });
    let half = cx.mul(cx.cast(cx.add(ends[0], ends[1]), dtype), 0.5);
    let total = match cx.dtype(y).is_float() {
        true => sum(y),
        false => cx.cast(sum(cx.cast(y, DType::I64)), dtype),
    };
    Ok(cx.mul(cx.sub(total, half), dx))
}

/// [`trapezoid`] of complex numbers at complex points: it is bilinear in both.
fn trapezoid_complex(cx: &Cx, y: Complex, x: Complex, dim: i64) -> Lowered {
    Ok(y.try_bilinear(cx, x, |y, x| trapezoid(cx, y, Spacing::Points(x), dim))?.value(cx))
}

/// The integral of `y` from its first sample to each later one.
fn cumulative_trapezoid(cx: &Cx, y: Value, spacing: Spacing, dim: i64) -> Lowered {
    areas(cx, y, spacing, dim, |areas, axis| running_sums(cx, areas, axis))
}

/// [`cumulative_trapezoid`] of complex numbers at complex points: it is bilinear in both.
fn cumulative_trapezoid_complex(cx: &Cx, y: Complex, x: Complex, dim: i64) -> Lowered {
    let sums = y.try_bilinear(cx, x, |y, x| cumulative_trapezoid(cx, y, Spacing::Points(x), dim));
    Ok(sums?.value(cx))
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

/// The derivative along each of `dim`, estimated from the differences with both neighbours; at the edges, with one neighbour
/// (`edge_order` 1) or the next two (2).
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
    let (rank, n) = (cx.rank(x), cx.dim(x, axis as i64));
    let cut = |from: &Expr, to: &Expr| cx.slice(x, axis, from, to, 1);
    let at = |i: &Expr| cut(i, &(i + 1));
    let (zero, one, two) = (Expr::int(0), Expr::int(1), Expr::int(2));
    let (last, before, third) = (&n - 1, &n - 2, &n - 3);
    let (low, middle, high) = (cut(&zero, &before), cut(&one, &last), cut(&two, &n));
    let weighted = |terms: [(Value, Value); 3]| {
        let [a, b, c] = terms.map(|(weight, x)| cx.mul(weight, x));
        cx.add(cx.add(a, b), c)
    };
    let pieces = match spacing {
        Spacing::Number(h) => {
            let step = |a, b, h: f64| cx.div(cx.sub(b, a), h);
            let inside = step(low, high, 2.0 * h);
            let dtype = cx.dtype(x);
            let c = |w: f64| cx.scalar(w / h, dtype);
            match edge_order {
                1 => [step(at(&zero), at(&one), h), inside, step(at(&before), at(&last), h)],
                2 => [
                    weighted([(c(-1.5), at(&zero)), (c(2.0), at(&one)), (c(-0.5), at(&two))]),
                    inside,
                    weighted([(c(1.5), at(&last)), (c(-2.0), at(&before)), (c(0.5), at(&third))]),
                ],
                _ => {
                    return Err(LowerError::unsupported(
                        "the edge order of gradients must be 1 or 2",
                    ));
                }
            }
        }
        Spacing::Points(points) => {
            let points = cx.cast(points, cx.dtype(x));
            let [a, b] = neighbours(cx, points, 0, 1);
            let widths = as_axis(cx, cx.sub(b, a), axis, rank);
            let width = |from: &Expr, to: &Expr| cx.slice(widths, axis, from, to, 1);
            let (d1, d2) = (width(&zero, &before), width(&one, &last));
            let both = cx.add(d1, d2);
            let inside = weighted([
                (cx.neg(cx.div(d2, cx.mul(d1, both))), low),
                (cx.div(cx.sub(d2, d1), cx.mul(d1, d2)), middle),
                (cx.div(d1, cx.mul(d2, both)), high),
            ]);
            let step = |i: &Expr, j: &Expr| cx.div(cx.sub(at(j), at(i)), width(i, j));
            match edge_order {
                1 => [step(&zero, &one), inside, step(&before, &last)],
                2 => {
                    // The parabola through the three points next to the edge; `p` is the width at the edge.
                    let edge = |p: Value, q: Value, f: [Value; 3], sign: f64| {
                        let both = cx.add(p, q);
                        let found = weighted([
                            (cx.div(cx.add(cx.mul(p, 2.0), q), cx.mul(p, both)), f[0]),
                            (cx.neg(cx.div(both, cx.mul(p, q))), f[1]),
                            (cx.div(p, cx.mul(q, both)), f[2]),
                        ]);
                        cx.mul(found, sign)
                    };
                    let first = [at(&zero), at(&one), at(&two)];
                    let end = [at(&last), at(&before), at(&third)];
                    [
                        edge(width(&zero, &one), width(&one, &two), first, -1.0),
                        inside,
                        edge(width(&before, &last), width(&third, &before), end, 1.0),
                    ]
                }
                _ => {
                    return Err(LowerError::unsupported(
                        "the edge order of gradients must be 1 or 2",
                    ));
                }
            }
        }
    };
    Ok(cx.concat(&pieces, axis))
}

checks! {
    bools_are_summed_as_int64 {
        "aten.cumsum(x: b8[s0, 3], -1) -> i64[s0, 3]" => "
        (bool[s0,3] x) => (int64[s0,3] cumsum)
        <
          int64 val_0 = {1}
        >
        {
          val_1 = Cast <to: int = 7> (x)
          cumsum = CumSum (val_1, val_0)
        }
        ";
    }

    a_gradient_is_one_sided_at_the_edges {
        "aten.gradient.scalarint(x: f32[5], spacing = 2.0) -> [f32[5]]" => "
        (float[5] x) => (float[5] gradient_0)
        <
          int64[1] val_0 = {0},
          int64[1] val_1 = {3},
          int64[1] val_2 = {1},
          int64[1] val_3 = {4},
          int64[1] val_4 = {2},
          int64[1] val_5 = {5},
          float val_6 = {4.0},
          float val_7 = {2.0}
        >
        {
          val_8 = Slice (x, val_0, val_1, val_0)
          val_9 = Slice (x, val_2, val_3, val_0)
          val_10 = Slice (x, val_4, val_5, val_0)
          val_11 = Sub (val_10, val_8)
          val_12 = Div (val_11, val_6)
          val_13 = Slice (x, val_0, val_2, val_0)
          val_14 = Slice (x, val_2, val_4, val_0)
          val_15 = Sub (val_14, val_13)
          val_16 = Div (val_15, val_7)
          val_17 = Slice (x, val_1, val_3, val_0)
          val_18 = Slice (x, val_3, val_5, val_0)
          val_19 = Sub (val_18, val_17)
          val_20 = Div (val_19, val_7)
          gradient_0 = Concat <axis: int = 0> (val_16, val_12, val_20)
        }
        ";
    }

    floats_are_added_up_in_float64 {
        "aten.cumsum(x: f32[s0], 0) -> f32[s0]" => "
        (float[s0] x) => (float[s0] cumsum)
        <
          int64 val_0 = {0}
        >
        {
          val_1 = Cast <to: int = 11> (x)
          val_2 = CumSum (val_1, val_0)
          cumsum = Cast <to: int = 1> (val_2)
        }
        ";
    }
}
