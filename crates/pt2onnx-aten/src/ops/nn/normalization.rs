//! Normalisations: batch, instance, layer, group, root mean square, and of weights.

use crate::math::precision::{compute_type, epsilon};
use crate::math::reduce::{may_be_empty_along, reduce};
use crate::math::shape::has_no_elements;
use crate::meta::{sized, typed, unknown};
use crate::{
    AtenOp, Complex, Cx, LowerError, Lowered, args::Ignored, arguments, checks, cx::Outputs, op,
};
use pt2onnx_ir::{Reduction, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_batch_norm_impl_index, native_batch_norm),
    op!(aten::_batch_norm_no_update, native_batch_norm, training = false),
    op!(aten::_batch_norm_with_update, native_batch_norm, meta = meta_batch_norm, training = true),
    op!(aten::_batch_norm_with_update_functional, batch_norm_with_update, training = true),
    op!(aten::_fused_rms_norm, rms_norm),
    op!(aten::_native_batch_norm_legit, native_batch_norm, meta = meta_batch_norm),
    op!(aten::_native_batch_norm_legit_no_stats, native_batch_norm, meta = meta_batch_norm),
    op!(aten::_native_batch_norm_legit_functional, native_batch_norm_functional),
    op!(
        aten::_native_batch_norm_legit_no_training,
        native_batch_norm,
        meta = meta_batch_norm,
        training = false
    ),
    op!(aten::_weight_norm, weight_norm),
    op!(aten::_weight_norm_interface, weight_norm),
    op!(aten::batch_norm, native_batch_norm),
    op!(aten::group_norm, group_norm),
    op!(aten::instance_norm, instance_norm),
    op!(aten::layer_norm, native_layer_norm),
    op!(aten::native_batch_norm, native_batch_norm, meta = meta_batch_norm),
    op!(aten::native_group_norm, native_group_norm, meta = meta_group_norm),
    op!(aten::native_layer_norm, native_layer_norm, meta = meta_layer_norm),
    op!(aten::rms_norm, rms_norm, complex = complex_rms_norm),
];

arguments! {
    /// Arguments of batch and instance normalisations. Those of instances call training
    /// `use_input_stats`.
    struct BatchNormArgs {
        input: Value,
        weight: Option<Value>,
        bias: Option<Value>,
        running_mean: Option<Value>,
        running_var: Option<Value>,
        training: Option<bool>,
        use_input_stats: Option<bool>,
        momentum: f64,
        eps: f64,
    }

    /// Arguments of [`native_layer_norm`].
    struct LayerNormArgs {
        input: Value,
        normalized_shape: Vec<Expr>,
        weight: Option<Value>,
        bias: Option<Value>,
        eps: f64,
    }

    /// Arguments of [`native_group_norm`]. The sizes are those of `input`.
    #[expect(non_snake_case, reason = "the op's names")]
    struct NativeGroupNormArgs {
        input: Value,
        weight: Option<Value>,
        bias: Option<Value>,
        N: Ignored,
        C: Ignored,
        HxW: Ignored,
        group: i64,
        eps: f64,
    }
}

impl BatchNormArgs {
    /// Whether mean and variance are those of the input.
    fn trains(&self) -> bool {
        self.training.or(self.use_input_stats) == Some(true)
    }
}

/// `v * (g / |v|)` and the norm `|v|`, which is taken over all dimensions but `dim`.
fn weight_norm(cx: &Cx, v: Value, g: Value, dim: i64) -> Lowered<[Value; 2]> {
    let kept = (dim != -1).then(|| cx.axis(v, dim)).transpose()?;
    let axes: Vec<usize> = (0..cx.rank(v)).filter(|&a| Some(a) != kept).collect();
    let norm = reduce(cx, Reduction::L2, v, &axes, true);
    Ok([cx.mul(v, cx.div(g, norm)), cx.cast(norm, cx.dtype(g))])
}

/// The result of a batch normalisation, and the statistics that it used.
struct BatchNorm {
    result: Value,
    /// Mean of each channel.
    mean: Value,
    /// Biased variance of each channel.
    variance: Value,
    /// The new running statistics, if a node has computed them from the biased variance.
    updated: Option<[Value; 2]>,
}

