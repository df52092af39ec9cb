//! Error functions, normal distribution, entropies.

use crate::math::coefficients::*;
use crate::math::precision::wide2;
use crate::math::precision::{double, wide};
use crate::ops::pointwise::unary::log1p_of;
use crate::{AtenOp, Cx, Lowered, TensorOrScalar, op::op};
use pt2onnx_ir::Value;
use pt2onnx_tensor::DType;
use std::f64::consts::{FRAC_1_SQRT_2, LN_2, PI};

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::erfc, erfc),
    op!(aten::erfinv, erfinv),
    op!(aten::special_entr, entr),
    op!(aten::special_erfc, erfc),
    op!(aten::special_erfcx, erfcx),
    op!(aten::special_erfinv, erfinv),
    op!(aten::special_log_ndtr, log_ndtr),
    op!(aten::special_ndtr, |cx: &Cx, x: Value| -> Lowered { Ok(wide(cx, x, |x| ndtr_of(cx, x))) }),
    op!(aten::special_ndtri, ndtri),
    op!(aten::special_spherical_bessel_j0, spherical_bessel_j0),
    op!(aten::special_xlog1py, xlog1py),
    op!(aten::special_xlog1py_other_scalar, xlog1py),
    op!(aten::special_xlog1py_self_scalar, xlog1py),
    op!(aten::special_xlogy, xlogy),
    op!(aten::special_xlogy_other_scalar, xlogy),
    op!(aten::special_xlogy_self_scalar, xlogy),
    op!(aten::xlogy_Scalar_Other, xlogy),
    op!(aten::xlogy_Scalar_Self, xlogy),
    op!(aten::xlogy_Tensor, xlogy),
];

/// The polynomial of these coefficients, the highest power's first, by Horner's scheme.
pub(crate) fn polynomial(cx: &Cx, x: Value, coefficients: &[f64]) -> Value {
    let Some((&first, rest)) = coefficients.split_first() else {
        return cx.scalar(0, cx.dtype(x));
    };
    let start = cx.scalar(first, cx.dtype(x));
    rest.iter().fold(start, |sum, &c| cx.add(cx.mul(sum, x), c))
}

/// `numerator(x) / denominator(x)`.
pub(crate) fn rational(cx: &Cx, x: Value, numerator: &[f64], denominator: &[f64]) -> Value {
    cx.div(polynomial(cx, x, numerator), polynomial(cx, x, denominator))
}

/// `e^(z^2) erfc(z)` of `z >= 0`, to the precision of `z`'s type.
fn erfcx_positive(cx: &Cx, z: Value) -> Value {
    let t = cx.reciprocal(cx.add(cx.mul(z, 0.5), 1));
    let u = cx.sub(cx.mul(t, 2), 1);
    let coefficients = match cx.dtype(z) {
        DType::F64 => ERFCX_F64,
        _ => ERFCX_F32,
    };
    cx.mul(t, cx.exp(polynomial(cx, u, coefficients)))
}

/// `e^(-z^2)`.
fn bell(cx: &Cx, z: Value) -> Value {
    cx.exp(cx.neg(cx.mul(z, z)))
}

/// `1 - erf(x)`: `e^(-x^2) erfcx(|x|)`, of negative `x` taken from 2. The relative error stays that of `erfcx`.
pub(crate) fn erfc_of(cx: &Cx, x: Value) -> Value {
    let z = cx.abs(x);
    let tail = cx.mul(bell(cx, z), erfcx_positive(cx, z));
    cx.select(cx.less(x, 0.0), cx.sub(2, tail), tail)
}

fn erfc(cx: &Cx, x: Value) -> Lowered {
    Ok(wide(cx, x, |x| erfc_of(cx, x)))
}

/// Of negative `x`, `2 e^(x^2) - erfcx(-x)`.
fn erfcx(cx: &Cx, x: Value) -> Lowered {
    Ok(wide(cx, x, |x| {
        let tail = erfcx_positive(cx, cx.abs(x));
        let mirrored = cx.sub(cx.mul(cx.exp(cx.mul(x, x)), 2), tail);
        cx.select(cx.less(x, 0.0), mirrored, tail)
    }))
}

/// `erfc(-x / sqrt 2) / 2`.
pub(crate) fn ndtr_of(cx: &Cx, x: Value) -> Value {
    let t = cx.mul(x, -FRAC_1_SQRT_2);
    cx.mul(erfc_of(cx, t), 0.5)
}

