//! Inverse trigonometric and hyperbolic functions, and `softplus`. Runtimes have them for float32
//! only: in float64 they are formulas.

use crate::Cx;
use crate::math::elementary::log1p_of;
use crate::math::precision::{largest, smallest};
use pt2onnx_ir::Value;
use pt2onnx_tensor::DType;
use std::f64::consts::{LN_2, PI};

/// Above this, `x + 1` is `x` in float64, and the square of `x` is finite.
const LARGE: f64 = 1e150;

/// `atan x`. In float64, one step of Newton's method corrects `t`, the result in float32:
/// `t - (sin t - x cos t) / (cos t + x sin t)`. It is exact to `|error of t|^3`, and keeps the sign
/// of a zero.
pub fn atan_of(cx: &Cx, x: Value) -> Value {
    if cx.dtype(x) != DType::F64 {
        return cx.atan(x);
    }
    // Beyond, the angle does not change, and products with infinity would be NaN.
    let bounded = cx.clamp(x, Some((-LARGE).into()), Some(LARGE.into()));
    let t = cx.cast(cx.atan(cx.cast(bounded, DType::F32)), DType::F64);
    let (sin, cos) = (cx.sin(t), cx.cos(t));
    let below = cx.sub(sin, cx.mul(bounded, cos));
    cx.sub(t, cx.div(below, cx.add(cos, cx.mul(bounded, sin))))
}

/// The angle of the point `(x, y)`, from `-pi` to `pi`: `atan(y / x)`, plus or minus `pi` where `x`
/// is negative. The sign to add is opposite to that of `atan(y / x)`; the reciprocal shows the sign
/// of a zero. A zero `x` is replaced by the smallest number of its sign, infinities by the largest
/// numbers.
pub fn atan2(cx: &Cx, y: Value, x: Value) -> Value {
    let dtype = cx.dtype(x);
    let between = |v, bound: f64| cx.clamp(v, Some((-bound).into()), Some(bound.into()));
    let tiny = between(cx.reciprocal(x), smallest(dtype));
    let x = between(cx.select(cx.equal(x, 0.0), tiny, x), largest(dtype));
    let ratio = cx.div(between(y, largest(dtype)), x);
    let angle = atan_of(cx, ratio);
    let upper = cx.less(cx.reciprocal(angle), 0.0);
    let turn = cx.select(upper, PI, cx.scalar(-PI, dtype));
    cx.select(cx.less(x, 0.0), cx.add(angle, turn), angle)
}

/// `asin x`; in float64 `atan(x / sqrt((1 - x) (1 + x)))`.
pub fn asin_of(cx: &Cx, x: Value) -> Value {
    if cx.dtype(x) != DType::F64 {
        return cx.asin(x);
    }
    let square = cx.mul(cx.sub(1, x), cx.add(x, 1));
    atan_of(cx, cx.div(x, cx.sqrt(square)))
}

/// `acos x`; in float64 `2 atan(sqrt((1 - x) / (1 + x)))`.
pub fn acos_of(cx: &Cx, x: Value) -> Value {
    if cx.dtype(x) != DType::F64 {
        return cx.acos(x);
    }
    let ratio = cx.div(cx.sub(1, x), cx.add(x, 1));
    cx.mul(atan_of(cx, cx.sqrt(ratio)), 2)
}

/// `asinh x`; in float64 `log1p(|x| + x^2 / (1 + sqrt(1 + x^2)))` with the sign of `x`.
pub fn asinh_of(cx: &Cx, x: Value) -> Value {
    if cx.dtype(x) != DType::F64 {
        return cx.asinh(x);
    }
    let size = cx.abs(x);
    let bounded = cx.clamp(size, None, Some(LARGE.into()));
    let square = cx.mul(bounded, bounded);
    let root = cx.sqrt(cx.add(square, 1));
    let near = log1p_of(cx, cx.add(bounded, cx.div(square, cx.add(root, 1))));
    let far = cx.add(cx.log(size), LN_2);
    let found = cx.select(cx.greater(size, LARGE), far, near);
    cx.select(cx.cast(x, DType::Bool), cx.mul(found, cx.sign(x)), x)
}

/// `acosh x`; in float64 `log1p(t + sqrt(t (t + 2)))` with `t = x - 1`.
pub fn acosh_of(cx: &Cx, x: Value) -> Value {
    if cx.dtype(x) != DType::F64 {
        return cx.acosh(x);
    }
    let t = cx.clamp(cx.sub(x, 1), None, Some(LARGE.into()));
    let near = log1p_of(cx, cx.add(t, cx.sqrt(cx.mul(t, cx.add(t, 2)))));
    let far = cx.add(cx.log(x), LN_2);
    let found = cx.select(cx.greater(x, LARGE), far, near);
    // Below -1, the root is real again.
    cx.select(cx.less(x, 1.0), f64::NAN, found)
}

/// `atanh x`; in float64 `log1p(2 |x| / (1 - |x|)) / 2` with the sign of `x`.
pub fn atanh_of(cx: &Cx, x: Value) -> Value {
    if cx.dtype(x) != DType::F64 {
        return cx.atanh(x);
    }
    let size = cx.abs(x);
    let ratio = cx.div(cx.mul(size, 2), cx.sub(1, size));
    let found = cx.mul(log1p_of(cx, ratio), 0.5);
    let found = cx.select(cx.greater(size, 1.0), f64::NAN, found);
    cx.select(cx.cast(x, DType::Bool), cx.mul(found, cx.sign(x)), x)
}

/// `log(1 + e^x)`; in float64 `max(x, 0) + log1p(e^-|x|)`.
pub fn softplus_of(cx: &Cx, x: Value) -> Value {
    if cx.dtype(x) != DType::F64 {
        return cx.softplus(x);
    }
    let tail = log1p_of(cx, cx.exp(cx.neg(cx.abs(x))));
    cx.add(cx.maximum(x, 0.0), tail)
}

/// `log(e^a + e^b) = max(a, b) + log(1 + e^-|a - b|)`. The distance of equal infinities is 0.
pub fn log_add_exp(cx: &Cx, a: Value, b: Value) -> Value {
    let distance = cx.select(cx.equal(a, b), 0.0, cx.abs(cx.sub(a, b)));
    cx.add(cx.maximum(a, b), softplus_of(cx, cx.neg(distance)))
}
