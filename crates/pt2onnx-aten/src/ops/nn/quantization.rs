//! Quantisation: floats to small integers and back.

use crate::math::precision::compute_type;
use crate::math::quantization::{
    Mapping, affine, dequantize, first, nearest_quantized, quantize, within,
};
use crate::math::shape::as_recorded;
use crate::meta::{self, typed};
use crate::{AtenOp, Cx, LowerError, Lowered, args::Ignored, arguments, checks, cx::Outputs, op};
use pt2onnx_ir::{Reduction, Value};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Scalar};

pub(crate) static OPS: &[AtenOp] = &[
    op!(
        aten::_fake_quantize_learnable_per_channel_affine,
        fake_quantize_learnable,
        meta = meta::same
    ),
    op!(
        aten::_fake_quantize_learnable_per_tensor_affine,
        fake_quantize_learnable,
        meta = meta::same
    ),
    op!(
        aten::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams,
        fake_quantize,
        meta = meta_with_mask
    ),
    op!(aten::fake_quantize_per_channel_affine, fake_quantize, meta = meta::same),
    op!(aten::fake_quantize_per_channel_affine_cachemask, fake_quantize, meta = meta_with_mask),
    op!(aten::fake_quantize_per_tensor_affine, fake_quantize, meta = meta::same),
    op!(aten::fake_quantize_per_tensor_affine_tensor_qparams, fake_quantize, meta = meta::same),
    op!(aten::fake_quantize_per_tensor_affine_cachemask, fake_quantize, meta = meta_with_mask),
    op!(
        "pt2onnx::matmul_integer(Tensor a, Tensor b, Tensor a_zero_point, Tensor? b_zero_point) -> Tensor",
        matmul_integer
    ),
    op!(quantized_decomposed::_choose_qparams_per_token_asymmetric_impl, per_token_asymmetric),
    op!(quantized_decomposed::choose_qparams_tensor, choose_qparams, meta = meta_chosen),
    op!(quantized_decomposed::choose_qparams_per_token, per_token_symmetric),
    op!(quantized_decomposed::choose_qparams_per_token_asymmetric, per_token_asymmetric),
    op!(
        quantized_decomposed::choose_qparams_symmetric_tensor,
        choose_qparams_symmetric,
        meta = meta_chosen
    ),
    op!(quantized_decomposed::convert_element_type_no_fuse, convert_element_type),
    op!(
        quantized_decomposed::dequantize_per_channel,
        dequantize_per_channel,
        meta = meta_dequantized
    ),
    op!(quantized_decomposed::dequantize_per_channel_group, dequantize_per_channel_group),
    op!(
        quantized_decomposed::dequantize_per_tensor,
        dequantize_per_tensor,
        meta = meta_dequantized
    ),
    op!(
        quantized_decomposed::dequantize_per_tensor_tensor,
        dequantize_per_tensor,
        meta = meta_dequantized
    ),
    op!(
        quantized_decomposed::dequantize_per_tensor_tensor2,
        dequantize_per_tensor,
        meta = meta_dequantized
    ),
    op!(quantized_decomposed::dequantize_per_token, dequantize_per_token),
    op!(quantized_decomposed::fake_quant_per_channel, fake_quant_per_channel),
    op!(quantized_decomposed::quantize_per_channel, quantize_per_channel),
    op!(quantized_decomposed::quantize_per_channel_group, quantize_per_channel_group),
    op!(quantized_decomposed::quantize_per_tensor, quantize_per_tensor),
    op!(quantized_decomposed::quantize_per_tensor_tensor, quantize_per_tensor),
    op!(quantized_decomposed::quantize_per_tensor_tensor2, quantize_per_tensor_in_range),
    op!(quantized_decomposed::quantize_per_token, quantize_per_token),
];

arguments! {
    /// Arguments of fake quantisations: `scale` and `zero_point` of the tensor, or one for each
    /// element along `axis`.
    struct FakeQuantizeArgs {
        input: Value,
        scale: Value,
        zero_point: Value,
        fake_quant_enabled: Option<Value>,
        axis: Option<i64>,
        quant_min: i64,
        quant_max: i64,
        grad_factor: Ignored,
    }

    /// Arguments of quantisations with scales and zero points of channels (elements along `axis`),
    /// of tokens (rows), or of groups of `group_size` elements of a row.
    struct QuantizeRowsArgs {
        input: Value,
        scales: Value,
        zero_points: Value,
        axis: Option<i64>,
        quant_min: i64,
        quant_max: i64,
        dtype: Option<DType>,
        group_size: Option<i64>,
    }

    /// Arguments of dequantisations with `scale` and `zero_point` of the tensor.
    struct DequantizePerTensorArgs {
        input: Value,
        scale: Value,
        zero_point: Value,
        quant_min: Ignored,
        quant_max: Ignored,
        dtype: Ignored,
        out_dtype: Ignored,
    }

    /// Arguments of dequantisations with scales and zero points of channels, tokens or groups.
    struct DequantizeRowsArgs {
        input: Value,
        scales: Value,
        zero_points: Option<Value>,
        axis: Option<i64>,
        quant_min: Ignored,
        quant_max: Ignored,
        dtype: Ignored,
        group_size: Option<i64>,
        out_dtype: Ignored,
        output_dtype: Ignored,
    }
}