/// With `t = x / sqrt 2`: `log(erfcx(-t) / 2) - t^2` of negative `x`, else `log1p(-erfc(t) / 2)`.
fn log_ndtr(cx: &Cx, x: Value) -> Lowered {
    Ok(wide(cx, x, |x| {
        let z = cx.abs(cx.mul(x, FRAC_1_SQRT_2));
        let tail = erfcx_positive(cx, z);
        let left = cx.sub(cx.sub(cx.log(tail), LN_2), cx.mul(z, z));
        let right = log1p_of(cx, cx.mul(cx.mul(bell(cx, z), tail), -0.5));
        cx.select(cx.less(x, 0.0), left, right)
    }))
}

/// The normal quantile of a probability, given as its distance from 1/2 and from the nearer of 0 and 1: S. Moshier's `ndtri`
/// (Cephes), relative error 1e-15.
fn quantile(cx: &Cx, center: Value, tail: Value) -> Value {
    let square = cx.mul(center, center);
    let curve = cx.mul(square, rational(cx, square, NDTRI_P0, NDTRI_Q0));
    let middle = cx.mul(cx.add(center, cx.mul(center, curve)), (2.0 * PI).sqrt());
    let x = cx.sqrt(cx.mul(cx.log(tail), -2.0));
    let z = cx.reciprocal(x);
    let near = rational(cx, z, NDTRI_P1, NDTRI_Q1);
    let far = rational(cx, z, NDTRI_P2, NDTRI_Q2);
    let correction = cx.mul(z, cx.select(cx.less(x, 8.0), near, far));
    let distance = cx.sub(cx.sub(x, cx.mul(cx.log(x), z)), correction);
    let distance = cx.select(cx.equal(tail, 0.0), f64::INFINITY, distance);
    let outer = cx.mul(distance, cx.sign(center));
    // Cephes changes over at e^-2.
    cx.select(cx.greater(tail, (-2f64).exp()), middle, outer)
}

fn ndtri(cx: &Cx, y: Value) -> Lowered {
    Ok(double(cx, y, |y| quantile(cx, cx.sub(y, 0.5), cx.minimum(y, cx.sub(1, y)))))
}

/// The normal quantile of `(1 + x) / 2`, over `sqrt 2`.
fn erfinv(cx: &Cx, x: Value) -> Lowered {
    Ok(double(cx, x, |x| {
        let tail = cx.mul(cx.sub(1, cx.abs(x)), 0.5);
        let quantile = quantile(cx, cx.mul(x, 0.5), tail);
        cx.mul(quantile, FRAC_1_SQRT_2)
    }))
}

/// `-x log x`; 0 at 0, minus infinity below.
fn entr(cx: &Cx, x: Value) -> Lowered {
    Ok(wide(cx, x, |x| {
        let curve = cx.neg(cx.mul(x, cx.log(x)));
        let curve = cx.select(cx.equal(x, 0.0), 0.0, curve);
        cx.select(cx.less(x, 0.0), f64::NEG_INFINITY, curve)
    }))
}

/// `x` times a function of `y`, and 0 where `x` is 0 and `y` a number.
fn x_times(cx: &Cx, x: Value, y: Value, of_y: Value) -> Value {
    let zero = cx.and(cx.equal(x, 0.0), cx.equal(y, y));
    cx.select(zero, 0.0, cx.mul(x, of_y))
}

fn xlogy(cx: &Cx, x: TensorOrScalar, y: TensorOrScalar) -> Lowered {
    wide2(cx, x, y, |x, y| x_times(cx, x, y, cx.log(y)))
}

fn xlog1py(cx: &Cx, x: TensorOrScalar, y: TensorOrScalar) -> Lowered {
    wide2(cx, x, y, |x, y| x_times(cx, x, y, log1p_of(cx, y)))
}

/// `sin(x) / x`; 1 at 0 and 0 at infinity.
fn spherical_bessel_j0(cx: &Cx, x: Value) -> Lowered {
    Ok(double(cx, x, |x| {
        let quotient = cx.div(cx.sin(x), x);
        let quotient = cx.select(cx.equal(x, 0.0), 1.0, quotient);
        cx.select(cx.is_inf(x, Default::default()), 0.0, quotient)
    }))
}
