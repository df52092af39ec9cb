//! Comparisons, choices by a condition, minima and maxima of two operands.

use crate::math::elementary::bools_or_numbers;
use crate::math::precision::in_range;
use crate::{AtenOp, Complex, Cx, LowerError, Lowered, TensorOrScalar, checks, op};
use pt2onnx_ir::{Value, attrs};
use pt2onnx_tensor::{DType, Scalar};

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::clamp, clamp),
    op!(aten::clamp_Tensor, clamp),
    op!(aten::clamp_max, clamp_max),
    op!(aten::clamp_max_Tensor, clamp_max),
    op!(aten::clamp_min, clamp),
    op!(aten::clamp_min_Tensor, clamp),
    op!(aten::clip, clamp),
    op!(aten::clip_Tensor, clamp),
    op!(aten::eq_Scalar, equal, complex = equal_complex),
    op!(aten::eq_Tensor, equal, complex = equal_complex),
    op!(aten::fmax, fmax),
    op!(aten::fmin, fmin),
    op!(aten::ge_Scalar, greater_or_equal),
    op!(aten::ge_Tensor, greater_or_equal),
    op!(aten::greater_Scalar, greater),
    op!(aten::greater_Tensor, greater),
    op!(aten::greater_equal_Scalar, greater_or_equal),
    op!(aten::greater_equal_Tensor, greater_or_equal),
    op!(aten::gt_Scalar, greater),
    op!(aten::gt_Tensor, greater),
    op!(aten::isclose, isclose),
    op!(aten::isfinite, isfinite),
    op!(aten::isinf, isinf),
    op!(aten::isnan, isnan),
    op!(aten::isneginf, is_one_infinity, positive = false),
    op!(aten::isposinf, is_one_infinity, positive = true),
    op!(aten::isreal, isreal),
    op!(aten::le_Scalar, less_or_equal),
    op!(aten::le_Tensor, less_or_equal),
    op!(aten::less_Scalar, less),
    op!(aten::less_Tensor, less),
    op!(aten::less_equal_Scalar, less_or_equal),
    op!(aten::less_equal_Tensor, less_or_equal),
    op!(aten::lt_Scalar, less),
    op!(aten::lt_Tensor, less),
    op!(aten::masked_fill_Scalar, masked_fill, parts),
    op!(aten::masked_fill_Tensor, masked_fill, parts),
    op!(aten::max_other, maximum),
    op!(aten::maximum, maximum),
    op!(aten::min_other, minimum),
    op!(aten::minimum, minimum),
    op!(aten::ne_Scalar, not_equal, complex = not_equal_complex),
    op!(aten::ne_Tensor, not_equal, complex = not_equal_complex),
    op!(aten::not_equal_Scalar, not_equal, complex = not_equal_complex),
    op!(aten::not_equal_Tensor, not_equal, complex = not_equal_complex),
    op!(aten::where_Scalar, choose, parts),
    op!(aten::where_ScalarOther, choose, parts),
    op!(aten::where_ScalarSelf, choose, parts),
    op!(aten::where_self, choose, parts),
];

fn equal(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let (a, b) = cx.promote(a, b);
    Ok(cx.equal(a, b))
}

fn not_equal(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    Ok(cx.not(equal(cx, a, b)?))
}

fn equal_complex(cx: &Cx, a: Complex, b: Complex) -> Lowered {
    let (a, b) = promote_complex(cx, a, b);
    Ok(equal_numbers(cx, a, b))
}

/// Both as the type that PyTorch computes in.
fn promote_complex(cx: &Cx, a: Complex, b: Complex) -> (Complex, Complex) {
    let dtype = cx.result_type(&[a.re.into(), b.re.into()]);
    (a.cast(cx, dtype), b.cast(cx, dtype))
}

fn equal_numbers(cx: &Cx, a: Complex, b: Complex) -> Value {
    let equal = cx.equal(a.re, b.re);
    match a.im.or(b.im) {
        None => equal,
        Some(_) => cx.and(equal, cx.equal(a.imag(cx), b.imag(cx))),
    }
}

fn not_equal_complex(cx: &Cx, a: Complex, b: Complex) -> Lowered {
    Ok(cx.not(equal_complex(cx, a, b)?))
}

fn less(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    Ok(bools_or_numbers(cx, a, b, |a, b| cx.and(cx.not(a), b), |a, b| cx.less(a, b)))
}

