//! Arithmetic of two or more operands, element by element, with PyTorch's type promotion.

use crate::math::arcs::{atan2, log_add_exp};
use crate::math::elementary::{self, between, bools_or_numbers, pow, power};
use crate::math::precision::in_wide2;
use crate::meta::{self, typed};
use crate::{AtenOp, Complex, Cx, Lowered, Number, TensorOrScalar, checks, op};
use pt2onnx_ir::{Value, attrs};
use pt2onnx_tensor::promote_types;
use pt2onnx_tensor::{DType, Scalar};
use std::f64::consts::LN_2;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_add_relu_Scalar, add_relu),
    op!(aten::_add_relu_Tensor, add_relu),
    op!(aten::add_Scalar, add, complex = add_complex, meta = meta::promoted),
    op!(aten::add_Tensor, add, complex = add_complex, meta = meta::promoted),
    op!(aten::addcdiv, addcdiv, complex = addcdiv_complex, meta = meta_three),
    op!(aten::addcmul, addcmul, complex = addcmul_complex, meta = meta_three),
    op!(aten::arctan2, in_wide2(atan2)),
    op!(aten::atan2, in_wide2(atan2)),
    op!(aten::float_power_Scalar, float_power, complex = pow_complex, meta = meta_doubled),
    op!(
        aten::float_power_Tensor_Scalar,
        float_power,
        complex = pow_complex_scalar,
        meta = meta_doubled
    ),
    op!(aten::float_power_Tensor_Tensor, float_power, complex = pow_complex, meta = meta_doubled),
    op!(aten::heaviside, heaviside),
    op!(aten::hypot, in_wide2(hypot)),
    op!(aten::lerp_Scalar, lerp, complex = lerp_complex, meta = meta::promoted),
    op!(aten::lerp_Tensor, lerp, complex = lerp_complex, meta = meta_three),
    op!(
        aten::logaddexp,
        in_wide2(log_add_exp),
        complex = logaddexp_complex,
        meta = meta::promoted_to_float
    ),
    op!(aten::logaddexp2, in_wide2(logaddexp2)),
    op!(aten::mul_Scalar, mul, complex = mul_complex, meta = meta::promoted),
    op!(aten::mul_Tensor, mul, complex = mul_complex, meta = meta::promoted),
    op!(aten::multiply_Scalar, mul, complex = mul_complex, meta = meta::promoted),
    op!(aten::multiply_Tensor, mul, complex = mul_complex, meta = meta::promoted),
    op!(aten::pow_Scalar, pow, complex = pow_complex, meta = meta::promoted),
    op!(aten::pow_Tensor_Scalar, pow, complex = pow_complex_scalar, meta = meta::promoted),
    op!(aten::pow_Tensor_Tensor, pow, complex = pow_complex, meta = meta::promoted),
    op!(aten::rsub_Scalar, rsub, complex = rsub_complex, meta = meta::promoted),
    op!(aten::rsub_Tensor, rsub, complex = rsub_complex, meta = meta::promoted),
    op!(aten::sub_Scalar, sub, complex = sub_complex, meta = meta::promoted),
    op!(aten::sub_Tensor, sub, complex = sub_complex, meta = meta::promoted),
    op!(aten::subtract_Scalar, sub, complex = sub_complex, meta = meta::promoted),
    op!(aten::subtract_Tensor, sub, complex = sub_complex, meta = meta::promoted),
];

/// `a + alpha * b`: one sum of real/imaginary pairs if both operands came as pairs, otherwise part
/// by part.
fn add_complex(cx: &Cx, a: Complex, b: Complex, alpha: Number) -> Lowered {
    if let Some((a, b)) = scaled_pairs(cx, a, b, alpha)? {
        return Ok(cx.add(a, b));
    }
    let (a, b) = Complex::promote(cx, a, b)?;
    Ok(cx.pairs(a.add(cx, b.scale(cx, alpha))))
}

/// `a - alpha * b`, as [`add_complex`].
fn sub_complex(cx: &Cx, a: Complex, b: Complex, alpha: Number) -> Lowered {
    if let Some((a, b)) = scaled_pairs(cx, a, b, alpha)? {
        return Ok(cx.sub(a, b));
    }
    let (a, b) = Complex::promote(cx, a, b)?;
    Ok(cx.pairs(a.sub(cx, b.scale(cx, alpha))))
}

