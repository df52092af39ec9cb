//! Comparisons, choices by a condition, the larger and the smaller of values.

use crate::{AtenOp, Complex, Cx, Lowered, TensorOrScalar, op::op};
use pt2onnx_ir::{Value, attrs};
use pt2onnx_tensor::{DType, Scalar};

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::clamp, clamp),
    op!(aten::clamp_Tensor, clamp),
    op!(aten::clamp_max, |cx: &Cx, x: Value, max: TensorOrScalar| clamp(cx, x, None, Some(max))),
    op!(aten::clamp_max_Tensor, |cx: &Cx, x: Value, max: TensorOrScalar| clamp(
        cx,
        x,
        None,
        Some(max)
    )),
    op!(aten::clamp_min, |cx: &Cx, x: Value, min: TensorOrScalar| clamp(cx, x, Some(min), None)),
    op!(aten::clamp_min_Tensor, |cx: &Cx, x: Value, min: TensorOrScalar| clamp(
        cx,
        x,
        Some(min),
        None
    )),
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
    op!(aten::isclose, isclose, complex = isclose_complex),
    op!(
        aten::isfinite,
        isfinite,
        complex = |cx: &Cx, x: Complex| -> Lowered {
            Ok(cx.and(isfinite(cx, x.re)?, isfinite(cx, x.im)?))
        }
    ),
    op!(
        aten::isinf,
        |cx: &Cx, x: Value| isinf(cx, x, true, true),
        complex = |cx: &Cx, x: Complex| -> Lowered {
            Ok(cx.or(isinf(cx, x.re, true, true)?, isinf(cx, x.im, true, true)?))
        }
    ),
    op!(
        aten::isnan,
        isnan,
        complex =
            |cx: &Cx, x: Complex| -> Lowered { Ok(cx.or(isnan(cx, x.re)?, isnan(cx, x.im)?)) }
    ),
    op!(aten::isneginf, |cx: &Cx, x: Value| isinf(cx, x, true, false)),
    op!(aten::isposinf, |cx: &Cx, x: Value| isinf(cx, x, false, true)),
    op!(
        aten::isreal,
        |cx: &Cx, x: Value| all(cx, x, true),
        complex = |cx: &Cx, x: Complex| -> Lowered { Ok(cx.equal(x.im, 0.0)) }
    ),
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
    let (re, im) = (cx.promote(a.re, b.re), cx.promote(a.im, b.im));
    Ok(cx.and(cx.equal(re.0, re.1), cx.equal(im.0, im.1)))
}

fn not_equal_complex(cx: &Cx, a: Complex, b: Complex) -> Lowered {
    Ok(cx.not(equal_complex(cx, a, b)?))
}

fn less(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let (a, b) = cx.promote(a, b);
    Ok(match cx.dtype(a) {
        DType::Bool => cx.and(cx.not(a), b),
        _ => cx.less(a, b),
    })
}

fn less_or_equal(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let (a, b) = cx.promote(a, b);
    Ok(match cx.dtype(a) {
        DType::Bool => cx.or(cx.not(a), b),
        _ => cx.less_or_equal(a, b),
    })
}

fn greater(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let (a, b) = cx.promote(a, b);
    Ok(match cx.dtype(a) {
        DType::Bool => cx.and(a, cx.not(b)),
        _ => cx.greater(a, b),
    })
}

fn greater_or_equal(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let (a, b) = cx.promote(a, b);
    Ok(match cx.dtype(a) {
        DType::Bool => cx.or(a, cx.not(b)),
        _ => cx.greater_or_equal(a, b),
    })
}

/// `value`, as `x`'s type, where `mask` is true.
fn masked_fill(cx: &Cx, x: Value, mask: Value, value: TensorOrScalar) -> Lowered {
    let mask = cx.cast(mask, DType::Bool);
    Ok(cx.select(mask, cx.as_tensor(&value, cx.dtype(x)), x))
}

fn choose(cx: &Cx, condition: Value, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let (a, b) = cx.promote(a, b);
    Ok(cx.select(cx.cast(condition, DType::Bool), a, b))
}