fn less_or_equal(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    Ok(bools_or_numbers(cx, a, b, |a, b| cx.or(cx.not(a), b), |a, b| cx.less_or_equal(a, b)))
}

fn greater(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    Ok(bools_or_numbers(cx, a, b, |a, b| cx.and(a, cx.not(b)), |a, b| cx.greater(a, b)))
}

fn greater_or_equal(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    Ok(bools_or_numbers(cx, a, b, |a, b| cx.or(a, cx.not(b)), |a, b| cx.greater_or_equal(a, b)))
}

/// `x`, with `value` where `mask` is true.
fn masked_fill(cx: &Cx, x: Value, mask: Value, value: TensorOrScalar) -> Lowered {
    let mask = cx.cast(mask, DType::Bool);
    Ok(cx.select(mask, cx.as_tensor(&value, cx.dtype(x)), x))
}

fn choose(cx: &Cx, condition: Value, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let (a, b) = cx.promote(a, b);
    match cx.dtype(condition) {
        DType::Bool | DType::U8 => Ok(cx.select(cx.cast(condition, DType::Bool), a, b)),
        other => Err(LowerError::unsupported(format!("a condition of {other}"))),
    }
}

/// Whether `a` and `b` are equal, or finite with `|a - b| <= atol + rtol |b|`.
fn isclose(cx: &Cx, a: Complex, b: Complex, rtol: f64, atol: f64, equal_nan: bool) -> Lowered {
    let (a, b) = promote_complex(cx, a, b);
    let equal = equal_numbers(cx, a, b);
    let nan = |x: Complex| {
        let re = cx.is_nan(x.re);
        x.im.map_or(re, |im| cx.or(re, cx.is_nan(im)))
    };
    let both_nan = equal_nan && cx.dtype(a.re).is_float();
    let equal = if both_nan { cx.or(equal, cx.and(nan(a), nan(b))) } else { equal };
    if rtol == 0.0 && atol == 0.0 {
        return Ok(equal);
    }
    let [x, y] = [a, b].map(|number| number.map(|v| cx.to_float(v)));
    let bound = cx.add(cx.mul(y.abs(cx), rtol), atol);
    let distance = x.sub(cx, y).abs(cx);
    let finite = cx.less(distance, f64::INFINITY);
    Ok(cx.or(equal, cx.and(finite, cx.less_or_equal(distance, bound))))
}

/// `f(x)` for floats; `others` everywhere for other types.
fn of_floats(cx: &Cx, x: Value, others: bool, f: impl FnOnce(Value) -> Value) -> Value {
    if cx.dtype(x).is_float() { f(x) } else { cx.full(&cx.shape(x), others, DType::Bool) }
}

/// Whether neither part is infinite or NaN: `|x| < inf`, which is false for NaN.
fn isfinite(cx: &Cx, x: Complex) -> Lowered {
    let finite = |x| of_floats(cx, x, true, |x| cx.less(cx.abs(x), f64::INFINITY));
    let re = finite(x.re);
    Ok(x.im.map_or(re, |im| cx.and(re, finite(im))))
}

/// Whether a part is infinite.
fn isinf(cx: &Cx, x: Complex) -> Lowered {
    let infinite = |x| of_floats(cx, x, false, |x| cx.is_inf(x, Default::default()));
    let re = infinite(x.re);
    Ok(x.im.map_or(re, |im| cx.or(re, infinite(im))))
}

/// Whether a part is NaN.
fn isnan(cx: &Cx, x: Complex) -> Lowered {
    let nan = |x| of_floats(cx, x, false, |x| cx.is_nan(x));
    let re = nan(x.re);
    Ok(x.im.map_or(re, |im| cx.or(re, nan(im))))
}

/// Whether `x` is plus infinity, or minus infinity.
fn is_one_infinity(cx: &Cx, x: Value, positive: bool) -> Lowered {
    let signs = attrs::IsInf { detect_positive: positive, detect_negative: !positive };
    Ok(of_floats(cx, x, false, |x| cx.is_inf(x, signs)))
}

/// Whether the imaginary part is 0.
fn isreal(cx: &Cx, x: Complex) -> Lowered {
    Ok(match x.im {
        None => cx.full(&cx.shape(x.re), true, DType::Bool),
        Some(im) => cx.equal(im, 0.0),
    })
}

fn minimum(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    Ok(smaller(cx, a, b))
}

fn maximum(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    Ok(larger(cx, a, b))
}

