//! `BitCast` by arithmetic in float64, which holds each narrower float exactly.

use crate::{
    facts::dtype,
    legalise::{
        error::Reason,
        forms::input,
        replace::{Done, replace},
    },
};
use pt2onnx_ir::{Builder, Model, NodeId, Value, attrs, schema};
use pt2onnx_tensor::DType;

/// How a float type spells its numbers: a sign, an exponent and a fraction.
struct Layout {
    /// Bits of the fraction.
    fraction: u32,
    /// The exponent of 1.
    bias: i64,
    /// The bits of infinity, if the type has one: those above are not numbers.
    infinity: Option<i64>,
    /// The bits of the NaN that stands for all.
    nan: i64,
}

fn layout(dtype: DType) -> Option<Layout> {
    let ieee = |fraction: u32, bias: i64| {
        let infinity = (2 * bias + 1) << fraction;
        Layout { fraction, bias, infinity: Some(infinity), nan: infinity | 1 << (fraction - 1) }
    };
    let finite = |fraction, bias, nan| Layout { fraction, bias, infinity: None, nan };
    Some(match dtype {
        DType::F64 => ieee(52, 1023),
        DType::F32 => ieee(23, 127),
        DType::F16 => ieee(10, 15),
        DType::BF16 => ieee(7, 127),
        DType::F8E5M2 => Layout { nan: 0x7f, ..ieee(2, 15) },
        DType::F8E4M3FN => finite(3, 7, 0x7f),
        DType::F8E4M3FNUZ => finite(3, 8, 0x80),
        DType::F8E5M2FNUZ => finite(2, 16, 0x80),
        _ => return None,
    })
}

/// The same bits as another type. Of a float, each NaN counts as the positive quiet one.
pub(crate) fn bit_cast(model: &mut Model, id: NodeId) -> Result<Done, Reason> {
    let to = schema::dtype(attrs::BitCast::to(&model[id])?);
    let from = input(&model[id], 0).map(|x| dtype(model, x))?;
    let computed = |d: &DType| {
        let whole = (d.is_int() || *d == DType::Bool) && d.to_unsigned().is_some();
        whole || layout(*d).is_some()
    };
    let (Some(from), Some(to)) = (from.filter(computed), to.filter(computed)) else {
        return Err("the bits of this element type cannot be computed".into());
    };
    replace(model, id, |cx, node| {
        let x = input(node, 0)?;
        let bits = match layout(from) {
            Some(layout) => bits_of(cx, x, from.bits(), &layout),
            None => cx.cast(cx.cast(x, from.to_unsigned().unwrap_or(from)), DType::I64),
        };
        Ok(vec![match layout(to) {
            Some(layout) => cx.cast(float_of(cx, bits, to.bits(), &layout), to),
            None => cx.cast(bits, to),
        }])
    })
}

/// Replaces a `BitCast` by arithmetic. Returns whether its types allow that.
pub(crate) fn compute_bits(model: &mut Model, id: NodeId) -> bool {
    bit_cast(model, id).is_ok()
}

/// The bits of the sign alone, as int64.
fn sign(size: usize) -> i64 {
    1i64.wrapping_shl(size as u32 - 1)
}

/// The bits of a float as int64, which is not negative if the float has less than 64.
fn bits_of(cx: &Builder, x: Value, size: usize, layout: &Layout) -> Value {
    let x = cx.cast(x, DType::F64);
    let length = cx.abs(x);
    let lowest = (1 - layout.bias) as f64;
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
    let spelled = cx.add(cx.add(exponent, whole), (layout.bias - 1) as f64);
    let unit = (1i64 << layout.fraction) as f64;
    let fraction = cx.mul(cx.sub(mantissa, whole), unit);
    let int = |v| cx.cast(v, DType::I64);
    let mut bits = cx.add(cx.mul(int(spelled), 1i64 << layout.fraction), int(fraction));
    if let Some(infinity) = layout.infinity {
        let infinity = cx.scalar(infinity, DType::I64);
        bits = cx.select(cx.is_inf(x, attrs::IsInf::default()), infinity, bits);
    }
    // 1 / -0 is negative, too.
    let negative = cx.or(cx.less(x, 0.0), cx.less(cx.reciprocal(x), 0.0));
    let bits = cx.select(negative, cx.add(bits, sign(size)), bits);
    cx.select(cx.is_nan(x), cx.scalar(layout.nan, DType::I64), bits)
}

/// The float64 of the number that these bits spell in a float type of `size` bits.
fn float_of(cx: &Builder, bits: Value, size: usize, layout: &Layout) -> Value {
    let negative = match size {
        64 => cx.less(bits, 0),
        _ => cx.greater_or_equal(bits, sign(size)),
    };
    let magnitude = cx.select(negative, cx.sub(bits, sign(size)), bits);
    let unit = 1i64 << layout.fraction;
    let spelled = cx.div(magnitude, unit);
    let fraction = cx.cast(cx.sub(magnitude, cx.mul(spelled, unit)), DType::F64);
    let spelled = cx.cast(spelled, DType::F64);
    let whole = cx.cast(cx.greater(spelled, 0.0), DType::F64);
    let mantissa = cx.add(whole, cx.mul(fraction, 1.0 / unit as f64));
    // The spelling 0 has the exponent of 1.
    let exponent = cx.sub(cx.sub(spelled, whole), (layout.bias - 1) as f64);
    let length = cx.mul(mantissa, power_of_two(cx, exponent));
    let nan = match layout.infinity {
        Some(infinity) => cx.greater(magnitude, infinity),
        None => cx.equal(if layout.nan == sign(size) { bits } else { magnitude }, layout.nan),
    };
    let length = cx.select(nan, f64::NAN, length);
    // The last step is a product, since ONNX Runtime's `Where` gives 0 for -0.
    let one = cx.scalar(1.0, DType::F64);
    cx.mul(length, cx.select(negative, -1.0, one))
}

fn power_of_two(cx: &Builder, exponent: Value) -> Value {
    cx.pow(cx.scalar(2.0, DType::F64), exponent)
}