/// `b - alpha * a`.
fn rsub_complex(cx: &Cx, a: Complex, b: Complex, alpha: Number) -> Lowered {
    sub_complex(cx, b, a, alpha)
}

/// `a` and `alpha * b` as real/imaginary pairs, if both came as such and `alpha` is real.
fn scaled_pairs(cx: &Cx, a: Complex, b: Complex, alpha: Number) -> Lowered<Option<(Value, Value)>> {
    let pairs = a.given_pairs().zip(b.given_pairs());
    let Some((a, b)) = pairs.filter(|_| !alpha.is_complex()) else {
        return Ok(None);
    };
    let dtype = cx.out_dtype()?;
    Ok(Some((cx.cast(a, dtype), cx.mul(cx.cast(b, dtype), alpha))))
}

fn mul_complex(cx: &Cx, a: Complex, b: Complex) -> Lowered {
    let (a, b) = Complex::promote(cx, a, b)?;
    Ok(match (a.im, b.im) {
        (Some(_), Some(_)) => cx.pairs(a.mul(cx, b)),
        (Some(_), None) => a.by_real(cx, b.re, |x, y| cx.mul(x, y)),
        (None, _) => b.by_real(cx, a.re, |x, y| cx.mul(y, x)),
    })
}

/// `a^exponent`. Known powers are products, roots and reciprocals, which are more precise than
/// logarithms.
fn pow_complex_scalar(cx: &Cx, a: Complex, exponent: Scalar) -> Lowered {
    let dtype = cx.out_dtype()?;
    let a = a.cast(cx, dtype);
    let exponent = match exponent {
        Scalar::Complex(re, 0.0) => Scalar::Float(re),
        other => other,
    };
    let complex = matches!(exponent, Scalar::Complex(..));
    let power = match exponent.to_f64() {
        _ if complex => a.pow(cx, Complex::number(cx, exponent, dtype)),
        1.0 => a,
        2.0 => a.mul(cx, a),
        3.0 => a.mul(cx, a).mul(cx, a),
        0.5 => a.sqrt(cx),
        -1.0 => a.reciprocal(cx),
        _ => a.pow(cx, Complex::number(cx, exponent, dtype)),
    };
    Ok(cx.pairs(power))
}

fn pow_complex(cx: &Cx, a: Complex, b: Complex) -> Lowered {
    let (a, b) = Complex::promote(cx, a, b)?;
    Ok(cx.pairs(a.pow(cx, b)))
}

/// `a + alpha * b`; for bools, `a or (alpha and b)`.
fn add(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar, alpha: Number) -> Lowered {
    let (a, b) = cx.promote(a, b);
    match cx.dtype(a) {
        DType::Bool if alpha.known().is_some_and(Scalar::to_bool) => Ok(cx.or(a, b)),
        DType::Bool => Ok(cx.or(a, cx.and(b, alpha.tensor(cx, DType::Bool)))),
        _ => Ok(cx.add(a, cx.mul(b, alpha))),
    }
}

fn add_relu(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar, alpha: Number) -> Lowered {
    Ok(cx.relu(add(cx, a, b, alpha)?))
}

/// `a - alpha * b`.
fn sub(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar, alpha: Number) -> Lowered {
    let (a, b) = cx.promote(a, b);
    Ok(cx.sub(a, cx.mul(b, alpha)))
}

/// `b - alpha * a`.
fn rsub(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar, alpha: Number) -> Lowered {
    sub(cx, b, a, alpha)
}

/// `a * b`; for bools, `a and b`.
fn mul(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    Ok(bools_or_numbers(cx, a, b, |a, b| cx.and(a, b), |a, b| cx.mul(a, b)))
}

/// `a^b`, computed in float64.
fn float_power(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    power(cx, &a, &b, DType::F64)
}

/// `sqrt(a^2 + b^2)`. It is infinite if one operand is infinite and the other one NaN.
fn hypot(cx: &Cx, a: Value, b: Value) -> Value {
    let length = elementary::hypot(cx, a, b);
    if !cx.propagates_nan(a) {
        return length;
    }
    let infinite = |v| cx.is_inf(v, attrs::IsInf::default());
    cx.select(cx.or(infinite(a), infinite(b)), f64::INFINITY, length)
}

