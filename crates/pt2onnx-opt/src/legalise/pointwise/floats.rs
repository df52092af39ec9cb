//! `BitCast` by arithmetic in float64, which holds each narrower float exactly.

use crate::legalise::{Outcome, input, replace};
use pt2onnx_ir::{Builder, Model, NodeId, Value, attrs, schema};
use pt2onnx_tensor::{DType, FloatFormat};

/// The format of a float type of at least 8 bits.
fn format(dtype: DType) -> Option<FloatFormat> {
    FloatFormat::of(dtype).filter(|format| format.bits >= 8)
}

/// The same bits as another type. Each NaN counts as the positive quiet one.
pub(crate) fn bit_cast(model: &mut Model, id: NodeId) -> Outcome {
    let to = schema::dtype(attrs::BitCast::to(&model[id])?);
    let from = input(&model[id], 0).map(|x| model.dtype(x))?;
    let computed = |d: &DType| {
        let whole = (d.is_int() || *d == DType::Bool) && d.to_unsigned().is_some();
        whole || format(*d).is_some()
    };
    let (Some(from), Some(to)) = (from.filter(computed), to.filter(computed)) else {
        return Err("the bits of this element type cannot be computed".into());
    };
    replace(model, id, |cx, node| {
        let x = input(node, 0)?;
        let bits = match format(from) {
            Some(format) => bits_of(cx, x, format),
            None => cx.cast(cx.cast(x, from.to_unsigned().unwrap_or(from)), DType::I64),
        };
        Ok(vec![match format(to) {
            Some(format) => cx.cast(float_of(cx, bits, format), to),
            None => cx.cast(bits, to),
        }])
    })
}

/// Replaces a `BitCast` by arithmetic. Returns whether its types allow that.
pub(crate) fn compute_bits(model: &mut Model, id: NodeId) -> bool {
    bit_cast(model, id).is_ok()
}

/// The bits of a float as int64, which is not negative if the float has less than 64.
fn bits_of(cx: &Builder, x: Value, format: FloatFormat) -> Value {
    let x = cx.cast(x, DType::F64);
    let length = cx.abs(x);
    let lowest = f64::from(1 - format.bias);
    // The logarithm is one off at most.
    let guess = cx.floor(cx.mul(cx.log(length), std::f64::consts::LOG2_E));
    let power = power_of_two(cx, guess);
    let too_high = cx.cast(cx.less(length, power), DType::F64);
    let too_low = cx.cast(cx.greater_or_equal(cx.div(length, power), 2.0), DType::F64);
    let exponent = cx.add(cx.sub(guess, too_high), too_low);
    // Also that of 0, whose logarithm is infinite.
    let exponent = cx.select(cx.less(exponent, lowest), lowest, exponent);
    // From 1 to 2; below 1 of subnormal numbers, whose exponent is spelled 0.
    let mantissa = cx.div(length, power_of_two(cx, exponent));
    let whole = cx.floor(mantissa);
    let spelled = cx.add(cx.add(exponent, whole), f64::from(format.bias - 1));
    let unit = (1i64 << format.fraction) as f64;
    let fraction = cx.mul(cx.sub(mantissa, whole), unit);
    let int = |v| cx.cast(v, DType::I64);
    let mut bits = cx.add(cx.mul(int(spelled), 1i64 << format.fraction), int(fraction));
    if let Some(infinity) = format.infinity() {
        let infinity = cx.scalar(infinity as i64, DType::I64);
        bits = cx.select(cx.is_inf(x, attrs::IsInf::default()), infinity, bits);
    }
    // 1 / -0 is negative, too.
    let negative = cx.or(cx.less(x, 0.0), cx.less(cx.reciprocal(x), 0.0));
    let bits = cx.select(negative, cx.add(bits, format.sign() as i64), bits);
    match format.nan() {
        Some(nan) => cx.select(cx.is_nan(x), cx.scalar(nan as i64, DType::I64), bits),
        None => bits,
    }
}

/// The float64 of the number that these bits spell in a float type.
fn float_of(cx: &Builder, bits: Value, format: FloatFormat) -> Value {
    let sign = format.sign() as i64;
    let negative = match format.bits {
        64 => cx.less(bits, 0),
        _ => cx.greater_or_equal(bits, sign),
    };
    let magnitude = cx.select(negative, cx.sub(bits, sign), bits);
    let unit = 1i64 << format.fraction;
    let spelled = cx.div(magnitude, unit);
    let fraction = cx.cast(cx.sub(magnitude, cx.mul(spelled, unit)), DType::F64);
    let spelled = cx.cast(spelled, DType::F64);
    let whole = cx.cast(cx.greater(spelled, 0.0), DType::F64);
    let mantissa = cx.add(whole, cx.mul(fraction, 1.0 / unit as f64));
    // The spelling 0 has the exponent of 1.
    let exponent = cx.sub(cx.sub(spelled, whole), f64::from(format.bias - 1));
    let length = cx.mul(mantissa, power_of_two(cx, exponent));
    let spells_nan = |nan: u64| match format.infinity() {
        Some(infinity) => cx.greater(magnitude, infinity as i64),
        None if nan == format.sign() => cx.equal(bits, nan as i64),
        None => cx.equal(magnitude, nan as i64),
    };
    let length = match format.nan() {
        Some(nan) => cx.select(spells_nan(nan), f64::NAN, length),
        None => length,
    };
    // The last step is a product, since ONNX Runtime's `Where` gives 0 for -0.
    let one = cx.scalar(1.0, DType::F64);
    cx.mul(length, cx.select(negative, -1.0, one))
}

fn power_of_two(cx: &Builder, exponent: Value) -> Value {
    cx.pow(cx.scalar(2.0, DType::F64), exponent)
}