/// A zero point of floats rounded and clamped to the range, as int64.
fn rounded(cx: &Cx, zero_point: Value, min: i64, max: i64) -> Value {
    if !cx.dtype(zero_point).is_float() {
        return zero_point;
    }
    let held = cx.clamp(cx.round(zero_point), Some(Scalar::Int(min)), Some(Scalar::Int(max)));
    cx.cast(held, DType::I64)
}

/// `clamp(round(x / scale + zero_point))`
fn levels(cx: &Cx, x: Value, scale: Value, zero_point: Option<Value>, min: i64, max: i64) -> Value {
    let wide = compute_type(cx, cx.dtype(scale));
    let scaled = cx.mul(cx.cast(x, wide), cx.reciprocal(cx.cast(scale, wide)));
    let level = zero_point.map_or(scaled, |z| cx.add(scaled, cx.cast(z, wide)));
    cx.clamp(cx.round(level), Some(Scalar::Int(min)), Some(Scalar::Int(max)))
}

/// `x` with each group of its last dimension as a row, and the scale and zero point of each row as
/// columns.
fn grouped(
    cx: &Cx,
    x: Value,
    scale: Value,
    zero_point: Option<Value>,
    group: Option<i64>,
) -> Lowered<(Value, Value, Option<Value>)> {
    let group = group.ok_or_else(|| {
        LowerError::unsupported("quantisation by groups needs the argument `group_size`")
    })?;
    let group = match cx.dim(x, -1).as_int() {
        Some(last) if group > last => last,
        _ => group,
    };
    let rows = cx.numel(x).floor_div(&Expr::int(group));
    let column = |v| cx.reshape(v, &[rows.clone(), Expr::int(1)]);
    let groups = cx.reshape(x, &[rows.clone(), Expr::int(group)]);
    Ok((groups, column(scale), zero_point.map(column)))
}

/// [`nearest_quantized`], and [`within`] if used. If fake quantisation is disabled at run time, the
/// input and a mask of true.
fn fake_quantize(cx: &Cx, args: FakeQuantizeArgs) -> Lowered<Outputs> {
    let FakeQuantizeArgs { input, scale, zero_point, axis, quant_min, quant_max, .. } = args;
    let mapping = Mapping { scale, zero_point, axis, min: quant_min, max: quant_max };
    let result = nearest_quantized(cx, input, &mapping)?;
    let enabled = args.fake_quant_enabled.map(|e| cx.not(cx.equal(first(cx, e), 0)));
    let mask = cx.is_used(1).then(|| within(cx, input, &mapping)).transpose()?;
    let result = enabled.map_or(result, |e| cx.select(e, result, input));
    let mask = mask.map(|mask| enabled.map_or(mask, |e| cx.or(mask, cx.not(e))));
    Ok([Some(result), mask].into())
}

/// [`fake_quantize`] with a learnt zero point, which is rounded and clamped to the range.
fn fake_quantize_learnable(cx: &Cx, mut args: FakeQuantizeArgs) -> Lowered<Outputs> {
    args.zero_point = rounded(cx, args.zero_point, args.quant_min, args.quant_max);
    fake_quantize(cx, args)
}

/// [`nearest_quantized`] of channels.
fn fake_quant_per_channel(cx: &Cx, args: QuantizeRowsArgs) -> Lowered {
    nearest_quantized(cx, args.input, &args.mapping())
}

impl QuantizeRowsArgs {
    /// How these arguments map numbers to integers.
    fn mapping(&self) -> Mapping {
        Mapping {
            scale: self.scales,
            zero_point: self.zero_points,
            axis: self.axis,
            min: self.quant_min,
            max: self.quant_max,
        }
    }

    /// The type of the result. An op without the parameter `dtype` has none.
    fn result_type(&self) -> Lowered<DType> {
        self.dtype.ok_or_else(|| LowerError::unsupported("quantisation needs the argument `dtype`"))
    }
}

