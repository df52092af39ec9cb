//! Ops on the representation of floats: sign, exponent, neighbours. By arithmetic, since ONNX got `BitCast` late.

use crate::math::elementary::signbit_of;
use crate::math::precision::{epsilon, largest, smallest};
use crate::{AtenOp, Complex, Cx, LowerError, Lowered, TensorOrScalar, op::op};
use pt2onnx_ir::Value;
use pt2onnx_tensor::DType;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::copysign_Scalar, copysign),
    op!(aten::copysign_Tensor, copysign),
    op!(aten::frexp_Tensor, frexp),
    op!(aten::ldexp_Tensor, ldexp, complex = ldexp_complex),
    op!(aten::nextafter, nextafter),
];

/// `|a|` of `b`'s sign.
fn copysign(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let negative = match &b {
        TensorOrScalar::Scalar(s) => Some(s.to_f64().is_sign_negative()),
        _ => None,
    };
    let (a, b) = cx.promote(a, b);
    let length = cx.abs(cx.to_float(a));
    Ok(match negative {
        Some(false) => length,
        Some(true) => cx.neg(length),
        None => cx.select(signbit_of(cx, b), cx.neg(length), length),
    })
}

/// The neighbour of `a` towards `b`. Five eighths of `epsilon |a|` (and at least the smallest number) are more than half the
/// way to the neighbour and less than half the way on to the next, on both sides of powers of two: the sum rounds to it.
fn nextafter(cx: &Cx, a: Value, b: Value) -> Lowered {
    let (a, b) = cx.promote(a, b);
    let dtype = cx.dtype(a);
    let wide = |v| cx.cast(v, crate::math::precision::compute_type(cx, dtype));
    let (x, y) = (wide(a), wide(b));
    let way = cx.mul(cx.abs(x), epsilon(dtype) * 0.625);
    let way = cx.maximum(way, cx.scalar(smallest(dtype), cx.dtype(x)));
    let max = largest(dtype);
    let (below, above) = (cx.sub(x, way), cx.add(x, way));
    // From infinity the way is not a number.
    let below = cx.select(cx.equal(x, f64::INFINITY), max, below);
    let above = cx.select(cx.equal(x, f64::NEG_INFINITY), -max, above);
    // Equal ones stay, NaN is passed on.
    let stay = cx.maximum(x, y);
    let next = cx.select(cx.greater(x, y), below, stay);
    Ok(cx.cast(cx.select(cx.less(x, y), above, next), dtype))
}

/// `x 2^n`.
fn ldexp(cx: &Cx, x: Value, n: Value) -> Lowered {
    let power = power_of_two(cx, n);
    let (x, power) = cx.promote(x, power);
    Ok(cx.mul(x, power))
}

fn ldexp_complex(cx: &Cx, x: Complex, n: Complex) -> Lowered {
    let dtype = cx.out_dtype()?;
    let power = n.cast(cx, dtype).scale(cx, std::f64::consts::LN_2).exp(cx);
    Ok(cx.pairs(x.cast(cx, dtype).mul(cx, power)))
}

fn power_of_two(cx: &Cx, n: Value) -> Value {
    cx.pow(2, cx.to_float(n))
}

/// `x = mantissa 2^exponent` with `1/2 <= |mantissa| < 1`. The exponent is first taken from the logarithm, which may be wrong
/// by one, and set right by the mantissa. In float64, where all narrower floats have normal exponents; of float64 itself
/// subnormal numbers are not told apart from 0.
fn frexp(cx: &Cx, x: Value) -> Lowered<[Value; 2]> {
    let dtype = cx.dtype(x);
    if !dtype.is_float() {
        return Err(LowerError::unsupported("frexp takes floats only"));
    }
    let wide = cx.cast(x, DType::F64);
    let length = cx.abs(wide);
    // 0, infinities and NaN are their own mantissas.
    let regular = cx.and(cx.greater(length, f64::MIN_POSITIVE), cx.less(length, f64::INFINITY));
    let length = cx.select(regular, length, 0.5);
    let estimate = cx.floor(cx.div(cx.log(length), std::f64::consts::LN_2));
    // 2^(e + 1) may be infinite: half the number is divided by 2^e.
    let mantissa = cx.div(cx.mul(length, 0.5), cx.pow(2, estimate));
    let (small, large) = (cx.less(mantissa, 0.5), cx.greater_or_equal(mantissa, 1.0));
    let mantissa = cx.select(small, cx.mul(mantissa, 2), mantissa);
    let mantissa = cx.select(large, cx.mul(mantissa, 0.5), mantissa);
    let mantissa = cx.mul(mantissa, cx.sign(wide));
    let as_int = |v| cx.cast(v, DType::I32);
    let exponent = cx.add(as_int(estimate), cx.sub(cx.add(as_int(large), 1), as_int(small)));
    Ok([cx.cast(cx.select(regular, mantissa, wide), dtype), cx.select(regular, exponent, 0)])
}
