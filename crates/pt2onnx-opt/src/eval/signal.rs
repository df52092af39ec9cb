//! Evaluates `DFT` of short signals.

use super::{Call, Eval, Row, axis, dim, doubles, floats, matmul::MAX_WORK};
use ndarray::{ArrayD, Axis, Slice};
use pt2onnx_ir::attrs;
use pt2onnx_tensor::Tensor;
use std::f64::consts::TAU;

pub(super) static OPS: &[Row] = &[("DFT", Eval::One(dft))];

/// The signal's last dimension holds real and imaginary parts, or real ones only. A signal shorter
/// than the transform is padded with zeros.
fn dft(call: &Call) -> Option<Tensor> {
    let x = call.input(0)?;
    let rank = x.rank();
    let along = axis(call.scalar_or(2, -2)?, rank)?;
    let attrs::DFT { inverse, onesided } = attrs::DFT::read(call.node).ok()?;
    let parts = *x.shape().last()?;
    if along + 1 >= rank || !(1..=2).contains(&parts) || (inverse && onesided) {
        return None;
    }
    let size = x.shape()[along];
    let given = call.scalar_or(1, size as i64)?;
    let length = usize::try_from(given).ok().filter(|n| (1..=MAX_WORK).contains(n))?;
    let bins = if onesided { length / 2 + 1 } else { length };
    let mut sizes = x.shape().to_vec();
    (sizes[along], sizes[rank - 1]) = (bins, 2);
    call.room(x.dtype(), &sizes)?;
    let used = size.min(length);
    let work = sizes.iter().try_fold(used, |n, &s| n.checked_mul(s))?;
    if work > MAX_WORK {
        return None;
    }
    let signal = doubles(x)?;
    let signal = signal.slice_axis(Axis(along), Slice::from(0..used));
    let (cosines, sines): (Vec<f64>, Vec<f64>) = (0..length)
        .map(|i| TAU * i as f64 / length as f64)
        .map(|angle| (angle.cos(), if inverse { angle.sin() } else { -angle.sin() }))
        .unzip();
    let scale = if inverse { 1.0 / length as f64 } else { 1.0 };
    let mut result = ArrayD::<f64>::zeros(dim(&sizes));
    let lanes = signal.axis_iter(Axis(rank - 1)).collect::<Vec<_>>();
    // Without the last dimension, `along` is the same axis.
    let (re, im) = (lanes.first()?, lanes.get(1));
    let mut outputs = result.axis_iter_mut(Axis(rank - 1));
    let (mut out_re, mut out_im) = (outputs.next()?, outputs.next()?);
    let real = re.lanes(Axis(along));
    let imaginary: Vec<_> =
        im.map(|im| im.lanes(Axis(along)).into_iter().collect()).unwrap_or_default();
    let targets = out_re.lanes_mut(Axis(along)).into_iter().zip(out_im.lanes_mut(Axis(along)));
    for (at, (source, (mut to_re, mut to_im))) in real.into_iter().zip(targets).enumerate() {
        for k in 0..bins {
            let (mut sum_re, mut sum_im) = (0.0, 0.0);
            for (n, &a) in source.iter().enumerate() {
                let b = imaginary.get(at).map_or(0.0, |lane| lane[n]);
                let turn = (k * n) % length;
                sum_re += a * cosines[turn] - b * sines[turn];
                sum_im += a * sines[turn] + b * cosines[turn];
            }
            (to_re[k], to_im[k]) = (sum_re * scale, sum_im * scale);
        }
    }
    drop((out_re, out_im));
    floats(x.dtype(), &result)
}
