//! Reductions: sums, products, extremes, truth, counts.

use super::common_reduce::{
    Extreme, angle, arg_extreme, extreme, flat, is_empty, magnitude, product, reduce,
};
use crate::{AtenOp, Complex, Cx, LowerError, Lowered, registry::aten};
use pt2onnx_ir::{Reduction, Value};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(super) static OPS: &[AtenOp] = &[
    aten!("aten::_aminmax(Tensor self) -> (Tensor, Tensor)", |cx: &Cx, x: Value| aminmax(
        cx, x, None, false
    )),
    aten!(
        "aten::_aminmax.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor, Tensor)",
        |cx: &Cx, x: Value, dim: i64, keepdim: bool| { aminmax(cx, x, Some(dim), keepdim) }
    ),
    aten!("aten::all(Tensor self) -> Tensor", |cx: &Cx, x: Value| {
        truth(cx, Extreme::Min, x, None, false)
    }, complex: |cx: &Cx, x: Complex| truth(cx, Extreme::Min, nonzero(cx, x), None, false)),
    aten!(
        "aten::all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
        |cx: &Cx, x: Value, dim: i64, keepdim: bool| {
            truth(cx, Extreme::Min, x, Some(vec![dim]), keepdim)
        }, complex: |cx: &Cx, x: Complex, dim: i64, keepdim: bool| truth(cx, Extreme::Min, nonzero(cx, x), Some(vec![dim]), keepdim)),
    aten!(
        "aten::all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
        |cx: &Cx, x: Value, dims: Option<Vec<i64>>, keepdim: bool| {
            truth(cx, Extreme::Min, x, dims, keepdim)
        }, complex: |cx: &Cx, x: Complex, dims: Option<Vec<i64>>, keepdim: bool| truth(cx, Extreme::Min, nonzero(cx, x), dims, keepdim)),
    aten!(
        "aten::amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
        |cx: &Cx, x: Value, dims: Vec<i64>, keepdim: bool| {
            extreme_of(cx, Extreme::Max, x, &dims, keepdim)
        }
    ),
    aten!(
        "aten::amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
        |cx: &Cx, x: Value, dims: Vec<i64>, keepdim: bool| {
            extreme_of(cx, Extreme::Min, x, &dims, keepdim)
        }
    ),
    aten!(
        "aten::aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
        aminmax
    ),
    aten!("aten::any(Tensor self) -> Tensor", |cx: &Cx, x: Value| truth(cx, Extreme::Max, x, None, false), complex:
        |cx: &Cx, x: Complex| truth(cx, Extreme::Max, nonzero(cx, x), None, false)),
    aten!("aten::any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor", |cx: &Cx, x: Value, dim: i64, keepdim: bool| {
        truth(cx, Extreme::Max, x, Some(vec![dim]), keepdim)
    }, complex: |cx: &Cx, x: Complex, dim: i64, keepdim: bool| {
        truth(cx, Extreme::Max, nonzero(cx, x), Some(vec![dim]), keepdim)
    }),
    aten!("aten::any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", |cx: &Cx, x: Value, dims: Option<Vec<i64>>, keepdim: bool| {
        truth(cx, Extreme::Max, x, dims, keepdim)
    }, complex: |cx: &Cx, x: Complex, dims: Option<Vec<i64>>, keepdim: bool| {
        truth(cx, Extreme::Max, nonzero(cx, x), dims, keepdim)
    }),
    aten!(
        "aten::argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
        |cx: &Cx, x: Value, dim: Option<i64>, keepdim: bool| {
            arg(cx, Extreme::Max, x, dim, keepdim)
        }
    ),
    aten!(
        "aten::argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
        |cx: &Cx, x: Value, dim: Option<i64>, keepdim: bool| {
            arg(cx, Extreme::Min, x, dim, keepdim)
        }
    ),
    aten!("aten::count_nonzero(Tensor self, int? dim=None) -> Tensor", |cx: &Cx, x: Value, dim: Option<i64>| {
        count_nonzero(cx, x, dim.map(|d| vec![d]))
    }, complex: |cx: &Cx, x: Complex, dim: Option<i64>| {
        count_nonzero(cx, nonzero(cx, x), dim.map(|d| vec![d]))
    }),
    aten!("aten::count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor", |cx: &Cx, x: Value, dims: Vec<i64>| {
        count_nonzero(cx, x, Some(dims))
    }, complex: |cx: &Cx, x: Complex, dims: Vec<i64>| {
        count_nonzero(cx, nonzero(cx, x), Some(dims))
    }),
    aten!("aten::logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", logsumexp, complex: logsumexp_complex),
    aten!("aten::max(Tensor self) -> Tensor", |cx: &Cx, x: Value| {
        extreme_of(cx, Extreme::Max, x, &[], false)
    }),
    aten!(
        "aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        |cx: &Cx, x: Value, dim: i64, keepdim: bool| {
            extreme_with_index(cx, Extreme::Max, x, dim, keepdim)
        }
    ),
    aten!(
        "aten::mean(Tensor self, *, ScalarType? dtype=None) -> Tensor",
        |cx: &Cx, x: Value, dtype: Option<DType>| mean(cx, x, None, false, dtype),
        parts
    ),
    aten!(
        "aten::mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        mean,
        parts
    ),
    aten!("aten::min(Tensor self) -> Tensor", |cx: &Cx, x: Value| {
        extreme_of(cx, Extreme::Min, x, &[], false)
    }),
    aten!(
        "aten::min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        |cx: &Cx, x: Value, dim: i64, keepdim: bool| {
            extreme_with_index(cx, Extreme::Min, x, dim, keepdim)
        }
    ),
    aten!("aten::nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", nanmean, complex: nanmean_complex),
    aten!(
        "aten::nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        nansum
    ),
    aten!("aten::prod(Tensor self, *, ScalarType? dtype=None) -> Tensor", |cx: &Cx, x: Value, _: Option<DType>| prod(cx, x, None, false), complex:
        |cx: &Cx, x: Complex, _: Option<DType>| prod_complex(cx, x, None)),
    aten!("aten::prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", |cx: &Cx, x: Value, dim: i64, keepdim: bool, _: Option<DType>| {
        prod(cx, x, Some(dim), keepdim)
    }, complex: |cx: &Cx, x: Complex, dim: i64, _: bool, _: Option<DType>| {
        prod_complex(cx, x, Some(dim))
    }),
    aten!("aten::special_logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", logsumexp, complex: logsumexp_complex),
    aten!(
        "aten::sum(Tensor self, *, ScalarType? dtype=None) -> Tensor",
        |cx: &Cx, x: Value, dtype: Option<DType>| sum(cx, x, None, false, dtype),
        parts
    ),
    aten!(
        "aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        sum,
        parts
    ),
    aten!("aten::sum_to_size(Tensor self, SymInt[] size) -> Tensor", sum_to_size, parts),
    aten!("aten::trace(Tensor self) -> Tensor", trace, parts),
];