/// `clamp(round(x / scale) + zero_point)` with one scale and zero point.
fn quantize_per_tensor(
    cx: &Cx,
    input: Value,
    scale: Value,
    zero_point: Value,
    quant_min: i64,
    quant_max: i64,
    dtype: DType,
) -> Lowered {
    let mapping = Mapping { scale, zero_point, axis: None, min: quant_min, max: quant_max };
    quantize(cx, input, &mapping, dtype)
}

/// [`quantize_per_tensor`] with a range that is only known at run time.
fn quantize_per_tensor_in_range(
    cx: &Cx,
    input: Value,
    scale: Value,
    zero_point: Value,
    quant_min: Value,
    quant_max: Value,
    dtype: DType,
) -> Lowered {
    let x = cx.cast(input, DType::F32);
    let float = |v| cx.cast(first(cx, v), DType::F32);
    let scale = float(scale);
    let level = cx.add(cx.round(cx.div(x, scale)), float(zero_point));
    let above = cx.maximum(level, float(quant_min));
    Ok(cx.cast(cx.minimum(above, float(quant_max)), dtype))
}

/// `clamp(round(x / scale) + zero_point)` with a scale and zero point for each channel.
fn quantize_per_channel(cx: &Cx, args: QuantizeRowsArgs) -> Lowered {
    quantize(cx, args.input, &args.mapping(), args.result_type()?)
}

/// [`levels`] with a scale and zero point for each group of a row.
fn quantize_per_channel_group(cx: &Cx, args: QuantizeRowsArgs) -> Lowered {
    let (x, z) = (args.input, Some(args.zero_points));
    let (groups, s, z) = grouped(cx, x, args.scales, z, args.group_size)?;
    let levels = levels(cx, groups, s, z, args.quant_min, args.quant_max);
    Ok(cx.reshape(cx.cast(levels, args.result_type()?), &cx.shape(x)))
}

/// [`levels`] with a scale and zero point for each row.
fn quantize_per_token(cx: &Cx, args: QuantizeRowsArgs) -> Lowered {
    let (s, z) = (args.scales, Some(args.zero_points));
    let levels = levels(cx, args.input, s, z, args.quant_min, args.quant_max);
    Ok(cx.cast(levels, args.result_type()?))
}

/// `(q - zero_point) * scale` with one scale and zero point.
fn dequantize_per_tensor(cx: &Cx, args: DequantizePerTensorArgs) -> Lowered {
    dequantize(cx, args.input, args.scale, Some(args.zero_point), None)
}

/// `(q - zero_point) * scale` with a scale and zero point for each channel.
fn dequantize_per_channel(cx: &Cx, args: DequantizeRowsArgs) -> Lowered {
    dequantize(cx, args.input, args.scales, args.zero_points, args.axis)
}

/// `(q - zero_point) * scale` with a scale and zero point for each group of a row.
fn dequantize_per_channel_group(cx: &Cx, args: DequantizeRowsArgs) -> Lowered {
    let q = args.input;
    let (groups, s, z) = grouped(cx, q, args.scales, args.zero_points, args.group_size)?;
    Ok(cx.reshape(affine(cx, groups, s, z)?, &cx.shape(q)))
}

/// `(q - zero_point) * scale` with a scale and zero point for each row.
fn dequantize_per_token(cx: &Cx, args: DequantizeRowsArgs) -> Lowered {
    affine(cx, args.input, args.scales, args.zero_points)
}

/// The int32 product of matrices of bytes: `MatMulInteger`. TorchScript's dynamic layers become
/// this.
fn matmul_integer(
    cx: &Cx,
    a: Value,
    b: Value,
    a_zero_point: Value,
    b_zero_point: Option<Value>,
) -> Lowered {
    let a_zero_point = cx.cast(first(cx, a_zero_point), cx.dtype(a));
    let b_zero_point = b_zero_point.map(|zero| cx.cast(zero, cx.dtype(b)));
    Ok(cx.matmul_integer(a, b, Some(a_zero_point), b_zero_point))
}

/// `x` as another type.
fn convert_element_type(cx: &Cx, x: Value, dtype: DType) -> Lowered {
    Ok(cx.cast(x, dtype))
}

/// Scale and zero point, in the types and shapes that PyTorch recorded.
fn parameters(cx: &Cx, scale: Value, zero_point: Value) -> Lowered<[Value; 2]> {
    Ok([as_recorded(cx, 0, scale), as_recorded(cx, 1, zero_point)])
}

