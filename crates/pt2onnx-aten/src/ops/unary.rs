//! Functions of one number, element by element: rounding, powers, logarithms, trigonometry.

use super::{
    arithmetic::{atan2, pow},
    complex_math as math,
    precision::{double, largest, wide},
};
use crate::{AtenOp, Complex, Cx, Lowered, registry::aten};
use pt2onnx_ir::{Reduction, Value, attrs};
use pt2onnx_tensor::{DType, Scalar};
use std::f64::consts::{LN_2, LN_10, PI};

/// The ONNX operator of a function of floats; integers become floats.
macro_rules! float {
    ($op:ident) => {
        |cx: &Cx, x: Value| -> Lowered { Ok(cx.$op(cx.to_float(x))) }
    };
}

/// The function of [`math`] of that name.
macro_rules! on_complex {
    ($op:ident) => {
        |cx: &Cx, x: Complex| -> Lowered { Ok(cx.pairs(math::$op(cx, x))) }
    };
}

pub(super) static OPS: &[AtenOp] = &[
    aten!("aten::_neg_view(Tensor(a) self) -> Tensor(a)", neg, complex: neg),
    aten!("aten::_neg_view_copy(Tensor self) -> Tensor", neg, complex: neg),
    aten!("aten::abs(Tensor self) -> Tensor", abs, complex: abs_complex),
    aten!("aten::absolute(Tensor self) -> Tensor", abs, complex: abs_complex),
    aten!("aten::acos(Tensor self) -> Tensor", float!(acos), complex: on_complex!(acos)),
    aten!("aten::acosh(Tensor self) -> Tensor", float!(acosh), complex: on_complex!(acosh)),
    aten!("aten::angle(Tensor self) -> Tensor", angle, complex: angle_complex),
    aten!("aten::arccos(Tensor self) -> Tensor", float!(acos), complex: on_complex!(acos)),
    aten!("aten::arccosh(Tensor self) -> Tensor", float!(acosh), complex: on_complex!(acosh)),
    aten!("aten::arcsin(Tensor self) -> Tensor", float!(asin), complex: on_complex!(asin)),
    aten!("aten::arcsinh(Tensor self) -> Tensor", float!(asinh), complex: on_complex!(asinh)),
    aten!("aten::arctan(Tensor self) -> Tensor", float!(atan), complex: on_complex!(atan)),
    aten!("aten::arctanh(Tensor self) -> Tensor", float!(atanh), complex: on_complex!(atanh)),
    aten!("aten::asin(Tensor self) -> Tensor", float!(asin), complex: on_complex!(asin)),
    aten!("aten::asinh(Tensor self) -> Tensor", float!(asinh), complex: on_complex!(asinh)),
    aten!("aten::atan(Tensor self) -> Tensor", float!(atan), complex: on_complex!(atan)),
    aten!("aten::atanh(Tensor self) -> Tensor", float!(atanh), complex: on_complex!(atanh)),
    aten!("aten::ceil(Tensor self) -> Tensor", |cx: &Cx, x: Value| {
        of_floats(cx, x, |cx, x| cx.ceil(x))
    }),
    aten!("aten::cos(Tensor self) -> Tensor", float!(cos), complex: on_complex!(cos)),
    aten!("aten::cosh(Tensor self) -> Tensor", |cx: &Cx, x: Value| -> Lowered { Ok(cosh_of(cx, cx.to_float(x))) }, complex: on_complex!(cosh)),
    aten!("aten::deg2rad(Tensor self) -> Tensor", |cx: &Cx, x: Value| scaled(cx, x, PI / 180.0)),
    aten!("aten::erf(Tensor self) -> Tensor", float!(erf)),
    aten!("aten::exp(Tensor self) -> Tensor", float!(exp), complex: on_complex!(exp)),
    aten!("aten::exp2(Tensor self) -> Tensor", exp2, complex: exp2_complex),
    aten!("aten::expm1(Tensor self) -> Tensor", expm1, complex: on_complex!(expm1)),
    aten!("aten::fix(Tensor self) -> Tensor", |cx: &Cx, x: Value| { of_floats(cx, x, trunc_of) }),
    aten!("aten::floor(Tensor self) -> Tensor", |cx: &Cx, x: Value| {
        of_floats(cx, x, |cx, x| cx.floor(x))
    }),
    aten!("aten::frac(Tensor self) -> Tensor", frac),
    aten!("aten::log(Tensor self) -> Tensor", float!(log), complex: on_complex!(log)),
    aten!("aten::log10(Tensor self) -> Tensor", |cx: &Cx, x: Value| log_to_base(cx, x, LN_10), complex: |cx: &Cx, x: Complex| log_to_base_complex(cx, x, LN_10)),
    aten!("aten::log1p(Tensor self) -> Tensor", log1p, complex: log1p_complex),
    aten!("aten::log2(Tensor self) -> Tensor", |cx: &Cx, x: Value| log_to_base(cx, x, LN_2), complex: |cx: &Cx, x: Complex| log_to_base_complex(cx, x, LN_2)),
    aten!("aten::logit(Tensor self, float? eps=None) -> Tensor", logit),
    aten!(
        "aten::nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
        nan_to_num,
        parts
    ),
    aten!("aten::neg(Tensor self) -> Tensor", neg, complex: neg),
    aten!("aten::negative(Tensor self) -> Tensor", neg, complex: neg),
    aten!("aten::positive(Tensor(a) self) -> Tensor(a)", same, complex: same),
    aten!("aten::rad2deg(Tensor self) -> Tensor", |cx: &Cx, x: Value| scaled(cx, x, 180.0 / PI)),
    aten!("aten::reciprocal(Tensor self) -> Tensor", float!(reciprocal), complex: on_complex!(reciprocal)),
    aten!("aten::round(Tensor self) -> Tensor", |cx: &Cx, x: Value| { round(cx, x, 0) }),
    aten!("aten::round.decimals(Tensor self, *, int decimals) -> Tensor", round),
    aten!("aten::rsqrt(Tensor self) -> Tensor", rsqrt, complex: rsqrt_complex),
    aten!("aten::sgn(Tensor self) -> Tensor", sign, complex: on_complex!(sgn)),
    aten!("aten::sigmoid(Tensor self) -> Tensor", float!(sigmoid), complex: on_complex!(sigmoid)),
    aten!("aten::sign(Tensor self) -> Tensor", sign),
    aten!("aten::signbit(Tensor self) -> Tensor", signbit),
    aten!("aten::sin(Tensor self) -> Tensor", float!(sin), complex: on_complex!(sin)),
    aten!("aten::sinc(Tensor self) -> Tensor", sinc, complex: sinc_complex),
    aten!("aten::sinh(Tensor self) -> Tensor", |cx: &Cx, x: Value| -> Lowered { Ok(sinh_of(cx, cx.to_float(x))) }, complex: on_complex!(sinh)),
    aten!("aten::special_erf(Tensor self) -> Tensor", float!(erf)),
    aten!("aten::special_exp2(Tensor self) -> Tensor", exp2, complex: exp2_complex),
    aten!("aten::special_expit(Tensor self) -> Tensor", float!(sigmoid), complex: on_complex!(sigmoid)),
    aten!("aten::special_expm1(Tensor self) -> Tensor", expm1, complex: on_complex!(expm1)),
    aten!("aten::special_log1p(Tensor self) -> Tensor", log1p, complex: log1p_complex),
    aten!("aten::special_logit(Tensor self, float? eps=None) -> Tensor", logit),
    aten!("aten::special_round(Tensor self, *, int decimals=0) -> Tensor", round),
    aten!("aten::special_sinc(Tensor self) -> Tensor", sinc, complex: sinc_complex),
    aten!("aten::sqrt(Tensor self) -> Tensor", float!(sqrt), complex: on_complex!(sqrt)),
    aten!("aten::square(Tensor self) -> Tensor", |cx: &Cx, x: Value| pow(cx, x.into(), Scalar::Int(2).into()), complex: square_complex),
    aten!("aten::tan(Tensor self) -> Tensor", |cx: &Cx, x: Value| -> Lowered { Ok(tan_of(cx, cx.to_float(x))) }, complex: on_complex!(tan)),
    aten!("aten::tanh(Tensor self) -> Tensor", float!(tanh), complex: on_complex!(tanh)),
    aten!("aten::trunc(Tensor self) -> Tensor", |cx: &Cx, x: Value| { of_floats(cx, x, trunc_of) }),
];