/// `ReduceMean` in the recorded type; NaN of nothing.
fn mean(cx: &Cx, x: Value, dims: Option<Vec<i64>>, keepdim: bool, _: Option<DType>) -> Lowered {
    let x = cx.cast(x, cx.out_dtype()?);
    let axes = cx.axes(x, dims.as_deref())?;
    if is_empty(cx, x, &axes) {
        return Ok(cx.full(&cx.out_shape()?, f64::NAN, cx.dtype(x)));
    }
    Ok(reduce(cx, Reduction::Mean, x, &axes, keepdim))
}

/// `ReduceSum` in the recorded type: integers and bools sum up as int64.
fn sum(cx: &Cx, x: Value, dims: Option<Vec<i64>>, keepdim: bool, _: Option<DType>) -> Lowered {
    let x = cx.cast(x, cx.out_dtype()?);
    let axes = cx.axes(x, dims.as_deref())?;
    Ok(reduce(cx, Reduction::Sum, x, &axes, keepdim))
}

/// `ReduceProd` in the recorded type.
fn prod(cx: &Cx, x: Value, dim: Option<i64>, keepdim: bool) -> Lowered {
    let x = cx.cast(x, cx.out_dtype()?);
    let axes = cx.axes(x, dim.as_ref().map(std::slice::from_ref))?;
    Ok(reduce(cx, Reduction::Prod, x, &axes, keepdim))
}

/// Halves of the dimension multiplied with each other until one element is left.
fn prod_complex(cx: &Cx, x: Complex, dim: Option<i64>) -> Lowered {
    let dtype = cx.out_dtype()?;
    let shape = cx.shape(x.re);
    let cast = |v: Value| cx.expand(cx.cast(v, dtype), &shape);
    let mut x = Complex { re: cast(x.re), im: cast(x.im) };
    let axis = match dim {
        Some(dim) => cx.axis(x.re, dim)?,
        None => {
            x = Complex { re: flat(cx, x.re), im: flat(cx, x.im) };
            0
        }
    };
    let rank = cx.rank(x.re);
    if rank == 0 {
        return Ok(cx.pairs(x));
    }
    let out = cx.out_shape()?;
    let whole = cx.dim(x.re, axis as i64).as_int();
    let Some(mut n) = whole else {
        return Err(LowerError::unsupported(
            "products of complex numbers along a dynamic dimension",
        ));
    };
    if n == 0 {
        return Ok(cx.pairs(Complex { re: cx.full(&out, 1, dtype), im: cx.full(&out, 0, dtype) }));
    }
    while n > 1 {
        let half = n / 2;
        let cut = |from: i64, to: i64| {
            let piece = |v| cx.slice(v, axis, &Expr::int(from), &Expr::int(to), 1);
            Complex { re: piece(x.re), im: piece(x.im) }
        };
        let (a, b) = (cut(0, half), cut(half, 2 * half));
        let product = product(cx, a, b);
        x = if n % 2 == 0 {
            product
        } else {
            let rest = cut(n - 1, n);
            Complex {
                re: cx.concat(&[product.re, rest.re], axis),
                im: cx.concat(&[product.im, rest.im], axis),
            }
        };
        n = half + n % 2;
    }
    Ok(cx.pairs(Complex { re: cx.reshape(x.re, &out), im: cx.reshape(x.im, &out) }))
}

