//! Arithmetic of two operands and more element by element, with PyTorch's type promotion.

use crate::math::complex_math as math;
use crate::math::control::{any, repeat};
use crate::math::precision::wide2;
use crate::math::precision::{compute_type, largest, smallest};
use crate::{AtenOp, Complex, Cx, LowerError, Lowered, TensorOrScalar, complex::Paired, op::op};
use pt2onnx_ir::{Value, attrs};
use pt2onnx_tensor::{DType, Scalar};
use std::f64::consts::{LN_2, PI};

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_add_relu_Scalar, add_relu),
    op!(aten::_add_relu_Tensor, add_relu),
    op!(aten::add_Scalar, add, complex = add_complex),
    op!(aten::add_Tensor, add, complex = add_complex),
    op!(aten::addcdiv, addcdiv, complex = addcdiv_complex),
    op!(aten::addcmul, addcmul, complex = addcmul_complex),
    op!(aten::arctan2, |cx: &Cx, a: TensorOrScalar, b: TensorOrScalar| on_floats(cx, a, b, atan2)),
    op!(aten::atan2, |cx: &Cx, a: TensorOrScalar, b: TensorOrScalar| on_floats(cx, a, b, atan2)),
    op!(aten::div_Scalar, div, complex = div_complex),
    op!(aten::div_Scalar_mode, div_mode),
    op!(aten::div_Tensor, div, complex = div_complex),
    op!(aten::div_Tensor_mode, div_mode),
    op!(aten::divide_Scalar, div, complex = div_complex),
    op!(aten::divide_Scalar_mode, div_mode),
    op!(aten::divide_Tensor, div, complex = div_complex),
    op!(aten::divide_Tensor_mode, div_mode),
    op!(aten::float_power_Scalar, float_power, complex = pow_complex),
    op!(aten::float_power_Tensor_Scalar, float_power, complex = pow_complex_scalar),
    op!(aten::float_power_Tensor_Tensor, float_power, complex = pow_complex),
    op!(aten::floor_divide, floor_divide),
    op!(aten::floor_divide_Scalar, floor_divide),
    op!(aten::fmod_Scalar, fmod),
    op!(aten::fmod_Tensor, fmod),
    op!(aten::heaviside, heaviside),
    op!(aten::hypot, |cx: &Cx, a: TensorOrScalar, b: TensorOrScalar| on_floats(cx, a, b, hypot)),
    op!(aten::lerp_Scalar, lerp, complex = lerp_complex),
    op!(aten::lerp_Tensor, lerp, complex = lerp_complex),
    op!(
        aten::logaddexp,
        |cx: &Cx, a: TensorOrScalar, b: TensorOrScalar| on_floats(cx, a, b, log_add_exp),
        complex = logaddexp_complex
    ),
    op!(aten::logaddexp2, logaddexp2),
    op!(aten::mul_Scalar, mul, complex = mul_complex),
    op!(aten::mul_Tensor, mul, complex = mul_complex),
    op!(aten::multiply_Scalar, mul, complex = mul_complex),
    op!(aten::multiply_Tensor, mul, complex = mul_complex),
    op!(aten::pow_Scalar, pow, complex = pow_complex),
    op!(aten::pow_Tensor_Scalar, pow, complex = pow_complex_scalar),
    op!(aten::pow_Tensor_Tensor, pow, complex = pow_complex),
    op!(aten::remainder_Scalar, remainder),
    op!(aten::remainder_Scalar_Tensor, remainder),
    op!(aten::remainder_Tensor, remainder),
    op!(aten::rsub_Scalar, rsub, complex = rsub_complex),
    op!(aten::rsub_Tensor, rsub, complex = rsub_complex),
    op!(aten::sub_Scalar, sub, complex = sub_complex),
    op!(aten::sub_Tensor, sub, complex = sub_complex),
    op!(aten::subtract_Scalar, sub, complex = sub_complex),
    op!(aten::subtract_Tensor, sub, complex = sub_complex),
    op!(aten::true_divide_Scalar, div, complex = div_complex),
    op!(aten::true_divide_Tensor, div, complex = div_complex),
];

/// Both in the type of the result, parts apart.
pub(crate) fn promote_complex(cx: &Cx, a: Complex, b: Complex) -> Lowered<(Complex, Complex)> {
    let dtype = cx.out_dtype()?;
    Ok((math::map(a, |v| cx.cast(v, dtype)), math::map(b, |v| cx.cast(v, dtype))))
}

