//! The types in which formulas of several operators are computed.
//!
//! float16 and bfloat16 are computed in float32, as in PyTorch, and in float64 where digits would
//! cancel.

use crate::{Cx, Lowered, TensorOrScalar};
use pt2onnx_ir::Value;
use pt2onnx_tensor::{DType, Scalar};

/// The float type that PyTorch's CPU kernels compute `dtype` in (`at::opmath_type`).
pub fn compute_type(cx: &Cx, dtype: DType) -> DType {
    let float = cx.float_type(dtype);
    if float.bits() < 32 { DType::F32 } else { float }
}

/// float32 for float16 and bfloat16. All other types stay, also integers.
pub fn widened(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::BF16 => DType::F32,
        other => other,
    }
}

/// `f(x)`, computed in float32 if `x` is narrower. Integers become floats first.
pub fn wide(cx: &Cx, x: Value, f: impl FnOnce(Value) -> Value) -> Value {
    let dtype = cx.float_type(cx.dtype(x));
    let computed = f(cx.cast(x, compute_type(cx, dtype)));
    cx.cast(computed, dtype)
}

/// `f(x)`, computed in float64; the result has the float type of `x`.
pub fn double(cx: &Cx, x: Value, f: impl FnOnce(Value) -> Value) -> Value {
    let dtype = cx.float_type(cx.dtype(x));
    let computed = f(cx.cast(x, DType::F64));
    cx.cast(computed, dtype)
}

/// The lowering `wide(f)`, for the row of an op.
pub const fn in_wide(f: fn(&Cx, Value) -> Value) -> impl Fn(&Cx, Value) -> Lowered + Copy {
    move |cx, x| Ok(wide(cx, x, |x| f(cx, x)))
}

/// The lowering `double(f)`, for the row of an op.
pub const fn in_double(f: fn(&Cx, Value) -> Value) -> impl Fn(&Cx, Value) -> Lowered + Copy {
    move |cx, x| Ok(double(cx, x, |x| f(cx, x)))
}

/// `f(a, b)` in the float type that both promote to, computed in float32 if that is narrower.
pub fn wide2(
    cx: &Cx,
    a: TensorOrScalar,
    b: TensorOrScalar,
    f: impl FnOnce(Value, Value) -> Value,
) -> Lowered {
    let dtype = cx.float_type(cx.result_type(&[a.clone(), b.clone()]));
    let wide = compute_type(cx, dtype);
    let computed = f(cx.as_tensor(&a, wide), cx.as_tensor(&b, wide));
    Ok(cx.cast(computed, dtype))
}

/// The lowering `wide2(f)`, for the row of an op.
pub const fn in_wide2(
    f: fn(&Cx, Value, Value) -> Value,
) -> impl Fn(&Cx, TensorOrScalar, TensorOrScalar) -> Lowered + Copy {
    move |cx, a, b| wide2(cx, a, b, |a, b| f(cx, a, b))
}

/// `f(a, b)` in the float type that both promote to, computed in float64.
pub fn double2(
    cx: &Cx,
    a: TensorOrScalar,
    b: TensorOrScalar,
    f: impl FnOnce(Value, Value) -> Value,
) -> Lowered {
    let dtype = cx.float_type(cx.result_type(&[a.clone(), b.clone()]));
    let computed = f(cx.as_tensor(&a, DType::F64), cx.as_tensor(&b, DType::F64));
    Ok(cx.cast(computed, dtype))
}

/// The largest finite number of a float type.
pub fn largest(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => f64::MAX,
        DType::F16 => 65504.0,
        DType::BF16 => f32::from_bits(0x7f7f_0000).into(),
        _ => f32::MAX.into(),
    }
}

/// The distance from 1 to the next number of a float type.
pub fn epsilon(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => f64::EPSILON,
        DType::F16 => 2f64.powi(-10),
        DType::BF16 => 2f64.powi(-7),
        _ => f32::EPSILON.into(),
    }
}

/// The smallest positive (subnormal) number of a float type.
pub fn smallest(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => 5e-324,
        DType::F16 => 2f64.powi(-24),
        DType::BF16 => 2f64.powi(-133),
        _ => f32::from_bits(1).into(),
    }
}

/// `bound` clamped to the range of an integer type.
pub fn in_range(bound: Scalar, dtype: DType) -> Scalar {
    let width = dtype.bits() as u32;
    match dtype.is_int() && width < 64 {
        true if dtype.is_unsigned() => Scalar::Int(bound.to_i64().clamp(0, (1 << width) - 1)),
        true => {
            let half = 1i64 << (width - 1);
            Scalar::Int(bound.to_i64().clamp(-half, half - 1))
        }
        false => bound,
    }
}