/// `(x - mean) / sqrt(variance + eps) * weight + bias` for each channel (dimension 1):
/// `BatchNormalization`. Mean and variance are those of the batch in training, else the running
/// ones. Variances of float64 get the rest of `eps`: ONNX's epsilon is a float32.
fn batch_norm(cx: &Cx, args: &BatchNormArgs) -> Lowered<BatchNorm> {
    let (x, weight, bias) = (args.input, args.weight, args.bias);
    if cx.writes_training_nodes()
        && args.trains()
        && can_train(cx, x)
        && let Some(running) = args.running_mean.zip(args.running_var)
    {
        return Ok(trained_batch_norm(cx, args, running));
    }
    let (mean, variance) = match (args.trains(), args.running_mean, args.running_var) {
        (false, Some(mean), Some(var)) => (mean, var),
        (false, ..) => {
            return Err(LowerError::unsupported(
                "batch norm outside of training needs running statistics",
            ));
        }
        (true, ..) if has_no_elements(&cx.shape(x)) => {
            let nothing = cx.full(&[cx.dim(x, 1)], f64::NAN, compute_type(cx, cx.dtype(x)));
            (nothing, nothing)
        }
        (true, ..) => {
            let axes: Vec<usize> = (0..cx.rank(x)).filter(|&a| a != 1).collect();
            moments(cx, x, &axes)
        }
    };
    if has_no_elements(&cx.shape(x)) {
        return Ok(BatchNorm { result: x, mean, variance, updated: None });
    }
    let dtype = weight.or(bias).map_or(cx.dtype(x), |v| cx.dtype(v));
    let [scale, shift] = affine(cx, args);
    let epsilon = args.eps as f32;
    // A batch of one with its own statistics is an instance.
    let one = args.trains() && cx.rank(x) > 2 && cx.dim(x, 0) == Expr::int(1);
    let result = if one && dtype == cx.dtype(x) {
        instances(cx, x, Some([scale, shift]), args.eps)
    } else {
        let exact = match cx.dtype(variance) {
            DType::F64 => cx.add(variance, args.eps - f64::from(epsilon)),
            _ => variance,
        };
        let options = attrs::BatchNormalization { epsilon, ..Default::default() };
        cx.batch_normalization(x, scale, shift, mean, exact, options)
    };
    Ok(BatchNorm { result, mean, variance, updated: None })
}

/// Weight and bias of each channel: 1 and 0 where there are none.
fn affine(cx: &Cx, args: &BatchNormArgs) -> [Value; 2] {
    let channels = [cx.dim(args.input, 1)];
    let dtype = args.weight.or(args.bias).map_or(cx.dtype(args.input), |v| cx.dtype(v));
    let scale = args.weight.unwrap_or_else(|| cx.full(&channels, 1, dtype));
    [scale, args.bias.unwrap_or_else(|| cx.full(&channels, 0, dtype))]
}

/// Whether ONNX's node for training gives PyTorch's numbers: its epsilon is a float32.
fn can_train(cx: &Cx, x: Value) -> bool {
    cx.dtype(x) != DType::F64 && cx.rank(x) > 1 && !has_no_elements(&cx.shape(x))
}

/// [`batch_norm`] in training as one node. Mean and variance are computed if an output needs them.
fn trained_batch_norm(cx: &Cx, args: &BatchNormArgs, running: (Value, Value)) -> BatchNorm {
    let (x, [scale, shift]) = (args.input, affine(cx, args));
    let options = attrs::BatchNormalization {
        epsilon: args.eps as f32,
        momentum: (1.0 - args.momentum) as f32,
        training_mode: true,
    };
    // The node gets running statistics only if the program has some: ONNX Runtime writes into them.
    let made = cx.batch_normalization_n(3, x, scale, shift, running.0, running.1, options);
    let updated = [made[1], made[2]];
    let axes: Vec<usize> = (0..cx.rank(x)).filter(|&a| a != 1).collect();
    let is_read = cx.is_used(1) || cx.is_used(2);
    let (mean, variance) = if is_read { moments(cx, x, &axes) } else { updated.into() };
    BatchNorm { result: made[0], mean, variance, updated: Some(updated) }
}

