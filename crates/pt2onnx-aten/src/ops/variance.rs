//! Variances and standard deviations, with their means; of complex numbers, the sums of their parts'.

use super::common_reduce::{is_empty, reduce, size_of};
use super::num::Num;
use crate::{AtenOp, Cx, Lowered, registry::aten};
use pt2onnx_ir::{Reduction, Value};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Scalar};

pub(super) static OPS: &[AtenOp] = &[
    aten!("aten::std(Tensor self, bool unbiased=True) -> Tensor", std_of_all, complex: std_of_all),
    aten!("aten::std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor", std, complex: std),
    aten!("aten::std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor", std_unbiased, complex: std_unbiased),
    aten!("aten::std_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)", std_mean_of_all, complex: std_mean_of_all),
    aten!("aten::std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)", std_mean, complex: std_mean),
    aten!("aten::std_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)", std_mean_unbiased, complex: std_mean_unbiased),
    aten!("aten::var(Tensor self, bool unbiased=True) -> Tensor", var_of_all, complex: var_of_all),
    aten!("aten::var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor", var, complex: var),
    aten!("aten::var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor", var_unbiased, complex: var_unbiased),
    aten!("aten::var_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)", var_mean_of_all, complex: var_mean_of_all),
    aten!("aten::var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)", var_mean, complex: var_mean),
    aten!("aten::var_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)", var_mean_unbiased, complex: var_mean_unbiased),
];

/// The other overloads of `$name`: over all dimensions, and with a flag for the correction.
macro_rules! overloads {
    ($($name:ident, $of_all:ident, $unbiased:ident => $out:ty;)*) => {$(
        fn $of_all(cx: &Cx, x: Num, unbiased: bool) -> Lowered<$out> {
            $name(cx, x, None, correction(unbiased), false)
        }

        fn $unbiased(cx: &Cx, x: Num, dims: Option<Vec<i64>>, unbiased: bool, keepdim: bool) -> Lowered<$out> {
            $name(cx, x, dims, correction(unbiased), keepdim)
        }
    )*};
}
overloads! {
    std, std_of_all, std_unbiased => Value;
    std_mean, std_mean_of_all, std_mean_unbiased => [Value; 2];
    var, var_of_all, var_unbiased => Value;
    var_mean, var_mean_of_all, var_mean_unbiased => [Value; 2];
}

fn correction(unbiased: bool) -> Option<Scalar> {
    Some(Scalar::Int(unbiased.into()))
}

/// `sum((x - mean)^2) / (n - correction)` and the mean with all dimensions kept.
fn variance(cx: &Cx, x: Num, axes: &[usize], by: Option<Scalar>, keepdim: bool) -> (Value, Num) {
    let by = by.unwrap_or(Scalar::Int(1)).to_f64();
    let dtype = cx.dtype(x.re);
    let n = size_of(cx, x.re, axes);
    let mean = |part: Value| reduce(cx, Reduction::Mean, part, axes, true);
    let means = Num { re: mean(x.re), im: x.im.map(mean) };
    let wide = matches!(dtype, DType::F32 | DType::F64);
    if by == 0.0 && wide && x.im.is_none() && !axes.is_empty() {
        let off = cx.sub(x.re, means.re);
        return (reduce(cx, Reduction::Mean, cx.mul(off, off), axes, keepdim), means);
    }
    let freedom = match n.as_int() {
        Some(n) => cx.scalar((n as f64 - by).max(0.0), dtype),
        None => {
            let enough = cx.constraints().prove_ge(&n, &Expr::int(by.ceil() as i64));
            let rest = cx.sub(cx.cast(cx.size(&n), dtype), by);
            if enough { rest } else { cx.maximum(rest, 0.0) }
        }
    };
    let squares = |part: Value, mean: Value| {
        let off = cx.sub(part, mean);
        match axes {
            [] => cx.mul(off, off),
            _ => reduce(cx, Reduction::SumSquare, off, axes, keepdim),
        }
    };
    let re = squares(x.re, means.re);
    let sum = match x.im.zip(means.im) {
        Some((im, mean)) => cx.add(re, squares(im, mean)),
        None => re,
    };
    (cx.div(sum, freedom), means)
}

fn var(cx: &Cx, x: Num, dims: Option<Vec<i64>>, by: Option<Scalar>, keepdim: bool) -> Lowered {
    let axes = cx.axes(x.re, dims.as_deref())?;
    if is_empty(cx, x.re, &axes) {
        return Ok(cx.full(&cx.out_shape()?, f64::NAN, cx.out_dtype()?));
    }
    Ok(variance(cx, x, &axes, by, keepdim).0)
}

fn std(cx: &Cx, x: Num, dims: Option<Vec<i64>>, by: Option<Scalar>, keepdim: bool) -> Lowered {
    Ok(cx.sqrt(var(cx, x, dims, by, keepdim)?))
}

fn var_mean(
    cx: &Cx,
    x: Num,
    dims: Option<Vec<i64>>,
    by: Option<Scalar>,
    keepdim: bool,
) -> Lowered<[Value; 2]> {
    let axes = cx.axes(x.re, dims.as_deref())?;
    if is_empty(cx, x.re, &axes) {
        let nothing = || -> Lowered { Ok(cx.full(&cx.out_shape()?, f64::NAN, cx.out_dtype()?)) };
        let mean = Num { re: nothing()?, im: x.im.map(|_| nothing()).transpose()? };
        return Ok([nothing()?, mean.value(cx)]);
    }
    let (var, means) = variance(cx, x, &axes, by, keepdim);
    let drop = |m| if keepdim { m } else { cx.squeeze(m, &axes) };
    let mean = Num { re: drop(means.re), im: means.im.map(drop) };
    Ok([var, mean.value(cx)])
}

fn std_mean(
    cx: &Cx,
    x: Num,
    dims: Option<Vec<i64>>,
    by: Option<Scalar>,
    keepdim: bool,
) -> Lowered<[Value; 2]> {
    let [var, mean] = var_mean(cx, x, dims, by, keepdim)?;
    Ok([cx.sqrt(var), mean])
}
