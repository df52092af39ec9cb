//! Running sums, products and extremes; differences, integrals and gradients along a dimension.

use super::common_reduce::{
    Extreme, along, angle, highest, lowest, magnitude, neighbours, product, reduce, running,
};
use crate::{AtenOp, Complex, Cx, LowerError, Lowered, registry::aten};
use pt2onnx_ir::{Reduction, Value};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Scalar};

pub(super) static OPS: &[AtenOp] = &[
    aten!(
        "aten::_logcumsumexp(Tensor self, int dim) -> Tensor",
        logcumsumexp, complex: logcumsumexp_complex),
    aten!(
        "aten::cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)",
        |cx: &Cx, x: Value, dim: i64| cumulative_extreme(cx, Extreme::Max, x, dim)
    ),
    aten!(
        "aten::cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)",
        |cx: &Cx, x: Value, dim: i64| cumulative_extreme(cx, Extreme::Min, x, dim)
    ),
    aten!("aten::cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", cumprod, complex: cumprod_complex),
    aten!("aten::cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", cumsum, parts),
    aten!(
        "aten::cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor",
        |cx: &Cx, y: Value, dx: Scalar, dim: i64| {
            let (areas, axis) = areas(cx, y, Spacing::Number(dx), dim)?;
            Ok(cumulated(cx, areas, axis))
        },
        parts
    ),
    aten!(
    "aten::cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
    |cx: &Cx, y: Value, x: Value, dim: i64| {
        let (areas, axis) = areas(cx, y, Spacing::Points(x), dim)?;
        Ok(cumulated(cx, areas, axis))
    }, complex: |cx: &Cx, y: Complex, x: Complex, dim: i64| {
        by_parts(cx, y, x, |y, x| {
            let (areas, axis) = areas(cx, y, Spacing::Points(x), dim)?;
            Ok(cumulated(cx, areas, axis))
        })
    }),
    aten!(
        "aten::diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor",
        diff,
        parts
    ),
    aten!(
        "aten::gradient.array(Tensor self, *, int[] dim, int edge_order=1) -> Tensor[]",
        |cx: &Cx, x: Value, dims: Vec<i64>, order: i64| {
            gradient(cx, x, vec![], Some(dims), order)
        },
        parts
    ),
    aten!(
        "aten::gradient.scalararray(Tensor self, *, Scalar spacing, int[] dim, int edge_order=1) -> Tensor[]",
        |cx: &Cx, x: Value, spacing: Scalar, dims: Vec<i64>, order: i64| {
            gradient(cx, x, vec![Spacing::Number(spacing)], Some(dims), order)
        },
        parts
    ),
    aten!(
        "aten::gradient.scalarint(Tensor self, *, Scalar? spacing=None, int? dim=None, int edge_order=1) -> Tensor[]",
        |cx: &Cx, x: Value, spacing: Option<Scalar>, dim: Option<i64>, order: i64| {
            gradient(
                cx,
                x,
                spacing.into_iter().map(Spacing::Number).collect(),
                dim.map(|d| vec![d]),
                order,
            )
        },
        parts
    ),
    aten!(
        "aten::gradient.scalarrayarray(Tensor self, *, Scalar[] spacing, int[] dim, int edge_order=1) -> Tensor[]",
        |cx: &Cx, x: Value, spacing: Vec<f64>, dims: Vec<i64>, order: i64| {
            gradient(cx, x, numbers(spacing), Some(dims), order)
        },
        parts
    ),
    aten!(
        "aten::gradient.scalarrayint(Tensor self, *, Scalar[] spacing, int? dim=None, int edge_order=1) -> Tensor[]",
        |cx: &Cx, x: Value, spacing: Vec<f64>, dim: Option<i64>, order: i64| {
            gradient(cx, x, numbers(spacing), dim.map(|d| vec![d]), order)
        },
        parts
    ),
    aten!(
        "aten::gradient.tensorarray(Tensor self, *, Tensor[] spacing, int[] dim, int edge_order=1) -> Tensor[]",
        |cx: &Cx, x: Value, spacing: Vec<Value>, dims: Vec<i64>, order: i64| {
            gradient(cx, x, spacing.into_iter().map(Spacing::Points).collect(), Some(dims), order)
        }
    ),
    aten!(
        "aten::gradient.tensorarrayint(Tensor self, *, Tensor[] spacing, int? dim=None, int edge_order=1) -> Tensor[]",
        |cx: &Cx, x: Value, spacing: Vec<Value>, dim: Option<i64>, order: i64| {
            gradient(
                cx,
                x,
                spacing.into_iter().map(Spacing::Points).collect(),
                dim.map(|d| vec![d]),
                order,
            )
        }
    ),
    aten!(
        "aten::logcumsumexp(Tensor self, int dim) -> Tensor",
        logcumsumexp, complex: logcumsumexp_complex),
    aten!(
        "aten::trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor",
        |cx: &Cx, y: Value, dx: Scalar, dim: i64| trapezoid(cx, y, Spacing::Number(dx), dim),
        parts
    ),
    aten!(
    "aten::trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
    |cx: &Cx, y: Value, x: Value, dim: i64| trapezoid(cx, y, Spacing::Points(x), dim), complex: |cx: &Cx, y: Complex, x: Complex, dim: i64| {
        by_parts(cx, y, x, |y, x| trapezoid(cx, y, Spacing::Points(x), dim))
    }),
    aten!(
        "aten::trapz.dx(Tensor y, *, float dx=1., int dim=-1) -> Tensor",
        |cx: &Cx, y: Value, dx: f64, dim: i64| trapezoid(
            cx,
            y,
            Spacing::Number(Scalar::Float(dx)),
            dim
        ),
        parts
    ),
    aten!(
    "aten::trapz.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
    |cx: &Cx, y: Value, x: Value, dim: i64| trapezoid(cx, y, Spacing::Points(x), dim), complex: |cx: &Cx, y: Complex, x: Complex, dim: i64| {
        by_parts(cx, y, x, |y, x| trapezoid(cx, y, Spacing::Points(x), dim))
    }),
];