/// The running variance after an update with the biased variance of `n` elements, as one with the
/// unbiased variance: `updated + (updated - (1 - momentum) running) / (n - 1)`.
fn unbiased_update(cx: &Cx, args: &BatchNormArgs, running: Value, updated: Value) -> Value {
    let others = &cx.numel(args.input).floor_div(&cx.dim(args.input, 1)) - 1;
    let added = cx.sub(updated, cx.mul(running, 1.0 - args.momentum));
    cx.add(updated, cx.div(added, cx.cast(cx.size(&others), cx.dtype(updated))))
}

/// Mean and biased variance over `axes`, which the results do not have. float16 and bfloat16 are
/// computed in float32.
fn moments(cx: &Cx, x: Value, axes: &[usize]) -> (Value, Value) {
    let x = cx.cast(x, compute_type(cx, cx.dtype(x)));
    let mean = cx.reduce(Reduction::Mean, x, axes, true);
    let centred = cx.sub(x, mean);
    let variance = cx.reduce(Reduction::Mean, cx.mul(centred, centred), axes, false);
    (cx.squeeze(mean, axes), variance)
}

/// `1 / sqrt(variance + eps)`
fn inverse_deviation(cx: &Cx, variance: Value, eps: f64) -> Value {
    cx.reciprocal(cx.sqrt(cx.add(variance, eps)))
}

/// [`batch_norm`]. Outside of training PyTorch on a CPU returns empty tensors for the statistics.
fn native_batch_norm(cx: &Cx, args: BatchNormArgs) -> Lowered<Outputs> {
    let norm = batch_norm(cx, &args)?;
    Ok(saved(cx, &norm, args.eps))
}

/// Result, mean, inverse deviation and reserve. The last three are computed only if they are used;
/// they are empty if PyTorch recorded them as empty.
fn saved(cx: &Cx, norm: &BatchNorm, eps: f64) -> Outputs {
    let statistic = |i: usize, value: &dyn Fn() -> Value| {
        let meta = cx.recorded(i).filter(|_| cx.is_used(i))?;
        let empty = meta.sizes.as_slice() == [Expr::int(0)];
        Some(if empty { cx.full(&meta.sizes, 0, meta.dtype) } else { cx.cast(value(), meta.dtype) })
    };
    [
        Some(norm.result),
        statistic(1, &|| norm.mean),
        statistic(2, &|| inverse_deviation(cx, norm.variance, eps)),
        cx.recorded(3)
            .filter(|m| cx.is_used(3) && m.sizes.as_slice() == [Expr::int(0)])
            .map(|m| cx.full(&m.sizes, 0, m.dtype)),
    ]
    .into()
}

/// [`native_batch_norm`], and the updated running statistics as outputs 3 and 4.
fn native_batch_norm_functional(cx: &Cx, args: BatchNormArgs) -> Lowered<Outputs> {
    with_statistics(cx, &args, 3)
}

/// [`native_batch_norm`], and the updated running statistics as outputs 4 and 5, after a reserve.
fn batch_norm_with_update(cx: &Cx, args: BatchNormArgs) -> Lowered<Outputs> {
    with_statistics(cx, &args, 4)
}

/// The first `first` outputs of [`native_batch_norm`], then running mean and unbiased variance
/// after the update: `running + momentum * (batch - running)`.
fn with_statistics(cx: &Cx, args: &BatchNormArgs, first: usize) -> Lowered<Outputs> {
    let norm = batch_norm(cx, args)?;
    let mut outputs = saved(cx, &norm, args.eps);
    outputs.0.truncate(first);
    let count = cx.numel(args.input).floor_div(&cx.dim(args.input, 1));
    let statistics = [(args.running_mean, norm.mean), (args.running_var, norm.variance)];
    for (i, (running, now)) in statistics.into_iter().enumerate() {
        let updated = running.filter(|_| cx.is_used(first + i)).map(|running| {
            let dtype = cx.recorded(first + i).map_or(cx.dtype(running), |meta| meta.dtype);
            let running = cx.cast(running, dtype);
            if !args.trains() {
                return running;
            }
            if let Some(updated) = norm.updated.map(|updated| updated[i]) {
                let exact = [updated, unbiased_update(cx, args, running, updated)];
                return cx.cast(exact[i], dtype);
            }
            let n = |e: &Expr| cx.cast(cx.size(e), cx.dtype(now));
            let now = match i {
                0 => now,
                // The unbiased variance.
                _ => cx.mul(now, cx.div(n(&count), n(&(&count - 1)))),
            };
            let now = cx.cast(now, dtype);
            cx.add(cx.mul(now, args.momentum), cx.mul(running, 1.0 - args.momentum))
        });
        outputs.0.push(updated);
    }
    Ok(outputs)
}

