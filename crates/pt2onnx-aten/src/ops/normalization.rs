//! Normalisations.

use crate::{AtenOp, Complex, Cx, LowerError, Lowered, cx::Outputs, registry::aten};
use pt2onnx_ir::{Reduction, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(super) static OPS: &[AtenOp] = &[
    aten!(
        "aten::_batch_norm_impl_index(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps, bool cudnn_enabled) -> (Tensor, Tensor, Tensor, Tensor, int)",
        native_batch_norm
    ),
    aten!(
        "aten::_batch_norm_no_update(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)",
        |cx: &Cx,
         x: Value,
         w: Option<Value>,
         b: Option<Value>,
         mean: Option<Value>,
         var: Option<Value>,
         momentum: f64,
         eps: f64| { native_batch_norm(cx, x, w, b, mean, var, false, momentum, eps) }
    ),
    aten!(
        "aten::_batch_norm_with_update(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)",
        |cx: &Cx,
         x: Value,
         w: Option<Value>,
         b: Option<Value>,
         mean: Option<Value>,
         var: Option<Value>,
         momentum: f64,
         eps: f64| { native_batch_norm(cx, x, w, b, mean, var, true, momentum, eps) }
    ),
    aten!(
        "aten::_batch_norm_with_update_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor, Tensor running_mean_out, Tensor running_var_out)",
        |cx: &Cx,
         x: Value,
         w: Option<Value>,
         b: Option<Value>,
         mean: Option<Value>,
         var: Option<Value>,
         momentum: f64,
         eps: f64| {
            functional_batch_norm(cx, x, w, b, mean, var, true, momentum, eps, 4)
        }
    ),
    aten!(
        "aten::_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> (Tensor, Tensor)",
        fused_rms_norm
    ),
    aten!(
        "aten::_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
        native_batch_norm
    ),
    aten!(
        "aten::_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
        |cx: &Cx,
         x: Value,
         w: Option<Value>,
         b: Option<Value>,
         training: bool,
         momentum: f64,
         eps: f64| { native_batch_norm(cx, x, w, b, None, None, training, momentum, eps) }
    ),
    aten!(
        "aten::_native_batch_norm_legit_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor running_mean_out, Tensor running_var_out)",
        |cx: &Cx,
         x: Value,
         w: Option<Value>,
         b: Option<Value>,
         mean: Option<Value>,
         var: Option<Value>,
         training: bool,
         momentum: f64,
         eps: f64| {
            functional_batch_norm(cx, x, w, b, mean, var, training, momentum, eps, 3)
        }
    ),
    aten!(
        "aten::_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
        |cx: &Cx,
         x: Value,
         w: Option<Value>,
         b: Option<Value>,
         mean: Option<Value>,
         var: Option<Value>,
         momentum: f64,
         eps: f64| { native_batch_norm(cx, x, w, b, mean, var, false, momentum, eps) }
    ),
    aten!("aten::_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor", |cx: &Cx,
                                                                          v: Value,
                                                                          g: Value,
                                                                          dim: i64|
     -> Lowered {
        Ok(weight_norm(cx, v, g, dim)?[0])
    }),
    aten!(
        "aten::_weight_norm_interface(Tensor v, Tensor g, int dim=0) -> (Tensor, Tensor)",
        weight_norm
    ),
    aten!(
        "aten::batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor",
        |cx: &Cx,
         x: Value,
         w: Option<Value>,
         b: Option<Value>,
         mean: Option<Value>,
         var: Option<Value>,
         training: bool,
         _momentum: f64,
         eps: f64|
         -> Lowered { Ok(batch_norm(cx, x, [w, b], [mean, var], training, eps)?.result) }
    ),
    aten!(
        "aten::group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1.0000000000000001e-05, bool cudnn_enabled=True) -> Tensor",
        |cx: &Cx, x: Value, groups: i64, w: Option<Value>, b: Option<Value>, eps: f64| -> Lowered {
            group_norm(cx, x, groups, w, b, eps)
        }
    ),
    aten!(
        "aten::instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor",
        instance_norm
    ),
    aten!(
        "aten::layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1.0000000000000001e-05, bool cudnn_enable=True) -> Tensor",
        |cx: &Cx,
         x: Value,
         shape: Vec<Expr>,
         w: Option<Value>,
         b: Option<Value>,
         eps: f64|
         -> Lowered { Ok(layer_norm(cx, x, shape, w, b, eps, 1)[0]) }
    ),
    aten!(
        "aten::native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
        native_batch_norm
    ),
    aten!(
        "aten::native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int group, float eps) -> (Tensor, Tensor, Tensor)",
        native_group_norm
    ),
    aten!(
        "aten::native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)",
        native_layer_norm
    ),
    aten!(
        "aten::rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor",
        |cx: &Cx, x: Value, shape: Vec<Expr>, w: Option<Value>, eps: Option<f64>| -> Lowered {
            Ok(rms_norm(cx, x, shape.len(), w, eps)[0])
        },
        complex: complex_rms_norm
    ),
];

/// The type that PyTorch computes in: float32 for halves.
fn wide(dtype: DType) -> DType {
    match dtype {
        DType::F64 => DType::F64,
        _ => DType::F32,
    }
}

fn is_empty(cx: &Cx, x: Value) -> bool {
    cx.numel(x).as_int() == Some(0)
}

/// `v * (g / |v|)`, the norm over all dimensions but `dim`; and the norm.
fn weight_norm(cx: &Cx, v: Value, g: Value, dim: i64) -> Lowered<[Value; 2]> {
    let kept = (dim != -1).then(|| cx.axis(v, dim)).transpose()?;
    let axes: Vec<usize> = (0..cx.rank(v)).filter(|&a| Some(a) != kept).collect();
    let norm = cx.reduce(Reduction::L2, v, &axes, true);
    Ok([cx.mul(v, cx.div(g, norm)), cx.cast(norm, cx.dtype(g))])
}

/// A batch normalisation, and what it normalised by.
struct BatchNorm {
    result: Value,
    /// Mean and variance of each channel.
    mean: Value,
    variance: Value,
}

/// `BatchNormalization`, with the running statistics or with those of the batch.
fn batch_norm(
    cx: &Cx,
    x: Value,
    [weight, bias]: [Option<Value>; 2],
    [mean, var]: [Option<Value>; 2],
    training: bool,
    eps: f64,
) -> Lowered<BatchNorm> {
    let (mean, variance) = match (training, mean, var) {
        (false, Some(mean), Some(var)) => (mean, var),
        (false, ..) => {
            return Err(LowerError::unsupported(
                "batch norm outside of training without running statistics",
            ));
        }
        (true, ..) if is_empty(cx, x) => {
            let nothing = cx.full(&[cx.dim(x, 1)], f64::NAN, wide(cx.dtype(x)));
            (nothing, nothing)
        }
        (true, ..) => {
            let axes: Vec<usize> = (0..cx.rank(x)).filter(|&a| a != 1).collect();
            moments(cx, x, &axes)
        }
    };
    if is_empty(cx, x) {
        return Ok(BatchNorm { result: x, mean, variance });
    }
    let channels = [cx.dim(x, 1)];
    let dtype = weight.or(bias).map_or(cx.dtype(x), |v| cx.dtype(v));
    let scale = weight.unwrap_or_else(|| cx.full(&channels, 1, dtype));
    let shift = bias.unwrap_or_else(|| cx.full(&channels, 0, dtype));
    let epsilon = eps as f32;
    // With moments of its own, a batch of one is an instance.
    let one = training && cx.rank(x) > 2 && cx.dim(x, 0) == Expr::int(1);
    let result = if one && dtype == cx.dtype(x) {
        cx.instance_normalization(x, scale, shift, attrs::InstanceNormalization { epsilon })
    } else {
        let options = attrs::BatchNormalization { epsilon, ..Default::default() };
        cx.batch_normalization(x, scale, shift, mean, variance, options)
    };
    Ok(BatchNorm { result, mean, variance })
}

/// Mean and (biased) variance over `axes`, these gone.
fn moments(cx: &Cx, x: Value, axes: &[usize]) -> (Value, Value) {
    let x = cx.cast(x, wide(cx.dtype(x)));
    let mean = cx.reduce(Reduction::Mean, x, axes, true);
    let centred = cx.sub(x, mean);
    let variance = cx.reduce(Reduction::Mean, cx.mul(centred, centred), axes, false);
    (cx.squeeze(mean, axes), variance)
}

/// `1 / sqrt(variance + eps)`
fn inverse_deviation(cx: &Cx, variance: Value, eps: f64) -> Value {
    cx.reciprocal(cx.sqrt(cx.add(variance, eps)))
}

/// With what was normalised by, as far as it is used: on a CPU, PyTorch gives nothing of it outside of training.
#[expect(clippy::too_many_arguments, reason = "ATen's signature")]
fn native_batch_norm(
    cx: &Cx,
    x: Value,
    weight: Option<Value>,
    bias: Option<Value>,
    mean: Option<Value>,
    var: Option<Value>,
    training: bool,
    _momentum: f64,
    eps: f64,
) -> Lowered<Outputs> {
    let norm = batch_norm(cx, x, [weight, bias], [mean, var], training, eps)?;
    Ok(saved(cx, &norm, eps))
}

/// The result, and mean, inverse deviation and a reserve as recorded.
fn saved(cx: &Cx, norm: &BatchNorm, eps: f64) -> Outputs {
    let statistic = |i: usize, value: &dyn Fn() -> Value| {
        let meta = cx.recorded(i).filter(|_| cx.is_used(i))?;
        let empty = meta.sizes.as_slice() == [Expr::int(0)];
        Some(match empty {
            true => cx.full(&meta.sizes, 0, meta.dtype),
            false => cx.cast(value(), meta.dtype),
        })
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

/// [`native_batch_norm`] and the running statistics as they are afterwards, the first of them output `first`.
#[expect(clippy::too_many_arguments, reason = "ATen's signature")]
fn functional_batch_norm(
    cx: &Cx,
    x: Value,
    weight: Option<Value>,
    bias: Option<Value>,
    mean: Option<Value>,
    var: Option<Value>,
    training: bool,
    momentum: f64,
    eps: f64,
    first: usize,
) -> Lowered<Outputs> {
    let norm = batch_norm(cx, x, [weight, bias], [mean, var], training, eps)?;
    let mut outputs = saved(cx, &norm, eps);
    outputs.0.truncate(first);
    let count = cx.numel(x).floor_div(&cx.dim(x, 1));
    for (i, (running, now)) in [(mean, norm.mean), (var, norm.variance)].into_iter().enumerate() {
        let updated = running.filter(|_| cx.is_used(first + i)).map(|running| {
            if !training {
                return running;
            }
            let dtype = cx.dtype(running);
            let n = |e: &Expr| cx.cast(cx.size(e), cx.dtype(now));
            let now = match i {
                0 => now,
                // The unbiased variance.
                _ => cx.mul(now, cx.div(n(&count), n(&(&count - 1)))),
            };
            let now = cx.cast(now, dtype);
            cx.add(cx.mul(now, momentum), cx.mul(running, 1.0 - momentum))
        });
        outputs.0.push(updated);
    }
    Ok(outputs)
}

/// `InstanceNormalization`, or [`batch_norm`] where it is to use the running statistics.
#[expect(clippy::too_many_arguments, reason = "ATen's signature")]
fn instance_norm(
    cx: &Cx,
    x: Value,
    weight: Option<Value>,
    bias: Option<Value>,
    mean: Option<Value>,
    var: Option<Value>,
    use_input_stats: bool,
    _momentum: f64,
    eps: f64,
) -> Lowered {
    if !use_input_stats {
        return Ok(batch_norm(cx, x, [weight, bias], [mean, var], false, eps)?.result);
    }
    if is_empty(cx, x) {
        return Ok(x);
    }
    let channels = [cx.dim(x, 1)];
    let scale = weight.unwrap_or_else(|| cx.full(&channels, 1, cx.dtype(x)));
    let shift = bias.unwrap_or_else(|| cx.full(&channels, 0, cx.dtype(x)));
    let options = attrs::InstanceNormalization { epsilon: eps as f32 };
    Ok(cx.instance_normalization(x, scale, shift, options))
}

/// The first `outputs` of `LayerNormalization` over the last dimensions: result, mean, inverse deviation.
fn layer_norm(
    cx: &Cx,
    x: Value,
    normalized_shape: Vec<Expr>,
    weight: Option<Value>,
    bias: Option<Value>,
    eps: f64,
    outputs: usize,
) -> Vec<Value> {
    let given = cx.dtype(x);
    // A weight of another type than `x` is float32 beside halves.
    let dtype = weight.or(bias).map_or(given, |w| cx.dtype(w));
    let x = cx.cast(x, dtype);
    let weight = weight.unwrap_or_else(|| cx.full(&normalized_shape, 1, dtype));
    let options = attrs::LayerNormalization {
        axis: -(normalized_shape.len() as i64),
        epsilon: eps as f32,
        ..Default::default()
    };
    let mut all = cx.layer_normalization_n(outputs, x, weight, bias, options);
    all[0] = cx.cast(all[0], given);
    all.to_vec()
}

fn native_layer_norm(
    cx: &Cx,
    x: Value,
    normalized_shape: Vec<Expr>,
    weight: Option<Value>,
    bias: Option<Value>,
    eps: f64,
) -> Lowered<Outputs> {
    if !cx.is_used(1) && !cx.is_used(2) {
        return Ok(layer_norm(cx, x, normalized_shape, weight, bias, eps, 1).into());
    }
    if cx.dtype(x) == DType::F32 {
        return Ok(layer_norm(cx, x, normalized_shape, weight, bias, eps, 3).into());
    }
    let n = normalized_shape.len();
    let result = layer_norm(cx, x, normalized_shape, weight, bias, eps, 1)[0];
    let axes: Vec<usize> = (cx.rank(x).saturating_sub(n)..cx.rank(x)).collect();
    let (mean, variance) = moments(cx, x, &axes);
    let statistic = |i: usize, v: Value| {
        let meta = cx.recorded(i)?;
        Some(cx.cast(cx.unsqueeze(v, &axes), meta.dtype))
    };
    Ok([Some(result), statistic(1, mean), statistic(2, inverse_deviation(cx, variance, eps))]
        .into())
}

/// Groups of channels as the channels of three dimensions.
fn grouped(cx: &Cx, x: Value, groups: i64) -> Lowered {
    let shape = cx.shape(x);
    let [batch, rest @ ..] = shape.as_slice() else {
        return Err(LowerError::unsupported("group norm of a number"));
    };
    let per_group = Expr::product(rest.to_vec()).floor_div(&Expr::int(groups));
    Ok(cx.reshape(x, &[batch.clone(), Expr::int(groups), per_group]))
}

/// Instance normalisation of groups of channels, then the scale and shift of each channel.
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
        return Err(LowerError::unsupported("group norm of fewer than two dimensions"));
    };
    if is_empty(cx, x) {
        return Ok(x);
    }
    let (one, zero) = (
        cx.full(&[Expr::int(groups)], 1, cx.dtype(x)),
        cx.full(&[Expr::int(groups)], 0, cx.dtype(x)),
    );
    let options = attrs::InstanceNormalization { epsilon: eps as f32 };
    let given = cx.dtype(x);
    let mut result =
        cx.reshape(cx.instance_normalization(grouped(cx, x, groups)?, one, zero, options), &shape);
    let per_channel: Vec<Expr> =
        [channels.clone()].into_iter().chain(spatial.iter().map(|_| Expr::int(1))).collect();
    if let Some(weight) = weight {
        let (a, b) = cx.promote(result, cx.reshape(weight, &per_channel));
        result = cx.mul(a, b);
    }
    if let Some(bias) = bias {
        let (a, b) = cx.promote(result, cx.reshape(bias, &per_channel));
        result = cx.add(a, b);
    }
    Ok(cx.cast(result, given))
}

#[expect(clippy::too_many_arguments, reason = "ATen's signature")]
fn native_group_norm(
    cx: &Cx,
    x: Value,
    weight: Option<Value>,
    bias: Option<Value>,
    _n: Expr,
    _c: Expr,
    _area: Expr,
    groups: i64,
    eps: f64,
) -> Lowered<Outputs> {
    let result = group_norm(cx, x, groups, weight, bias, eps)?;
    if !cx.is_used(1) && !cx.is_used(2) {
        return Ok(result.into());
    }
    let (mean, variance) = moments(cx, grouped(cx, x, groups)?, &[2]);
    let statistic = |i: usize, v: Value| Some(cx.cast(v, cx.recorded(i)?.dtype));
    Ok([Some(result), statistic(1, mean), statistic(2, inverse_deviation(cx, variance, eps))]
        .into())
}

/// `x / sqrt(mean(x * x) + eps) * weight` over the last `n` dimensions, and the inverse of that root.
fn rms_norm(cx: &Cx, x: Value, n: usize, weight: Option<Value>, eps: Option<f64>) -> [Value; 2] {
    let (given, dtype) = (cx.dtype(x), wide(cx.dtype(x)));
    let eps = eps.unwrap_or(match dtype {
        DType::F64 => f64::EPSILON,
        _ => f64::from(f32::EPSILON),
    });
    let axes: Vec<usize> = (cx.rank(x).saturating_sub(n)..cx.rank(x)).collect();
    let x = cx.cast(x, dtype);
    let square = cx.reduce(Reduction::Mean, cx.mul(x, x), &axes, true);
    let root = cx.sqrt(cx.add(square, eps));
    let mut result = cx.div(x, root);
    if let Some(weight) = weight {
        result = cx.mul(result, cx.cast(weight, dtype));
    }
    [cx.cast(result, given), root]
}

fn fused_rms_norm(
    cx: &Cx,
    x: Value,
    normalized_shape: Vec<i64>,
    weight: Option<Value>,
    eps: Option<f64>,
) -> Lowered<Outputs> {
    let [result, root] = rms_norm(cx, x, normalized_shape.len(), weight, eps);
    let inverse = cx.recorded(1).filter(|_| cx.is_used(1));
    Ok([Some(result), inverse.map(|m| cx.cast(cx.reciprocal(root), m.dtype))].into())
}

/// [`rms_norm`] as PyTorch has it of complex numbers: the squares are not those of absolute values, and the root is complex.
fn complex_rms_norm(
    cx: &Cx,
    x: Complex,
    normalized_shape: Vec<Expr>,
    weight: Option<Complex>,
    eps: Option<f64>,
) -> Lowered {
    let eps = eps.unwrap_or(match cx.dtype(x.re) {
        DType::F64 => f64::EPSILON,
        _ => f64::from(f32::EPSILON),
    });
    let rank = cx.rank(x.re);
    let axes: Vec<usize> = (rank.saturating_sub(normalized_shape.len())..rank).collect();
    let mean = |v| cx.reduce(Reduction::Mean, v, &axes, true);
    let times = |a: Complex, b: Complex| Complex {
        re: cx.sub(cx.mul(a.re, b.re), cx.mul(a.im, b.im)),
        im: cx.add(cx.mul(a.re, b.im), cx.mul(a.im, b.re)),
    };
    let square = times(x, x);
    let (a, b) = (cx.add(mean(square.re), eps), mean(square.im));
    // The root's parts are sqrt((r + a) / 2) and, with the sign of b, sqrt((r - a) / 2); 1 / z is conj(z) / |z|^2.
    let r = cx.sqrt(cx.add(cx.mul(a, a), cx.mul(b, b)));
    let half = |v| cx.sqrt(cx.mul(v, 0.5));
    let (re, im) = (half(cx.add(r, a)), half(cx.sub(r, a)));
    let im = cx.select(cx.less(b, 0.0), im, cx.neg(im));
    let inverse = Complex { re: cx.div(re, r), im: cx.div(im, r) };
    let result = times(x, inverse);
    Ok(cx.pairs(weight.map_or(result, |w| times(result, w))))
}
