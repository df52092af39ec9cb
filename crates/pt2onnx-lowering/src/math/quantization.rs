//! Floats as small integers, and back: `QuantizeLinear` and `DequantizeLinear`, or formulas where
//! these do not have the types.

use crate::math::precision::compute_type;
use crate::{Cx, Lowered};
use pt2onnx_ir::{Value, attrs};
use pt2onnx_tensor::{DType, Scalar};

/// How numbers become integers: `clamp(round(x / scale) + zero_point, min, max)`. With an axis,
/// scale and zero point are vectors along it.
#[derive(Clone, Copy, Debug)]
pub struct Mapping {
    /// How much one step is.
    pub scale: Value,
    /// The integer that stands for 0.
    pub zero_point: Value,
    /// The dimension that the vectors go along.
    pub axis: Option<i64>,
    /// The least integer.
    pub min: i64,
    /// The greatest integer.
    pub max: i64,
}

impl Mapping {
    /// Scale and zero point so that they broadcast with `x`.
    fn broadcast(&self, cx: &Cx, x: Value) -> Lowered<(Value, Value)> {
        let along = |v| along_axis(cx, x, v, self.axis);
        Ok((along(self.scale)?, along(self.zero_point)?))
    }

    /// `x` before it is clamped: `round(x / scale) + zero_point`. A zero point of floats is added
    /// before the sum is rounded.
    fn unbounded(&self, cx: &Cx, x: Value) -> Lowered {
        let (scale, zero_point) = self.broadcast(cx, x)?;
        let wide = |v| cx.cast(v, cx.dtype(x));
        let scaled = cx.mul(x, cx.reciprocal(wide(scale)));
        Ok(if cx.dtype(zero_point).is_float() {
            cx.round(cx.add(scaled, wide(zero_point)))
        } else {
            cx.add(cx.round(scaled), wide(zero_point))
        })
    }
}

/// The one element of a tensor, 0-d.
pub fn first(cx: &Cx, v: Value) -> Value {
    cx.reshape(v, &[])
}

/// The range of a type, if `QuantizeLinear` supports it in all opsets.
fn range(dtype: DType) -> Option<(i64, i64)> {
    match dtype {
        DType::I8 => Some((-128, 127)),
        DType::U8 => Some((0, 255)),
        _ => None,
    }
}

/// Scale and zero point so that they broadcast with `x`: along `axis`, or 0-d.
fn along_axis(cx: &Cx, x: Value, parameter: Value, axis: Option<i64>) -> Lowered {
    let Some(axis) = axis else {
        return Ok(first(cx, parameter));
    };
    let behind: Vec<usize> = (1..cx.rank(x) - cx.axis(x, axis)?).collect();
    Ok(cx.unsqueeze(parameter, &behind))
}

/// `clamp(round(x / scale) + zero_point)`: `QuantizeLinear`, clamped if the range is less than the
/// type's; the formula for types that it does not support.
pub fn quantize(cx: &Cx, x: Value, mapping: &Mapping, dtype: DType) -> Lowered {
    let &Mapping { scale, zero_point, axis, min, max } = mapping;
    let (Some(full), false) = (range(dtype), cx.dtype(zero_point).is_float()) else {
        let (scale, zero_point) = mapping.broadcast(cx, x)?;
        let x = cx.cast(x, DType::F32);
        let level = cx.round(cx.div(x, cx.cast(scale, DType::F32)));
        let level = cx.add(level, cx.cast(zero_point, DType::F32));
        let held = cx.clamp(level, Some(Scalar::Int(min)), Some(Scalar::Int(max)));
        return Ok(cx.cast(held, dtype));
    };
    let (options, scale, zero_point) = match axis {
        Some(axis) => (cx.axis(x, axis)? as i64, scale, zero_point),
        None => (1, first(cx, scale), first(cx, zero_point)),
    };
    let options = attrs::QuantizeLinear { axis: options, ..Default::default() };
    let result = cx.quantize_linear(
        cx.cast(x, DType::F32),
        cx.cast(scale, DType::F32),
        cx.cast(zero_point, dtype),
        options,
    );
    let above = (min > full.0).then_some(Scalar::Int(min));
    let below = (max < full.1).then_some(Scalar::Int(max));
    Ok(cx.clamp(result, above, below))
}

/// `(q - zero_point) * scale` in the recorded type: `DequantizeLinear`; the formula for types that
/// it does not support.
pub fn dequantize(
    cx: &Cx,
    q: Value,
    scale: Value,
    zero_point: Option<Value>,
    axis: Option<i64>,
) -> Lowered {
    let dtype = cx.dtype(q);
    let float_zero = zero_point.is_some_and(|z| cx.dtype(z).is_float());
    if range(dtype).is_none() || float_zero {
        let scale = along_axis(cx, q, scale, axis)?;
        let zero_point = zero_point.map(|z| along_axis(cx, q, z, axis)).transpose()?;
        return affine(cx, q, scale, zero_point);
    }
    let (axis, scale, zero_point) = match axis {
        Some(axis) => (cx.axis(q, axis)? as i64, scale, zero_point),
        None => (1, first(cx, scale), zero_point.map(|z| first(cx, z))),
    };
    let options = attrs::DequantizeLinear { axis, ..Default::default() };
    let zero_point = zero_point.map(|z| cx.cast(z, dtype));
    let result = cx.dequantize_linear(q, cx.cast(scale, DType::F32), zero_point, options);
    Ok(cx.cast(result, cx.out_dtype()?))
}

/// `(q - zero_point) * scale` in the recorded type.
pub fn affine(cx: &Cx, q: Value, scale: Value, zero_point: Option<Value>) -> Lowered {
    let wide = compute_type(cx, cx.dtype(scale));
    let q = cx.cast(q, wide);
    let centred = zero_point.map_or(q, |z| cx.sub(q, cx.cast(z, wide)));
    let result = cx.mul(centred, cx.cast(scale, wide));
    Ok(cx.cast(result, cx.out_dtype()?))
}

/// The nearest number that a quantised tensor can hold, `(clamp(round(x / scale) + zero_point) -
/// zero_point) * scale`: `QuantizeLinear` and `DequantizeLinear` if the range is that of a byte,
/// else the formula.
pub fn nearest_quantized(cx: &Cx, x: Value, mapping: &Mapping) -> Lowered {
    let &Mapping { scale, zero_point, axis, min, max } = mapping;
    let given = cx.dtype(x);
    let bytes = [DType::I8, DType::U8];
    let fitting = bytes.into_iter().find(|&d| range(d) == Some((min, max)));
    if let (Some(dtype), false) = (fitting, cx.dtype(zero_point).is_float()) {
        let q = quantize(cx, x, mapping, dtype)?;
        return Ok(cx.cast(dequantize(cx, q, scale, Some(zero_point), axis)?, given));
    }
    let (scale, zero_point) = mapping.broadcast(cx, x)?;
    let wide = compute_type(cx, cx.dtype(scale));
    let level = mapping.unbounded(cx, cx.cast(x, wide))?;
    let level = cx.clamp(level, Some(Scalar::Int(min)), Some(Scalar::Int(max)));
    affine(cx, level, scale, Some(zero_point))
}

/// Which elements are inside the range, so that they are not clamped.
pub fn within(cx: &Cx, x: Value, mapping: &Mapping) -> Lowered {
    let level = mapping.unbounded(cx, cx.cast(x, DType::F32))?;
    Ok(cx.and(cx.greater_or_equal(level, mapping.min), cx.less_or_equal(level, mapping.max)))
}
