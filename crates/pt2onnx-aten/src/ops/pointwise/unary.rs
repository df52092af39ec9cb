//! Functions of one number, element by element: rounding, powers, logarithms, trigonometry.

use crate::math::arcs::{acos_of, acosh_of, asin_of, asinh_of, atan_of, atanh_of};
use crate::math::elementary::{
    cosh_of, expm1_of, log_of, log1p_of, pow, signbit_of, sinh_of, tan_of, trunc_of,
};
use crate::math::precision::{largest, wide};
use crate::meta::{self, typed};
use crate::{AtenOp, Complex, Cx, Lowered, checks, op};
use pt2onnx_ir::Value;
use pt2onnx_tensor::{DType, Scalar};
use std::f64::consts::{LN_2, PI};

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_neg_view, neg, complex = neg),
    op!(aten::_neg_view_copy, neg, complex = neg),
    op!(aten::abs, abs, meta = meta::real),
    op!(aten::absolute, abs),
    op!(aten::acos, acos),
    op!(aten::acosh, acosh),
    op!(aten::angle, angle, meta = meta_angle),
    op!(aten::arccos, acos),
    op!(aten::arccosh, acosh),
    op!(aten::arcsin, asin),
    op!(aten::arcsinh, asinh),
    op!(aten::arctan, atan),
    op!(aten::arctanh, atanh),
    op!(aten::asin, asin),
    op!(aten::asinh, asinh),
    op!(aten::atan, atan),
    op!(aten::atanh, atanh),
    op!(aten::ceil, ceil),
    op!(aten::cos, cos),
    op!(aten::cosh, cosh),
    op!(aten::deg2rad, scaled, factor = PI / 180.0),
    op!(aten::erf, erf),
    op!(aten::exp, exp),
    op!(aten::exp2, exp2),
    op!(aten::expm1, expm1),
    op!(aten::fix, trunc),
    op!(aten::floor, floor),
    op!(aten::frac, frac),
    op!(aten::log, log),
    op!(aten::log10, log_to_base, base = 10.0),
    op!(aten::log1p, log1p),
    op!(aten::log2, log_to_base, base = 2.0),
    op!(aten::logit, logit),
    op!(aten::nan_to_num, nan_to_num, parts),
    op!(aten::neg, neg, complex = neg, meta = meta::same),
    op!(aten::negative, neg, complex = neg),
    op!(aten::positive, same, complex = same, meta = meta::same),
    op!(aten::rad2deg, scaled, factor = 180.0 / PI),
    op!(aten::reciprocal, reciprocal),
    op!(aten::round, round, decimals = 0),
    op!(aten::round_decimals, round),
    op!(aten::rsqrt, rsqrt),
    op!(aten::sgn, sgn),
    op!(aten::sigmoid, sigmoid),
    op!(aten::sign, sign),
    op!(aten::signbit, signbit),
    op!(aten::sin, sin),
    op!(aten::sinc, sinc),
    op!(aten::sinh, sinh),
    op!(aten::special_erf, erf),
    op!(aten::special_exp2, exp2),
    op!(aten::special_expit, sigmoid),
    op!(aten::special_expm1, expm1),
    op!(aten::special_log1p, log1p),
    op!(aten::special_logit, logit),
    op!(aten::special_round, round),
    op!(aten::special_sinc, sinc),
    op!(aten::sqrt, sqrt),
    op!(aten::square, square),
    op!(aten::tan, tan),
    op!(aten::tanh, tanh),
    op!(aten::trunc, trunc),
];

/// `real(x)` for a real tensor, `complex(x)` for a complex one. Integers become floats first.
fn of_number(
    cx: &Cx,
    x: Complex,
    real: impl FnOnce(Value) -> Value,
    complex: impl FnOnce(Complex) -> Complex,
) -> Lowered {
    Ok(match x.im {
        None => real(cx.to_float(x.re)),
        Some(_) => complex(x).value(cx),
    })
}

/// Like [`of_number`], but floats narrower than float32 are computed in float32.
fn of_wide_number(
    cx: &Cx,
    x: Complex,
    real: impl FnOnce(Value) -> Value,
    complex: impl FnOnce(Complex) -> Complex,
) -> Lowered {
    of_number(cx, x, |x| wide(cx, x, real), complex)
}

fn acos(cx: &Cx, x: Complex) -> Lowered {
    of_number(cx, x, |x| acos_of(cx, x), |x| x.acos(cx))
}

fn acosh(cx: &Cx, x: Complex) -> Lowered {
    of_number(cx, x, |x| acosh_of(cx, x), |x| x.acosh(cx))
}

fn asin(cx: &Cx, x: Complex) -> Lowered {
    of_number(cx, x, |x| asin_of(cx, x), |x| x.asin(cx))
}