/// `CumSum` along `axis`.
fn cumulated(cx: &Cx, x: Value, axis: usize) -> Value {
    cx.cum_sum(x, cx.scalar(axis as i64, DType::I64), Default::default())
}

/// `CumSum` in the recorded type; a 0-d tensor is its own sum.
fn cumsum(cx: &Cx, x: Value, dim: i64, _: Option<DType>) -> Lowered {
    let x = cx.cast(x, cx.out_dtype()?);
    let axis = cx.axis(x, dim)?;
    Ok(if cx.rank(x) == 0 { x } else { cumulated(cx, x, axis) })
}

/// Products by a `Scan`: `CumProd` is newer than what most runtimes know.
fn cumprod(cx: &Cx, x: Value, dim: i64, _: Option<DType>) -> Lowered {
    let x = cx.cast(x, cx.out_dtype()?);
    let axis = cx.axis(x, dim)?;
    if cx.rank(x) == 0 {
        return Ok(x);
    }
    let found =
        running(cx, axis, &[x], &[Scalar::Int(1)], |state, slice| vec![cx.mul(state[0], slice[0])]);
    Ok(found[0])
}

fn cumprod_complex(cx: &Cx, x: Complex, dim: i64, _: Option<DType>) -> Lowered {
    let dtype = cx.out_dtype()?;
    let shape = cx.shape(x.re);
    let (re, im) = (cx.cast(x.re, dtype), cx.expand(cx.cast(x.im, dtype), &shape));
    let axis = cx.axis(re, dim)?;
    if shape.is_empty() {
        return Ok(cx.pairs(Complex { re, im }));
    }
    let found = running(cx, axis, &[re, im], &[Scalar::Int(1), Scalar::Int(0)], |a, b| {
        let of = |v: &[Value]| Complex { re: v[0], im: v[1] };
        let c = product(cx, of(a), of(b));
        vec![c.re, c.im]
    });
    Ok(cx.pairs(Complex { re: found[0], im: found[1] }))
}