/// [`batch_norm`] of each element of the batch alone: `InstanceNormalization`. Without
/// `use_input_stats`, [`batch_norm`] with the running statistics.
fn instance_norm(cx: &Cx, args: BatchNormArgs) -> Lowered {
    if !args.trains() {
        return Ok(batch_norm(cx, &args)?.result);
    }
    let BatchNormArgs { input, weight, bias, eps, .. } = args;
    if has_no_elements(&cx.shape(input)) {
        return Ok(input);
    }
    let channels = [cx.dim(input, 1)];
    let scale = weight.unwrap_or_else(|| cx.full(&channels, 1, cx.dtype(input)));
    let shift = bias.unwrap_or_else(|| cx.full(&channels, 0, cx.dtype(input)));
    Ok(instances(cx, input, Some([scale, shift]), eps))
}

/// Each channel of each element of the batch normalised, then scale and shift of the channels:
/// `InstanceNormalization`. ONNX Runtime computes it for float64 in float32, where squares
/// overflow, so float64 uses the formula.
fn instances(cx: &Cx, x: Value, channels: Option<[Value; 2]>, eps: f64) -> Value {
    let dtype = cx.dtype(x);
    if dtype != DType::F64 {
        let all = |number: i64| cx.full(&[cx.dim(x, 1)], number, dtype);
        let [scale, shift] = channels.unwrap_or_else(|| [all(1), all(0)]);
        let options = attrs::InstanceNormalization { epsilon: eps as f32 };
        return cx.instance_normalization(x, scale, shift, options);
    }
    let axes: Vec<usize> = (2..cx.rank(x)).collect();
    let normal = normalised(cx, x, &axes, eps);
    match channels.map(|all| all.map(|v| cx.unsqueeze(v, &(1..=axes.len()).collect::<Vec<_>>()))) {
        Some([scale, shift]) => cx.add(cx.mul(normal, scale), shift),
        None => normal,
    }
}

/// `(x - mean) / sqrt(variance + eps)`
fn normalised(cx: &Cx, x: Value, axes: &[usize], eps: f64) -> Value {
    let mean = |x: Value| cx.reduce(Reduction::Mean, x, axes, true);
    let centred = cx.sub(x, mean(x));
    let deviation = cx.sqrt(cx.add(mean(cx.mul(centred, centred)), eps));
    cx.div(centred, deviation)
}

/// The last `n` dimensions.
fn last_axes(cx: &Cx, x: Value, n: usize) -> Vec<usize> {
    (cx.rank(x).saturating_sub(n)..cx.rank(x)).collect()
}

/// The first `outputs` of `LayerNormalization`: result, mean, inverse deviation (not of float64).
fn layer_norm(cx: &Cx, args: LayerNormArgs, outputs: usize) -> Vec<Value> {
    let given = cx.dtype(args.input);
    let axes = last_axes(cx, args.input, args.normalized_shape.len());
    // ONNX Runtime refuses to normalise nothing.
    if outputs == 1 && may_be_empty_along(cx, args.input, &axes) {
        return vec![layer_norm_by_formula(cx, args, &axes)];
    }
    // A weight of another type than `x` is float32, and `x` is float16 or bfloat16.
    let dtype = args.weight.or(args.bias).map_or(given, |w| cx.dtype(w));
    let x = cx.cast(args.input, dtype);
    let weight = args.weight.unwrap_or_else(|| cx.full(&args.normalized_shape, 1, dtype));
    let (x, epsilon) = match dtype {
        DType::F64 => scaled_for_epsilon(cx, x, args.eps),
        _ => (x, args.eps as f32),
    };
    let axis = -(args.normalized_shape.len() as i64);
    let options = attrs::LayerNormalization { axis, epsilon, ..Default::default() };
    let mut all = cx.layer_normalization_n(outputs, x, weight, args.bias, options);
    all[0] = cx.cast(all[0], given);
    all.to_vec()
}

