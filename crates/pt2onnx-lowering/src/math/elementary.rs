//! Elementary functions of real numbers: signs, powers, logarithms, trigonometry, polynomials.

use crate::math::control::{any, repeat};
use crate::math::precision::double;
use crate::{Cx, LowerError, Lowered, TensorOrScalar};
use pt2onnx_ir::{Value, attrs};
use pt2onnx_tensor::DType;

/// `of_bools(a, b)` of bools, `of_numbers(a, b)` of other types, after promotion.
pub fn bools_or_numbers(
    cx: &Cx,
    a: impl Into<TensorOrScalar>,
    b: impl Into<TensorOrScalar>,
    of_bools: impl FnOnce(Value, Value) -> Value,
    of_numbers: impl FnOnce(Value, Value) -> Value,
) -> Value {
    let (a, b) = cx.promote(a, b);
    if cx.dtype(a) == DType::Bool { of_bools(a, b) } else { of_numbers(a, b) }
}

/// Whether the sign bit is set. The sign of a zero shows in its reciprocal; the sign of NaN counts
/// as positive.
pub fn signbit_of(cx: &Cx, x: Value) -> Value {
    match cx.dtype(x) {
        DType::Bool => cx.full(&cx.shape(x), false, DType::Bool),
        dtype if dtype.is_int() => cx.less(x, 0),
        _ => {
            let shown = cx.select(cx.equal(x, 0.0), cx.reciprocal(x), x);
            cx.less(shown, 0.0)
        }
    }
}

/// `length`, which is not negative, with the sign of `sign`, also of a zero.
pub fn copysign_of(cx: &Cx, length: Value, sign: Value) -> Value {
    let one = cx.scalar(1, cx.dtype(length));
    cx.mul(length, cx.select(signbit_of(cx, sign), -1, one))
}

/// `x` rounded towards zero: the whole part of `|x|`, times `x` itself where that is below 1, and
/// else its sign. So a zero has the sign of `x`.
pub fn trunc_of(cx: &Cx, x: Value) -> Value {
    if cx.dtype(x).is_float() {
        cx.mul(cx.floor(cx.abs(x)), cx.clamp(x, Some((-1).into()), Some(1.into())))
    } else {
        x
    }
}

/// `e^x - 1`, computed as `tanh(x / 2) (e^x + 1)`, which loses no digits near 0.
pub fn expm1_of(cx: &Cx, x: Value) -> Value {
    cx.mul(cx.tanh(cx.mul(x, 0.5)), cx.add(cx.exp(x), 1))
}

/// `log x`. If `x` is `sigmoid(y)`, it is `-log(1 + e^-y)`: what runtimes compute for small results
/// of `Sigmoid` has few right digits, and ONNX Runtime has 0 below -18.
pub fn log_of(cx: &Cx, x: Value) -> Value {
    match cx.argument_of("Sigmoid", x) {
        Some(y) => cx.neg(cx.log(cx.add(cx.exp(cx.neg(y)), 1))),
        None => cx.log(x),
    }
}

/// The sigmoid `x` by its formula in float32, as PyTorch computes it, rounded to the type of `x`;
/// `None` if `x` is not a sigmoid, or float64. It may have been cast to float32. `Sigmoid` of
/// runtimes may have another last digit, which is the first of `1 - x` near 1.
pub fn exact_sigmoid(cx: &Cx, x: Value) -> Option<Value> {
    let x = cx.argument_of("Cast", x).filter(|_| cx.dtype(x) == DType::F32).unwrap_or(x);
    let logit = cx.argument_of("Sigmoid", x).filter(|_| cx.dtype(x) != DType::F64)?;
    let power = cx.exp(cx.neg(cx.cast(logit, DType::F32)));
    let sigmoid = cx.reciprocal(cx.add(power, 1));
    Some(cx.cast(cx.cast(sigmoid, cx.dtype(x)), DType::F32))
}

/// `log(1 + x)`. Floats narrower than float64 are computed in float64, and are `x` itself below
/// 1e-8. In float64, `log(u) x / (u - 1)` with `u = 1 + x` corrects the rounding of `u` (W. Kahan).
pub fn log1p_of(cx: &Cx, x: Value) -> Value {
    if cx.dtype(x) != DType::F64 {
        let x = cx.to_float(x);
        let sigmoid = cx.argument_of("Neg", x).and_then(|opposite| exact_sigmoid(cx, opposite));
        let dtype = cx.dtype(x);
        let x = sigmoid.map_or(x, |sigmoid| cx.neg(sigmoid));
        let log = double(cx, x, |x| cx.log(cx.add(x, 1)));
        return cx.cast(cx.select(cx.greater_or_equal(cx.abs(x), 1e-8), log, x), dtype);
    }
    let u = cx.add(x, 1);
    let log = cx.log(u);
    let rounded = cx.sub(u, 1);
    let better = cx.mul(log, cx.div(x, rounded));
    let small = cx.select(cx.less_or_equal(x, 1.0), better, log);
    cx.select(cx.cast(rounded, DType::Bool), small, x)
}

/// `tan x`. Runtimes have no float64 `Tan`: there it is `sin x / cos x`.
pub fn tan_of(cx: &Cx, x: Value) -> Value {
    match cx.dtype(x) {
        DType::F64 => cx.div(cx.sin(x), cx.cos(x)),
        _ => cx.tan(x),
    }
}

/// `cosh x`. Runtimes have no float64 `Cosh`: there it is `(e^x + e^-x) / 2`.
pub fn cosh_of(cx: &Cx, x: Value) -> Value {
    match cx.dtype(x) {
        DType::F64 => {
            let power = cx.exp(x);
            cx.mul(cx.add(power, cx.reciprocal(power)), 0.5)
        }
        _ => cx.cosh(x),
    }
}