/// The extreme so far and where it was last met; once there was a NaN, that.
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
    let found = running(cx, axis, &[numbers, indices], &[first, Scalar::Int(0)], |state, slice| {
        let better = match of {
            Extreme::Max => cx.greater_or_equal(slice[0], state[0]),
            Extreme::Min => cx.less_or_equal(slice[0], state[0]),
        };
        let better = if kind.is_float() { cx.or(better, cx.is_nan(slice[0])) } else { better };
        vec![cx.select(better, slice[0], state[0]), cx.select(better, slice[1], state[1])]
    });
    Ok([cx.cast(found[0], dtype), found[1]])
}

/// What `f` gives of complex `y` and `x`, given that it is linear in both.
fn by_parts(cx: &Cx, y: Complex, x: Complex, f: impl Fn(Value, Value) -> Lowered) -> Lowered {
    let like = |part: Value, whole: Value| cx.expand(part, &cx.shape(whole));
    let (y_im, x_im) = (like(y.im, y.re), like(x.im, x.re));
    Ok(cx.pairs(Complex {
        re: cx.sub(f(y.re, x.re)?, f(y_im, x_im)?),
        im: cx.add(f(y.re, x_im)?, f(y_im, x.re)?),
    }))
}

/// `m + log(exp(a - m) + exp(b - m))` with `m` the larger real part, slice by slice.
fn logcumsumexp_complex(cx: &Cx, x: Complex, dim: i64) -> Lowered {
    let axis = cx.axis(x.re, dim)?;
    if cx.rank(x.re) == 0 {
        return Ok(cx.pairs(x));
    }
    let start = [Scalar::Float(f64::NEG_INFINITY), Scalar::Int(0)];
    let found = running(cx, axis, &[x.re, x.im], &start, |state, slice| {
        let most = cx.maximum(state[0], slice[0]);
        let finite = cx.select(cx.is_inf(most, Default::default()), 0.0, most);
        let exp = |re, im| {
            let length = cx.exp(cx.sub(re, finite));
            [cx.mul(length, cx.cos(im)), cx.mul(length, cx.sin(im))]
        };
        let (a, b) = (exp(state[0], state[1]), exp(slice[0], slice[1]));
        let sum = Complex { re: cx.add(a[0], b[0]), im: cx.add(a[1], b[1]) };
        vec![cx.add(cx.log(magnitude(cx, sum)), finite), angle(cx, sum)]
    });
    Ok(cx.pairs(Complex { re: found[0], im: found[1] }))
}

/// A `Scan` of `ReduceLogSumExp` over the state and the next slice.
fn logcumsumexp(cx: &Cx, x: Value, dim: i64) -> Lowered {
    let axis = cx.axis(x, dim)?;
    if cx.rank(x) == 0 {
        return Ok(x);
    }
    let found = running(cx, axis, &[x], &[Scalar::Float(f64::NEG_INFINITY)], |state, slice| {
        let both = cx.concat(&[cx.unsqueeze(state[0], &[0]), cx.unsqueeze(slice[0], &[0])], 0);
        vec![cx.reduce(Reduction::LogSumExp, both, &[0], false)]
    });
    Ok(found[0])
}