fn same(_: &Cx, x: Value) -> Lowered {
    Ok(x)
}

fn abs(cx: &Cx, x: Value) -> Lowered {
    Ok(match cx.dtype(x) {
        dtype if dtype.is_unsigned() || dtype == DType::Bool => x,
        _ => cx.abs(x),
    })
}

/// The length of the pairs.
fn abs_complex(cx: &Cx, pairs: Value) -> Lowered {
    let last = cx.rank(pairs).saturating_sub(1);
    Ok(cx.reduce(Reduction::L2, pairs, &[last], false))
}

/// ONNX negates no unsigned integers; they wrap.
fn neg(cx: &Cx, x: Value) -> Lowered {
    Ok(match cx.dtype(x).is_unsigned() {
        true => cx.sub(0, x),
        false => cx.neg(x),
    })
}

fn sign(cx: &Cx, x: Value) -> Lowered {
    Ok(match cx.dtype(x) {
        DType::Bool => x,
        _ => cx.sign(x),
    })
}

fn signbit(cx: &Cx, x: Value) -> Lowered {
    Ok(signbit_of(cx, x))
}

/// Whether the sign is negative, that of zeros, too, which their reciprocal shows. (The sign of NaN counts as positive.)
pub(super) fn signbit_of(cx: &Cx, x: Value) -> Value {
    match cx.dtype(x) {
        DType::Bool => cx.full(&cx.shape(x), false, DType::Bool),
        dtype if dtype.is_int() => cx.less(x, 0),
        _ => {
            let shown = cx.select(cx.equal(x, 0.0), cx.reciprocal(x), x);
            cx.less(shown, 0.0)
        }
    }
}

