//! `Resize` of known sizes by `Gather`: along each axis, each output element is a weighted sum of a few input elements.

use crate::legalise::{
    error::Reason,
    forms::{LONGEST, constant_numbers, floats, input},
    replace::{Done, replace},
};
use pt2onnx_ir::{Builder, Model, Node, NodeId, Value, attrs};
use pt2onnx_tensor::DType;

/// For each output element, positions of input elements and their weights.
type Taps = Vec<Vec<(i64, f32)>>;

/// An axis that changes.
struct Axis {
    index: usize,
    from: i64,
    to: i64,
    scale: f32,
}

pub(super) fn resample(model: &mut Model, id: NodeId) -> Result<Done, Reason> {
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
        Ok(vec![match x == given {
            true => cx.identity(x),
            false => cx.cast(x, kind),
        }])
    })
}

/// The axes that change.
fn axes(model: &Model, node: &Node, given: Option<&[i64]>) -> Result<Vec<Axis>, Reason> {
    let unknown = || "a Resize of unknown sizes needs a newer opset".to_owned();
    let sizes = |value: Value| model[value].ty.as_ref()?.as_tensor()?.shape.clone();
    let from = sizes(input(node, 0)?).ok_or_else(unknown)?;
    let to = sizes(node.outputs()[0]).ok_or_else(unknown)?;
    let rank = from.len() as i64;
    let all = || (0..rank).collect();
    let counted: Vec<i64> = given.map_or_else(all, <[i64]>::to_vec);
    let scales = node.input(2).and_then(|s| constant_numbers(model, s));
    let scales = scales.filter(|s| !s.is_empty());
    let mut found = Vec::new();
    for (i, &axis) in counted.iter().enumerate() {
        let index = usize::try_from(if axis < 0 { axis + rank } else { axis });
        let index = index.map_err(|_| "its axis is out of range")?;
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

fn taps(options: &attrs::Resize<'_>, axis: &Axis) -> Result<Taps, Reason> {
    let (mode, coordinates) = (options.mode, options.coordinate_transformation_mode);
    let (from, to, scale) = (axis.from, axis.to, axis.scale);
    let place = |i: i64| {
        let i = i as f32;
        Some(match coordinates {
            "half_pixel" => (i + 0.5) / scale - 0.5,
            "pytorch_half_pixel" if to == 1 => 0.0,
            "pytorch_half_pixel" => (i + 0.5) / scale - 0.5,
            "align_corners" if to == 1 => 0.0,
            "align_corners" => i * (from - 1) as f32 / (to - 1) as f32,
            "asymmetric" => i / scale,
            _ => return None,
        })
    };
    let newer = || format!("a Resize of mode `{mode}` with `{coordinates}` needs a newer opset");
    // The standard's reference takes the product for the length that these use, runtimes the size.
    let whole = (from as f32 * scale - to as f32).abs() < 1e-3;
    let by_length = match coordinates {
        "align_corners" => true,
        "pytorch_half_pixel" => to == 1,
        _ => false,
    };
    if by_length && !whole {
        return Err(format!("runtimes differ for `{coordinates}` of a size that is cut off").into());
    }
    let (smooth, a, inside) = (options.antialias, options.cubic_coeff_a, options.exclude_outside);
    let each = (0..to).map(|i| {
        let place = place(i).ok_or_else(newer)?;
        Ok(match mode {
            "nearest" => vec![(nearest(options.nearest_mode, place).clamp(0, from - 1), 1.0)],
            "linear" if smooth => filtered(place, axis, inside, 1.0, |d| (1.0 - d.abs()).max(0.0)),
            "linear" => linear(place, from),
            "cubic" if smooth => filtered(place, axis, inside, 2.0, |d| cubic_weight(a, d)),
            "cubic" => cubic(options, place, from),
            _ => return Err(newer().into()),
        })
    });
    each.collect()
}

fn nearest(mode: &str, place: f32) -> i64 {
    let chosen = match mode {
        "floor" => place.floor(),
        "ceil" => place.ceil(),
        "round_prefer_ceil" => (place + 0.5).floor(),
        _ => (place - 0.5).ceil(),
    };
    chosen as i64
}

fn linear(place: f32, size: i64) -> Vec<(i64, f32)> {
    let place = place.clamp(0.0, (size - 1) as f32);
    let low = place.floor();
    let high = (low as i64 + 1).min(size - 1);
    let part = place - low;
    vec![(low as i64, 1.0 - part), (high, part)]
}

fn cubic_weight(a: f32, distance: f32) -> f32 {
    let d = distance.abs();
    if d <= 1.0 {
        ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0
    } else if d < 2.0 {
        ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a
    } else {
        0.0
    }
}

fn cubic(options: &attrs::Resize<'_>, place: f32, size: i64) -> Vec<(i64, f32)> {
    let low = place.floor();
    let inside = |i: &i64| (0..size).contains(i);
    let near = (-1..=2).map(|k| low as i64 + k);
    let weigh = |i: i64| (i, cubic_weight(options.cubic_coeff_a, place - i as f32));
    if options.exclude_outside {
        return normalised(near.filter(inside).map(weigh).collect());
    }
    let held = |(i, w): (i64, f32)| (i.clamp(0, size - 1), w);
    near.map(weigh).map(held).collect()
}

/// All elements that the filter covers; `inside` the image, or with its first and last element in place of those outside. If the
/// image becomes smaller, the filter is stretched.
fn filtered(
    place: f32,
    axis: &Axis,
    inside: bool,
    support: f32,
    weight: impl Fn(f32) -> f32,
) -> Vec<(i64, f32)> {
    let stretch = axis.scale.min(1.0);
    let (centre, reach) = (place + 0.5, support / stretch);
    let end = |at: f32| (at + 0.5).floor() as i64;
    let all = end(centre - reach)..end(centre + reach);
    let weigh = |i: i64| (i, weight((i as f32 - centre + 0.5) * stretch));
    let covered = all.filter(|i| !inside || (0..axis.from).contains(i));
    let held = |(i, w): (i64, f32)| (i.clamp(0, axis.from - 1), w);
    normalised(covered.map(weigh).collect()).into_iter().map(held).collect()
}

fn normalised(taps: Vec<(i64, f32)>) -> Vec<(i64, f32)> {
    let sum: f32 = taps.iter().map(|(_, w)| w).sum();
    taps.into_iter().map(|(i, w)| (i, w / sum)).collect()
}
