//! Normalisations.

use crate::{AtenOp, Cx, LowerError, Lowered, registry::aten};
use pt2onnx_ir::{Value, attrs};
use pt2onnx_symbolic::Expr;

pub(super) static OPS: &[AtenOp] = &[
    aten!(
        "aten::_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor",
        weight_norm
    ),
    aten!(
        "aten::batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor",
        batch_norm
    ),
    aten!(
        "aten::group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1.0000000000000001e-05, bool cudnn_enabled=True) -> Tensor",
        group_norm
    ),
    aten!(
        "aten::layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1.0000000000000001e-05, bool cudnn_enable=True) -> Tensor",
        layer_norm
    ),
];

/// `v * (g / |v|)`, the norm over all dimensions but `dim`.
fn weight_norm(cx: &Cx, v: Value, g: Value, dim: i64) -> Lowered {
    let kept = (dim != -1).then(|| cx.axis(v, dim)).transpose()?;
    let axes: Vec<usize> = (0..cx.rank(v)).filter(|&a| Some(a) != kept).collect();
    Ok(cx.mul(v, cx.div(g, cx.reduce("ReduceL2", v, &axes, true))))
}

/// `BatchNormalization` with the running statistics.
#[expect(clippy::too_many_arguments, reason = "ATen's signature")]
fn batch_norm(
    cx: &Cx,
    x: Value,
    weight: Option<Value>,
    bias: Option<Value>,
    mean: Option<Value>,
    var: Option<Value>,
    training: bool,
    _momentum: f64,
    eps: f64,
) -> Lowered {
    let (Some(mean), Some(var), false) = (mean, var, training) else {
        return Err(LowerError::unsupported(
            "batch norm in training mode: export the model after `model.eval()`",
        ));
    };
    let channels = [cx.dim(x, 1)];
    let scale = weight.unwrap_or_else(|| cx.full(&channels, 1, cx.dtype(x)));
    let shift = bias.unwrap_or_else(|| cx.full(&channels, 0, cx.dtype(x)));
    let options = attrs::BatchNormalization {
        epsilon: eps as f32,
        ..Default::default()
    };
    Ok(cx.batch_normalization(x, scale, shift, mean, var, options))
}

/// `LayerNormalization` over the last dimensions.
fn layer_norm(
    cx: &Cx,
    x: Value,
    normalized_shape: Vec<Expr>,
    weight: Option<Value>,
    bias: Option<Value>,
    eps: f64,
) -> Lowered {
    let weight = weight.unwrap_or_else(|| cx.full(&normalized_shape, 1, cx.dtype(x)));
    let options = attrs::LayerNormalization {
        axis: -(normalized_shape.len() as i64),
        epsilon: eps as f32,
        ..Default::default()
    };
    Ok(cx.layer_normalization(x, weight, bias, options))
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
    let [batch, channels, spatial @ ..] = shape.as_slice() else {
        return Err(LowerError::unsupported(
            "group norm of fewer than two dimensions",
        ));
    };
    let per_group = Expr::product(shape[1..].to_vec()).floor_div(&Expr::int(groups));
    let grouped = cx.reshape(x, &[batch.clone(), Expr::int(groups), per_group]);
    let (one, zero) = (
        cx.full(&[Expr::int(groups)], 1, cx.dtype(x)),
        cx.full(&[Expr::int(groups)], 0, cx.dtype(x)),
    );
    let options = attrs::InstanceNormalization {
        epsilon: eps as f32,
    };
    let mut result = cx.reshape(
        cx.instance_normalization(grouped, one, zero, options),
        &shape,
    );
    let per_channel: Vec<Expr> = [channels.clone()]
        .into_iter()
        .chain(spatial.iter().map(|_| Expr::int(1)))
        .collect();
    if let Some(weight) = weight {
        result = cx.mul(result, cx.reshape(weight, &per_channel));
    }
    if let Some(bias) = bias {
        result = cx.add(result, cx.reshape(bias, &per_channel));
    }
    Ok(result)
}
