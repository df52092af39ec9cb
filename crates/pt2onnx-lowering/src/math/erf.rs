//! Computes error functions and the normal distribution.

use crate::Cx;
use crate::math::coefficients::*;
use crate::math::elementary::polynomial;
use crate::math::elementary::rational;
use pt2onnx_ir::Value;
use pt2onnx_tensor::DType;
use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// `e^(z^2) erfc(z)` for `z >= 0`, with the relative error of `z`'s type (1.5e-8 in float32, 2e-15
/// in float64).
pub fn erfcx_positive(cx: &Cx, z: Value) -> Value {
    let t = cx.reciprocal(cx.add(cx.mul(z, 0.5), 1));
    let u = cx.sub(cx.mul(t, 2), 1);
    let coefficients = match cx.dtype(z) {
        DType::F64 => ERFCX_F64,
        _ => ERFCX_F32,
    };
    cx.mul(t, cx.exp(polynomial(cx, u, coefficients)))
}

/// `e^(-z^2)`.
pub fn bell(cx: &Cx, z: Value) -> Value {
    cx.exp(cx.neg(cx.mul(z, z)))
}

/// `1 - erf(x)`, computed as `e^(-x^2) erfcx(|x|)`; for negative `x` it is 2 minus that. The
/// relative error is that of `erfcx`.
pub fn erfc_of(cx: &Cx, x: Value) -> Value {
    let z = cx.abs(x);
    let tail = cx.mul(bell(cx, z), erfcx_positive(cx, z));
    cx.select(cx.less(x, 0.0), cx.sub(2, tail), tail)
}

/// The distribution function of the normal distribution, `erfc(-x / sqrt 2) / 2`.
pub fn ndtr_of(cx: &Cx, x: Value) -> Value {
    let t = cx.mul(x, -FRAC_1_SQRT_2);
    cx.mul(erfc_of(cx, t), 0.5)
}

/// The quantile function of the normal distribution. `center` is the probability minus 1/2, `tail`
/// its distance from the nearer of 0 and 1. After S. Moshier's `ndtri` (Cephes); relative error
/// 1e-15.
pub fn quantile(cx: &Cx, center: Value, tail: Value) -> Value {
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
    // As in Cephes, the middle formula is for tails above e^-2.
    cx.select(cx.less_or_equal(tail, (-2f64).exp()), outer, middle)
}