fn add_complex(cx: &Cx, a: Paired, b: Paired, alpha: Scalar) -> Lowered {
    sum_complex(cx, a, b, alpha, |cx, a, b| cx.add(a, b))
}

fn sub_complex(cx: &Cx, a: Paired, b: Paired, alpha: Scalar) -> Lowered {
    sum_complex(cx, a, b, alpha, |cx, a, b| cx.sub(a, b))
}

fn rsub_complex(cx: &Cx, a: Paired, b: Paired, alpha: Scalar) -> Lowered {
    sub_complex(cx, b, a, alpha)
}

/// `f(a, alpha * b)` of each part, of both at once where that can be.
fn sum_complex(
    cx: &Cx,
    a: Paired,
    b: Paired,
    alpha: Scalar,
    f: fn(&Cx, Value, Value) -> Value,
) -> Lowered {
    if let (Some(a), Some(b), false) = (a.pairs, b.pairs, matches!(alpha, Scalar::Complex(..))) {
        let dtype = cx.out_dtype()?;
        let scaled = cx.mul(cx.cast(b, dtype), alpha);
        return Ok(f(cx, cx.cast(a, dtype), scaled));
    }
    let (a, b) = promote_complex(cx, a.parts, b.parts)?;
    let b = scaled(cx, b, alpha);
    Ok(cx.pairs(Complex { re: f(cx, a.re, b.re), im: f(cx, a.im, b.im) }))
}

/// `alpha * c`; `alpha` may be complex.
fn scaled(cx: &Cx, c: Complex, alpha: Scalar) -> Complex {
    match alpha {
        Scalar::Complex(re, im) => Complex {
            re: cx.sub(cx.mul(c.re, re), cx.mul(c.im, im)),
            im: cx.add(cx.mul(c.re, im), cx.mul(c.im, re)),
        },
        real => math::scale(cx, c, real),
    }
}

fn mul_complex(cx: &Cx, a: Complex, b: Complex) -> Lowered {
    let (a, b) = promote_complex(cx, a, b)?;
    Ok(cx.pairs(math::mul(cx, a, b)))
}

fn div_complex(cx: &Cx, a: Complex, b: Complex) -> Lowered {
    let (a, b) = promote_complex(cx, a, b)?;
    Ok(cx.pairs(math::div(cx, a, b)))
}

/// Squares, roots and reciprocals as such, which are more exact than by logarithms.
fn pow_complex_scalar(cx: &Cx, a: Complex, exponent: Scalar) -> Lowered {
    let dtype = cx.out_dtype()?;
    let a = math::map(a, |v| cx.cast(v, dtype));
    let (re, im) = match exponent {
        Scalar::Complex(re, im) => (re, im),
        real => (real.to_f64(), 0.0),
    };
    let power = match (re, im) {
        (1.0, 0.0) => a,
        (2.0, 0.0) => math::mul(cx, a, a),
        (3.0, 0.0) => math::mul(cx, math::mul(cx, a, a), a),
        (0.5, 0.0) => math::sqrt(cx, a),
        (-1.0, 0.0) => math::reciprocal(cx, a),
        _ => {
            let number = |x: f64| cx.scalar(x, dtype);
            let exponent = Complex { re: number(re), im: number(im) };
            math::pow(cx, a, exponent)
        }
    };
    Ok(cx.pairs(power))
}

fn pow_complex(cx: &Cx, a: Complex, b: Complex) -> Lowered {
    let (a, b) = promote_complex(cx, a, b)?;
    Ok(cx.pairs(math::pow(cx, a, b)))
}

/// `a + alpha * b`; of bools, the disjunction.
fn add(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar, alpha: Scalar) -> Lowered {
    let (a, b) = cx.promote(a, b);
    match cx.dtype(a) {
        DType::Bool if alpha.to_bool() => Ok(cx.or(a, b)),
        DType::Bool => Ok(cx.or(a, cx.and(b, cx.scalar(false, DType::Bool)))),
        _ => Ok(cx.add(a, cx.mul(b, alpha))),
    }
}

fn add_relu(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar, alpha: Scalar) -> Lowered {
    Ok(cx.relu(add(cx, a, b, alpha)?))
}

/// `a - alpha * b`.
fn sub(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar, alpha: Scalar) -> Lowered {
    let (a, b) = cx.promote(a, b);
    Ok(cx.sub(a, cx.mul(b, alpha)))
}

/// `b - alpha * a`.
fn rsub(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar, alpha: Scalar) -> Lowered {
    sub(cx, b, a, alpha)
}