fn asinh(cx: &Cx, x: Complex) -> Lowered {
    of_number(cx, x, |x| asinh_of(cx, x), |x| x.asinh(cx))
}

fn atan(cx: &Cx, x: Complex) -> Lowered {
    of_number(cx, x, |x| atan_of(cx, x), |x| x.atan(cx))
}

fn atanh(cx: &Cx, x: Complex) -> Lowered {
    of_number(cx, x, |x| atanh_of(cx, x), |x| x.atanh(cx))
}

fn cos(cx: &Cx, x: Complex) -> Lowered {
    of_number(cx, x, |x| cx.cos(x), |x| x.cos(cx))
}

fn cosh(cx: &Cx, x: Complex) -> Lowered {
    of_number(cx, x, |x| cosh_of(cx, x), |x| x.cosh(cx))
}

fn exp(cx: &Cx, x: Complex) -> Lowered {
    of_number(cx, x, |x| cx.exp(x), |x| x.exp(cx))
}

fn log(cx: &Cx, x: Complex) -> Lowered {
    of_number(cx, x, |x| log_of(cx, x), |x| x.log(cx))
}

fn reciprocal(cx: &Cx, x: Complex) -> Lowered {
    of_number(cx, x, |x| cx.reciprocal(x), |x| x.reciprocal(cx))
}

fn sigmoid(cx: &Cx, x: Complex) -> Lowered {
    of_number(cx, x, |x| cx.sigmoid(x), |x| x.sigmoid(cx))
}

fn sin(cx: &Cx, x: Complex) -> Lowered {
    of_number(cx, x, |x| cx.sin(x), |x| x.sin(cx))
}

fn sinh(cx: &Cx, x: Complex) -> Lowered {
    of_number(cx, x, |x| sinh_of(cx, x), |x| x.sinh(cx))
}

fn sqrt(cx: &Cx, x: Complex) -> Lowered {
    of_number(cx, x, |x| cx.sqrt(x), |x| x.sqrt(cx))
}

fn tan(cx: &Cx, x: Complex) -> Lowered {
    of_number(cx, x, |x| tan_of(cx, x), |x| x.tan(cx))
}

fn tanh(cx: &Cx, x: Complex) -> Lowered {
    of_number(cx, x, |x| cx.tanh(x), |x| x.tanh(cx))
}

fn erf(cx: &Cx, x: Value) -> Lowered {
    Ok(cx.erf(cx.to_float(x)))
}

/// `2^x`.
fn exp2(cx: &Cx, x: Complex) -> Lowered {
    of_number(cx, x, |x| cx.pow(2, x), |x| x.scale(cx, LN_2).exp(cx))
}

/// `e^x - 1`.
fn expm1(cx: &Cx, x: Complex) -> Lowered {
    of_wide_number(cx, x, |x| expm1_of(cx, x), |x| x.expm1(cx))
}

/// `1 / sqrt(x)`.
fn rsqrt(cx: &Cx, x: Complex) -> Lowered {
    of_wide_number(cx, x, |x| cx.reciprocal(cx.sqrt(x)), |x| x.sqrt(cx).reciprocal(cx))
}

/// `log(x) / log(base)`, which is exact for powers of the base: rounding would make some less, and
/// `floor` then takes one off.
fn log_to_base(cx: &Cx, x: Complex, base: f64) -> Lowered {
    let scale = base.ln();
    let real = |x: Value| {
        let log = cx.div(log_of(cx, x), scale);
        let whole = cx.round(log);
        cx.select(cx.equal(cx.pow(base, whole), x), whole, log)
    };
    of_wide_number(cx, x, real, |x| x.log(cx).scale(cx, 1.0 / scale))
}

/// `log(1 + x)`.
fn log1p(cx: &Cx, x: Complex) -> Lowered {
    Ok(match x.im {
        None => log1p_of(cx, x.re),
        Some(_) => x.shift(cx, 1).log(cx).value(cx),
    })
}

/// `sin(pi x) / (pi x)`, and 1 at 0.
fn sinc(cx: &Cx, x: Complex) -> Lowered {
    let real = |x| {
        let angle = cx.mul(x, PI);
        let quotient = cx.div(cx.sin(angle), angle);
        cx.select(cx.equal(x, 0.0), 1.0, quotient)
    };
    let complex = |x: Complex| {
        let angle = x.scale(cx, PI);
        let one = cx.scalar(1, cx.dtype(x.re));
        angle.sin(cx).div(cx, angle).select(cx, x.truth(cx), one)
    };
    of_wide_number(cx, x, real, complex)
}

fn square(cx: &Cx, x: Complex) -> Lowered {
    match x.im {
        None => pow(cx, x.re.into(), Scalar::Int(2).into()),
        Some(_) => Ok(x.mul(cx, x).value(cx)),
    }
}

