//! Quotients and remainders, element by element, with PyTorch's type promotion.

use crate::math::division::{floored, floored_integers, truncated};
use crate::meta;
use crate::{AtenOp, Complex, Cx, LowerError, Lowered, TensorOrScalar, checks, op};
use pt2onnx_ir::attrs;
use pt2onnx_tensor::DType;

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
    let rest = cx.mod_(a, b, attrs::Mod { fmod: true });
    let other_sign = match sign {
        Some(b) if b > 0.0 => cx.less(rest, 0.0),
        Some(b) if b < 0.0 => cx.greater(rest, 0.0),
        _ => cx.less(cx.mul(cx.sign(rest), b), 0.0),
    };
    Ok(cx.select(other_sign, cx.add(rest, b), rest))
}

checks! {
    integers_become_floats_of_the_recorded_type {
        "aten.div.Tensor(x: i64[3], y: i64[3]) -> f64[3]" => "
        (int64[3] x, int64[3] y) => (double[3] div)
        {
          val_0 = Cast <to: int = 11> (x)
          val_1 = Cast <to: int = 11> (y)
          div = Div (val_0, val_1)
        }
        ";
    }

    quotients_are_floored_exactly {
        "aten.floor_divide(x: f32[s0], y: f32[s0]) -> f32[s0]" => "
        (float[s0] x, float[s0] y) => (float[s0] floor_divide)
        <
          double val_0 = {-1e300},
          double val_1 = {1e300},
          float val_2 = {NaN}
        >
        {
          val_3 = Cast <to: int = 11> (y)
          val_4 = Clip (val_3, val_0, val_1)
          val_5 = Cast <to: int = 11> (x)
          val_6 = Div (val_5, val_4)
          val_7 = Floor (val_6)
          val_8 = Cast <to: int = 1> (val_7)
          val_9 = IsInf (x)
          val_10 = Cast <to: int = 9> (y)
          val_11 = And (val_9, val_10)
          floor_divide = Where (val_11, val_2, val_8)
        }
        ";
        "aten.floor_divide(x: i32[s0], y: i64[]) -> i32[s0]" => "
        (int32[s0] x, int64 y) => (int32[s0] floor_divide)
        {
          val_0 = Cast <to: int = 6> (y)
          val_1 = Div (x, val_0)
          val_2 = Mul (val_1, val_0)
          val_3 = Sub (x, val_2)
          val_4 = Mod (x, val_0)
          val_5 = Sub (val_4, val_3)
          val_6 = Div (val_5, val_0)
          floor_divide = Sub (val_1, val_6)
        }
        ";
    }

    a_divisor_that_is_one_number_is_not_rounded_to_halves {
        "aten.floor_divide.Scalar(x: f16[s0], 0.1) -> f16[s0]" => "
        (float16[s0] x) => (float16[s0] floor_divide)
        <
          float val_0 = {0.1},
          float val_1 = {NaN}
        >
        {
          val_2 = Cast <to: int = 1> (x)
          val_3 = Cast <to: int = 11> (val_0)
          val_4 = Cast <to: int = 11> (val_2)
          val_5 = Div (val_4, val_3)
          val_6 = Floor (val_5)
          val_7 = Cast <to: int = 1> (val_6)
          val_8 = IsInf (val_2)
          val_9 = Where (val_8, val_1, val_7)
          floor_divide = Cast <to: int = 10> (val_9)
        }
        ";
        "aten.div.Scalar_mode(x: bf16[s0], 0.1, rounding_mode = 'trunc') -> bf16[s0]" => "
        (bfloat16[s0] x) => (bfloat16[s0] div)
        <
          float val_0 = {0.1},
          float val_1 = {-1.0},
          float val_2 = {1.0}
        >
        {
          val_3 = Cast <to: int = 1> (x)
          val_4 = Div (val_3, val_0)
          val_5 = Abs (val_4)
          val_6 = Floor (val_5)
          val_7 = Clip (val_4, val_1, val_2)
          val_8 = Mul (val_6, val_7)
          div = Cast <to: int = 16> (val_8)
        }
        ";
    }

    floats_are_divided_in_pytorchs_steps {
        "aten.floor_divide(x: f64[s0], y: f64[s0]) -> f64[s0]" => "
        (double[s0] x, double[s0] y) => (double[s0] floor_divide)
        <
          double val_0 = {0.0},
          double val_1 = {0.5}
        >
        {
          val_2 = Mod <fmod: int = 1> (x, y)
          val_3 = Sub (x, val_2)
          val_4 = Div (val_3, y)
          val_5 = Sign (val_2)
          val_6 = Mul (val_5, y)
          val_7 = Less (val_6, val_0)
          val_8 = Cast <to: int = 11> (val_7)
          val_9 = Equal (y, val_0)
          val_10 = Sub (val_4, val_8)
          val_11 = Floor (val_10)
          val_12 = Sub (val_10, val_11)
          val_13 = Greater (val_12, val_1)
          val_14 = Cast <to: int = 11> (val_13)
          val_15 = Add (val_11, val_14)
          val_16 = Div (x, y)
          val_17 = Cast <to: int = 9> (val_10)
          val_18 = Mul (val_16, val_0)
          val_19 = Where (val_17, val_15, val_18)
          floor_divide = Where (val_9, val_16, val_19)
        }
        ";
        "aten.floor_divide(x: f64[s0], y: f64[s0]) -> f64[s0]", assume_finite => "
        (double[s0] x, double[s0] y) => (double[s0] floor_divide)
        <
          double val_0 = {0.0}
        >
        {
          val_1 = Mod <fmod: int = 1> (x, y)
          val_2 = Sub (x, val_1)
          val_3 = Div (val_2, y)
          val_4 = Sign (val_1)
          val_5 = Mul (val_4, y)
          val_6 = Less (val_5, val_0)
          val_7 = Cast <to: int = 11> (val_6)
          val_8 = Equal (y, val_0)
          val_9 = Div (x, y)
          val_10 = Round (val_3)
          val_11 = Sub (val_10, val_7)
          floor_divide = Where (val_8, val_9, val_11)
        }
        ";
        "aten.floor_divide.Scalar(x: f32[s0], 2) -> f32[s0]" => "
        (float[s0] x) => (float[s0] floor_divide)
        <
          float val_0 = {2.0},
          float val_1 = {NaN}
        >
        {
          val_2 = Div (x, val_0)
          val_3 = Floor (val_2)
          val_4 = IsInf (x)
          floor_divide = Where (val_4, val_1, val_3)
        }
        ";
        "aten.floor_divide.Scalar(x: f32[s0], 2) -> f32[s0]", assume_finite => "
        (float[s0] x) => (float[s0] floor_divide)
        <
          float val_0 = {2.0}
        >
        {
          val_1 = Div (x, val_0)
          floor_divide = Floor (val_1)
        }
        ";
    }
}