/// `|a - b| <= atol + rtol |b|`, in floats, and equal ones, which infinities are. A bound of infinity compares nothing.
fn isclose(
    cx: &Cx,
    a: TensorOrScalar,
    b: TensorOrScalar,
    rtol: f64,
    atol: f64,
    equal_nan: bool,
) -> Lowered {
    let (a, b) = cx.promote(a, b);
    let equal = cx.equal(a, b);
    let both_nan = equal_nan && cx.dtype(a).is_float();
    let equal = match both_nan {
        true => cx.or(equal, cx.and(cx.is_nan(a), cx.is_nan(b))),
        false => equal,
    };
    if rtol == 0.0 && atol == 0.0 {
        return Ok(equal);
    }
    let (x, y) = (cx.to_float(a), cx.to_float(b));
    let bound = cx.add(cx.mul(cx.abs(y), rtol), atol);
    let near = within(cx, cx.abs(cx.sub(x, y)), bound);
    Ok(cx.or(equal, near))
}

/// `distance <= bound`, the distance being finite.
fn within(cx: &Cx, distance: Value, bound: Value) -> Value {
    let finite = cx.less(distance, f64::INFINITY);
    cx.and(finite, cx.less_or_equal(distance, bound))
}

fn isclose_complex(
    cx: &Cx,
    a: Complex,
    b: Complex,
    rtol: f64,
    atol: f64,
    equal_nan: bool,
) -> Lowered {
    use crate::math::complex_math as math;
    let (re, im) = (cx.promote(a.re, b.re), cx.promote(a.im, b.im));
    let equal = cx.and(cx.equal(re.0, re.1), cx.equal(im.0, im.1));
    let nan = |re, im| cx.or(cx.is_nan(re), cx.is_nan(im));
    let equal = match equal_nan {
        true => cx.or(equal, cx.and(nan(re.0, im.0), nan(re.1, im.1))),
        false => equal,
    };
    let (a, b) = (Complex { re: re.0, im: im.0 }, Complex { re: re.1, im: im.1 });
    let bound = cx.add(cx.mul(math::abs(cx, b), rtol), atol);
    let near = within(cx, math::abs(cx, math::sub(cx, a, b)), bound);
    Ok(cx.or(equal, near))
}

/// The same truth for all elements.
fn all(cx: &Cx, x: Value, truth: bool) -> Lowered {
    Ok(cx.full(&cx.shape(x), truth, DType::Bool))
}

/// `|x| < inf`, which NaN is not.
fn isfinite(cx: &Cx, x: Value) -> Lowered {
    match cx.dtype(x).is_float() {
        true => Ok(cx.less(cx.abs(x), f64::INFINITY)),
        false => all(cx, x, true),
    }
}

fn isinf(cx: &Cx, x: Value, detect_negative: bool, detect_positive: bool) -> Lowered {
    let signs = attrs::IsInf { detect_negative, detect_positive };
    match cx.dtype(x).is_float() {
        true => Ok(cx.is_inf(x, signs)),
        false => all(cx, x, false),
    }
}

fn isnan(cx: &Cx, x: Value) -> Lowered {
    match cx.dtype(x).is_float() {
        true => Ok(cx.is_nan(x)),
        false => all(cx, x, false),
    }
}

fn minimum(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let (a, b) = cx.promote(a, b);
    Ok(smaller(cx, a, b))
}

fn maximum(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let (a, b) = cx.promote(a, b);
    Ok(larger(cx, a, b))
}

fn smaller(cx: &Cx, a: Value, b: Value) -> Value {
    match cx.dtype(a) {
        DType::Bool => cx.and(a, b),
        _ => cx.minimum(a, b),
    }
}

fn larger(cx: &Cx, a: Value, b: Value) -> Value {
    match cx.dtype(a) {
        DType::Bool => cx.or(a, b),
        _ => cx.maximum(a, b),
    }
}

/// The larger one, or the one that is a number.
fn fmax(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let (a, b) = cx.promote(a, b);
    Ok(match cx.dtype(a).is_float() {
        true => cx.select(cx.or(cx.greater(a, b), cx.is_nan(b)), a, b),
        false => larger(cx, a, b),
    })
}

/// The smaller one, or the one that is a number.
fn fmin(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let (a, b) = cx.promote(a, b);
    Ok(match cx.dtype(a).is_float() {
        true => cx.select(cx.or(cx.less(a, b), cx.is_nan(b)), a, b),
        false => smaller(cx, a, b),
    })
}

/// `x` held between two bounds, of which the upper one counts where they cross. Bounds take part in type promotion.
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

/// A bound, held to what an integer type has.
pub(crate) fn in_range(bound: Scalar, dtype: DType) -> Scalar {
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
