//! `Resize` of known sizes by `Gather`: along each axis, each output element is a weighted sum of a
//! few input elements.

use crate::{
    legalise::{LONGEST, Outcome, Reason, constant_numbers, floats, front, input, replace},
    resize::{Axis, Taps, taps},
};
use pt2onnx_ir::{Builder, Model, Node, NodeId, Value, attrs};
use pt2onnx_tensor::DType;

pub(super) fn resample(model: &mut Model, id: NodeId) -> Outcome {
    let node = &model[id];
    let options = attrs::Resize::read(node)?;
    if options.keep_aspect_ratio_policy != "stretch" {
        return Err("`keep_aspect_ratio_policy` needs a newer opset".into());
    }
    let axes = axes(model, node, options.axes.as_deref())?;
    let taps: Vec<(usize, Taps)> = axes
        .iter()
        .map(|axis| Ok((axis.index, taps(&options, axis)?)))
        .collect::<Result<_, Reason>>()?;
    replace(model, id, |cx, node| {
        let given = input(node, 0)?;
        let kind = cx.dtype(given);
        let mut x = given;
        for (axis, taps) in &taps {
            x = along(cx, x, *axis, taps)?;
        }
        Ok(vec![if x == given { cx.identity(x) } else { cx.cast(x, kind) }])
    })
}

/// The axes that change.
fn axes(model: &Model, node: &Node, given: Option<&[i64]>) -> Result<Vec<Axis>, Reason> {
    let unknown = || "a Resize of unknown sizes needs a newer opset".to_owned();
    let from = model.shape(input(node, 0)?).ok_or_else(unknown)?;
    let to = model.shape(node.outputs()[0]).ok_or_else(unknown)?;
    let rank = from.len() as i64;
    let all = || (0..rank).collect();
    let counted: Vec<i64> = given.map_or_else(all, <[i64]>::to_vec);
    let scales = node.input(2).and_then(|s| constant_numbers(model, s));
    let scales = scales.filter(|s| !s.is_empty());
    let mut found = Vec::new();
    for (i, &axis) in counted.iter().enumerate() {
        let index = front(axis, from.len())?;
        let scale = scales.as_ref().and_then(|s| s.get(i)).map(|&s| s as f32);
        let (Some(size), Some(target)) = (from.get(index), to.get(index)) else {
            return Err(unknown().into());
        };
        // An axis that is not scaled may have an unknown size.
        if scale.map_or(size == target, |s| s == 1.0) {
            continue;
        }
        let (size, target) = size.as_int().zip(target.as_int()).ok_or_else(unknown)?;
        if !(1..=LONGEST).contains(&size) || !(0..=LONGEST).contains(&target) {
            return Err(
                format!("a Resize from {size} to {target} elements needs a newer opset").into()
            );
        }
        let scale = scale.unwrap_or(target as f32 / size as f32);
        found.push(Axis { index, from: size, to: target, scale });
    }
    Ok(found)
}

/// The weighted sum along an axis.
fn along(cx: &Builder, x: Value, axis: usize, taps: &Taps) -> Result<Value, Reason> {
    let count = taps.iter().map(Vec::len).max().unwrap_or(0);
    let column = |k: usize| taps.iter().map(move |t| t.get(k).copied().unwrap_or((0, 0.0)));
    let places = |k: usize| cx.ints(&column(k).map(|(i, _)| i).collect::<Vec<_>>());
    if count == 1 {
        return Ok(cx.gather(x, places(0), axis));
    }
    let kind = match cx.dtype(x) {
        DType::F64 => DType::F64,
        t if t.is_float() => DType::F32,
        other => {
            return Err(format!("an interpolating Resize of {other} needs a newer opset").into());
        }
    };
    let x = cx.cast(x, kind);
    let mut sizes = vec![1; cx.rank(x) - axis];
    sizes[0] = taps.len();
    let mut sum: Option<Value> = None;
    for k in 0..count {
        let weights: Vec<f64> = column(k).map(|(_, w)| w.into()).collect();
        let part = cx.gather(x, places(k), axis);
        let part = cx.mul(part, floats(cx, kind, &weights, &sizes));
        sum = Some(sum.map_or(part, |sum| cx.add(sum, part)));
    }
    sum.ok_or_else(|| "a Resize to size 0 needs a newer opset".into())
}
