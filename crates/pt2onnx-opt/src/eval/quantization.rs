//! Evaluates `QuantizeLinear`, `DequantizeLinear` and `DynamicQuantizeLinear`.
//!
//! Runtimes compute in the type of the scale, or in float32 and round at the end. Where that
//! differs, there is no result.

use super::{
    Call, Eval, Row, axis,
    elements::{Elements, Numeric, Power, Rounding, tensor_of},
};
use half::{bf16, f16};
use pt2onnx_ir::{attrs, schema};
use pt2onnx_tensor::{DType, Narrow, Tensor};

pub(super) static OPS: &[Row] = &[
    ("QuantizeLinear", Eval::One(quantize)),
    ("DequantizeLinear", Eval::One(dequantize)),
    ("DynamicQuantizeLinear", Eval::Many(dynamically)),
];

struct Parameters<'a> {
    scales: Elements<'a>,
    zeros: Option<Elements<'a>>,
    places: Places,
}

enum Places {
    One,
    /// Elements behind the axis, its size, and how many positions along it share parameters.
    Along {
        inner: usize,
        size: usize,
        block: usize,
    },
}

impl<'a> Parameters<'a> {
    fn of(call: &Call<'a>, along: i64, block: i64) -> Option<Self> {
        let (x, scale) = (call.input(0)?, call.input(1)?);
        let zero = call.input(2);
        if zero.is_some_and(|z| z.shape() != scale.shape()) {
            return None;
        }
        let places = match (scale.shape(), block) {
            ([] | [1], 0) => Places::One,
            (shape, block) => {
                let along = axis(along, x.rank())?;
                let size = x.shape()[along];
                let mut expected = x.shape().to_vec();
                let block = match usize::try_from(block).ok()? {
                    0 => {
                        expected = vec![size];
                        1
                    }
                    block => {
                        expected[along] = size.div_ceil(block);
                        block
                    }
                };
                if shape != expected {
                    return None;
                }
                Places::Along { inner: x.shape()[along + 1..].iter().product(), size, block }
            }
        };
        let zeros = zero.map_or(Some(None), |zero| Elements::of(zero).map(Some))?;
        Some(Self { scales: Elements::of(scale)?, zeros, places })
    }

    /// The scale and the zero point of the element at a position in row-major order.
    fn at(&self, position: usize, blocked: bool) -> Option<(f32, Numeric)> {
        let at = match self.places {
            Places::One => 0,
            Places::Along { inner, size, block } => {
                let along = position / inner % size / block;
                if blocked {
                    let outer = position / inner / size;
                    (outer * size.div_ceil(block) + along) * inner + position % inner
                } else {
                    along
                }
            }
        };
        let zero = self.zeros.as_ref().map_or(Some(Numeric::Int(0)), |zeros| zeros.get(at));
        Some((self.scales.get(at)?.single(), zero?))
    }
}

/// A number rounded to a type that computations are in.
fn rounded(dtype: DType, number: f32) -> Option<f32> {
    match dtype {
        DType::F32 => Some(number),
        DType::F16 => Some(f16::from_f32(number).into()),
        DType::BF16 => Some(bf16::from_f32(number).into()),
        _ => None,
    }
}

/// `saturate(round(x / scale) + zero point)`.
fn quantize(call: &Call) -> Option<Tensor> {
    let (x, scale) = (call.input(0)?, call.input(1)?);
    let given = attrs::QuantizeLinear::read(call.node).ok()?;
    let to = match (call.input(2), given.output_dtype) {
        (Some(zero), _) => zero.dtype(),
        (None, 0) => DType::U8,
        (None, other) => schema::dtype(other)?,
    };
    let inside = match (given.precision, scale.dtype()) {
        // Powers of two: no division is rounded.
        (0, DType::F8E8M0) => DType::F32,
        (0, other) => other,
        (other, _) => schema::dtype(other)?,
    };
    call.room(to, x.shape())?;
    let parameters = Parameters::of(call, given.axis, given.block_size)?;
    let elements = Elements::of(x)?;
    let numbers = elements.iter().enumerate().map(|(i, x)| {
        let (scale, zero) = parameters.at(i, given.block_size != 0)?;
        let narrow = rounded(inside, x.single())? / rounded(inside, scale)?;
        let quotients = [f64::from(rounded(inside, narrow)?), f64::from(x.single() / scale)];
        let exact = matches!(x, Numeric::Int(_)).then(|| x.double() / f64::from(scale));
        let wanted = |q: f64| step(q, zero, to, given.saturate);
        let results: Vec<f64> =
            quotients.into_iter().chain(exact).map(wanted).collect::<Option<_>>()?;
        let (&first, others) = results.split_first()?;
        let same =
            scale != 0.0 && others.iter().all(|&o| o == first || o.is_nan() && first.is_nan());
        let number = if to.is_int() { Numeric::Int(first as i128) } else { Numeric::Float(first) };
        same.then_some(number)
    });
    tensor_of(to, x.shape(), numbers, Rounding { saturate: given.saturate, power: Power::Up })
}