/// Differences of neighbours along `dim`, `n` times over; of bools, whether they differ.
fn diff(
    cx: &Cx,
    x: Value,
    n: i64,
    dim: i64,
    prepend: Option<Value>,
    append: Option<Value>,
) -> Lowered {
    let axis = cx.axis(x, dim)?;
    let dtype = cx.dtype(x);
    let parts: Vec<Value> = [prepend, Some(x), append].into_iter().flatten().collect();
    let mut result = cx.concat(&parts, axis);
    // More differences than elements leave nothing.
    let size = cx.dim(result, axis as i64);
    let nothing_left = cx.constraints().prove_ge(&Expr::int(n), &size);
    if nothing_left {
        let nothing = cx.slice(result, axis, &Expr::int(0), &Expr::int(0), 1);
        cx.set_type(nothing, pt2onnx_ir::Type::tensor(dtype, cx.out_shape()?));
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

/// How far apart the samples are.
enum Spacing {
    /// All as far.
    Number(Scalar),
    /// Where they are.
    Points(Value),
}

fn numbers(spacing: Vec<f64>) -> Vec<Spacing> {
    spacing.into_iter().map(|s| Spacing::Number(Scalar::Float(s))).collect()
}

/// Areas of the trapezoids under `y`, in the recorded type.
fn areas(cx: &Cx, y: Value, spacing: Spacing, dim: i64) -> Lowered<(Value, usize)> {
    let axis = cx.axis(y, dim)?;
    let dtype = cx.out_dtype()?;
    let (rank, wide) = (cx.rank(y), cx.cast(y, dtype));
    let [left, right] = neighbours(cx, wide, axis, 1);
    let sums = cx.add(left, right);
    match spacing {
        Spacing::Number(dx) => Ok((cx.mul(sums, dx.to_f64() / 2.0), axis)),
        Spacing::Points(x) => {
            let x = cx.cast(x, dtype);
            let own = cx.rank(x);
            // A vector of points lies along `dim`; other shapes broadcast.
            let (widths, axis) = if own == 1 {
                let [a, b] = neighbours(cx, x, 0, 1);
                (along(cx, cx.sub(b, a), rank, axis), axis)
            } else {
                let own_axis = cx.axis(x, dim)?;
                let [a, b] = neighbours(cx, x, own_axis, 1);
                (cx.sub(b, a), axis + own.saturating_sub(rank))
            };
            Ok((cx.mul(cx.mul(sums, widths), 0.5), axis))
        }
    }
}

fn trapezoid(cx: &Cx, y: Value, spacing: Spacing, dim: i64) -> Lowered {
    if cx.dim(y, dim).as_int() == Some(0) {
        return Ok(cx.full(&cx.out_shape()?, 0, cx.out_dtype()?));
    }
    let (areas, axis) = areas(cx, y, spacing, dim)?;
    Ok(reduce(cx, Reduction::Sum, areas, &[axis], false))
}

/// Differences with both neighbours, at the edges with the one (`edge_order` 1) or the two next ones (2).
fn gradient(
    cx: &Cx,
    x: Value,
    spacing: Vec<Spacing>,
    dims: Option<Vec<i64>>,
    edge_order: i64,
) -> Lowered<Vec<Value>> {
    let axes = cx.axes(x, dims.as_deref())?;
    let x = cx.cast(x, cx.out_dtype()?);
    let one = Spacing::Number(Scalar::Int(1));
    let found = axes.iter().enumerate().map(|(i, &axis)| {
        let here = if spacing.len() == 1 { spacing.first() } else { spacing.get(i) };
        gradient_along(cx, x, here.unwrap_or(&one), axis, edge_order)
    });
    found.collect()
}

fn gradient_along(cx: &Cx, x: Value, spacing: &Spacing, axis: usize, edge_order: i64) -> Lowered {
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
            let h = h.to_f64();
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
                        "gradients of an edge order that is neither 1 nor 2",
                    ));
                }
            }
        }
        Spacing::Points(points) => {
            let points = cx.cast(*points, cx.dtype(x));
            let [a, b] = neighbours(cx, points, 0, 1);
            let widths = along(cx, cx.sub(b, a), rank, axis);
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
                        "gradients of an edge order that is neither 1 nor 2",
                    ));
                }
            }
        }
    };
    Ok(cx.concat(&pieces, axis))
}
