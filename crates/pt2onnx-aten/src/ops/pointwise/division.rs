//! Quotients and remainders, element by element, with PyTorch's type promotion.

use crate::math::division::{floored, floored_integers, truncated};
use crate::meta;
use crate::{AtenOp, Complex, Cx, LowerError, Lowered, TensorOrScalar, checks, op};
use pt2onnx_ir::{Value, attrs};
use pt2onnx_tensor::DType;
use std::ops::RangeInclusive;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::div_Scalar, div, complex = div_complex, meta = meta::promoted_to_float),
    op!(aten::div_Scalar_mode, div_mode),
    op!(aten::div_Tensor, div, complex = div_complex, meta = meta::promoted_to_float),
    op!(aten::div_Tensor_mode, div_mode),
    op!(aten::divide_Scalar, div, complex = div_complex, meta = meta::promoted_to_float),
    op!(aten::divide_Scalar_mode, div_mode),
    op!(aten::divide_Tensor, div, complex = div_complex, meta = meta::promoted_to_float),
    op!(aten::divide_Tensor_mode, div_mode),
    op!(aten::floor_divide, floor_divide),
    op!(aten::floor_divide_Scalar, floor_divide),
    op!(aten::fmod_Scalar, fmod),
    op!(aten::fmod_Tensor, fmod),
    op!(aten::remainder_Scalar, remainder),
    op!(aten::remainder_Scalar_Tensor, remainder),
    op!(aten::remainder_Tensor, remainder),
    op!(aten::true_divide_Scalar, div, complex = div_complex, meta = meta::promoted_to_float),
    op!(aten::true_divide_Tensor, div, complex = div_complex, meta = meta::promoted_to_float),
];

fn div_complex(cx: &Cx, a: Complex, b: Complex) -> Lowered {
    let (a, b) = Complex::promote(cx, a, b)?;
    Ok(match b.im {
        Some(_) => cx.pairs(a.div(cx, b)),
        None => a.by_real(cx, b.re, |x, y| cx.div(x, y)),
    })
}

/// `a / b`. Integers become floats first.
fn div(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let (a, b) = cx.promote_to_float(a, b);
    Ok(cx.div(a, b))
}

fn div_mode(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar, mode: Option<String>) -> Lowered {
    match mode.as_deref() {
        None => div(cx, a, b),
        Some("floor") => floor_divide(cx, a, b),
        Some("trunc") => {
            let dtype = cx.result_type(&[a.clone(), b.clone()]);
            if dtype.is_float() {
                return Ok(truncated(cx, &a, &b, dtype));
            }
            let (a, b) = cx.promote(a, b);
            Ok(cx.div(a, b))
        }
        Some(other) => Err(LowerError::unknown("rounding mode", other)),
    }
}

/// `floor(a / b)`.
fn floor_divide(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let dtype = cx.result_type(&[a.clone(), b.clone()]);
    if dtype.is_float() {
        return Ok(floored(cx, &a, &b, dtype));
    }
    if dtype.is_unsigned() || dtype == DType::Bool {
        let (a, b) = cx.promote(a, b);
        return Ok(cx.div(a, b));
    }
    Ok(floored_integers(cx, a, b))
}

/// `a - b trunc(a / b)`, with the sign of `a`.
fn fmod(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let (a, b) = cx.promote(a, b);
    Ok(match cx.dtype(a) {
        // ONNX Runtime's `Mod` computes in float64 here.
        DType::I64 => cx.sub(a, cx.mul(cx.div(a, b), b)),
        _ => cx.mod_(a, b, attrs::Mod { fmod: true }),
    })
}

/// `a - b floor(a / b)`, with the sign of `b`. ONNX has it for integers only; for floats it is
/// `fmod(a, b)`, plus `b` where the signs differ.
fn remainder(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let sign = match &b {
        TensorOrScalar::Scalar(s) => Some(s.to_f64()),
        _ => None,
    };
    let (a, b) = cx.promote(a, b);
    if !cx.dtype(a).is_float() {
        return Ok(cx.mod_(a, b, attrs::Mod::default()));
    }
    if let Some(power) = sign.filter(|b| POWERS.contains(b) && b.log2().fract() == 0.0) {
        return Ok(rest_of_power(cx, a, power));
    }
    let rest = cx.mod_(a, b, attrs::Mod { fmod: true });
    let other_sign = match sign {
        Some(b) if b > 0.0 => cx.less(rest, 0.0),
        Some(b) if b < 0.0 => cx.greater(rest, 0.0),
        _ => cx.less(cx.mul(cx.sign(rest), b), 0.0),
    };
    Ok(cx.select(other_sign, cx.add(rest, b), rest))
}

/// The powers of two whose reciprocal all types have.
const POWERS: RangeInclusive<f64> = 1.0..=16384.0;

/// `a - b floor(a / b)` for a power of two, with the sign of `a` where it is 0: only the last step
/// rounds, and a third of the time of `Mod`. Whole numbers have exact quotients, small ones not.
fn rest_of_power(cx: &Cx, a: Value, b: f64) -> Value {
    let whole = cx.floor(a);
    let whole = match b {
        1.0 => whole,
        _ => cx.mul(cx.floor(cx.mul(whole, 1.0 / b)), b),
    };
    let rest = cx.sub(a, whole);
    cx.select(cx.cast(rest, DType::Bool), rest, cx.mul(a, 0.0))
}