/// The element that a quotient becomes, as a number.
fn step(quotient: f64, zero: Numeric, to: DType, saturate: bool) -> Option<f64> {
    if let Some(narrow) = Narrow::of(to).filter(|_| !to.is_int()) {
        let code = narrow.nearest(quotient, saturate)?;
        return (zero.double() == 0.0).then(|| narrow.number(code).into());
    }
    let bits = i32::try_from(to.bits()).ok()?;
    let (low, high) = if to.is_unsigned() {
        (0.0, 2f64.powi(bits) - 1.0)
    } else {
        (-(2f64.powi(bits - 1)), 2f64.powi(bits - 1) - 1.0)
    };
    // Runtimes convert the quotient to int32 before they clamp it, or afterwards.
    let inside = quotient.abs() < 2f64.powi(31) - 2f64.powi(16);
    inside.then(|| (quotient.round_ties_even() + zero.double()).clamp(low, high))
}

/// `DynamicQuantizeLinear`: uint8, with a scale and a zero point by which 0 and all elements have a
/// code. If all are 0, or one is not finite, the scale is not defined.
fn dynamically(call: &Call) -> Option<Vec<Tensor>> {
    let x = call.input(0)?;
    let numbers = x.to_vec::<f32>().filter(|v| v.iter().all(|v| v.is_finite()))?;
    let low = numbers.iter().copied().fold(0.0, f32::min);
    let high = numbers.iter().copied().fold(0.0, f32::max);
    let scale = (high - low) / 255.0;
    if !scale.is_normal() {
        return None;
    }
    let zero = (-low / scale).clamp(0.0, 255.0).round_ties_even();
    let code = |v: &f32| ((v / scale).round_ties_even() + zero).clamp(0.0, 255.0) as u8;
    let codes: Vec<u8> = numbers.iter().map(code).collect();
    let codes = Tensor::new(DType::U8, x.shape(), codes).ok()?;
    Some(vec![codes, Tensor::scalar(scale), Tensor::scalar(zero as u8)])
}

/// `(x - zero point) * scale`.
fn dequantize(call: &Call) -> Option<Tensor> {
    let (x, scale) = (call.input(0)?, call.input(1)?);
    let given = attrs::DequantizeLinear::read(call.node).ok()?;
    let to = match given.output_dtype {
        0 => scale.dtype(),
        other => schema::dtype(other)?,
    };
    call.room(to, x.shape())?;
    let parameters = Parameters::of(call, given.axis, given.block_size)?;
    let elements = Elements::of(x)?;
    let numbers = elements.iter().enumerate().map(|(i, x)| {
        let (scale, zero) = parameters.at(i, given.block_size != 0)?;
        let steps = match (x, zero) {
            (Numeric::Int(x), Numeric::Int(zero)) => Numeric::Int(x - zero),
            (x, zero) if zero.double() == 0.0 => x,
            _ => return None,
        };
        let wide = rounded(to, steps.single() * scale)?;
        let narrow = rounded(to, rounded(to, steps.single())? * rounded(to, scale)?)?;
        let same = wide == narrow || wide.is_nan() && narrow.is_nan();
        same.then_some(Numeric::Float(wide.into()))
    });
    tensor_of(to, x.shape(), numbers, Rounding { saturate: true, power: Power::Up })
}
