//! Error functions, the normal distribution, entropies. Formulas are in `math/erf.rs`.

use crate::math::elementary::{log_of, log1p_of};
use crate::math::erf::{bell, erfc_of, erfcx_positive, ndtr_of, quantile};
use crate::math::precision::{in_double, in_wide, in_wide2};
use crate::{AtenOp, Cx, checks, op};
use pt2onnx_ir::Value;
use std::f64::consts::{FRAC_1_SQRT_2, LN_2};

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::erfc, in_wide(erfc_of)),
    op!(aten::erfinv, in_double(erfinv)),
    op!(aten::special_entr, in_wide(entr)),
    op!(aten::special_erfc, in_wide(erfc_of)),
    op!(aten::special_erfcx, in_wide(erfcx)),
    op!(aten::special_erfinv, in_double(erfinv)),
    op!(aten::special_log_ndtr, in_wide(log_ndtr)),
    op!(aten::special_ndtr, in_wide(ndtr_of)),
    op!(aten::special_ndtri, in_double(ndtri)),
    op!(aten::special_spherical_bessel_j0, in_double(spherical_bessel_j0)),
    op!(aten::special_xlog1py, in_wide2(xlog1py)),
    op!(aten::special_xlog1py_other_scalar, in_wide2(xlog1py)),
    op!(aten::special_xlog1py_self_scalar, in_wide2(xlog1py)),
    op!(aten::special_xlogy, in_wide2(xlogy)),
    op!(aten::special_xlogy_other_scalar, in_wide2(xlogy)),
    op!(aten::special_xlogy_self_scalar, in_wide2(xlogy)),
    op!(aten::xlogy_Scalar_Other, in_wide2(xlogy)),
    op!(aten::xlogy_Scalar_Self, in_wide2(xlogy)),
    op!(aten::xlogy_Tensor, in_wide2(xlogy)),
];

/// `e^(x^2) erfc(x)`; for negative `x`, `2 e^(x^2) - erfcx(-x)`.
fn erfcx(cx: &Cx, x: Value) -> Value {
    let tail = erfcx_positive(cx, cx.abs(x));
    let mirrored = cx.sub(cx.mul(cx.exp(cx.mul(x, x)), 2), tail);
    cx.select(cx.less(x, 0.0), mirrored, tail)
}

/// The logarithm of the normal distribution function. With `t = x / sqrt 2` it is `log(erfcx(-t) /
/// 2) - t^2` of negative `x`, otherwise `log1p(-erfc(t) / 2)`.
fn log_ndtr(cx: &Cx, x: Value) -> Value {
    let z = cx.abs(cx.mul(x, FRAC_1_SQRT_2));
    let tail = erfcx_positive(cx, z);
    let left = cx.sub(cx.sub(cx.log(tail), LN_2), cx.mul(z, z));
    let right = log1p_of(cx, cx.mul(cx.mul(bell(cx, z), tail), -0.5));
    cx.select(cx.less(x, 0.0), left, right)
}

fn ndtri(cx: &Cx, y: Value) -> Value {
    quantile(cx, cx.sub(y, 0.5), cx.minimum(y, cx.sub(1, y)))
}

/// The inverse of `erf`: the normal quantile of `(1 + x) / 2`, over `sqrt 2`.
fn erfinv(cx: &Cx, x: Value) -> Value {
    let tail = cx.mul(cx.sub(1, cx.abs(x)), 0.5);
    let quantile = quantile(cx, cx.mul(x, 0.5), tail);
    cx.mul(quantile, FRAC_1_SQRT_2)
}

/// `-x log x`; it is 0 at 0 and minus infinity below.
fn entr(cx: &Cx, x: Value) -> Value {
    let curve = cx.neg(cx.mul(x, cx.log(x)));
    let curve = cx.select(cx.equal(x, 0.0), 0.0, curve);
    cx.select(cx.less(x, 0.0), f64::NEG_INFINITY, curve)
}

/// `x * of_y`, and 0 where `x` is 0 and `y` is not NaN.
fn x_times(cx: &Cx, x: Value, y: Value, of_y: Value) -> Value {
    let zero = cx.and(cx.equal(x, 0.0), cx.equal(y, y));
    cx.select(zero, 0.0, cx.mul(x, of_y))
}

fn xlogy(cx: &Cx, x: Value, y: Value) -> Value {
    x_times(cx, x, y, log_of(cx, y))
}

fn xlog1py(cx: &Cx, x: Value, y: Value) -> Value {
    x_times(cx, x, y, log1p_of(cx, y))
}

/// `sin(x) / x`; it is 1 at 0 and 0 at infinity.
fn spherical_bessel_j0(cx: &Cx, x: Value) -> Value {
    let quotient = cx.div(cx.sin(x), x);
    let quotient = cx.select(cx.equal(x, 0.0), 1.0, quotient);
    cx.select(cx.is_inf(x, Default::default()), 0.0, quotient)
}

checks! {
    // Zero times infinity is zero.
    "aten.xlogy.Scalar_Other(x: f32[s0], 0.0) -> f32[s0]" => "
    val_0 = Log (0.0)
    val_1 = Equal (x, 0.0)
    val_2 = Equal (0.0, 0.0)
    val_3 = And (val_1, val_2)
    val_4 = Mul (x, val_0)
    xlogy = Where (val_3, 0.0, val_4)
    ";
}