/// The sum of all that is no NaN.
fn nansum(
    cx: &Cx,
    x: Value,
    dims: Option<Vec<i64>>,
    keepdim: bool,
    dtype: Option<DType>,
) -> Lowered {
    sum(cx, without_nan(cx, x), dims, keepdim, dtype)
}

/// `x` with zeros for NaN.
fn without_nan(cx: &Cx, x: Value) -> Value {
    if cx.dtype(x).is_float() { cx.select(cx.is_nan(x), 0.0, x) } else { x }
}

/// The mean of all that is no NaN.
fn nanmean(
    cx: &Cx,
    x: Value,
    dims: Option<Vec<i64>>,
    keepdim: bool,
    dtype: Option<DType>,
) -> Lowered {
    let axes = cx.axes(x, dims.as_deref())?;
    let numbers = cx.cast(cx.not(cx.is_nan(x)), cx.out_dtype()?);
    let known = reduce(cx, Reduction::Sum, numbers, &axes, keepdim);
    Ok(cx.div(nansum(cx, x, dims, keepdim, dtype)?, known))
}

fn nanmean_complex(
    cx: &Cx,
    x: Complex,
    dims: Option<Vec<i64>>,
    keepdim: bool,
    _: Option<DType>,
) -> Lowered {
    let axes = cx.axes(x.re, dims.as_deref())?;
    let nan = cx.or(cx.is_nan(x.re), cx.is_nan(x.im));
    let numbers = cx.cast(cx.not(nan), cx.dtype(x.re));
    let known = reduce(cx, Reduction::Sum, numbers, &axes, keepdim);
    let part =
        |v| cx.div(reduce(cx, Reduction::Sum, cx.select(nan, 0.0, v), &axes, keepdim), known);
    Ok(cx.pairs(Complex { re: part(x.re), im: part(x.im) }))
}

fn extreme_of(cx: &Cx, of: Extreme, x: Value, dims: &[i64], keepdim: bool) -> Lowered {
    let axes = cx.axes(x, Some(dims))?;
    Ok(extreme(cx, of, x, &axes, keepdim))
}

fn aminmax(cx: &Cx, x: Value, dim: Option<i64>, keepdim: bool) -> Lowered<[Value; 2]> {
    let axes = cx.axes(x, dim.as_ref().map(std::slice::from_ref))?;
    // Without `dim`, `keepdim` keeps all dimensions.
    Ok([Extreme::Min, Extreme::Max].map(|of| extreme(cx, of, x, &axes, keepdim)))
}

/// The extreme along `dim` and the index of the first that is equal to it; a NaN is the extreme of all.
fn extreme_with_index(
    cx: &Cx,
    of: Extreme,
    x: Value,
    dim: i64,
    keepdim: bool,
) -> Lowered<[Option<Value>; 2]> {
    let axis = cx.axis(x, dim)?;
    if cx.rank(x) == 0 {
        return Ok([Some(x), Some(cx.scalar(0, DType::I64))]);
    }
    let values = cx.is_used(0).then(|| extreme(cx, of, x, &[axis], keepdim));
    let indices = cx.is_used(1).then(|| arg_of(cx, of, x, axis, keepdim));
    Ok([values, indices])
}

/// Index of the first extreme along `axis`. NaN counts as infinite.
fn arg_of(cx: &Cx, of: Extreme, x: Value, axis: usize, keepdim: bool) -> Value {
    let x = match (cx.dtype(x).is_float(), of) {
        (false, _) => x,
        (true, Extreme::Max) => cx.select(cx.is_nan(x), f64::INFINITY, x),
        (true, Extreme::Min) => cx.select(cx.is_nan(x), f64::NEG_INFINITY, x),
    };
    arg_extreme(cx, of, x, axis, keepdim)
}