/// `a * b`; of bools, the conjunction.
fn mul(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let (a, b) = cx.promote(a, b);
    Ok(if cx.dtype(a) == DType::Bool { cx.and(a, b) } else { cx.mul(a, b) })
}

/// True division: integers become floats first.
fn div(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let (a, b) = cx.promote(a, b);
    Ok(cx.div(cx.to_float(a), cx.to_float(b)))
}

fn div_mode(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar, mode: Option<String>) -> Lowered {
    match mode.as_deref() {
        None => div(cx, a, b),
        Some("floor") => floor_divide(cx, a, b),
        Some("trunc") => {
            let (a, b) = cx.promote(a, b);
            let dtype = cx.dtype(a);
            if !dtype.is_float() {
                return Ok(cx.div(a, b));
            }
            let wide = |v| cx.cast(v, compute_type(cx, dtype));
            let quotient = cx.div(wide(a), wide(b));
            Ok(cx.cast(crate::ops::pointwise::unary::trunc_of(cx, quotient), dtype))
        }
        Some(other) => Err(LowerError::unsupported(format!("there is no rounding mode {other}"))),
    }
}

/// `floor(a / b)`, of the exact quotient (of finite operands: PyTorch has NaN for infinite `a`). In float64 the quotient of two narrower floats does not round up to the next whole
/// number; of two float64 it may, so that there the remainder is taken off first.
fn floor_divide(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let whole_divisor = matches!(b, TensorOrScalar::Scalar(s) if s.to_f64().fract() == 0.0);
    let (a, b) = cx.promote(a, b);
    Ok(match cx.dtype(a) {
        dtype if dtype.is_unsigned() || dtype == DType::Bool => cx.div(a, b),
        // Takes the remainder off first: near the least number of 64 bits that would wrap.
        DType::I64 => cx.div(cx.sub(a, cx.mod_(a, b, attrs::Mod::default())), b),
        dtype if dtype.is_int() => {
            let truncated = cx.mod_(a, b, attrs::Mod { fmod: true });
            let exact = cx.equal(truncated, cx.mod_(a, b, attrs::Mod::default()));
            cx.sub(cx.div(a, b), cx.cast(cx.not(exact), dtype))
        }
        // A float times a whole number rounds to no other float's product.
        _ if whole_divisor => cx.floor(cx.div(a, b)),
        DType::F64 => {
            let rest = cx.mod_(a, b, attrs::Mod { fmod: true });
            let quotient = cx.round(cx.div(cx.sub(a, rest), b));
            let below = cx.less(cx.mul(cx.sign(rest), b), 0.0);
            let floor = cx.sub(quotient, cx.cast(below, DType::F64));
            cx.select(cx.equal(b, 0.0), cx.div(a, b), floor)
        }
        dtype => {
            let quotient = cx.div(cx.cast(a, DType::F64), cx.cast(b, DType::F64));
            cx.cast(cx.floor(quotient), dtype)
        }
    })
}

/// The remainder of the division that truncates: of `a`'s sign.
fn fmod(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let (a, b) = cx.promote(a, b);
    Ok(cx.mod_(a, b, attrs::Mod { fmod: true }))
}

/// The remainder of the division that floors: of `b`'s sign. ONNX has it for integers only; of floats it is `fmod`, plus `b`
/// where the signs differ.
fn remainder(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let sign = match &b {
        TensorOrScalar::Scalar(s) => Some(s.to_f64()),
        _ => None,
    };
    let (a, b) = cx.promote(a, b);
    if !cx.dtype(a).is_float() {
        return Ok(cx.mod_(a, b, attrs::Mod::default()));
    }
    let rest = cx.mod_(a, b, attrs::Mod { fmod: true });
    let other_sign = match sign {
        Some(b) if b > 0.0 => cx.less(rest, 0.0),
        Some(b) if b < 0.0 => cx.greater(rest, 0.0),
        _ => cx.less(cx.mul(cx.sign(rest), b), 0.0),
    };
    Ok(cx.select(other_sign, cx.add(rest, b), rest))
}

/// `a` to the power `b`, in their common type. ONNX Runtime computes integer powers through doubles: known ones stay exact as
/// products.
pub(crate) fn pow(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let dtype = cx.result_type(&[a.clone(), b.clone()]);
    power(cx, &a, &b, dtype)
}

