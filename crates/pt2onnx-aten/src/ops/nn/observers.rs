//! Fake quantisation with an observer, as quantisation-aware training has it: the range of what it has seen gives scale and zero point.

use super::quantization::{Mapping, nearest_quantized, within};
use crate::{AtenOp, Cx, LowerError, Lowered, arguments, cx::Outputs, op};
use pt2onnx_ir::{Reduction, Value, attrs};
use pt2onnx_tensor::{DType, Scalar};

pub(crate) static OPS: &[AtenOp] =
    &[op!(aten::_fused_moving_avg_obs_fq_helper_functional, observe_and_quantize)];

arguments! {
    /// Arguments of [`observe_and_quantize`]. What is running, `scale` and `zero_point` have one element, or one for each along
    /// `ch_axis` if `per_row_fake_quant`.
    struct ObserverArgs {
        input: Value,
        observer_on: Value,
        fake_quant_on: Value,
        running_min: Value,
        running_max: Value,
        scale: Value,
        zero_point: Value,
        averaging_const: f64,
        quant_min: i64,
        quant_max: i64,
        ch_axis: i64,
        per_row_fake_quant: bool,
        symmetric_quant: bool,
    }
}

/// The range moves towards that of `input` if `observer_on`. If `fake_quant_on`, it gives the scale and zero point with which `input`
/// is quantised, else all three stay. The results are the quantised input, which of its elements are in range, and what the running
/// minimum and maximum, the scale and the zero point become.
fn observe_and_quantize(cx: &Cx, args: ObserverArgs) -> Lowered<Outputs> {
    let x = args.input;
    let axis = args.per_row_fake_quant.then_some(args.ch_axis);
    if axis.is_some() && cx.numel(args.running_min).as_int() == Some(0) {
        return Err(LowerError::unsupported(
            "the observer has no range yet: run the model once before it is exported",
        ));
    }
    let channel = axis.map(|a| cx.axis(x, a)).transpose()?;
    let axes: Vec<usize> = (0..cx.rank(x)).filter(|a| Some(*a) != channel).collect();
    let on = |flag| cx.not(cx.equal(cx.reshape(flag, &[]), 0));
    let (observing, quantizing) = (on(args.observer_on), on(args.fake_quant_on));
    let moved = |op, old| {
        let seen = cx.reduce(op, cx.cast(x, DType::F32), &axes, false);
        let new = moving_average(cx, old, seen, args.averaging_const);
        cx.select(observing, new, old)
    };
    let low = moved(Reduction::Min, args.running_min);
    let high = moved(Reduction::Max, args.running_max);
    let (min, max) = (args.quant_min, args.quant_max);
    let chosen = scale_and_zero_point(cx, (low, high), (min, max), args.symmetric_quant);
    let kept = |new, old| {
        let new = cx.reshape(cx.cast(new, cx.dtype(old)), &cx.shape(old));
        cx.select(quantizing, new, old)
    };
    let (scale, zero_point) = (kept(chosen.0, args.scale), kept(chosen.1, args.zero_point));
    let mapping = Mapping { scale, zero_point, axis, min, max };
    let quantized = cx.select(quantizing, nearest_quantized(cx, x, &mapping)?, x);
    let mask = cx.is_used(1).then(|| within(cx, x, &mapping)).transpose()?;
    let mask = mask.map(|mask| cx.or(mask, cx.not(quantizing)));
    Ok([Some(quantized), mask, Some(low), Some(high), Some(scale), Some(zero_point)].into())
}

/// `old + factor (seen - old)`; what is seen if nothing was seen before.
fn moving_average(cx: &Cx, old: Value, seen: Value, factor: f64) -> Value {
    let seen = cx.reshape(seen, &cx.shape(old));
    let step = cx.mul(cx.cast(cx.sub(seen, old), DType::F64), factor);
    let new = cx.cast(cx.add(cx.cast(old, DType::F64), step), cx.dtype(old));
    cx.select(cx.is_inf(old, attrs::IsInf::default()), seen, new)
}

/// The least scale.
const SMALLEST: f64 = 6.1e-5_f32 as f64;

/// Scale and zero point that map a range, and 0, onto the integers of another: `ChooseQuantizationParams` of PyTorch's kernels. With
/// `symmetric`, a range of both signs has its zero point in the middle.
fn scale_and_zero_point(
    cx: &Cx,
    (low, high): (Value, Value),
    (min, max): (i64, i64),
    symmetric: bool,
) -> (Value, Value) {
    let both = cx.and(cx.less(low, 0.0), cx.greater(high, 0.0));
    let (mut low, mut high) = (low, high);
    if symmetric {
        let (first, last) = (-((max - min) / 2 + 1) as f64, ((max - min) / 2) as f64);
        let step = cx.maximum(cx.abs(cx.div(low, first)), cx.abs(cx.div(high, last)));
        low = cx.select(both, cx.mul(step, first), low);
        high = cx.select(both, cx.mul(step, last), high);
    }
    let (low, high) = (cx.minimum(low, 0.0), cx.maximum(high, 0.0));
    let double = |v| cx.cast(v, DType::F64);
    let scale = cx.div(cx.sub(double(high), double(low)), (max - min) as f64);
    let single = cx.cast(scale, DType::F32);
    let none = cx.is_inf(cx.reciprocal(single), attrs::IsInf::default());
    let scale = cx.select(none, 0.1, scale);
    // A range that is too small for the least scale grows with it.
    let small = cx.less(scale, SMALLEST);
    let growth = cx.div(cx.scalar(SMALLEST, DType::F32), cx.cast(scale, DType::F32));
    let scale = cx.select(small, SMALLEST, scale);
    let in_steps = |end| cx.div(double(cx.select(small, cx.mul(end, growth), end)), scale);
    let (low, high) = (in_steps(low), in_steps(high));
    let (from_low, from_high) = (cx.sub(min as f64, low), cx.sub(max as f64, high));
    let error = |end, bound: i64| cx.sub(bound.abs() as f64, cx.abs(end));
    let nearer = cx.less(error(low, min), error(high, max));
    let mut zero_point = cx.select(nearer, from_low, from_high);
    if symmetric {
        zero_point = cx.select(both, (min + max) as f64 / 2.0, zero_point);
    }
    let nearest = cx.round(zero_point);
    let held = cx.clamp(nearest, Some(Scalar::Int(min)), Some(Scalar::Int(max)));
    (cx.cast(scale, DType::F32), cx.cast(held, DType::I32))
}