/// Of integers nothing is left to round.
fn of_floats(cx: &Cx, x: Value, f: fn(&Cx, Value) -> Value) -> Lowered {
    Ok(if cx.dtype(x).is_float() { f(cx, x) } else { x })
}

/// Towards zero.
pub(super) fn trunc_of(cx: &Cx, x: Value) -> Value {
    match cx.dtype(x).is_float() {
        true => cx.mul(cx.floor(cx.abs(x)), cx.sign(x)),
        false => x,
    }
}

/// What `trunc` takes away.
fn frac(cx: &Cx, x: Value) -> Lowered {
    let one = cx.scalar(1, cx.dtype(x));
    Ok(cx.mod_(x, one, attrs::Mod { fmod: true }))
}

/// To even, of that many decimals.
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

fn square_complex(cx: &Cx, x: Complex) -> Lowered {
    Ok(cx.pairs(math::mul(cx, x, x)))
}

fn rsqrt(cx: &Cx, x: Value) -> Lowered {
    Ok(wide(cx, x, |x| cx.reciprocal(cx.sqrt(x))))
}

fn rsqrt_complex(cx: &Cx, x: Complex) -> Lowered {
    Ok(cx.pairs(math::reciprocal(cx, math::sqrt(cx, x))))
}

fn exp2(cx: &Cx, x: Value) -> Lowered {
    let x = cx.to_float(x);
    Ok(cx.pow(2, x))
}

fn exp2_complex(cx: &Cx, x: Complex) -> Lowered {
    Ok(cx.pairs(math::exp(cx, math::scale(cx, x, LN_2))))
}

fn expm1(cx: &Cx, x: Value) -> Lowered {
    Ok(wide(cx, x, |x| expm1_of(cx, x)))
}

/// `tanh(x / 2) (e^x + 1)`: nothing cancels.
pub(super) fn expm1_of(cx: &Cx, x: Value) -> Value {
    cx.mul(cx.tanh(cx.mul(x, 0.5)), cx.add(cx.exp(x), 1))
}

fn log_to_base(cx: &Cx, x: Value, log_of_base: f64) -> Lowered {
    Ok(wide(cx, x, |x| cx.div(cx.log(x), log_of_base)))
}

fn log_to_base_complex(cx: &Cx, x: Complex, log_of_base: f64) -> Lowered {
    Ok(cx.pairs(math::scale(cx, math::log(cx, x), 1.0 / log_of_base)))
}

