//! Fake quantisation with an observer, as quantisation-aware training has it: the range of what it
//! has seen gives scale and zero point.

use crate::math::quantization::{Mapping, nearest_quantized, within};
use crate::meta;
use crate::{AtenOp, Cx, LowerError, Lowered, arguments, checks, cx::Outputs, op};
use pt2onnx_ir::{Reduction, Value, attrs};
use pt2onnx_tensor::{DType, Scalar};

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_fused_moving_avg_obs_fq_helper_functional, observe_and_quantize),
    op!(aten::fused_moving_avg_obs_fake_quant, observe_and_quantize, meta = meta::same),
];

arguments! {
    /// Arguments of [`observe_and_quantize`]. The running range, `scale` and `zero_point` have one
    /// element, or one for each along `ch_axis` if `per_row_fake_quant`.
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

/// The range moves towards that of `input` if `observer_on`. If `fake_quant_on`, it gives the scale
/// and zero point with which `input` is quantised, else all three stay. The results are the
/// quantised input, which of its elements are in range, and what the running minimum and maximum,
/// the scale and the zero point become.
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

/// Scale and zero point that map a range, and 0, onto the integers of another:
/// `ChooseQuantizationParams` of PyTorch's kernels. With `symmetric`, a range of both signs has its
/// zero point in the middle.
///
/// `choose_qparams` in `quantization.rs` is another function of PyTorch: it divides in float32,
/// rounds before it subtracts, and does not enlarge a small range. Each follows its own source, so
/// they share no formula.
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

checks! {
    // One range.
    "aten._fused_moving_avg_obs_fq_helper_functional(x: f32[s0, 3], o: i64[1], q: i64[1], l: f32[], h: f32[], s: f32[1], z: i32[1], 0.01, 0, 127, -1, False, False) -> (f32[s0, 3], None, f32[], f32[], f32[1], i32[1])" => "
    val_0 = Reshape (o, [])
    val_1 = Equal (val_0, 0)
    val_2 = Not (val_1)
    val_3 = Reshape (q, [])
    val_4 = Equal (val_3, 0)
    val_5 = Not (val_4)
    val_6 = ReduceMin <keepdims: int = 0> (x, [0, 1])
    val_7 = Sub (val_6, l)
    val_8 = Cast <to: int = 11> (val_7)
    val_9 = Mul (val_8, double {0.01})
    val_10 = Cast <to: int = 11> (l)
    val_11 = Add (val_10, val_9)
    val_12 = Cast <to: int = 1> (val_11)
    val_13 = IsInf (l)
    val_14 = Where (val_13, val_6, val_12)
    _fused_moving_avg_obs_fq_helper_functional_1 = Where (val_2, val_14, l)
    val_15 = ReduceMax <keepdims: int = 0> (x, [0, 1])
    val_16 = Sub (val_15, h)
    val_17 = Cast <to: int = 11> (val_16)
    val_18 = Mul (val_17, double {0.01})
    val_19 = Cast <to: int = 11> (h)
    val_20 = Add (val_19, val_18)
    val_21 = Cast <to: int = 1> (val_20)
    val_22 = IsInf (h)
    val_23 = Where (val_22, val_15, val_21)
    _fused_moving_avg_obs_fq_helper_functional_2 = Where (val_2, val_23, h)
    val_24 = Less (_fused_moving_avg_obs_fq_helper_functional_1, 0.0)
    val_25 = Greater (_fused_moving_avg_obs_fq_helper_functional_2, 0.0)
    val_26 = And (val_24, val_25)
    val_27 = Min (_fused_moving_avg_obs_fq_helper_functional_1, 0.0)
    val_28 = Max (_fused_moving_avg_obs_fq_helper_functional_2, 0.0)
    val_29 = Cast <to: int = 11> (val_28)
    val_30 = Cast <to: int = 11> (val_27)
    val_31 = Sub (val_29, val_30)
    val_32 = Div (val_31, double {127.0})
    val_33 = Cast <to: int = 1> (val_32)
    val_34 = Reciprocal (val_33)
    val_35 = IsInf (val_34)
    val_36 = Where (val_35, double {0.1}, val_32)
    val_37 = Less (val_36, double {6.0999998822808266e-5})
    val_38 = Cast <to: int = 1> (val_36)
    val_39 = Div (6.1e-5, val_38)
    val_40 = Where (val_37, double {6.0999998822808266e-5}, val_36)
    val_41 = Mul (val_27, val_39)
    val_42 = Where (val_37, val_41, val_27)
    val_43 = Cast <to: int = 11> (val_42)
    val_44 = Div (val_43, val_40)
    val_45 = Mul (val_28, val_39)
    val_46 = Where (val_37, val_45, val_28)
    val_47 = Cast <to: int = 11> (val_46)
    val_48 = Div (val_47, val_40)
    val_49 = Sub (double {0.0}, val_44)
    val_50 = Sub (double {127.0}, val_48)
    val_51 = Abs (val_44)
    val_52 = Sub (double {0.0}, val_51)
    val_53 = Abs (val_48)
    val_54 = Sub (double {127.0}, val_53)
    val_55 = Less (val_52, val_54)
    val_56 = Where (val_55, val_49, val_50)
    val_57 = Round (val_56)
    val_58 = Clip (val_57, double {0.0}, double {127.0})
    val_59 = Cast <to: int = 1> (val_40)
    val_60 = Cast <to: int = 6> (val_58)
    val_61 = Reshape (val_59, [1])
    _fused_moving_avg_obs_fq_helper_functional_3 = Where (val_5, val_61, s)
    val_62 = Reshape (val_60, [1])
    _fused_moving_avg_obs_fq_helper_functional_4 = Where (val_5, val_62, z)
    val_63 = Reshape (_fused_moving_avg_obs_fq_helper_functional_3, [])
    val_64 = Reshape (_fused_moving_avg_obs_fq_helper_functional_4, [])
    val_65 = Reshape (_fused_moving_avg_obs_fq_helper_functional_3, [])
    val_66 = Reshape (_fused_moving_avg_obs_fq_helper_functional_4, [])
    val_67 = Reciprocal (val_65)
    val_68 = Mul (x, val_67)
    val_69 = Round (val_68)
    val_70 = Cast <to: int = 1> (val_66)
    val_71 = Add (val_69, val_70)
    val_72 = Clip (val_71, 0.0, 127.0)
    val_73 = Cast <to: int = 1> (val_64)
    val_74 = Sub (val_72, val_73)
    val_75 = Mul (val_74, val_63)
    _fused_moving_avg_obs_fq_helper_functional_0 = Where (val_5, val_75, x)
    ";
}
