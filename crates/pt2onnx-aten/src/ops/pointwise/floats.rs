//! Ops on the representation of floats: sign, exponent, neighbours. They are computed by
//! arithmetic, since few runtimes have `BitCast`.

use crate::math::elementary::copysign_of;
use crate::math::precision::{epsilon, largest, smallest};
use crate::meta;
use crate::{AtenOp, Complex, Cx, LowerError, Lowered, TensorOrScalar, checks, op};
use pt2onnx_ir::Value;
use pt2onnx_tensor::{DType, Scalar};

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::copysign_Scalar, copysign),
    op!(aten::copysign_Tensor, copysign),
    op!(aten::frexp_Tensor, frexp),
    op!(aten::ldexp_Tensor, ldexp, complex = ldexp_complex, meta = meta::promoted_to_float),
    op!(aten::nextafter, nextafter),
];

/// `|a|` with the sign of `b`.
fn copysign(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let negative = match &b {
        TensorOrScalar::Scalar(s) => Some(s.to_f64().is_sign_negative()),
        _ => None,
    };
    let (a, b) = cx.promote_to_float(a, b);
    let length = cx.abs(a);
    Ok(match negative {
        Some(false) => length,
        Some(true) => cx.neg(length),
        None => copysign_of(cx, length, b),
    })
}

/// The next float after `a` towards `b`. It is `a` plus or minus 5/8 of `epsilon |a|` (or the
/// smallest number, if that is larger): more than half the distance to the next float, and less
/// than half the distance from there to the one after, also next to powers of two. So the sum
/// rounds to the next float.
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

/// `x * 2^n`. For a float `x`, an integer `n` counts as int32, and no power of 2 overflows or
/// vanishes where the result does not: the powers are float64, and those of a float64 `x` three
/// factors. Otherwise, it is a product with the power in the float type.
fn ldexp(cx: &Cx, x: Value, n: Value) -> Lowered {
    if !cx.dtype(n).is_int() || !cx.dtype(x).is_float() {
        // PyTorch records float32 for a narrower power without dimensions, whose type the result
        // has.
        let (x, power) = cx.promote(x, cx.pow(2, cx.to_float(n)));
        return Ok(cx.cast(cx.mul(x, power), cx.out_dtype()?));
    }
    let wide = cx.cast(x, DType::F64);
    let within = |n, most: f64| {
        let n = cx.cast(cx.cast(n, DType::I32), DType::F64);
        cx.clamp(n, Some(Scalar::Float(-most)), Some(Scalar::Float(most)))
    };
    if cx.dtype(x) != DType::F64 {
        let product = cx.mul(wide, cx.pow(2, within(n, 300.0)));
        return Ok(cx.cast(product, cx.dtype(x)));
    }
    let n = within(n, 2200.0);
    let third = cx.floor(cx.div(n, 3));
    let power = cx.pow(2, third);
    let rest = cx.pow(2, cx.sub(n, cx.mul(third, 2)));
    Ok(cx.mul(cx.mul(cx.mul(wide, power), power), rest))
}

fn ldexp_complex(cx: &Cx, x: Complex, n: Complex) -> Lowered {
    let dtype = cx.out_dtype()?;
    let power = n.cast(cx, dtype).scale(cx, std::f64::consts::LN_2).exp(cx);
    Ok(cx.pairs(x.cast(cx, dtype).mul(cx, power)))
}

/// `x = mantissa * 2^exponent` with `1/2 <= |mantissa| < 1`. The logarithm gives the exponent,
/// which may be wrong by one; the mantissa shows it and corrects it. All is computed in float64,
/// where narrower floats are normal numbers. Subnormal numbers of float64 itself count as 0.
fn frexp(cx: &Cx, x: Value) -> Lowered<[Value; 2]> {
    let dtype = cx.dtype(x);
    if !dtype.is_float() {
        return Err(LowerError::unsupported("frexp supports floats only"));
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

checks! {
    // Powers of two do not overflow before the product.
    "aten.ldexp.Tensor(x: f16[3], n: i64[3]) -> f16[3]" => "
    val_0 = Cast <to: int = 11> (x)
    val_1 = Cast <to: int = 6> (n)
    val_2 = Cast <to: int = 11> (val_1)
    val_3 = Clip (val_2, double {-300.0}, double {300.0})
    val_4 = Pow (double {2.0}, val_3)
    val_5 = Mul (val_0, val_4)
    ldexp = Cast <to: int = 10> (val_5)
    ";

    // A narrow power without dimensions has the recorded type.
    "aten.ldexp.Tensor(x: i64[3], n: bf16[]) -> f32[3]" => "
    val_0 = Pow (bfloat16 {2.0}, n)
    val_1 = Cast <to: int = 16> (x)
    val_2 = Mul (val_1, val_0)
    ldexp = Cast <to: int = 1> (val_2)
    ";

    // The sign of zero counts.
    "aten.copysign.Scalar(x: f32[s0], -0.0) -> f32[s0]" => "
    val_0 = Abs (x)
    copysign = Neg (val_0)
    ";
    "aten.copysign.Tensor(x: f32[s0], y: f32[s0]) -> f32[s0]" => "
    val_0 = Abs (x)
    val_1 = Equal (y, 0.0)
    val_2 = Reciprocal (y)
    val_3 = Where (val_1, val_2, y)
    val_4 = Less (val_3, 0.0)
    val_5 = Where (val_4, -1.0, 1.0)
    copysign = Mul (val_0, val_5)
    ";
}
