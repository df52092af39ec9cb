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
    one_range {
        "aten._fused_moving_avg_obs_fq_helper_functional(x: f32[s0, 3], o: i64[1], q: i64[1], l: f32[], h: f32[], s: f32[1], z: i32[1], 0.01, 0, 127, -1, False, False) -> (f32[s0, 3], None, f32[], f32[], f32[1], i32[1])" => "
        (float[s0,3] x, int64[1] o, int64[1] q, float l, float h, float[1] s, int32[1] z) => (float[s0,3] _fused_moving_avg_obs_fq_helper_functional_0, float _fused_moving_avg_obs_fq_helper_functional_1, float _fused_moving_avg_obs_fq_helper_functional_2, float[1] _fused_moving_avg_obs_fq_helper_functional_3, int32[1] _fused_moving_avg_obs_fq_helper_functional_4)
        <
          int64[0] val_0 = {},
          int64 val_1 = {0},
          int64[2] val_2 = {0, 1},
          double val_3 = {0.01},
          float val_4 = {0.0},
          double val_5 = {127.0},
          double val_6 = {0.1},
          double val_7 = {6.0999998822808266e-5},
          float val_8 = {6.1e-5},
          double val_9 = {0.0},
          int64[1] val_10 = {1},
          float val_11 = {127.0}
        >
        {
          val_12 = Reshape (o, val_0)
          val_13 = Equal (val_12, val_1)
          val_14 = Not (val_13)
          val_15 = Reshape (q, val_0)
          val_16 = Equal (val_15, val_1)
          val_17 = Not (val_16)
          val_18 = ReduceMin <keepdims: int = 0> (x, val_2)
          val_19 = Sub (val_18, l)
          val_20 = Cast <to: int = 11> (val_19)
          val_21 = Mul (val_20, val_3)
          val_22 = Cast <to: int = 11> (l)
          val_23 = Add (val_22, val_21)
          val_24 = Cast <to: int = 1> (val_23)
          val_25 = IsInf (l)
          val_26 = Where (val_25, val_18, val_24)
          _fused_moving_avg_obs_fq_helper_functional_1 = Where (val_14, val_26, l)
          val_27 = ReduceMax <keepdims: int = 0> (x, val_2)
          val_28 = Sub (val_27, h)
          val_29 = Cast <to: int = 11> (val_28)
          val_30 = Mul (val_29, val_3)
          val_31 = Cast <to: int = 11> (h)
          val_32 = Add (val_31, val_30)
          val_33 = Cast <to: int = 1> (val_32)
          val_34 = IsInf (h)
          val_35 = Where (val_34, val_27, val_33)
          _fused_moving_avg_obs_fq_helper_functional_2 = Where (val_14, val_35, h)
          val_36 = Less (_fused_moving_avg_obs_fq_helper_functional_1, val_4)
          val_37 = Greater (_fused_moving_avg_obs_fq_helper_functional_2, val_4)
          val_38 = And (val_36, val_37)
          val_39 = Min (_fused_moving_avg_obs_fq_helper_functional_1, val_4)
          val_40 = Max (_fused_moving_avg_obs_fq_helper_functional_2, val_4)
          val_41 = Cast <to: int = 11> (val_40)
          val_42 = Cast <to: int = 11> (val_39)
          val_43 = Sub (val_41, val_42)
          val_44 = Div (val_43, val_5)
          val_45 = Cast <to: int = 1> (val_44)
          val_46 = Reciprocal (val_45)
          val_47 = IsInf (val_46)
          val_48 = Where (val_47, val_6, val_44)
          val_49 = Less (val_48, val_7)
          val_50 = Cast <to: int = 1> (val_48)
          val_51 = Div (val_8, val_50)
          val_52 = Where (val_49, val_7, val_48)
          val_53 = Mul (val_39, val_51)
          val_54 = Where (val_49, val_53, val_39)
          val_55 = Cast <to: int = 11> (val_54)
          val_56 = Div (val_55, val_52)
          val_57 = Mul (val_40, val_51)
          val_58 = Where (val_49, val_57, val_40)
          val_59 = Cast <to: int = 11> (val_58)
          val_60 = Div (val_59, val_52)
          val_61 = Sub (val_9, val_56)
          val_62 = Sub (val_5, val_60)
          val_63 = Abs (val_56)
          val_64 = Sub (val_9, val_63)
          val_65 = Abs (val_60)
          val_66 = Sub (val_5, val_65)
          val_67 = Less (val_64, val_66)
          val_68 = Where (val_67, val_61, val_62)
          val_69 = Round (val_68)
          val_70 = Clip (val_69, val_9, val_5)
          val_71 = Cast <to: int = 1> (val_52)
          val_72 = Cast <to: int = 6> (val_70)
          val_73 = Reshape (val_71, val_10)
          _fused_moving_avg_obs_fq_helper_functional_3 = Where (val_17, val_73, s)
          val_74 = Reshape (val_72, val_10)
          _fused_moving_avg_obs_fq_helper_functional_4 = Where (val_17, val_74, z)
          val_75 = Reshape (_fused_moving_avg_obs_fq_helper_functional_3, val_0)
          val_76 = Reshape (_fused_moving_avg_obs_fq_helper_functional_4, val_0)
          val_77 = Reshape (_fused_moving_avg_obs_fq_helper_functional_3, val_0)
          val_78 = Reshape (_fused_moving_avg_obs_fq_helper_functional_4, val_0)
          val_79 = Reciprocal (val_77)
          val_80 = Mul (x, val_79)
          val_81 = Round (val_80)
          val_82 = Cast <to: int = 1> (val_78)
          val_83 = Add (val_81, val_82)
          val_84 = Clip (val_83, val_4, val_11)
          val_85 = Cast <to: int = 1> (val_76)
          val_86 = Sub (val_84, val_85)
          val_87 = Mul (val_86, val_75)
          _fused_moving_avg_obs_fq_helper_functional_0 = Where (val_17, val_87, x)
        }
        ";
    }
}