/// [`Complex::log_add_exp`] of promoted numbers.
fn logaddexp_complex(cx: &Cx, a: Complex, b: Complex) -> Lowered {
    let (a, b) = Complex::promote(cx, a, b)?;
    Ok(cx.pairs(a.log_add_exp(cx, b)))
}

fn logaddexp2(cx: &Cx, a: Value, b: Value) -> Value {
    let sum = log_add_exp(cx, cx.mul(a, LN_2), cx.mul(b, LN_2));
    cx.div(sum, LN_2)
}

/// `x + weight * (end - x)`, computed from the end that is nearer to the result.
fn lerp(cx: &Cx, x: Value, end: Value, weight: TensorOrScalar) -> Lowered {
    let weight = match weight {
        TensorOrScalar::Tensor(weight) => return Ok(between(cx, promote3(cx, x, end, weight))),
        known => known,
    };
    let difference = cx.sub(end, x);
    Ok(match weight {
        TensorOrScalar::Scalar(w) if w.to_f64().abs() < 0.5 => cx.add(x, cx.mul(difference, w)),
        TensorOrScalar::Scalar(w) => cx.sub(end, cx.mul(difference, 1.0 - w.to_f64())),
        weight => cx.add(x, cx.mul(cx.as_tensor(&weight, cx.dtype(x)), difference)),
    })
}

fn lerp_complex(cx: &Cx, x: Complex, end: Complex, weight: Complex) -> Lowered {
    let (x, end) = Complex::promote(cx, x, end)?;
    let (weight, _) = Complex::promote(cx, weight, x)?;
    Ok(cx.pairs(x.add(cx, weight.mul(cx, end.sub(cx, x)))))
}

fn promote3(cx: &Cx, x: Value, a: Value, b: Value) -> [Value; 3] {
    let dtype = cx.result_type(&[x.into(), a.into(), b.into()]);
    [x, a, b].map(|v| cx.cast(v, dtype))
}

/// `x + value * a * b`.
fn addcmul(cx: &Cx, x: Value, a: Value, b: Value, value: Number) -> Lowered {
    let [x, a, b] = promote3(cx, x, a, b);
    if cx.dtype(x) == DType::Bool {
        return Ok(cx.or(x, cx.and(a, b)));
    }
    Ok(cx.add(x, cx.mul(cx.mul(a, value), b)))
}

/// `x + value * a / b`.
fn addcdiv(cx: &Cx, x: Value, a: Value, b: Value, value: Number) -> Lowered {
    let [x, a, b] = promote3(cx, x, a, b);
    Ok(cx.add(x, cx.div(cx.mul(a, value), b)))
}

fn addcmul_complex(cx: &Cx, x: Complex, a: Complex, b: Complex, value: Number) -> Lowered {
    let (a, b) = Complex::promote(cx, a, b)?;
    let (x, a) = Complex::promote(cx, x, a.scale(cx, value))?;
    Ok(cx.pairs(x.add(cx, a.mul(cx, b))))
}

fn addcdiv_complex(cx: &Cx, x: Complex, a: Complex, b: Complex, value: Number) -> Lowered {
    let (a, b) = Complex::promote(cx, a, b)?;
    let (x, a) = Complex::promote(cx, x, a.scale(cx, value))?;
    Ok(cx.pairs(x.add(cx, a.div(cx, b))))
}

/// 0 for negative `x`, 1 for positive `x`, `values` where `x` is 0.
fn heaviside(cx: &Cx, x: Value, values: Value) -> Lowered {
    let dtype = cx.dtype(x);
    if dtype == DType::Bool {
        return Ok(cx.or(x, values));
    }
    let step = cx.cast(cx.greater(x, 0), dtype);
    Ok(cx.select(cx.cast(x, DType::Bool), step, cx.cast(values, dtype)))
}

fn meta_three(cx: &Cx, a: Value, b: Value, c: Value) -> Lowered {
    let operands = [a.into(), b.into(), c.into()];
    Ok(typed(cx, cx.result_type(&operands), &meta::operand_sizes(cx, &operands)))
}

