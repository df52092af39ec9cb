//! Variances and standard deviations, with their means.

use super::common_reduce::{reduce, size_of};
use crate::{AtenOp, Complex, Cx, Lowered, registry::aten};
use pt2onnx_ir::Value;
use pt2onnx_tensor::Scalar;

pub(super) static OPS: &[AtenOp] = &[
    aten!("aten::std(Tensor self, bool unbiased=True) -> Tensor", |cx: &Cx, x: Value, unbiased: bool| std(cx, real(cx, x), None, correction(unbiased), false), complex:
        |cx: &Cx, x: Complex, unbiased: bool| std(cx, [x.re, x.im], None, correction(unbiased), false)),
    aten!("aten::std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor", |cx: &Cx, x: Value, dims: Option<Vec<i64>>, by: Option<Scalar>, keepdim: bool| {
        std(cx, real(cx, x), dims, by, keepdim)
    }, complex: |cx: &Cx, x: Complex, dims: Option<Vec<i64>>, by: Option<Scalar>, keepdim: bool| {
        std(cx, [x.re, x.im], dims, by, keepdim)
    }),
    aten!("aten::std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor", |cx: &Cx, x: Value, dims: Option<Vec<i64>>, unbiased: bool, keepdim: bool| {
        std(cx, real(cx, x), dims, correction(unbiased), keepdim)
    }, complex: |cx: &Cx, x: Complex, dims: Option<Vec<i64>>, unbiased: bool, keepdim: bool| {
        std(cx, [x.re, x.im], dims, correction(unbiased), keepdim)
    }),
    aten!("aten::std_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)", |cx: &Cx, x: Value, unbiased: bool| std_mean(cx, real(cx, x), None, correction(unbiased), false), complex:
        |cx: &Cx, x: Complex, unbiased: bool| std_mean(cx, [x.re, x.im], None, correction(unbiased), false)),
    aten!("aten::std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)", |cx: &Cx, x: Value, dims: Option<Vec<i64>>, by: Option<Scalar>, keepdim: bool| {
        std_mean(cx, real(cx, x), dims, by, keepdim)
    }, complex: |cx: &Cx, x: Complex, dims: Option<Vec<i64>>, by: Option<Scalar>, keepdim: bool| {
        std_mean(cx, [x.re, x.im], dims, by, keepdim)
    }),
    aten!("aten::std_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)", |cx: &Cx, x: Value, dims: Option<Vec<i64>>, unbiased: bool, keepdim: bool| {
        std_mean(cx, real(cx, x), dims, correction(unbiased), keepdim)
    }, complex: |cx: &Cx, x: Complex, dims: Option<Vec<i64>>, unbiased: bool, keepdim: bool| {
        std_mean(cx, [x.re, x.im], dims, correction(unbiased), keepdim)
    }),
    aten!("aten::var(Tensor self, bool unbiased=True) -> Tensor", |cx: &Cx, x: Value, unbiased: bool| var(cx, real(cx, x), None, correction(unbiased), false), complex:
        |cx: &Cx, x: Complex, unbiased: bool| var(cx, [x.re, x.im], None, correction(unbiased), false)),
    aten!("aten::var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor", |cx: &Cx, x: Value, dims: Option<Vec<i64>>, by: Option<Scalar>, keepdim: bool| {
        var(cx, real(cx, x), dims, by, keepdim)
    }, complex: |cx: &Cx, x: Complex, dims: Option<Vec<i64>>, by: Option<Scalar>, keepdim: bool| {
        var(cx, [x.re, x.im], dims, by, keepdim)
    }),
    aten!("aten::var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor", |cx: &Cx, x: Value, dims: Option<Vec<i64>>, unbiased: bool, keepdim: bool| {
        var(cx, real(cx, x), dims, correction(unbiased), keepdim)
    }, complex: |cx: &Cx, x: Complex, dims: Option<Vec<i64>>, unbiased: bool, keepdim: bool| {
        var(cx, [x.re, x.im], dims, correction(unbiased), keepdim)
    }),
    aten!("aten::var_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)", |cx: &Cx, x: Value, unbiased: bool| var_mean(cx, real(cx, x), None, correction(unbiased), false), complex:
        |cx: &Cx, x: Complex, unbiased: bool| var_mean(cx, [x.re, x.im], None, correction(unbiased), false)),
    aten!("aten::var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)", |cx: &Cx, x: Value, dims: Option<Vec<i64>>, by: Option<Scalar>, keepdim: bool| {
        var_mean(cx, real(cx, x), dims, by, keepdim)
    }, complex: |cx: &Cx, x: Complex, dims: Option<Vec<i64>>, by: Option<Scalar>, keepdim: bool| {
        var_mean(cx, [x.re, x.im], dims, by, keepdim)
    }),
    aten!("aten::var_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)", |cx: &Cx, x: Value, dims: Option<Vec<i64>>, unbiased: bool, keepdim: bool| {
        var_mean(cx, real(cx, x), dims, correction(unbiased), keepdim)
    }, complex: |cx: &Cx, x: Complex, dims: Option<Vec<i64>>, unbiased: bool, keepdim: bool| {
        var_mean(cx, [x.re, x.im], dims, correction(unbiased), keepdim)
    }),
];