/// The smallest and the largest of the elements and 0, over `axes` or over all.
fn extremes(cx: &Cx, x: Value, axes: &[usize]) -> (Value, Value) {
    let x = cx.cast(x, DType::F32);
    let low = cx.reduce(Reduction::Min, x, axes, !axes.is_empty());
    let high = cx.reduce(Reduction::Max, x, axes, !axes.is_empty());
    (cx.minimum(low, 0.0), cx.maximum(high, 0.0))
}

/// Scale and zero point that map the range of the elements onto `min..=max`: `scale = (high - low)
/// / (max - min)`, `zero_point = min - round(low / scale)` (`determine_qparams` of
/// torch.ao.quantization).
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
    parameters(cx, scale, held)
}

/// [`choose_qparams`] with a zero point in the middle of the range: `scale = 2 max|x| / (max -
/// min)`.
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
    parameters(cx, scale, cx.scalar(middle, DType::I64))
}

/// For each row, `scale = max|x| / 127` and a zero point of 0.
fn per_token_symmetric(cx: &Cx, x: Value, _dtype: DType) -> Lowered<[Value; 2]> {
    let last = cx.rank(x).saturating_sub(1);
    let x = match cx.dtype(x) {
        DType::F16 => cx.cast(x, DType::F32),
        _ => x,
    };
    let largest = cx.reduce(Reduction::Max, cx.abs(x), &[last], true);
    let scale = cx.div(cx.maximum(largest, 1e-5), 127.0);
    let zeros = cx.full(&cx.shape(scale), 0, cx.dtype(scale));
    parameters(cx, scale, zeros)
}

/// [`choose_qparams`] of each row for int8. Like XNNPACK, it takes the zero point from the end of
/// the range that has the smaller error.
fn per_token_asymmetric(cx: &Cx, x: Value, _dtype: DType) -> Lowered<[Value; 2]> {
    let (min, max) = (-128.0, 127.0);
    let (low, high) = extremes(cx, x, &[cx.rank(x).saturating_sub(1)]);
    let scale = cx.maximum(cx.div(cx.sub(high, low), max - min), f64::from(f32::EPSILON));
    let (low, high) = (cx.div(low, scale), cx.div(high, scale));
    let error = cx.add(cx.add(low, min), cx.add(high, max));
    let zero_point = cx.select(cx.greater(error, 0.0), cx.sub(min, low), cx.sub(max, high));
    let held = cx.clamp(zero_point, Some(Scalar::Float(min)), Some(Scalar::Float(max)));
    parameters(cx, scale, cx.round(held))
}

arguments! {
    struct Dequantized { input: Value, out_dtype: Option<DType> }
}

/// The values, and where they are within the range.
fn meta_with_mask(cx: &Cx, x: Value) -> Lowered<[Value; 2]> {
    Ok([meta::same(cx, x)?, typed(cx, DType::Bool, &cx.shape(x))])
}

/// A scale and a zero point.
fn meta_chosen(cx: &Cx) -> Lowered<[Value; 2]> {
    let one = [Expr::ONE];
    Ok([typed(cx, DType::F64, &one), typed(cx, DType::I64, &one)])
}

fn meta_dequantized(cx: &Cx, args: Dequantized) -> Lowered {
    Ok(typed(cx, args.out_dtype.unwrap_or(DType::F32), &cx.shape(args.input)))
}

checks! {
    // Products of integers.
    "pt2onnx.matmul_integer(a: u8[s0, 3], b: i8[3, 2], z: i64[1], None) -> i32[s0, 2]" => "
    val_0 = Reshape (z, [])
    val_1 = Cast <to: int = 2> (val_0)
    matmul_integer = MatMulInteger (a, b, val_1)
    ";

    // A narrow range is clamped.
    "quantized_decomposed.quantize_per_tensor(x: f32[s0], 0.5, 3, -127, 127, torch.int8) -> i8[s0]" => "
    val_0 = Cast <to: int = 3> (3)
    val_1 = QuantizeLinear (x, 0.5, val_0)
    quantize_per_tensor = Clip (val_1, int8 {-127})
    ";

    // Four bits by the formula.
    "aten.fake_quantize_per_channel_affine(x: f32[s0, 3], s: f32[3], z: i32[3], 1, -8, 7) -> f32[s0, 3]" => "
    val_0 = Reciprocal (s)
    val_1 = Mul (x, val_0)
    val_2 = Round (val_1)
    val_3 = Cast <to: int = 1> (z)
    val_4 = Add (val_2, val_3)
    val_5 = Clip (val_4, -8.0, 7.0)
    val_6 = Cast <to: int = 1> (z)
    val_7 = Sub (val_5, val_6)
    fake_quantize_per_channel_affine = Mul (val_7, s)
    ";
}