fn log1p(cx: &Cx, x: Value) -> Lowered {
    Ok(log1p_of(cx, x))
}

/// `log(1 + x)`, of float32 and narrower in float64, `x` itself nearest zero. Of float64 the rounding of `u = 1 + x` is made good by `x / (u - 1)`
/// (W. Kahan) near zero.
pub(super) fn log1p_of(cx: &Cx, x: Value) -> Value {
    if cx.dtype(x) != DType::F64 {
        let x = cx.to_float(x);
        let log = double(cx, x, |x| cx.log(cx.add(x, 1)));
        return cx.select(cx.less(cx.abs(x), 1e-8), x, log);
    }
    let u = cx.add(x, 1);
    let log = cx.log(u);
    let rounded = cx.sub(u, 1);
    let exact = cx.or(cx.equal(rounded, 0.0), cx.greater(x, 1.0));
    let better = cx.mul(log, cx.div(x, rounded));
    let plain = cx.select(cx.equal(rounded, 0.0), x, log);
    cx.select(exact, plain, better)
}

fn log1p_complex(cx: &Cx, x: Complex) -> Lowered {
    Ok(cx.pairs(math::log(cx, math::shift(cx, x, 1))))
}

/// `sin(pi x) / (pi x)`, and 1 at 0.
fn sinc(cx: &Cx, x: Value) -> Lowered {
    Ok(wide(cx, x, |x| {
        let angle = cx.mul(x, PI);
        let quotient = cx.div(cx.sin(angle), angle);
        cx.select(cx.equal(x, 0.0), 1.0, quotient)
    }))
}

fn sinc_complex(cx: &Cx, x: Complex) -> Lowered {
    let angle = math::scale(cx, x, PI);
    let quotient = math::div(cx, math::sin(cx, angle), angle);
    let zero = cx.and(cx.equal(x.re, 0.0), cx.equal(x.im, 0.0));
    Ok(cx.pairs(Complex {
        re: cx.select(zero, 1.0, quotient.re),
        im: cx.select(zero, 0.0, quotient.im),
    }))
}

/// `Tan`; of float64, for which runtimes lack it, `sin / cos`.
pub(super) fn tan_of(cx: &Cx, x: Value) -> Value {
    match cx.dtype(x) {
        DType::F64 => cx.div(cx.sin(x), cx.cos(x)),
        _ => cx.tan(x),
    }
}

/// `Cosh`; of float64, for which runtimes lack it, `(e^x + e^-x) / 2`.
pub(super) fn cosh_of(cx: &Cx, x: Value) -> Value {
    match cx.dtype(x) {
        DType::F64 => {
            let power = cx.exp(x);
            cx.mul(cx.add(power, cx.reciprocal(power)), 0.5)
        }
        _ => cx.cosh(x),
    }
}

/// `Sinh`; of float64, for which runtimes lack it, `tanh cosh`.
pub(super) fn sinh_of(cx: &Cx, x: Value) -> Value {
    match cx.dtype(x) {
        DType::F64 => cx.mul(cx.tanh(x), cosh_of(cx, x)),
        _ => cx.sinh(x),
    }
}

fn scaled(cx: &Cx, x: Value, factor: f64) -> Lowered {
    Ok(cx.mul(cx.to_float(x), factor))
}

/// `log(x / (1 - x))`, of an `x` held between `eps` and `1 - eps`; where these cross, `eps` counts below it.
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

/// Numbers instead of NaN and infinities; those not given are 0 and the largest finite ones.
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

/// 0, or pi of negative numbers.
fn angle(cx: &Cx, x: Value) -> Lowered {
    let float = cx.to_float(x);
    let dtype = cx.dtype(float);
    if cx.dtype(x) == DType::Bool || cx.dtype(x).is_unsigned() {
        return Ok(cx.full(&cx.shape(x), 0, dtype));
    }
    let angle = cx.select(cx.less(x, 0), PI, cx.scalar(0, dtype));
    Ok(match cx.dtype(x).is_float() {
        true => cx.select(cx.is_nan(x), x, angle),
        false => angle,
    })
}

fn angle_complex(cx: &Cx, x: Complex) -> Lowered {
    Ok(atan2(cx, x.im, x.re))
}