fn smaller(cx: &Cx, a: impl Into<TensorOrScalar>, b: impl Into<TensorOrScalar>) -> Value {
    bools_or_numbers(cx, a, b, |a, b| cx.and(a, b), |a, b| cx.minimum(a, b))
}

fn larger(cx: &Cx, a: impl Into<TensorOrScalar>, b: impl Into<TensorOrScalar>) -> Value {
    bools_or_numbers(cx, a, b, |a, b| cx.or(a, b), |a, b| cx.maximum(a, b))
}

/// The larger operand; `a`, if they are equal. If one is NaN, the other one.
fn fmax(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let (a, b) = cx.promote(a, b);
    Ok(if cx.dtype(a).is_float() {
        cx.select(cx.or(cx.less(a, b), cx.is_nan(a)), b, a)
    } else {
        larger(cx, a, b)
    })
}

/// The smaller operand; `a`, if they are equal. If one is NaN, the other one.
fn fmin(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let (a, b) = cx.promote(a, b);
    Ok(if cx.dtype(a).is_float() {
        cx.select(cx.or(cx.greater(a, b), cx.is_nan(a)), b, a)
    } else {
        smaller(cx, a, b)
    })
}

fn clamp_max(cx: &Cx, x: Value, max: TensorOrScalar) -> Lowered {
    clamp(cx, x, None, Some(max))
}

/// `min(max(x, min), max)`. The bounds take part in type promotion.
fn clamp(cx: &Cx, x: Value, min: Option<TensorOrScalar>, max: Option<TensorOrScalar>) -> Lowered {
    let operands: Vec<TensorOrScalar> =
        [Some(x.into()), min.clone(), max.clone()].into_iter().flatten().collect();
    let dtype = cx.result_type(&operands);
    let x = cx.cast(x, dtype);
    let number = |bound: &Option<TensorOrScalar>| match bound {
        Some(TensorOrScalar::Scalar(s)) if !s.to_f64().is_nan() => Some(*s),
        _ => None,
    };
    let known: [Option<Scalar>; 2] = [number(&min), number(&max)];
    let all_known = known[0].is_some() == min.is_some() && known[1].is_some() == max.is_some();
    if all_known && dtype != DType::Bool {
        let [min, max] = known.map(|bound| bound.map(|b| in_range(b, dtype)));
        return Ok(cx.clamp(x, min, max));
    }
    let held = match min {
        Some(min) => larger(cx, x, cx.as_tensor(&min, dtype)),
        None => x,
    };
    Ok(match max {
        Some(max) => smaller(cx, held, cx.as_tensor(&max, dtype)),
        None => held,
    })
}

checks! {
    // Bounds take part in promotion.
    "aten.clamp(x: i32[s0], 0.5, None) -> f32[s0]" => "
    val_0 = Cast <to: int = 1> (x)
    clamp = Max (val_0, 0.5)
    ";
    "aten.clamp.Tensor(x: f32[s0], None, y: f64[s0]) -> f64[s0]" => "
    val_0 = Cast <to: int = 11> (x)
    clamp = Min (val_0, y)
    ";

    // A bound of zero keeps negative zero.
    "aten.clamp(x: f32[s0], 0, None) -> f32[s0]" => "clamp = Relu (x)";
    "aten.clamp(x: f32[s0], None, -0.0) -> f32[s0]" => "clamp = Clip (x, -inf, -0.0)";
    "aten.clamp(x: i32[s0], 0, None) -> i32[s0]" => "clamp = Clip (x, int32 {0})";

    // The first of equal operands is taken.
    "aten.fmax(x: f32[s0], y: f32[s0]) -> f32[s0]" => "
    val_0 = Less (x, y)
    val_1 = IsNaN (x)
    val_2 = Or (val_0, val_1)
    fmax = Where (val_2, y, x)
    ";

    // Integers are finite.
    "aten.isfinite(x: i64[s0]) -> b8[s0]" => "
    val_0 = Shape <start: int = 0, end: int = 1> (x)
    isfinite = Expand (true, val_0)
    ";
    "aten.isnan(x: c64[s0]) -> b8[s0]" => "
    val_0 = Gather <axis: int = 1> (x, 0)
    val_1 = Gather <axis: int = 1> (x, 1)
    val_2 = IsNaN (val_0)
    val_3 = IsNaN (val_1)
    isnan = Or (val_2, val_3)
    ";
}