checks! {
    // The quotient of a power of two is exact.
    "aten.remainder.Scalar(x: f32[s0], 8) -> f32[s0]" => "
    val_0 = Floor (x)
    val_1 = Mul (val_0, 0.125)
    val_2 = Floor (val_1)
    val_3 = Mul (val_2, 8.0)
    val_4 = Sub (x, val_3)
    val_5 = Cast <to: int = 9> (val_4)
    val_6 = Mul (x, 0.0)
    remainder = Where (val_5, val_4, val_6)
    ";
    "aten.remainder.Scalar(x: f32[s0], 1.0) -> f32[s0]" => "
    val_0 = Floor (x)
    val_1 = Sub (x, val_0)
    val_2 = Cast <to: int = 9> (val_1)
    val_3 = Mul (x, 0.0)
    remainder = Where (val_2, val_1, val_3)
    ";
    "aten.remainder.Scalar(x: f32[s0], 6.25) -> f32[s0]" => "
    val_0 = Mod <fmod: int = 1> (x, 6.25)
    val_1 = Less (val_0, 0.0)
    val_2 = Add (val_0, 6.25)
    remainder = Where (val_1, val_2, val_0)
    ";

    // Integers become floats of the recorded type.
    "aten.div.Tensor(x: i64[3], y: i64[3]) -> f64[3]" => "
    val_0 = Cast <to: int = 11> (x)
    val_1 = Cast <to: int = 11> (y)
    div = Div (val_0, val_1)
    ";

    // Quotients are floored exactly.
    "aten.floor_divide(x: f32[s0], y: f32[s0]) -> f32[s0]" => "
    val_0 = Cast <to: int = 11> (y)
    val_1 = Clip (val_0, double {-1e300}, double {1e300})
    val_2 = Cast <to: int = 11> (x)
    val_3 = Div (val_2, val_1)
    val_4 = Floor (val_3)
    val_5 = Cast <to: int = 1> (val_4)
    val_6 = IsInf (x)
    val_7 = Cast <to: int = 9> (y)
    val_8 = And (val_6, val_7)
    floor_divide = Where (val_8, NaN, val_5)
    ";
    "aten.floor_divide(x: i32[s0], y: i64[]) -> i32[s0]" => "
    val_0 = Cast <to: int = 6> (y)
    val_1 = Div (x, val_0)
    val_2 = Mul (val_1, val_0)
    val_3 = Sub (x, val_2)
    val_4 = Mod (x, val_0)
    val_5 = Sub (val_4, val_3)
    val_6 = Div (val_5, val_0)
    floor_divide = Sub (val_1, val_6)
    ";

    // A divisor that is one number is not rounded to halves.
    "aten.floor_divide.Scalar(x: f16[s0], 0.1) -> f16[s0]" => "
    val_0 = Cast <to: int = 1> (x)
    val_1 = Cast <to: int = 11> (0.1)
    val_2 = Cast <to: int = 11> (val_0)
    val_3 = Div (val_2, val_1)
    val_4 = Floor (val_3)
    val_5 = Cast <to: int = 1> (val_4)
    val_6 = IsInf (val_0)
    val_7 = Where (val_6, NaN, val_5)
    floor_divide = Cast <to: int = 10> (val_7)
    ";
    "aten.div.Scalar_mode(x: bf16[s0], 0.1, rounding_mode = 'trunc') -> bf16[s0]" => "
    val_0 = Cast <to: int = 1> (x)
    val_1 = Div (val_0, 0.1)
    val_2 = Abs (val_1)
    val_3 = Floor (val_2)
    val_4 = Clip (val_1, -1.0, 1.0)
    val_5 = Mul (val_3, val_4)
    div = Cast <to: int = 16> (val_5)
    ";

    // Floats are divided in PyTorch's steps.
    "aten.floor_divide(x: f64[s0], y: f64[s0]) -> f64[s0]" => "
    val_0 = Mod <fmod: int = 1> (x, y)
    val_1 = Sub (x, val_0)
    val_2 = Div (val_1, y)
    val_3 = Sign (val_0)
    val_4 = Mul (val_3, y)
    val_5 = Less (val_4, double {0.0})
    val_6 = Cast <to: int = 11> (val_5)
    val_7 = Equal (y, double {0.0})
    val_8 = Sub (val_2, val_6)
    val_9 = Floor (val_8)
    val_10 = Sub (val_8, val_9)
    val_11 = Greater (val_10, double {0.5})
    val_12 = Cast <to: int = 11> (val_11)
    val_13 = Add (val_9, val_12)
    val_14 = Div (x, y)
    val_15 = Cast <to: int = 9> (val_8)
    val_16 = Mul (val_14, double {0.0})
    val_17 = Where (val_15, val_13, val_16)
    floor_divide = Where (val_7, val_14, val_17)
    ";
    "aten.floor_divide(x: f64[s0], y: f64[s0]) -> f64[s0]", assume_finite => "
    val_0 = Mod <fmod: int = 1> (x, y)
    val_1 = Sub (x, val_0)
    val_2 = Div (val_1, y)
    val_3 = Sign (val_0)
    val_4 = Mul (val_3, y)
    val_5 = Less (val_4, double {0.0})
    val_6 = Cast <to: int = 11> (val_5)
    val_7 = Equal (y, double {0.0})
    val_8 = Div (x, y)
    val_9 = Round (val_2)
    val_10 = Sub (val_9, val_6)
    floor_divide = Where (val_7, val_8, val_10)
    ";
    "aten.floor_divide.Scalar(x: f32[s0], 2) -> f32[s0]" => "
    val_0 = Div (x, 2.0)
    val_1 = Floor (val_0)
    val_2 = IsInf (x)
    floor_divide = Where (val_2, NaN, val_1)
    ";
    "aten.floor_divide.Scalar(x: f32[s0], 2) -> f32[s0]", assume_finite => "
    val_0 = Div (x, 2.0)
    floor_divide = Floor (val_0)
    ";
}
