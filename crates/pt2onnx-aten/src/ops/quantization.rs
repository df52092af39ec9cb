//! Quantisation: numbers to small integers and back.

use crate::{AtenOp, Cx, Lowered, cx::Outputs, registry::aten};
use pt2onnx_ir::{Reduction, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Scalar};

pub(super) static OPS: &[AtenOp] = &[
    aten!(
        "aten::_fake_quantize_learnable_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max, float grad_factor=1.) -> Tensor",
        |cx: &Cx, x: Value, s: Value, z: Value, axis: i64, min: i64, max: i64, _: f64| {
            fake_quantize(cx, x, s, rounded(cx, z, min, max), Some(axis), min, max)
        }
    ),
    aten!(
        "aten::_fake_quantize_learnable_per_tensor_affine(Tensor self, Tensor scale, Tensor zero_point, int quant_min, int quant_max, float grad_factor=1.) -> Tensor",
        |cx: &Cx, x: Value, s: Value, z: Value, min: i64, max: i64, _: f64| {
            fake_quantize(cx, x, s, rounded(cx, z, min, max), None, min, max)
        }
    ),
    aten!(
        "aten::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, Tensor fake_quant_enabled, int quant_min, int quant_max) -> (Tensor output, Tensor mask)",
        |cx: &Cx,
         x: Value,
         s: Value,
         z: Value,
         enabled: Value,
         min: i64,
         max: i64|
         -> Lowered<Outputs> {
            let quantized = fake_quantize(cx, x, s, z, None, min, max)?;
            let enabled = cx.not(cx.equal(first(cx, enabled), 0));
            // Switched off, nothing is out of range.
            let within = within(cx, x, s, z, None, min, max);
            Ok([
                Some(cx.select(enabled, quantized, x)),
                within.map(|mask| cx.or(mask, cx.not(enabled))),
            ]
            .into())
        }
    ),
    aten!(
        "aten::fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max) -> Tensor",
        |cx: &Cx, x: Value, s: Value, z: Value, axis: i64, min: i64, max: i64| {
            fake_quantize(cx, x, s, z, Some(axis), min, max)
        }
    ),
    aten!(
        "aten::fake_quantize_per_channel_affine_cachemask(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max) -> (Tensor output, Tensor mask)",
        |cx: &Cx,
         x: Value,
         s: Value,
         z: Value,
         axis: i64,
         min: i64,
         max: i64|
         -> Lowered<Outputs> {
            Ok([
                Some(fake_quantize(cx, x, s, z, Some(axis), min, max)?),
                within(cx, x, s, z, Some(axis), min, max),
            ]
            .into())
        }
    ),
    aten!(
        "aten::fake_quantize_per_tensor_affine(Tensor self, float scale, int zero_point, int quant_min, int quant_max) -> Tensor",
        |cx: &Cx, x: Value, s: f64, z: i64, min: i64, max: i64| {
            let (s, z) = numbers(cx, s, z);
            fake_quantize(cx, x, s, z, None, min, max)
        }
    ),
    aten!(
        "aten::fake_quantize_per_tensor_affine.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, int quant_min, int quant_max) -> Tensor",
        |cx: &Cx, x: Value, s: Value, z: Value, min: i64, max: i64| {
            fake_quantize(cx, x, s, z, None, min, max)
        }
    ),
    aten!(
        "aten::fake_quantize_per_tensor_affine_cachemask(Tensor self, float scale, int zero_point, int quant_min, int quant_max) -> (Tensor output, Tensor mask)",
        |cx: &Cx, x: Value, s: f64, z: i64, min: i64, max: i64| -> Lowered<Outputs> {
            let (s, z) = numbers(cx, s, z);
            Ok([
                Some(fake_quantize(cx, x, s, z, None, min, max)?),
                within(cx, x, s, z, None, min, max),
            ]
            .into())
        }
    ),
    aten!(
        "quantized_decomposed::_choose_qparams_per_token_asymmetric_impl(Tensor input, ScalarType dtype) -> (Tensor, Tensor)",
        per_token_asymmetric
    ),
    aten!(
        "quantized_decomposed::choose_qparams.tensor(Tensor input, int quant_min, int quant_max, float eps, ScalarType dtype) -> (Tensor, Tensor)",
        choose_qparams
    ),
    aten!(
        "quantized_decomposed::choose_qparams_per_token(Tensor input, ScalarType dtype) -> (Tensor, Tensor)",
        per_token_symmetric
    ),
    aten!(
        "quantized_decomposed::choose_qparams_per_token_asymmetric(Tensor input, ScalarType dtype) -> (Tensor, Tensor)",
        per_token_asymmetric
    ),
    aten!(
        "quantized_decomposed::choose_qparams_symmetric.tensor(Tensor input, int quant_min, int quant_max, float eps, ScalarType dtype) -> (Tensor, Tensor)",
        choose_qparams_symmetric
    ),
    aten!(
        "quantized_decomposed::convert_element_type.no_fuse(Tensor input, ScalarType dtype) -> Tensor",
        |cx: &Cx, x: Value, dtype: DType| -> Lowered { Ok(cx.cast(x, dtype)) }
    ),
    aten!(
        "quantized_decomposed::dequantize_per_channel(Tensor input, Tensor scales, Tensor? zero_points, int axis, int quant_min, int quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor",
        |cx: &Cx,
         q: Value,
         s: Value,
         z: Option<Value>,
         axis: i64,
         _: i64,
         _: i64,
         _: DType,
         _: Option<DType>| { dequantize(cx, q, s, z, Some(axis)) }
    ),
    aten!(
        "quantized_decomposed::dequantize_per_channel_group(Tensor input, Tensor scales, Tensor? zero_points, int quant_min, int quant_max, ScalarType dtype, int group_size, ScalarType output_dtype) -> Tensor",
        |cx: &Cx,
         q: Value,
         s: Value,
         z: Option<Value>,
         _: i64,
         _: i64,
         _: DType,
         group: i64,
         _: DType|
         -> Lowered {
            let shape = cx.shape(q);
            let (groups, s, z) = grouped(cx, q, s, z, group);
            Ok(cx.reshape(affine(cx, groups, s, z)?, &shape))
        }
    ),
    aten!(
        "quantized_decomposed::dequantize_per_tensor(Tensor input, float scale, int zero_point, int quant_min, int quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor",
        |cx: &Cx, q: Value, s: f64, z: i64, _: i64, _: i64, _: DType, _: Option<DType>| {
            let (s, z) = numbers(cx, s, z);
            dequantize(cx, q, s, Some(z), None)
        }
    ),
    aten!(
        "quantized_decomposed::dequantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, int quant_min, int quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor",
        |cx: &Cx, q: Value, s: Value, z: Value, _: i64, _: i64, _: DType, _: Option<DType>| {
            dequantize(cx, q, s, Some(z), None)
        }
    ),
    aten!(
        "quantized_decomposed::dequantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor zero_point, Tensor quant_min, Tensor quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor",
        |cx: &Cx, q: Value, s: Value, z: Value, _: Value, _: Value, _: DType, _: Option<DType>| {
            dequantize(cx, q, s, Some(z), None)
        }
    ),
    aten!(
        "quantized_decomposed::dequantize_per_token(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, ScalarType dtype, ScalarType output_dtype) -> Tensor",
        |cx: &Cx, q: Value, s: Value, z: Value, _: i64, _: i64, _: DType, _: DType| {
            affine(cx, q, s, Some(z))
        }
    ),
    aten!(
        "quantized_decomposed::fake_quant_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, int quant_min, int quant_max) -> Tensor",
        |cx: &Cx, x: Value, s: Value, z: Value, axis: i64, min: i64, max: i64| {
            fake_quantize(cx, x, s, z, Some(axis), min, max)
        }
    ),
    aten!(
        "quantized_decomposed::quantize_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, int quant_min, int quant_max, ScalarType dtype) -> Tensor",
        |cx: &Cx, x: Value, s: Value, z: Value, axis: i64, min: i64, max: i64, dtype: DType| {
            quantize(cx, x, s, z, Some(axis), (min, max), dtype)
        }
    ),
    aten!(
        "quantized_decomposed::quantize_per_channel_group(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, ScalarType dtype, int group_size) -> Tensor",
        |cx: &Cx,
         x: Value,
         s: Value,
         z: Value,
         min: i64,
         max: i64,
         dtype: DType,
         group: i64|
         -> Lowered {
            let shape = cx.shape(x);
            let (groups, s, z) = grouped(cx, x, s, Some(z), group);
            let levels = levels(cx, groups, s, z, min, max);
            Ok(cx.reshape(cx.cast(levels, dtype), &shape))
        }
    ),
    aten!(
        "quantized_decomposed::quantize_per_tensor(Tensor input, float scale, int zero_point, int quant_min, int quant_max, ScalarType dtype) -> Tensor",
        |cx: &Cx, x: Value, s: f64, z: i64, min: i64, max: i64, dtype: DType| {
            let (s, z) = numbers(cx, s, z);
            quantize(cx, x, s, z, None, (min, max), dtype)
        }
    ),
    aten!(
        "quantized_decomposed::quantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, int quant_min, int quant_max, ScalarType dtype) -> Tensor",
        |cx: &Cx, x: Value, s: Value, z: Value, min: i64, max: i64, dtype: DType| {
            quantize(cx, x, s, z, None, (min, max), dtype)
        }
    ),
    aten!(
        "quantized_decomposed::quantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor zero_point, Tensor quant_min, Tensor quant_max, ScalarType dtype) -> Tensor",
        |cx: &Cx, x: Value, s: Value, z: Value, min: Value, max: Value, dtype: DType| -> Lowered {
            let x = cx.cast(x, DType::F32);
            let s = cx.cast(first(cx, s), DType::F32);
            let level = cx.add(cx.round(cx.div(x, s)), cx.cast(first(cx, z), DType::F32));
            let bound = |v| cx.cast(first(cx, v), DType::F32);
            Ok(cx.cast(cx.minimum(cx.maximum(level, bound(min)), bound(max)), dtype))
        }
    ),
    aten!(
        "quantized_decomposed::quantize_per_token(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, ScalarType dtype) -> Tensor",
        |cx: &Cx, x: Value, s: Value, z: Value, min: i64, max: i64, dtype: DType| -> Lowered {
            Ok(cx.cast(levels(cx, x, s, Some(z), min, max), dtype))
        }
    ),
];