fn power(cx: &Cx, a: &TensorOrScalar, b: &TensorOrScalar, dtype: DType) -> Lowered {
    let base = cx.as_tensor(a, dtype);
    let TensorOrScalar::Scalar(exponent) = b else {
        let exponent = cx.as_tensor(b, dtype);
        return Ok(match dtype.is_float() {
            true => cx.pow(base, exponent),
            false => integer_power(cx, base, exponent),
        });
    };
    let number = exponent.to_f64();
    if dtype.is_float() {
        return Ok(match number {
            1.0 => base,
            2.0 => cx.mul(base, base),
            0.5 => cx.sqrt(base),
            -1.0 => cx.reciprocal(base),
            -0.5 => cx.reciprocal(cx.sqrt(base)),
            _ => cx.pow(base, *exponent),
        });
    }
    match u32::try_from(exponent.to_i64()) {
        Ok(0) => Ok(cx.full(&cx.shape(base), 1, dtype)),
        Ok(n) => Ok(known_power(cx, base, n)),
        Err(_) => {
            Err(LowerError::unsupported("integers to negative integer powers are not integers"))
        }
    }
}

/// By squaring.
fn known_power(cx: &Cx, base: Value, n: u32) -> Value {
    match n {
        1 => base,
        _ => {
            let half = known_power(cx, base, n / 2);
            let square = cx.mul(half, half);
            if n % 2 == 1 { cx.mul(square, base) } else { square }
        }
    }
}

/// By squaring in a loop over the exponent's bits, exact and wrapping as in PyTorch: ONNX leaves overflow open, and ONNX
/// Runtime computes in doubles. Of negative exponents only 1 and -1 leave whole numbers, all others 0.
fn integer_power(cx: &Cx, base: Value, exponent: Value) -> Value {
    let dtype = cx.dtype(base);
    let shape = cx.broadcast_shapes(&cx.shape(base), &cx.shape(exponent));
    let base = match dtype.is_unsigned() {
        true => base,
        false => {
            let unit = cx.equal(cx.abs(base), 1);
            let vanishes = cx.and(cx.less(exponent, 0), cx.not(unit));
            cx.select(vanishes, 0, base)
        }
    };
    let start =
        [cx.full(&shape, 1, dtype), cx.expand(base, &shape), cx.expand(cx.abs(exponent), &shape)];
    let last = repeat(cx, None, &start, |_, carried| {
        let two = cx.scalar(2, dtype);
        let odd = cx.cast(cx.mod_(carried[2], two, attrs::Mod::default()), DType::Bool);
        let rest = cx.div(carried[2], two);
        let power = cx.select(odd, cx.mul(carried[0], carried[1]), carried[0]);
        let square = cx.mul(carried[1], carried[1]);
        let go_on = any(cx, cx.cast(rest, DType::Bool));
        (Some(go_on), vec![power, square, rest])
    });
    last[0]
}

/// Like `pow`, in float64.
fn float_power(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    power(cx, &a, &b, DType::F64)
}

/// `sqrt(a^2 + b^2)`; of float32 and narrower in float64, where squares neither overflow nor vanish.
pub(crate) fn hypot(cx: &Cx, a: Value, b: Value) -> Value {
    let dtype = cx.dtype(a);
    let square = |v| {
        let wide = cx.cast(v, DType::F64);
        cx.mul(wide, wide)
    };
    cx.cast(cx.sqrt(cx.add(square(a), square(b))), dtype)
}

/// The angle of `(x, y)`: `atan(y / x)`, to which `pi` of `y`'s sign is added where `x` is negative. There `atan(y / x)` has
/// the other sign, zeros included, which its reciprocal shows. Of zeros, whose signs count, tiny numbers stand instead, of
/// infinities the largest ones.
pub(crate) fn atan2(cx: &Cx, y: Value, x: Value) -> Value {
    let dtype = cx.dtype(x);
    let between = |v, bound: f64| cx.clamp(v, Some((-bound).into()), Some(bound.into()));
    let tiny = between(cx.reciprocal(x), smallest(dtype));
    let x = between(cx.select(cx.equal(x, 0.0), tiny, x), largest(dtype));
    let angle = cx.atan(cx.div(between(y, largest(dtype)), x));
    let upper = cx.less(cx.reciprocal(angle), 0.0);
    let turn = cx.select(upper, PI, cx.scalar(-PI, dtype));
    cx.select(cx.less(x, 0.0), cx.add(angle, turn), angle)
}

/// The larger plus the softplus of minus the distance; equal infinities are at distance 0.
fn log_add_exp(cx: &Cx, a: Value, b: Value) -> Value {
    let distance = cx.select(cx.equal(a, b), 0.0, cx.abs(cx.sub(a, b)));
    cx.add(cx.maximum(a, b), cx.softplus(cx.neg(distance)))
}