/// `|x|`.
fn abs(cx: &Cx, x: Complex) -> Lowered {
    Ok(match cx.dtype(x.re) {
        dtype if dtype.is_unsigned() || dtype == DType::Bool => x.re,
        _ => x.abs(cx),
    })
}

/// The angle of a complex number. For real numbers it is pi for negative ones, NaN for NaN,
/// otherwise 0.
fn angle(cx: &Cx, x: Complex) -> Lowered {
    if x.im.is_some() {
        return Ok(x.angle(cx));
    }
    let x = x.re;
    let float = cx.to_float(x);
    let dtype = cx.dtype(float);
    if cx.dtype(x) == DType::Bool || cx.dtype(x).is_unsigned() {
        return Ok(cx.full(&cx.shape(x), 0, dtype));
    }
    let angle = cx.select(cx.less(x, 0), PI, cx.scalar(0, dtype));
    Ok(if cx.dtype(x).is_float() { cx.select(cx.is_nan(x), x, angle) } else { angle })
}

/// The sign of `x`: -1, 0 or 1; for complex numbers `x / |x|`, and 0 for 0.
fn sgn(cx: &Cx, x: Complex) -> Lowered {
    match x.im {
        None => sign(cx, x.re),
        Some(_) => Ok(x.sgn(cx).value(cx)),
    }
}

/// `f(x)` for floats, `x` for integers.
fn of_floats(cx: &Cx, x: Value, f: impl FnOnce(Value) -> Value) -> Lowered {
    Ok(if cx.dtype(x).is_float() { f(x) } else { x })
}

fn ceil(cx: &Cx, x: Value) -> Lowered {
    of_floats(cx, x, |x| cx.ceil(x))
}

fn floor(cx: &Cx, x: Value) -> Lowered {
    of_floats(cx, x, |x| cx.floor(x))
}

/// `x` rounded towards zero.
fn trunc(cx: &Cx, x: Value) -> Lowered {
    of_floats(cx, x, |x| trunc_of(cx, x))
}

fn same(_: &Cx, x: Value) -> Lowered {
    Ok(x)
}

/// `-x`. ONNX has no `Neg` for unsigned integers: they are subtracted from 0, and wrap.
fn neg(cx: &Cx, x: Value) -> Lowered {
    Ok(if cx.dtype(x).is_unsigned() { cx.sub(0, x) } else { cx.neg(x) })
}

/// The sign of `x`: -1, 0 or 1; 0 for NaN.
fn sign(cx: &Cx, x: Value) -> Lowered {
    Ok(match cx.dtype(x) {
        DType::Bool => x,
        _ if cx.propagates_nan(x) => cx.select(cx.is_nan(x), 0.0, cx.sign(x)),
        _ => cx.sign(x),
    })
}

fn signbit(cx: &Cx, x: Value) -> Lowered {
    Ok(signbit_of(cx, x))
}

/// `x - trunc(x)`. Unlike the remainder, it is never -0.
fn frac(cx: &Cx, x: Value) -> Lowered {
    Ok(cx.sub(x, trunc_of(cx, x)))
}

/// `x` rounded to that many decimals, ties to even.
fn round(cx: &Cx, x: Value, decimals: i64) -> Lowered {
    if !cx.dtype(x).is_float() {
        return Ok(x);
    }
    let scale = 10f64.powi(decimals.unsigned_abs().min(400) as i32);
    Ok(match decimals {
        0 => cx.round(x),
        1.. => wide(cx, x, |x| cx.div(cx.round(cx.mul(x, scale)), scale)),
        _ => wide(cx, x, |x| cx.mul(cx.round(cx.div(x, scale)), scale)),
    })
}

fn scaled(cx: &Cx, x: Value, factor: f64) -> Lowered {
    Ok(cx.mul(cx.to_float(x), factor))
}

/// `log(x / (1 - x))`. With `eps`, `x` is first clamped to `eps..=1 - eps`. If `eps` is above 1/2,
/// `x` below `eps` counts as `eps`.
fn logit(cx: &Cx, x: Value, eps: Option<f64>) -> Lowered {
    let bound = |b: f64| Some(Scalar::Float(b));
    Ok(wide(cx, x, |x| {
        let x = match eps {
            Some(eps @ ..=0.5) => cx.clamp(x, bound(eps), bound(1.0 - eps)),
            Some(eps) => {
                let low = cx.less(x, eps);
                cx.select(low, eps, cx.clamp(x, None, bound(1.0 - eps)))
            }
            None => x,
        };
        cx.log(cx.div(x, cx.sub(1, x)))
    }))
}