/// Scale and zero point as constants.
fn numbers(cx: &Cx, scale: f64, zero_point: i64) -> (Value, Value) {
    (cx.scalar(scale, DType::F32), cx.scalar(zero_point, DType::I64))
}

/// The one element of a tensor, 0-d.
fn first(cx: &Cx, v: Value) -> Value {
    cx.reshape(v, &[])
}

/// A zero point that was learnt, as an integer.
fn rounded(cx: &Cx, zero_point: Value, min: i64, max: i64) -> Value {
    if !cx.dtype(zero_point).is_float() {
        return zero_point;
    }
    let held = cx.clamp(cx.round(zero_point), Some(Scalar::Int(min)), Some(Scalar::Int(max)));
    cx.cast(held, DType::I64)
}

/// The range of a type that `QuantizeLinear` gives, before opset 21 too.
fn range(dtype: DType) -> Option<(i64, i64)> {
    match dtype {
        DType::I8 => Some((-128, 127)),
        DType::U8 => Some((0, 255)),
        _ => None,
    }
}

/// Scale and zero point so that they broadcast with `x`: along `axis`, or 0-d.
fn along(cx: &Cx, x: Value, parameter: Value, axis: Option<i64>) -> Lowered {
    let Some(axis) = axis else {
        return Ok(first(cx, parameter));
    };
    let behind: Vec<usize> = (1..cx.rank(x) - cx.axis(x, axis)?).collect();
    Ok(cx.unsqueeze(parameter, &behind))
}