/// [`layer_norm`] without the operator of that name.
fn layer_norm_by_formula(cx: &Cx, args: LayerNormArgs, axes: &[usize]) -> Value {
    let given = cx.dtype(args.input);
    let x = cx.cast(args.input, compute_type(cx, given));
    let wide = |v: Value| cx.cast(v, cx.dtype(x));
    let normal = normalised(cx, x, axes, args.eps);
    let scaled = args.weight.map_or(normal, |weight| cx.mul(normal, wide(weight)));
    let moved = args.bias.map_or(scaled, |bias| cx.add(scaled, wide(bias)));
    cx.cast(moved, given)
}

/// `c * x` and the float32 `c * c * eps`: both are normalised as `x` with `eps`, which float32 may
/// not have. `c` is about 2, because ONNX Runtime leaves out factors that are nearly 1.
fn scaled_for_epsilon(cx: &Cx, x: Value, eps: f64) -> (Value, f32) {
    if eps > 0.0 {
        let epsilon = ((4.0 * eps) as f32).clamp(f32::MIN_POSITIVE, f32::MAX);
        (cx.mul(x, (f64::from(epsilon) / eps).sqrt()), epsilon)
    } else {
        (x, eps as f32)
    }
}

/// `(x - mean) / sqrt(variance + eps) * weight + bias` with mean and variance over the last
/// dimensions; mean and inverse deviation too, if used.
fn native_layer_norm(cx: &Cx, args: LayerNormArgs) -> Lowered<Outputs> {
    if !cx.is_used(1) && !cx.is_used(2) {
        return Ok(layer_norm(cx, args, 1).into());
    }
    let (x, eps) = (args.input, args.eps);
    let axes = last_axes(cx, x, args.normalized_shape.len());
    if cx.dtype(x) == DType::F32 && !may_be_empty_along(cx, x, &axes) {
        return Ok(layer_norm(cx, args, 3).into());
    }
    let result = layer_norm(cx, args, 1)[0];
    let (mean, variance) = moments(cx, x, &axes);
    let statistic = |i: usize, v: Value| {
        let meta = cx.recorded(i)?;
        Some(cx.cast(cx.unsqueeze(v, &axes), meta.dtype))
    };
    Ok([Some(result), statistic(1, mean), statistic(2, inverse_deviation(cx, variance, eps))]
        .into())
}

/// `x` as `(batch, groups, elements of a group)`.
fn grouped(cx: &Cx, x: Value, groups: i64) -> Lowered {
    let shape = cx.shape(x);
    let [batch, rest @ ..] = shape.as_slice() else {
        return Err(LowerError::unsupported(
            "group norm needs a tensor with a dimension of channels, but the tensor is 0-d",
        ));
    };
    let per_group = Expr::product(rest.to_vec()).floor_div(&Expr::int(groups));
    Ok(cx.reshape(x, &[batch.clone(), Expr::int(groups), per_group]))
}

/// `InstanceNormalization` of each group of channels, then scale and shift of each channel.
fn group_norm(
    cx: &Cx,
    x: Value,
    groups: i64,
    weight: Option<Value>,
    bias: Option<Value>,
    eps: f64,
) -> Lowered {
    let shape = cx.shape(x);
    let [_, channels, spatial @ ..] = shape.as_slice() else {
        return Err(LowerError::unsupported("group norm needs at least two dimensions"));
    };
    if has_no_elements(&cx.shape(x)) {
        return Ok(x);
    }
    let given = cx.dtype(x);
    let normal = instances(cx, grouped(cx, x, groups)?, None, eps);
    let mut result = cx.reshape_like(normal, x);
    let per_channel: Vec<Expr> =
        [channels.clone()].into_iter().chain(spatial.iter().map(|_| Expr::int(1))).collect();
    let beside = |x, v| cx.promote(x, cx.reshape(v, &per_channel));
    if let Some((a, b)) = weight.map(|weight| beside(result, weight)) {
        result = cx.mul(a, b);
    }
    if let Some((a, b)) = bias.map(|bias| beside(result, bias)) {
        result = cx.add(a, b);
    }
    Ok(cx.cast(result, given))
}