/// `x`, with other numbers for NaN and infinities. If not given, they are 0 and the largest finite
/// numbers.
fn nan_to_num(
    cx: &Cx,
    x: Value,
    nan: Option<f64>,
    posinf: Option<f64>,
    neginf: Option<f64>,
) -> Lowered {
    let dtype = cx.dtype(x);
    if !dtype.is_float() {
        return Ok(x);
    }
    let max = largest(dtype);
    let instead = |x, infinity: f64, number: Option<f64>| match number {
        Some(number) => cx.select(cx.equal(x, infinity), number, x),
        None => x,
    };
    let finite = instead(instead(x, f64::INFINITY, posinf), f64::NEG_INFINITY, neginf);
    let bound = |given: Option<f64>, default: f64| match given {
        Some(_) => None,
        None => Some(Scalar::Float(default)),
    };
    let held = cx.clamp(finite, bound(neginf, -max), bound(posinf, max));
    Ok(cx.select(cx.is_nan(x), nan.unwrap_or(0.0), held))
}

fn meta_angle(cx: &Cx, x: Value) -> Lowered {
    Ok(typed(cx, cx.float_type(cx.dtype(x)).to_real(), &cx.shape(x)))
}

checks! {
    logarithms_of_powers_are_whole {
        "aten.log2(x: f32[s0]) -> f32[s0]" => "
        val_0 = Log (x)
        val_1 = Div (val_0, 0.6931472)
        val_2 = Round (val_1)
        val_3 = Pow (2.0, val_2)
        val_4 = Equal (val_3, x)
        log2 = Where (val_4, val_2, val_1)
        ";
    }

    decimals_are_rounded_in_float32 {
        "aten.round.decimals(x: f16[s0], decimals = 2) -> f16[s0]" => "
        val_0 = Cast <to: int = 1> (x)
        val_1 = Mul (val_0, 100.0)
        val_2 = Round (val_1)
        val_3 = Div (val_2, 100.0)
        round = Cast <to: int = 10> (val_3)
        ";
    }

    complex_roots_do_not_overflow {
        "aten.sqrt(x: c64[s0]) -> c64[s0]" => "
        val_0 = Gather <axis: int = 1> (x, 0)
        val_1 = Gather <axis: int = 1> (x, 1)
        val_2 = Cast <to: int = 11> (x)
        val_3 = ReduceL2 <keepdims: int = 0> (val_2, [1])
        val_4 = Abs (val_0)
        val_5 = Cast <to: int = 11> (val_4)
        val_6 = Add (val_3, val_5)
        val_7 = Mul (val_6, double {0.5})
        val_8 = Sqrt (val_7)
        val_9 = Cast <to: int = 1> (val_8)
        val_10 = Abs (val_1)
        val_11 = Mul (val_9, 2.0)
        val_12 = Div (val_10, val_11)
        val_13 = Equal (val_9, 0.0)
        val_14 = Where (val_13, 0.0, val_12)
        val_15 = Abs (val_1)
        val_16 = Equal (val_15, inf)
        val_17 = Where (val_16, inf, val_14)
        val_18 = GreaterOrEqual (val_0, 0.0)
        val_19 = Where (val_18, val_17, val_9)
        val_20 = Where (val_18, val_9, val_17)
        val_21 = Equal (val_1, 0.0)
        val_22 = Reciprocal (val_1)
        val_23 = Where (val_21, val_22, val_1)
        val_24 = Less (val_23, 0.0)
        val_25 = Where (val_24, -1.0, 1.0)
        val_26 = Mul (val_19, val_25)
        val_27 = Unsqueeze (val_20, [1])
        val_28 = Unsqueeze (val_26, [1])
        sqrt = Concat <axis: int = 1> (val_27, val_28)
        ";
    }

    integers_become_floats_or_stay {
        "aten.exp(x: i32[s0]) -> f32[s0]" => "
        val_0 = Cast <to: int = 1> (x)
        exp = Exp (val_0)
        ";
        "aten.ceil(x: i32[s0]) -> i32[s0]" => "
        ceil = Identity (x)
        ";
    }

    a_step_of_newton_makes_float64_exact {
        "aten.atan(x: f64[s0]) -> f64[s0]" => "
        val_0 = Clip (x, double {-1e150}, double {1e150})
        val_1 = Cast <to: int = 1> (val_0)
        val_2 = Atan (val_1)
        val_3 = Cast <to: int = 11> (val_2)
        val_4 = Sin (val_3)
        val_5 = Cos (val_3)
        val_6 = Mul (val_0, val_5)
        val_7 = Sub (val_4, val_6)
        val_8 = Mul (val_0, val_4)
        val_9 = Add (val_5, val_8)
        val_10 = Div (val_7, val_9)
        atan = Sub (val_3, val_10)
        ";
        "aten.atan(x: f32[s0]) -> f32[s0]" => "
        atan = Atan (x)
        ";
    }
}