/// `QuantizeLinear`, held to the range where that is less than the type's; for other types its formula.
fn quantize(
    cx: &Cx,
    x: Value,
    scale: Value,
    zero_point: Value,
    axis: Option<i64>,
    (min, max): (i64, i64),
    dtype: DType,
) -> Lowered {
    let (Some(full), false) = (range(dtype), cx.dtype(zero_point).is_float()) else {
        let (scale, zero_point) = (along(cx, x, scale, axis)?, along(cx, x, zero_point, axis)?);
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

/// `DequantizeLinear`; for types that it does not take, its formula. Gives the recorded type.
fn dequantize(
    cx: &Cx,
    q: Value,
    scale: Value,
    zero_point: Option<Value>,
    axis: Option<i64>,
) -> Lowered {
    let dtype = cx.dtype(q);
    let float_zero = zero_point.is_some_and(|z| cx.dtype(z).is_float());
    if range(dtype).is_none() || float_zero {
        let scale = along(cx, q, scale, axis)?;
        let zero_point = zero_point.map(|z| along(cx, q, z, axis)).transpose()?;
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
fn affine(cx: &Cx, q: Value, scale: Value, zero_point: Option<Value>) -> Lowered {
    let wide = match cx.dtype(scale) {
        DType::F64 => DType::F64,
        _ => DType::F32,
    };
    let q = cx.cast(q, wide);
    let centred = zero_point.map_or(q, |z| cx.sub(q, cx.cast(z, wide)));
    let result = cx.mul(centred, cx.cast(scale, wide));
    Ok(cx.cast(result, cx.out_dtype()?))
}

/// `clamp(round(x / scale + zero_point))`
fn levels(cx: &Cx, x: Value, scale: Value, zero_point: Option<Value>, min: i64, max: i64) -> Value {
    let wide = match cx.dtype(scale) {
        DType::F64 => DType::F64,
        _ => DType::F32,
    };
    let scaled = cx.mul(cx.cast(x, wide), cx.reciprocal(cx.cast(scale, wide)));
    let level = zero_point.map_or(scaled, |z| cx.add(scaled, cx.cast(z, wide)));
    cx.clamp(cx.round(level), Some(Scalar::Int(min)), Some(Scalar::Int(max)))
}

/// Groups of the last dimension as rows, with one scale and zero point each.
fn grouped(
    cx: &Cx,
    x: Value,
    scale: Value,
    zero_point: Option<Value>,
    group: i64,
) -> (Value, Value, Option<Value>) {
    let group = match cx.dim(x, -1).as_int() {
        Some(last) if group > last => last,
        _ => group,
    };
    let rows = cx.numel(x).floor_div(&Expr::int(group));
    let column = |v| cx.reshape(v, &[rows.clone(), Expr::int(1)]);
    let groups = cx.reshape(x, &[rows.clone(), Expr::int(group)]);
    (groups, column(scale), zero_point.map(column))
}

/// `QuantizeLinear` and `DequantizeLinear` where the range is that of bytes, else the formula.
fn fake_quantize(
    cx: &Cx,
    x: Value,
    scale: Value,
    zero_point: Value,
    axis: Option<i64>,
    min: i64,
    max: i64,
) -> Lowered {
    let given = cx.dtype(x);
    let bytes = [DType::I8, DType::U8];
    let fitting = bytes.into_iter().find(|&d| range(d) == Some((min, max)));
    if let (Some(dtype), false) = (fitting, cx.dtype(zero_point).is_float()) {
        let q = quantize(cx, x, scale, zero_point, axis, (min, max), dtype)?;
        return Ok(cx.cast(dequantize(cx, q, scale, Some(zero_point), axis)?, given));
    }
    let (scale, zero_point) = (along(cx, x, scale, axis)?, along(cx, x, zero_point, axis)?);
    let level = levels(cx, x, scale, Some(zero_point), min, max);
    affine(cx, level, scale, Some(zero_point))
}

/// Where an element is not held at the range's ends; nothing if nobody asks.
fn within(
    cx: &Cx,
    x: Value,
    scale: Value,
    zero_point: Value,
    axis: Option<i64>,
    min: i64,
    max: i64,
) -> Option<Value> {
    if !cx.is_used(1) {
        return None;
    }
    let parameter = |v| along(cx, x, v, axis).ok();
    let (scale, zero_point) = (parameter(scale)?, parameter(zero_point)?);
    let x = cx.cast(x, DType::F32);
    let scaled = cx.mul(x, cx.reciprocal(cx.cast(scale, DType::F32)));
    let level = cx.round(cx.add(scaled, cx.cast(zero_point, DType::F32)));
    Some(cx.and(cx.greater_or_equal(level, min), cx.less_or_equal(level, max)))
}

/// What was worked out, in the types and shapes recorded.
fn recorded(cx: &Cx, outputs: [Value; 2]) -> Lowered<[Value; 2]> {
    let fit = |i: usize, v: Value| match cx.recorded(i) {
        Some(meta) => cx.reshape(cx.cast(v, meta.dtype), &meta.sizes),
        None => v,
    };
    let [scale, zero_point] = outputs;
    Ok([fit(0, scale), fit(1, zero_point)])
}

/// The least and the largest element, 0 among them; over the last dimension or over all.
fn extremes(cx: &Cx, x: Value, axes: &[usize]) -> (Value, Value) {
    let x = cx.cast(x, DType::F32);
    let low = cx.reduce(Reduction::Min, x, axes, !axes.is_empty());
    let high = cx.reduce(Reduction::Max, x, axes, !axes.is_empty());
    (cx.minimum(low, 0.0), cx.maximum(high, 0.0))
}

/// Scale and zero point that map the elements onto the range (`determine_qparams` of torch.ao.quantization).
fn choose_qparams(
    cx: &Cx,
    x: Value,
    min: i64,
    max: i64,
    eps: f64,
    _dtype: DType,
) -> Lowered<[Value; 2]> {
    let (low, high) = extremes(cx, x, &[]);
    let scale = cx.maximum(cx.div(cx.sub(high, low), (max - min) as f64), eps);
    let zero_point = cx.sub(min as f64, cx.round(cx.div(low, scale)));
    let held = cx.clamp(zero_point, Some(Scalar::Int(min)), Some(Scalar::Int(max)));
    recorded(cx, [scale, held])
}

fn choose_qparams_symmetric(
    cx: &Cx,
    x: Value,
    min: i64,
    max: i64,
    eps: f64,
    dtype: DType,
) -> Lowered<[Value; 2]> {
    let (low, high) = extremes(cx, x, &[]);
    let largest = cx.maximum(cx.neg(low), high);
    let scale = cx.maximum(cx.div(largest, (max - min) as f64 / 2.0), eps);
    let middle = if dtype == DType::U8 { 128 } else { 0 };
    recorded(cx, [scale, cx.scalar(middle, DType::I64)])
}

fn per_token_symmetric(cx: &Cx, x: Value, _dtype: DType) -> Lowered<[Value; 2]> {
    let last = cx.rank(x).saturating_sub(1);
    let x = match cx.dtype(x) {
        DType::F16 => cx.cast(x, DType::F32),
        _ => x,
    };
    let largest = cx.reduce(Reduction::Max, cx.abs(x), &[last], true);
    let scale = cx.div(cx.maximum(largest, 1e-5), 127.0);
    let zeros = cx.full(&cx.shape(scale), 0, cx.dtype(scale));
    recorded(cx, [scale, zeros])
}

/// As XNNPACK does: the zero point from the end of the range whose error is smaller.
fn per_token_asymmetric(cx: &Cx, x: Value, _dtype: DType) -> Lowered<[Value; 2]> {
    let (min, max) = (-128.0, 127.0);
    let (low, high) = extremes(cx, x, &[cx.rank(x).saturating_sub(1)]);
    let scale = cx.maximum(cx.div(cx.sub(high, low), max - min), f64::from(f32::EPSILON));
    let (low, high) = (cx.div(low, scale), cx.div(high, scale));
    let error = cx.add(cx.add(low, min), cx.add(high, max));
    let zero_point = cx.select(cx.greater(error, 0.0), cx.sub(min, low), cx.sub(max, high));
    let held = cx.clamp(zero_point, Some(Scalar::Float(min)), Some(Scalar::Float(max)));
    recorded(cx, [scale, cx.round(held)])
}