/// [`group_norm`]; mean and inverse deviation of each group too, if used.
fn native_group_norm(cx: &Cx, args: NativeGroupNormArgs) -> Lowered<Outputs> {
    let (x, eps) = (args.input, args.eps);
    let result = group_norm(cx, x, args.group, args.weight, args.bias, eps)?;
    if !cx.is_used(1) && !cx.is_used(2) {
        return Ok(result.into());
    }
    let (mean, variance) = moments(cx, grouped(cx, x, args.group)?, &[2]);
    let statistic = |i: usize, v: Value| Some(cx.cast(v, cx.recorded(i)?.dtype));
    Ok([Some(result), statistic(1, mean), statistic(2, inverse_deviation(cx, variance, eps))]
        .into())
}

/// `x / sqrt(mean(x * x) + eps) * weight` over the last dimensions; the inverse of that root too,
/// if used. `eps` is the type's epsilon if not given. float16 and bfloat16 are computed in float32.
fn rms_norm(
    cx: &Cx,
    x: Value,
    normalized_shape: Vec<Expr>,
    weight: Option<Value>,
    eps: Option<f64>,
) -> Lowered<Outputs> {
    let (given, dtype) = (cx.dtype(x), compute_type(cx, cx.dtype(x)));
    let eps = eps.unwrap_or(epsilon(dtype));
    let axes = last_axes(cx, x, normalized_shape.len());
    let x = cx.cast(x, dtype);
    let square = cx.reduce(Reduction::Mean, cx.mul(x, x), &axes, true);
    let root = cx.sqrt(cx.add(square, eps));
    let mut result = cx.div(x, root);
    if let Some(weight) = weight {
        result = cx.mul(result, cx.cast(weight, dtype));
    }
    let result = cx.cast(result, given);
    let inverse = cx.recorded(1).filter(|_| cx.is_used(1));
    Ok([Some(result), inverse.map(|m| cx.cast(cx.reciprocal(root), m.dtype))].into())
}

/// [`rms_norm`] of complex numbers as PyTorch computes it: `x * x` is the complex square, not
/// `|x|^2`, so the root is complex.
fn complex_rms_norm(
    cx: &Cx,
    x: Complex,
    normalized_shape: Vec<Expr>,
    weight: Option<Complex>,
    eps: Option<f64>,
) -> Lowered {
    let eps = eps.unwrap_or(epsilon(compute_type(cx, cx.dtype(x.re))));
    let axes = last_axes(cx, x.re, normalized_shape.len());
    let mean = |v| cx.reduce(Reduction::Mean, v, &axes, true);
    let root = x.mul(cx, x).map(mean).shift(cx, eps).sqrt(cx);
    let result = x.mul(cx, root.reciprocal(cx));
    Ok(weight.map_or(result, |w| result.mul(cx, w)).value(cx))
}

/// The result, and mean and inverse deviation with 1 for the normalised dimensions.
fn meta_layer_norm(cx: &Cx, args: LayerNormArgs) -> Lowered<[Value; 3]> {
    let x = args.input;
    let mut size = cx.shape(x);
    let kept = size.len().saturating_sub(args.normalized_shape.len());
    size[kept..].fill(Expr::ONE);
    Ok([sized(cx, x, &cx.shape(x)), sized(cx, x, &size), sized(cx, x, &size)])
}

/// The result, and mean and inverse deviation of each group.
fn meta_group_norm(cx: &Cx, args: NativeGroupNormArgs) -> Lowered<[Value; 3]> {
    let x = args.input;
    let size = [cx.dim(x, 0), Expr::int(args.group)];
    Ok([sized(cx, x, &cx.shape(x)), sized(cx, x, &size), sized(cx, x, &size)])
}

/// The result, mean and inverse deviation of each channel if they are those of the batch, and
/// cuDNN's reserve.
fn meta_batch_norm(cx: &Cx, args: BatchNormArgs) -> Lowered<[Value; 4]> {
    let x = args.input;
    if args.weight.is_some_and(|w| cx.dtype(w) != cx.dtype(x)) {
        return unknown("its weight has another type than its input");
    }
    let size = [if args.trains() { cx.dim(x, 1) } else { Expr::ZERO }];
    let reserve = typed(cx, DType::U8, &[Expr::ZERO]);
    Ok([sized(cx, x, &cx.shape(x)), sized(cx, x, &size), sized(cx, x, &size), reserve])
}