/// `ArgMax` or `ArgMin`: the first of equals, along `dim` or over all elements.
fn arg(cx: &Cx, of: Extreme, x: Value, dim: Option<i64>, keepdim: bool) -> Lowered {
    let Some(dim) = dim else {
        let found = arg_of(cx, of, flat(cx, x), 0, false);
        let ones = if keepdim { vec![Expr::int(1); cx.rank(x)] } else { vec![] };
        return Ok(cx.reshape(found, &ones));
    };
    let axis = cx.axis(x, dim)?;
    if cx.rank(x) == 0 {
        return Ok(cx.scalar(0, DType::I64));
    }
    Ok(arg_of(cx, of, x, axis, keepdim))
}

/// Whether all (`Min`) or any (`Max`) elements are not zero; an empty list of dimensions is none of them. Of bytes, a byte.
fn truth(cx: &Cx, of: Extreme, x: Value, dims: Option<Vec<i64>>, keepdim: bool) -> Lowered {
    let axes = match dims.as_deref() {
        Some([]) => vec![],
        dims => cx.axes(x, dims)?,
    };
    if is_empty(cx, x, &axes) {
        return Ok(cx.full(&cx.out_shape()?, of == Extreme::Min, cx.out_dtype()?));
    }
    let found = reduce(cx, of.reduction(), cx.cast(x, DType::Bool), &axes, keepdim);
    Ok(cx.cast(found, cx.out_dtype()?))
}

/// Which complex numbers are not zero.
fn nonzero(cx: &Cx, x: Complex) -> Value {
    cx.or(cx.cast(x.re, DType::Bool), cx.cast(x.im, DType::Bool))
}

fn count_nonzero(cx: &Cx, x: Value, dims: Option<Vec<i64>>) -> Lowered {
    let axes = cx.axes(x, dims.as_deref())?;
    let ones = cx.cast(cx.cast(x, DType::Bool), DType::I64);
    Ok(reduce(cx, Reduction::Sum, ones, &axes, false))
}

/// `ReduceLogSumExp`; of nothing, minus infinity.
fn logsumexp(cx: &Cx, x: Value, dims: Vec<i64>, keepdim: bool) -> Lowered {
    let x = cx.to_float(x);
    let axes = cx.axes(x, Some(&dims))?;
    if is_empty(cx, x, &axes) {
        return Ok(cx.full(&cx.out_shape()?, f64::NEG_INFINITY, cx.dtype(x)));
    }
    Ok(reduce(cx, Reduction::LogSumExp, x, &axes, keepdim))
}

/// `m + log(sum(exp(x - m)))`, `m` the largest real part; the logarithm's parts are `log|z|` and the angle of `z`.
fn logsumexp_complex(cx: &Cx, x: Complex, dims: Vec<i64>, keepdim: bool) -> Lowered {
    let axes = cx.axes(x.re, Some(&dims))?;
    let largest = reduce(cx, Reduction::Max, x.re, &axes, true);
    let scale = cx.exp(cx.sub(x.re, largest));
    let sum = |part| reduce(cx, Reduction::Sum, cx.mul(scale, part), &axes, keepdim);
    let (re, im) = (sum(cx.cos(x.im)), sum(cx.sin(x.im)));
    let shift = if keepdim { largest } else { cx.squeeze(largest, &axes) };
    let sum = Complex { re, im };
    Ok(cx.pairs(Complex { re: cx.add(cx.log(magnitude(cx, sum)), shift), im: angle(cx, sum) }))
}

/// Sums over the dimensions that `size` does not have, and over those where it has 1.
fn sum_to_size(cx: &Cx, x: Value, size: Vec<Expr>) -> Lowered {
    let shape = cx.shape(x);
    let lead = shape.len().checked_sub(size.len()).ok_or_else(|| {
        LowerError::unsupported("a sum cannot have more dimensions than what is summed up")
    })?;
    let one = Expr::int(1);
    let to_one = |i: usize| size[i - lead] == one && shape[i] != one;
    let axes: Vec<usize> = (0..shape.len()).filter(|&i| i < lead || to_one(i)).collect();
    let summed = reduce(cx, Reduction::Sum, cx.cast(x, cx.out_dtype()?), &axes, true);
    Ok(cx.squeeze(summed, &(0..lead).collect::<Vec<_>>()))
}

/// The sum of the diagonal: of every `columns + 1`th element.
fn trace(cx: &Cx, x: Value) -> Lowered {
    let x = cx.cast(x, cx.out_dtype()?);
    let (rows, columns) = (cx.dim(x, 0), cx.dim(x, 1));
    let (step, length) = (&columns + 1, Expr::min(&rows, &columns));
    let flat = flat(cx, x);
    let diagonal = match step.as_int() {
        Some(step) => cx.slice(flat, 0, &Expr::int(0), &(length * step), step),
        None => {
            let indices = cx.mul(cx.cast(cx.iota(&length), DType::I64), cx.size(&step));
            cx.gather(flat, indices, 0)
        }
    };
    Ok(reduce(cx, Reduction::Sum, diagonal, &[0], false))
}
