//! Evaluates `Resize` of known sizes.

use super::{
    Call, Eval, Row, array, axis, by_width, dim, doubles, floats, matmul::MAX_WORK, tensor,
};
use crate::resize::{Axis, Taps, taps};
use ndarray::{ArrayD, Axis as Along, Zip};
use pt2onnx_ir::attrs;
use pt2onnx_tensor::Tensor;

pub(super) static OPS: &[Row] = &[("Resize", Eval::One(resize))];

/// `Resize`. Sums are computed in float64; an infinity times a weight of 0 is not defined.
fn resize(call: &Call) -> Option<Tensor> {
    let x = call.input(0)?;
    let options = attrs::Resize::read(call.node).ok()?;
    let changed = axes(call, &options)?;
    let mut sizes = x.shape().to_vec();
    let mut steps = Vec::new();
    for axis in &changed {
        let taps = taps(&options, axis).ok()?;
        sizes[axis.index] = taps.len();
        let most = taps.iter().map(Vec::len).max().unwrap_or(0);
        let numel = sizes.iter().try_fold(1usize, |n, &s| n.checked_mul(s))?;
        if numel.checked_mul(most)? > MAX_WORK {
            return None;
        }
        steps.push((axis.index, taps));
    }
    call.room(x.dtype(), &sizes)?;
    if options.mode == "nearest" {
        return by_width!(x.dtype(), T => {
            let mut result = array::<T>(x)?;
            for (axis, taps) in steps {
                let places: Vec<usize> = taps.iter().flatten().map(|&(i, _)| i as usize).collect();
                result = result.select(Along(axis), &places);
            }
            tensor(x.dtype(), &result)
        });
    }
    let mut result = doubles(x)?;
    if !result.iter().all(|v| v.is_finite()) {
        return None;
    }
    for (axis, taps) in steps {
        result = summed(&result, axis, &taps);
    }
    floats(x.dtype(), &result)
}

/// The axes that change; `None` if runtimes may not agree about a size.
fn axes(call: &Call, options: &attrs::Resize<'_>) -> Option<Vec<Axis>> {
    let shape = call.input(0)?.shape();
    let all = || (0..shape.len() as i64).collect();
    let given: Vec<i64> = options.axes.clone().unwrap_or_else(all);
    let sizes = call.ints(3).filter(|s| !s.is_empty());
    let scales = call.input(2).and_then(Tensor::to_vec::<f32>).filter(|s| !s.is_empty());
    let mut found = Vec::new();
    for (i, &counted) in given.iter().enumerate() {
        let index = axis(counted, shape.len())?;
        let from = i64::try_from(shape[index]).ok()?;
        let (to, scale) = match (&sizes, &scales) {
            (Some(sizes), None) => {
                let to = *sizes.get(i)?;
                (to, to as f32 / from as f32)
            }
            (None, Some(scales)) => {
                let scale = *scales.get(i)?;
                let exact = from as f64 * f64::from(scale);
                let agreed = exact.floor() == f64::from(exact as f32).floor();
                (agreed.then_some(exact.floor() as i64)?, scale)
            }
            _ => return None,
        };
        if scale == 1.0 {
            continue;
        }
        let sensible = from > 0 && (1..=MAX_WORK as i64).contains(&to);
        found.push(sensible.then_some(Axis { index, from, to, scale })?);
    }
    (options.keep_aspect_ratio_policy == "stretch").then_some(found)
}

fn summed(x: &ArrayD<f64>, axis: usize, taps: &Taps) -> ArrayD<f64> {
    let mut sizes = x.shape().to_vec();
    sizes[axis] = taps.len();
    let mut result = ArrayD::zeros(dim(&sizes));
    for (to, taps) in taps.iter().enumerate() {
        for &(from, weight) in taps {
            Zip::from(result.index_axis_mut(Along(axis), to))
                .and(x.index_axis(Along(axis), from as usize))
                .for_each(|sum, &v| *sum += v * f64::from(weight));
        }
    }
    result
}