checks! {
    // The norm of each element of a vector.
    "aten._weight_norm(v: f32[4], g: f32[4], 0) -> f32[4]" => "
    val_0 = Abs (v)
    val_1 = Div (g, val_0)
    _weight_norm = Mul (v, val_1)
    ";

    // Sizes of groups are read at once.
    "aten.group_norm(x: f32[1, 4, s0, s1], 2) -> f32[1, 4, s0, s1]" => "
    val_0 = Reshape (x, [1, 2, -1])
    val_1 = Expand (1.0, [2])
    val_2 = Expand (0.0, [2])
    val_3 = InstanceNormalization (val_0, val_1, val_2)
    val_4 = Shape <start: int = 0, end: int = 4> (x)
    group_norm = Reshape <allowzero: int = 1> (val_3, val_4)
    ";

    // Statistics of the batch.
    "aten.native_layer_norm(x: f16[s0, 8], [8], None, None, 1e-05) -> (f16[s0, 8], f16[s0, 1], f16[s0, 1])" => "
    val_0 = Expand (float16 {1.0}, [8])
    native_layer_norm_0 = LayerNormalization (x, val_0)
    val_1 = Cast <to: int = 1> (x)
    val_2 = ReduceMean <keepdims: int = 1> (val_1, [1])
    val_3 = Sub (val_1, val_2)
    val_4 = Mul (val_3, val_3)
    val_5 = ReduceMean <keepdims: int = 0> (val_4, [1])
    val_6 = Squeeze (val_2, [1])
    val_7 = Unsqueeze (val_6, [1])
    native_layer_norm_1 = Cast <to: int = 10> (val_7)
    val_8 = Add (val_5, 1e-5)
    val_9 = Sqrt (val_8)
    val_10 = Reciprocal (val_9)
    val_11 = Unsqueeze (val_10, [1])
    native_layer_norm_2 = Cast <to: int = 10> (val_11)
    ";

    // Running statistics.
    "aten._native_batch_norm_legit_no_training(x: f32[s0, 3, 4], None, None, m: f32[3], v: f32[3], 0.1, 1e-05) -> (f32[s0, 3, 4], f32[0], f32[0])" => "
    val_0 = Expand (1.0, [3])
    val_1 = Expand (0.0, [3])
    _native_batch_norm_legit_no_training_0 = BatchNormalization (x, val_0, val_1, m, v)
    _native_batch_norm_legit_no_training_1 = Expand (0.0, [0])
    _native_batch_norm_legit_no_training_2 = Expand (0.0, [0])
    ";

    // Channels have scales, groups do not.
    "aten.group_norm(x: f32[2, 4, s0], 2, w: f32[4]) -> f32[2, 4, s0]" => "
    val_0 = Reshape (x, [2, 2, -1])
    val_1 = Expand (1.0, [2])
    val_2 = Expand (0.0, [2])
    val_3 = InstanceNormalization (val_0, val_1, val_2)
    val_4 = Reshape (val_3, [2, 4, -1])
    val_5 = Reshape (w, [4, 1])
    group_norm = Mul (val_4, val_5)
    ";

    // Running statistics have their recorded types.
    "aten._native_batch_norm_legit_functional(x: f16[3, 2, 4], w: f16[2], b: f16[2], mean: f16[2], variance: f16[2], False, 0.1, 1e-05) -> (f16[3, 2, 4], f16[0], f16[0], f32[2], f32[2])" => "
    _native_batch_norm_legit_functional_0 = BatchNormalization (x, w, b, mean, variance)
    _native_batch_norm_legit_functional_1 = Expand (float16 {0.0}, [0])
    _native_batch_norm_legit_functional_2 = Expand (float16 {0.0}, [0])
    _native_batch_norm_legit_functional_3 = Cast <to: int = 1> (mean)
    _native_batch_norm_legit_functional_4 = Cast <to: int = 1> (variance)
    ";
}