/// `log(1 + exp(b - a)) + a`, `a` the one of the larger real part.
fn logaddexp_complex(cx: &Cx, a: Complex, b: Complex) -> Lowered {
    let (a, b) = promote_complex(cx, a, b)?;
    let ordered = cx.greater_or_equal(a.re, b.re);
    let choose = |a: Complex, b: Complex| Complex {
        re: cx.select(ordered, a.re, b.re),
        im: cx.select(ordered, a.im, b.im),
    };
    let (large, small) = (choose(a, b), choose(b, a));
    let power = math::exp(cx, math::sub(cx, small, large));
    let sum = math::log(cx, math::shift(cx, power, 1));
    Ok(cx.pairs(math::add(cx, sum, large)))
}

fn logaddexp2(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    wide2(cx, a, b, |a, b| {
        let sum = log_add_exp(cx, cx.mul(a, LN_2), cx.mul(b, LN_2));
        cx.div(sum, LN_2)
    })
}

/// `x + weight * (end - x)`, from the nearer end.
fn lerp(cx: &Cx, x: Value, end: Value, weight: TensorOrScalar) -> Lowered {
    let dtype = cx.dtype(x);
    let difference = cx.sub(end, x);
    Ok(match weight {
        TensorOrScalar::Scalar(w) if w.to_f64() < 0.5 => cx.add(x, cx.mul(difference, w)),
        TensorOrScalar::Scalar(w) => cx.sub(end, cx.mul(difference, 1.0 - w.to_f64())),
        weight => cx.add(x, cx.mul(cx.as_tensor(&weight, dtype), difference)),
    })
}

fn lerp_complex(cx: &Cx, x: Complex, end: Complex, weight: Complex) -> Lowered {
    let (x, end) = promote_complex(cx, x, end)?;
    let (weight, _) = promote_complex(cx, weight, x)?;
    let part = math::mul(cx, weight, math::sub(cx, end, x));
    Ok(cx.pairs(math::add(cx, x, part)))
}

fn promote3(cx: &Cx, x: Value, a: Value, b: Value) -> [Value; 3] {
    let dtype = cx.result_type(&[x.into(), a.into(), b.into()]);
    [x, a, b].map(|v| cx.cast(v, dtype))
}

/// `x + value * a * b`.
fn addcmul(cx: &Cx, x: Value, a: Value, b: Value, value: Scalar) -> Lowered {
    let [x, a, b] = promote3(cx, x, a, b);
    if cx.dtype(x) == DType::Bool {
        return Ok(cx.or(x, cx.and(a, b)));
    }
    Ok(cx.add(x, cx.mul(cx.mul(a, value), b)))
}

/// `x + value * a / b`.
fn addcdiv(cx: &Cx, x: Value, a: Value, b: Value, value: Scalar) -> Lowered {
    let [x, a, b] = promote3(cx, x, a, b);
    Ok(cx.add(x, cx.div(cx.mul(a, value), b)))
}

fn addcmul_complex(cx: &Cx, x: Complex, a: Complex, b: Complex, value: Scalar) -> Lowered {
    let (a, b) = promote_complex(cx, a, b)?;
    let (x, a) = promote_complex(cx, x, scaled(cx, a, value))?;
    Ok(cx.pairs(math::add(cx, x, math::mul(cx, a, b))))
}

fn addcdiv_complex(cx: &Cx, x: Complex, a: Complex, b: Complex, value: Scalar) -> Lowered {
    let (a, b) = promote_complex(cx, a, b)?;
    let (x, a) = promote_complex(cx, x, scaled(cx, a, value))?;
    Ok(cx.pairs(math::add(cx, x, math::div(cx, a, b))))
}

/// 0 below 0, 1 above, `values` at it.
fn heaviside(cx: &Cx, x: Value, values: Value) -> Lowered {
    let dtype = cx.dtype(x);
    if dtype == DType::Bool {
        return Ok(cx.or(x, values));
    }
    let step = cx.cast(cx.greater(x, 0), dtype);
    Ok(cx.select(cx.equal(x, 0), cx.cast(values, dtype), step))
}

fn on_floats(
    cx: &Cx,
    a: TensorOrScalar,
    b: TensorOrScalar,
    f: fn(&Cx, Value, Value) -> Value,
) -> Lowered {
    wide2(cx, a, b, |a, b| f(cx, a, b))
}
