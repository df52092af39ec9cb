//! `Resize` by `Gather`: along each axis, each output element is a weighted sum of a few input
//! elements. Their weights are constants where sizes are known.

use crate::{
    legalise::{
        Emitted, LONGEST, Outcome, Reason, constant_numbers, floats, front, input, replace,
    },
    resize::{Axis, Taps, taps},
};
use pt2onnx_ir::{Builder, Model, Node, NodeId, Value, attrs};
use pt2onnx_symbolic::Expr;
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

/// `Resize` in mode `cubic` to given sizes that are not all known.
pub(crate) fn cubic(cx: &Builder, node: &Node) -> Emitted {
    let mut x = input(node, 0)?;
    let options = attrs::Resize::read(node)?;
    let plain = options.keep_aspect_ratio_policy == "stretch" && node.input(3).is_some();
    let unusual = options.antialias || options.exclude_outside || cx.dtype(x) != DType::F32;
    if options.mode != "cubic" || !plain || unusual {
        return Err("it is not a plain cubic Resize of float32 to given sizes".into());
    }
    let shapes = cx.known_shape(x).zip(cx.known_shape(node.outputs()[0]));
    let (from, to) = shapes.ok_or("its rank is unknown")?;
    if from.iter().chain(&to).all(|size| size.is_static()) {
        return Err("its sizes are known".into());
    }
    for (axis, (from, to)) in from.iter().zip(&to).enumerate().filter(|(_, (a, b))| a != b) {
        x = cubic_along(cx, x, axis, [from, to], &options)?;
    }
    Ok(vec![x])
}

/// Along an axis, the sum of the four elements around each place. The first and the last one count
/// for those outside.
fn cubic_along(
    cx: &Builder,
    x: Value,
    axis: usize,
    [from, to]: [&Expr; 2],
    options: &attrs::Resize<'_>,
) -> Result<Value, Reason> {
    let float = |size: &Expr| cx.cast(cx.size(size), DType::F32);
    let each = cx.cast(cx.iota(to), DType::F32);
    let place = match options.coordinate_transformation_mode {
        "half_pixel" => cx.sub(cx.div(cx.add(each, 0.5), cx.div(float(to), float(from))), 0.5),
        "align_corners" => {
            let last = |size: &Expr| float(&(size - 1));
            cx.mul(each, cx.div(last(from), cx.maximum(last(to), 1.0)))
        }
        other => return Err(format!("it has places by `{other}`").into()),
    };
    let low = cx.floor(place);
    let (first, past) = (cx.cast(low, DType::I64), cx.sub(place, low));
    let a = f64::from(options.cubic_coeff_a);
    // `((c3 * d + c2) * d + c1) * d + c0` for the distance `d`, which is up to 1 or 2.
    let near = [a + 2.0, -(a + 3.0), 0.0, 1.0];
    let far = [a, -5.0 * a, 8.0 * a, -4.0 * a];
    let taps = [
        (-1, cx.add(past, 1.0), far),
        (0, past, near),
        (1, cx.sub(1.0, past), near),
        (2, cx.sub(2.0, past), far),
    ];
    let behind: Vec<usize> = (1..cx.rank(x) - axis).collect();
    let part = |(step, distance, [c3, c2, c1, c0]): (i64, Value, [f64; 4])| {
        let on = |weight: Value, c: f64| cx.add(cx.mul(weight, distance), c);
        let weight = on(on(cx.add(cx.mul(distance, c3), c2), c1), c0);
        let inside = cx.maximum(cx.add(first, step), 0);
        let inside = cx.minimum(inside, cx.size(&(from - 1)));
        cx.mul(cx.gather(x, inside, axis), cx.unsqueeze(weight, &behind))
    };
    let [first, rest @ ..] = taps.map(part);
    Ok(rest.into_iter().fold(first, |sum, part| cx.add(sum, part)))
}