/// `sinh x`. Runtimes have no float64 `Sinh`: there it is `tanh x cosh x`.
pub fn sinh_of(cx: &Cx, x: Value) -> Value {
    match cx.dtype(x) {
        DType::F64 => cx.mul(cx.tanh(x), cosh_of(cx, x)),
        _ => cx.sinh(x),
    }
}

/// `a^b` in the type that both promote to. ONNX Runtime computes integer powers in float64, so
/// known integer exponents become products, which are exact.
pub fn pow(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let dtype = cx.result_type(&[a.clone(), b.clone()]);
    power(cx, &a, &b, dtype)
}

/// `a^b` in the type `dtype`; see [`pow`].
pub fn power(cx: &Cx, a: &TensorOrScalar, b: &TensorOrScalar, dtype: DType) -> Lowered {
    let base = cx.as_tensor(a, dtype);
    let TensorOrScalar::Scalar(exponent) = b else {
        let exponent = cx.as_tensor(b, dtype);
        return Ok(match a {
            _ if dtype.is_float() => cx.pow(base, exponent),
            TensorOrScalar::Scalar(a) if a.to_i64() % 2 == 0 && a.to_i64() != 0 => {
                power_of_even(cx, a.to_i64(), exponent)
            }
            _ => integer_power(cx, base, exponent),
        });
    };
    let number = exponent.to_f64();
    if dtype.is_float() {
        // PyTorch computes the power itself in float16, which differs from the root for -inf and
        // -0.
        let plain = dtype == DType::F16 && cx.propagates_nan(base);
        return Ok(match number {
            0.5 | -0.5 if plain => cx.pow(base, *exponent),
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
            Err(LowerError::unsupported("integers cannot be raised to negative integer powers"))
        }
    }
}

/// `base^n` by repeated squaring. `n` is at least 1.
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

/// `base^exponent` of integers, by repeated squaring in a loop over the exponent's bits. It is
/// exact and wraps on overflow, as in PyTorch; ONNX does not define overflow, and ONNX Runtime
/// computes in float64. With a negative exponent, 1 and -1 stay integers, and all other bases give
/// 0.
fn integer_power(cx: &Cx, base: Value, exponent: Value) -> Value {
    let dtype = cx.dtype(base);
    let shape = cx.broadcast_shapes(&cx.shape(base), &cx.shape(exponent));
    let base = if dtype.is_unsigned() {
        base
    } else {
        let unit = cx.equal(cx.abs(base), 1);
        let vanishes = cx.and(cx.less(exponent, 0), cx.not(unit));
        cx.select(vanishes, 0, base)
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

/// `base^exponent` for an even base other than 0, from a table: beyond 63 factors of 2, nothing is
/// left of 64 bits. Negative exponents give 0, too, which is the table's last element.
fn power_of_even(cx: &Cx, base: i64, exponent: Value) -> Value {
    const LAST: i64 = 64;
    let powers: Vec<i64> =
        std::iter::successors(Some(1i64), |p| Some(p.wrapping_mul(base))).take(65).collect();
    let table = cx.cast(cx.ints(&powers), cx.dtype(exponent));
    let exponent = cx.cast(exponent, DType::I64);
    cx.gather(table, cx.minimum(cx.maximum(exponent, -1), LAST), 0)
}

/// `sqrt(a^2 + b^2)` in the type of `a`, without overflow on the way; see [`length`].
pub fn hypot(cx: &Cx, a: Value, b: Value) -> Value {
    cx.cast(length(cx, a, b), cx.dtype(a))
}

/// `sqrt(a^2 + b^2)` in float64, where the squares of narrower floats neither overflow nor
/// underflow. Operands of float64 are first divided by the larger of `|a|` and `|b|`, unless that
/// is 0 or infinite.
pub fn length(cx: &Cx, a: Value, b: Value) -> Value {
    let square = |v| {
        let wide = cx.cast(v, DType::F64);
        cx.mul(wide, wide)
    };
    let root = |a, b| cx.sqrt(cx.add(square(a), square(b)));
    if cx.dtype(a) != DType::F64 {
        return root(a, b);
    }
    let largest = cx.maximum(cx.abs(a), cx.abs(b));
    let usable = cx.and(cx.greater(largest, 0.0), cx.less(largest, f64::INFINITY));
    let scale = cx.select(usable, largest, 1.0);
    cx.mul(root(cx.div(a, scale), cx.div(b, scale)), scale)
}

/// `x + weight * (end - x)`, which is `aten.lerp`. A large weight counts from `end`, as in PyTorch,
/// which matters if the difference is infinite.
pub fn between(cx: &Cx, [x, end, weight]: [Value; 3]) -> Value {
    let difference = cx.sub(end, x);
    if !cx.propagates_nan(x) {
        return cx.add(x, cx.mul(weight, difference));
    }
    let small = cx.less(cx.abs(weight), 0.5);
    let factor = cx.select(small, weight, cx.sub(weight, 1));
    cx.add(cx.select(small, x, end), cx.mul(factor, difference))
}

/// The polynomial with these coefficients, highest power first, by Horner's scheme.
pub fn polynomial(cx: &Cx, x: Value, coefficients: &[f64]) -> Value {
    let Some((&first, rest)) = coefficients.split_first() else {
        return cx.scalar(0, cx.dtype(x));
    };
    let start = cx.scalar(first, cx.dtype(x));
    rest.iter().fold(start, |sum, &c| cx.add(cx.mul(sum, x), c))
}

/// The quotient of two polynomials, `numerator(x) / denominator(x)`.
pub fn rational(cx: &Cx, x: Value, numerator: &[f64], denominator: &[f64]) -> Value {
    cx.div(polynomial(cx, x, numerator), polynomial(cx, x, denominator))
}
