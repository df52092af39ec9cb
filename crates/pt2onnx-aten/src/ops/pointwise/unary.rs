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
    op!(aten::acos, number(acos_of, Complex::acos)),
    op!(aten::acosh, number(acosh_of, Complex::acosh)),
    op!(aten::angle, angle, meta = meta_angle),
    op!(aten::arccos, number(acos_of, Complex::acos)),
    op!(aten::arccosh, number(acosh_of, Complex::acosh)),
    op!(aten::arcsin, number(asin_of, Complex::asin)),
    op!(aten::arcsinh, number(asinh_of, Complex::asinh)),
    op!(aten::arctan, number(atan_of, Complex::atan)),
    op!(aten::arctanh, number(atanh_of, Complex::atanh)),
    op!(aten::asin, number(asin_of, Complex::asin)),
    op!(aten::asinh, number(asinh_of, Complex::asinh)),
    op!(aten::atan, number(atan_of, Complex::atan)),
    op!(aten::atanh, number(atanh_of, Complex::atanh)),
    op!(aten::ceil, of_floats(|cx, x| cx.ceil(x))),
    op!(aten::cos, number(|cx, x| cx.cos(x), Complex::cos)),
    op!(aten::cosh, number(cosh_of, Complex::cosh)),
    op!(aten::deg2rad, scaled, factor = PI / 180.0),
    op!(aten::erf, erf),
    op!(aten::exp, number(|cx, x| cx.exp(x), Complex::exp)),
    op!(aten::exp2, exp2),
    op!(aten::expm1, wide_number(expm1_of, Complex::expm1)),
    op!(aten::fix, of_floats(trunc_of)),
    op!(aten::floor, of_floats(|cx, x| cx.floor(x))),
    op!(aten::frac, frac),
    op!(aten::log, number(log_of, Complex::log)),
    op!(aten::log10, log_to_base, base = 10.0),
    op!(aten::log1p, log1p),
    op!(aten::log2, log_to_base, base = 2.0),
    op!(aten::logit, logit),
    op!(aten::nan_to_num, nan_to_num, parts),
    op!(aten::neg, neg, complex = neg, meta = meta::same),
    op!(aten::negative, neg, complex = neg),
    op!(aten::positive, same, complex = same, meta = meta::same),
    op!(aten::rad2deg, scaled, factor = 180.0 / PI),
    op!(aten::reciprocal, number(|cx, x| cx.reciprocal(x), Complex::reciprocal)),
    op!(aten::round, round, decimals = 0),
    op!(aten::round_decimals, round),
    op!(aten::rsqrt, rsqrt),
    op!(aten::sgn, sgn),
    op!(aten::sigmoid, number(|cx, x| cx.sigmoid(x), Complex::sigmoid)),
    op!(aten::sign, sign),
    op!(aten::signbit, signbit),
    op!(aten::sin, number(|cx, x| cx.sin(x), Complex::sin)),
    op!(aten::sinc, sinc),
    op!(aten::sinh, number(sinh_of, Complex::sinh)),
    op!(aten::special_erf, erf),
    op!(aten::special_exp2, exp2),
    op!(aten::special_expit, number(|cx, x| cx.sigmoid(x), Complex::sigmoid)),
    op!(aten::special_expm1, wide_number(expm1_of, Complex::expm1)),
    op!(aten::special_log1p, log1p),
    op!(aten::special_logit, logit),
    op!(aten::special_round, round),
    op!(aten::special_sinc, sinc),
    op!(aten::sqrt, number(|cx, x| cx.sqrt(x), Complex::sqrt)),
    op!(aten::square, square),
    op!(aten::tan, number(tan_of, Complex::tan)),
    op!(aten::tanh, number(|cx, x| cx.tanh(x), Complex::tanh)),
    op!(aten::trunc, of_floats(trunc_of)),
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

/// The lowering [`of_number`].
const fn number(
    real: fn(&Cx, Value) -> Value,
    complex: fn(Complex, &Cx) -> Complex,
) -> impl Fn(&Cx, Complex) -> Lowered + Copy {
    move |cx, x| of_number(cx, x, |x| real(cx, x), |x| complex(x, cx))
}

/// The lowering [`of_wide_number`].
const fn wide_number(
    real: fn(&Cx, Value) -> Value,
    complex: fn(Complex, &Cx) -> Complex,
) -> impl Fn(&Cx, Complex) -> Lowered + Copy {
    move |cx, x| of_wide_number(cx, x, |x| real(cx, x), |x| complex(x, cx))
}

fn erf(cx: &Cx, x: Value) -> Lowered {
    Ok(cx.erf(cx.to_float(x)))
}

/// `2^x`.
fn exp2(cx: &Cx, x: Complex) -> Lowered {
    of_number(cx, x, |x| cx.pow(2, x), |x| x.scale(cx, LN_2).exp(cx))
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
const fn of_floats(f: fn(&Cx, Value) -> Value) -> impl Fn(&Cx, Value) -> Lowered + Copy {
    move |cx, x| Ok(if cx.dtype(x).is_float() { f(cx, x) } else { x })
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
    // Logarithms of powers are whole.
    "aten.log2(x: f32[s0]) -> f32[s0]" => "
    val_0 = Log (x)
    val_1 = Div (val_0, 0.6931472)
    val_2 = Round (val_1)
    val_3 = Pow (2.0, val_2)
    val_4 = Equal (val_3, x)
    log2 = Where (val_4, val_2, val_1)
    ";

    // Decimals are rounded in float32.
    "aten.round.decimals(x: f16[s0], decimals = 2) -> f16[s0]" => "
    val_0 = Cast <to: int = 1> (x)
    val_1 = Mul (val_0, 100.0)
    val_2 = Round (val_1)
    val_3 = Div (val_2, 100.0)
    round = Cast <to: int = 10> (val_3)
    ";

    // Complex roots do not overflow.
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

    // Integers become floats or stay.
    "aten.exp(x: i32[s0]) -> f32[s0]" => "
    val_0 = Cast <to: int = 1> (x)
    exp = Exp (val_0)
    ";
    "aten.ceil(x: i32[s0]) -> i32[s0]" => "ceil = Identity (x)";

    // A step of Newton makes float64 exact.
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
    "aten.atan(x: f32[s0]) -> f32[s0]" => "atan = Atan (x)";
}
