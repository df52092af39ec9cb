//! Evaluates `BatchNormalization`, `InstanceNormalization`, `LayerNormalization` and
//! `RMSNormalization` of float32 and float64, computed in float64.

use super::{Call, Eval, Row, axis, dim, doubles, floats};
use ndarray::{ArrayD, ArrayViewMut1, Axis};
use pt2onnx_ir::attrs;
use pt2onnx_tensor::Tensor;

pub(super) static OPS: &[Row] = &[
    ("BatchNormalization", Eval::Many(batch_normalised)),
    ("InstanceNormalization", Eval::One(instance_normalised)),
    (
        "LayerNormalization",
        Eval::One(|c| {
            let given = attrs::LayerNormalization::read(c.node).ok()?;
            normalised(c, given.axis, given.epsilon, true)
        }),
    ),
    (
        "RMSNormalization",
        Eval::One(|c| {
            let given = attrs::RMSNormalization::read(c.node).ok()?;
            normalised(c, given.axis, given.epsilon, false)
        }),
    ),
];

/// `BatchNormalization`: each channel less its mean, divided by its deviation. In training they are
/// those of the elements, and the running ones are outputs, too.
fn batch_normalised(call: &Call) -> Option<Vec<Tensor>> {
    let options = attrs::BatchNormalization::read(call.node).ok()?;
    let x = call.input(0).filter(|x| x.rank() > 1)?;
    call.room(x.dtype(), x.shape())?;
    let vector = |i: usize| {
        let given = call.input(i).filter(|t| t.shape() == &x.shape()[1..2])?;
        doubles(given)
    };
    let (scale, bias, mut mean, mut variance) = (vector(1)?, vector(2)?, vector(3)?, vector(4)?);
    let mut result = doubles(x)?;
    let (epsilon, momentum) = (f64::from(options.epsilon), f64::from(options.momentum));
    for (c, mut channel) in result.axis_iter_mut(Axis(1)).enumerate() {
        let (mut centre, mut spread) = (mean[c], variance[c]);
        if options.training_mode {
            centre = channel.mean()?;
            spread = channel.fold(0.0, |sum, v| sum + (v - centre).powi(2)) / channel.len() as f64;
            mean[c] = mean[c] * momentum + centre * (1.0 - momentum);
            variance[c] = variance[c] * momentum + spread * (1.0 - momentum);
        }
        let factor = scale[c] / (spread + epsilon).sqrt();
        channel.mapv_inplace(|v| (v - centre) * factor + bias[c]);
    }
    let mut results = vec![floats(x.dtype(), &result)?];
    if options.training_mode {
        results.push(floats(call.input(3)?.dtype(), &mean)?);
        results.push(floats(call.input(4)?.dtype(), &variance)?);
        results.truncate(call.node.outputs().len());
    }
    Some(results)
}

/// `InstanceNormalization`: each channel of each item less its mean, divided by its deviation.
fn instance_normalised(call: &Call) -> Option<Tensor> {
    let options = attrs::InstanceNormalization::read(call.node).ok()?;
    let x = call.input(0).filter(|x| x.rank() > 2)?;
    call.room(x.dtype(), x.shape())?;
    let channels = x.shape()[1];
    let vector = |i: usize| call.input(i).filter(|t| t.shape() == [channels]).and_then(doubles);
    let (scale, bias) = (vector(1)?, vector(2)?);
    let count = x.shape()[0].checked_mul(channels)?;
    let mut rows =
        doubles(x)?.into_shape_with_order((count, x.numel().checked_div(count)?)).ok()?;
    for (i, mut row) in rows.rows_mut().into_iter().enumerate() {
        normalise(row.view_mut(), f64::from(options.epsilon), true);
        row.mapv_inplace(|v| v * scale[i % channels] + bias[i % channels]);
    }
    floats(x.dtype(), &rows.into_shape_with_order(dim(x.shape())).ok()?)
}

/// Rows of the last dimensions, from `first` on, divided by their deviation: from their mean if
/// they are `centred`, from 0 otherwise.
fn normalised(call: &Call, first: i64, epsilon: f32, centred: bool) -> Option<Tensor> {
    let x = call.input(0)?;
    let first = axis(first, x.rank())?;
    call.room(x.dtype(), x.shape())?;
    let row: usize = x.shape()[first..].iter().product();
    let mut rows = doubles(x)?.into_shape_with_order((x.numel().checked_div(row)?, row)).ok()?;
    rows.rows_mut().into_iter().for_each(|row| normalise(row, f64::from(epsilon), centred));
    let mut result: ArrayD<f64> = rows.into_shape_with_order(dim(x.shape())).ok()?;
    if let Some(scale) = call.input(1) {
        result = result * doubles(scale)?.broadcast(dim(x.shape()))?;
    }
    if let Some(bias) = call.input(2) {
        result = result + doubles(bias)?.broadcast(dim(x.shape()))?;
    }
    floats(x.dtype(), &result)
}

fn normalise(mut row: ArrayViewMut1<'_, f64>, epsilon: f64, centred: bool) {
    let length = row.len() as f64;
    if centred {
        let mean = row.sum() / length;
        row -= mean;
    }
    let deviation = (row.fold(0.0, |sum, v| sum + v * v) / length + epsilon).sqrt();
    row /= deviation;
}