fn correction(unbiased: bool) -> Option<Scalar> {
    Some(Scalar::Int(unbiased.into()))
}

/// One part, as a real tensor has it.
fn real(cx: &Cx, x: Value) -> [Value; 1] {
    [cx.to_float(x)]
}

/// `sum((x - mean)^2) / (n - correction)`, summed over the parts, and the parts' means with all dimensions kept.
fn variance<const N: usize>(
    cx: &Cx,
    parts: [Value; N],
    axes: &[usize],
    by: Option<Scalar>,
    keepdim: bool,
) -> (Value, [Value; N]) {
    let by = by.unwrap_or(Scalar::Int(1)).to_f64();
    let x = parts[0];
    let dtype = cx.dtype(x);
    let freedom = match size_of(cx, x, axes).as_int() {
        Some(n) => cx.scalar((n as f64 - by).max(0.0), dtype),
        None => {
            let n = cx.cast(cx.size(&size_of(cx, x, axes)), dtype);
            let rest = cx.sub(n, by);
            cx.maximum(rest, 0.0)
        }
    };
    let means = parts.map(|x| reduce(cx, "ReduceMean", x, axes, true));
    let squares = std::array::from_fn::<Value, N, _>(|i| {
        let off = cx.sub(parts[i], means[i]);
        if axes.is_empty() {
            cx.mul(off, off)
        } else {
            reduce(cx, "ReduceSumSquare", off, axes, keepdim)
        }
    });
    let sum = squares[1..].iter().fold(squares[0], |a, &b| cx.add(a, b));
    (cx.div(sum, freedom), means)
}

fn var<const N: usize>(
    cx: &Cx,
    x: [Value; N],
    dims: Option<Vec<i64>>,
    by: Option<Scalar>,
    keepdim: bool,
) -> Lowered {
    let axes = cx.axes(x[0], dims.as_deref())?;
    if super::common_reduce::is_empty(cx, x[0], &axes) {
        return Ok(cx.full(&cx.out_shape()?, f64::NAN, cx.out_dtype()?));
    }
    Ok(variance(cx, x, &axes, by, keepdim).0)
}

fn std<const N: usize>(
    cx: &Cx,
    x: [Value; N],
    dims: Option<Vec<i64>>,
    by: Option<Scalar>,
    keepdim: bool,
) -> Lowered {
    Ok(cx.sqrt(var(cx, x, dims, by, keepdim)?))
}

fn var_mean<const N: usize>(
    cx: &Cx,
    x: [Value; N],
    dims: Option<Vec<i64>>,
    by: Option<Scalar>,
    keepdim: bool,
) -> Lowered<[Value; 2]> {
    let axes = cx.axes(x[0], dims.as_deref())?;
    if super::common_reduce::is_empty(cx, x[0], &axes) {
        let nothing = cx.full(&cx.out_shape()?, f64::NAN, cx.out_dtype()?);
        return Ok([nothing, nothing]);
    }
    let (var, means) = variance(cx, x, &axes, by, keepdim);
    let means = means.map(|m| if keepdim { m } else { cx.squeeze(m, &axes) });
    let mean = match means.as_slice() {
        [re, im] => cx.pairs(Complex { re: *re, im: *im }),
        _ => means[0],
    };
    Ok([var, mean])
}

fn std_mean<const N: usize>(
    cx: &Cx,
    x: [Value; N],
    dims: Option<Vec<i64>>,
    by: Option<Scalar>,
    keepdim: bool,
) -> Lowered<[Value; 2]> {
    let [var, mean] = var_mean(cx, x, dims, by, keepdim)?;
    Ok([cx.sqrt(var), mean])
}