/// float64 or its complex type.
fn meta_doubled(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let operands = [a, b];
    Ok(typed(
        cx,
        promote_types(cx.result_type(&operands), DType::F64),
        &meta::operand_sizes(cx, &operands),
    ))
}

checks! {
    // Complex numbers take zero times their other part.
    "aten.mul.Tensor(x: c64[3], y: f32[2, 3]) -> c64[2, 3]" => "
    val_0 = Gather <axis: int = 1> (x, 0)
    val_1 = Gather <axis: int = 1> (x, 1)
    val_2 = Unsqueeze (y, [2])
    val_3 = Mul (x, val_2)
    val_4 = Gather <axis: int = 1> (x, [1, 0])
    val_5 = Mul (val_4, [-0.0, 0.0])
    mul = Add (val_3, val_5)
    ";

    // Large weights count from the end.
    "aten.lerp.Tensor(x: i64[3], end: i64[3], weight: f16[]) -> f16[3]" => "
    val_0 = Cast <to: int = 10> (x)
    val_1 = Cast <to: int = 10> (end)
    val_2 = Sub (val_1, val_0)
    val_3 = Abs (weight)
    val_4 = Less (val_3, float16 {0.5})
    val_5 = Sub (weight, float16 {1.0})
    val_6 = Where (val_4, weight, val_5)
    val_7 = Where (val_4, val_0, val_1)
    val_8 = Mul (val_6, val_2)
    lerp = Add (val_7, val_8)
    ";
    "aten.lerp.Tensor(x: f32[3], end: f32[3], weight: f32[3]) -> f32[3]", assume_finite => "
    val_0 = Sub (end, x)
    val_1 = Mul (weight, val_0)
    lerp = Add (x, val_1)
    ";

    // Complex sums take unchanged pairs.
    "aten.sub.Tensor(x: c64[s0], y: c64[s0], alpha = 2) -> c64[s0]" => "
    val_0 = Gather <axis: int = 1> (x, 0)
    val_1 = Gather <axis: int = 1> (x, 1)
    val_2 = Gather <axis: int = 1> (y, 0)
    val_3 = Gather <axis: int = 1> (y, 1)
    val_4 = Mul (y, 2.0)
    sub = Sub (x, val_4)
    ";
    "aten.add.Tensor(x: f32[s0], y: c64[s0]) -> c64[s0]" => "
    val_0 = Gather <axis: int = 1> (y, 0)
    val_1 = Gather <axis: int = 1> (y, 1)
    val_2 = Add (x, val_0)
    val_3 = Unsqueeze (val_2, [1])
    val_4 = Unsqueeze (val_1, [1])
    add = Concat <axis: int = 1> (val_3, val_4)
    ";

    // A root of float16 is a power as in PyTorch for infinities.
    "aten.pow.Tensor_Scalar(x: f16[s0], 0.5) -> f16[s0]" => "pow = Pow (x, float16 {0.5})";
    "aten.pow.Tensor_Scalar(x: f32[s0], 0.5) -> f32[s0]" => "pow = Sqrt (x)";

    // Powers of a known even integer are read from a table.
    "aten.pow.Scalar(2, x: i32[s0]) -> i32[s0]" => "
    val_0 = Cast <to: int = 6> ([...])
    val_1 = Cast <to: int = 7> (x)
    val_2 = Max (val_1, -1)
    val_3 = Min (val_2, 64)
    pow = Gather <axis: int = 0> (val_0, val_3)
    ";

    // Known integer powers are products.
    "aten.pow.Tensor_Scalar(x: i64[s0], 5) -> i64[s0]" => "
    val_0 = Mul (x, x)
    val_1 = Mul (val_0, val_0)
    pow = Mul (val_1, x)
    ";

    // Lengths of infinities are infinite.
    "aten.hypot(x: f32[3], y: f32[3]) -> f32[3]" => "
    val_0 = Cast <to: int = 11> (x)
    val_1 = Mul (val_0, val_0)
    val_2 = Cast <to: int = 11> (y)
    val_3 = Mul (val_2, val_2)
    val_4 = Add (val_1, val_3)
    val_5 = Sqrt (val_4)
    val_6 = Cast <to: int = 1> (val_5)
    val_7 = IsInf (x)
    val_8 = IsInf (y)
    val_9 = Or (val_7, val_8)
    hypot = Where (val_9, inf, val_6)
    ";
}
