//! Rewrites slices, splits and padding.

use super::shapes;
use crate::{
    eval,
    legalise::{
        Emitted, LONGEST, Outcome, Reason, Rewritten, before, constant_numbers, front, input,
        ints_as_attribute, keep_inputs, known_ints, rank_of, replace, set, without,
    },
};
use pt2onnx_ir::{Builder, Model, Node, NodeId, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Tensor};

/// As many parts as there are outputs; the last one may be smaller.
pub(crate) fn split_evenly(model: &mut Model, id: NodeId) -> Outcome {
    if model[id].input(1).is_some() {
        return without(model, id, "num_outputs");
    }
    let (x, count) = (input(&model[id], 0)?, model[id].outputs().len() as i64);
    let axis = attrs::Split::read(&model[id])?.axis;
    let size = match model.shape(x) {
        Some(shape) => {
            let axis = eval::axis(axis, shape.len()).ok_or("its axis is out of range")?;
            shape.get(axis).cloned()
        }
        None => None,
    };
    if size.as_ref().is_some_and(|size| size.modulo(&Expr::int(count)) == Expr::int(0)) {
        // Without given sizes, all parts are equal.
        return without(model, id, "num_outputs");
    }
    let (sizes, done) = match size.as_ref().and_then(Expr::as_int) {
        Some(known) => {
            let part = (known + count - 1) / count;
            let sizes: Vec<i64> = (0..count).map(|i| (known - i * part).clamp(0, part)).collect();
            (model.add_constant(Tensor::vector(&sizes)), Rewritten::InPlace)
        }
        None => before(model, id, |cx, _| {
            let size = match &size {
                Some(size) => cx.sizes(std::slice::from_ref(size)),
                None => cx.gather(cx.shape_op(x, attrs::Shape::default()), cx.ints(&[axis]), 0),
            };
            let part = cx.div(cx.add(size, count - 1), count);
            let bounds: Vec<i64> = (0..=count).collect();
            let bounds = cx.minimum(cx.mul(part, cx.ints(&bounds)), size);
            let [starts, ends] = [(0, count), (1, count + 1)]
                .map(|(from, to)| cx.slice(bounds, 0, &Expr::int(from), &Expr::int(to), 1));
            Ok((cx.sub(ends, starts), Rewritten::Surrounded))
        })?,
    };
    model.set_inputs(id, &[Some(x), Some(sizes)]);
    without(model, id, "num_outputs")?;
    Ok(done)
}

/// The sizes of the parts become an attribute. Computed sizes need slices.
pub(crate) fn split_sizes(model: &mut Model, id: NodeId) -> Outcome {
    if known_ints(model, id, 1, "split").is_ok() {
        return ints_as_attribute(model, id, 1, "split");
    }
    replace(model, id, |cx, node| {
        let (x, sizes) = (input(node, 0)?, input(node, 1)?);
        let axis = cx.ints(&[attrs::Split::read(node)?.axis]);
        let mut start = cx.ints(&[0]);
        let mut parts = Vec::new();
        for i in 0..node.outputs().len() {
            let end = cx.add(start, cx.gather(sizes, cx.ints(&[i as i64]), 0));
            parts.push(cx.slice_op(x, start, end, axis, None));
            start = end;
        }
        Ok(parts)
    })
}

/// Bounds become attributes. Steps and computed bounds need a `Gather`.
pub(crate) fn slice(model: &mut Model, id: NodeId) -> Outcome {
    let given = |i: usize| match model[id].input(i) {
        None => Some(None),
        Some(v) => model.const_ints(v).map(Some),
    };
    let steps = given(4);
    let plain = matches!(&steps, Some(None))
        || matches!(&steps, Some(Some(s)) if s.iter().all(|&s| s == 1));
    if let (true, Some(Some(starts)), Some(Some(ends)), Some(axes)) =
        (plain, given(1), given(2), given(3))
    {
        keep_inputs(model, id, 1);
        set(model, id, "starts", starts);
        set(model, id, "ends", ends);
        if let Some(axes) = axes {
            set(model, id, "axes", axes);
        }
        return Ok(Rewritten::InPlace);
    }
    let Some(steps) = steps else {
        return Err("computed steps need a newer opset".into());
    };
    let axes = known_ints(model, id, 3, "axes")?;
    let rank = rank_of(model, id, 0)?;
    replace(model, id, |cx, node| {
        let axes = axes.unwrap_or_else(|| (0..rank as i64).collect());
        let mut x = input(node, 0)?;
        for (i, &axis) in axes.iter().enumerate() {
            let axis = front(axis, rank)?;
            let step = steps.as_ref().and_then(|s| s.get(i)).copied().unwrap_or(1);
            let element = |value: Value| {
                let one = cx.gather(cx.cast(value, DType::I64), cx.ints(&[i as i64]), 0);
                cx.reshape(one, &[Expr::int(1)])
            };
            let (start, end) = (element(input(node, 1)?), element(input(node, 2)?));
            let picked = between(cx, x, axis, start, end, step);
            x = cx.gather(x, picked, axis);
        }
        Ok(vec![x])
    })
}

/// The positions of a slice along an axis.
fn between(cx: &Builder, x: Value, axis: usize, start: Value, end: Value, step: i64) -> Value {
    let all = cx.shape_op(x, attrs::Shape::default());
    let size = cx.gather(all, cx.ints(&[axis as i64]), 0);
    let count = |v: Value| cx.select(cx.less(v, 0), cx.add(v, size), v);
    let (start, end) = (count(start), count(end));
    let places = shapes::places(cx, size);
    let (places, start, inside) = if step > 0 {
        let start = cx.maximum(start, 0);
        let inside = cx.not(cx.less(places, start));
        (places, start, cx.and(inside, cx.less(places, end)))
    } else {
        let last = cx.sub(size, 1);
        let start = cx.maximum(cx.minimum(start, last), 0);
        let places = cx.sub(last, places);
        let inside = cx.not(cx.greater(places, start));
        (places, start, cx.and(inside, cx.greater(places, end)))
    };
    let inside = match step {
        1 | -1 => inside,
        _ => {
            let apart = cx.sub(places, start);
            let rest = cx.sub(apart, cx.mul(cx.div(apart, step), step));
            cx.and(inside, cx.equal(rest, 0))
        }
    };
    let found = cx.squeeze(cx.non_zero(inside), &[0]);
    if step > 0 { found } else { cx.gather(places, found, 0) }
}

/// Pads of some axes become pads of all axes.
pub(crate) fn pad_of_all(model: &mut Model, id: NodeId) -> Outcome {
    let axes = known_ints(model, id, 3, "axes")?.unwrap_or_default();
    let rank = rank_of(model, id, 0)?;
    let n = axes.len();
    // Where each pad is taken from: the given pads, with a 0 after them.
    let mut from = vec![2 * n as i64; 2 * rank];
    for (i, &axis) in axes.iter().enumerate() {
        let axis = front(axis, rank)?;
        from[axis] = i as i64;
        from[axis + rank] = (i + n) as i64;
    }
    replace(model, id, |cx, node| {
        let given = input(node, 1)?;
        let known = cx.model().const_ints(given);
        let pads = match known {
            Some(mut known) => {
                known.push(0);
                let of = |i: &i64| known.get(*i as usize).copied().unwrap_or(0);
                cx.ints(&from.iter().map(of).collect::<Vec<_>>())
            }
            None => cx.gather(cx.concat(&[given, cx.ints(&[0])], 0), cx.ints(&from), 0),
        };
        Ok(vec![cx.emit1(
            "Pad",
            &[node.input(0), Some(pads), node.input(2)],
            node.attributes.clone(),
        )])
    })
}

/// Pads and value become attributes, or else `Concat` or `Gather` builds the padding.
pub(crate) fn pad(model: &mut Model, id: NodeId) -> Outcome {
    let pads = known_ints(model, id, 1, "pads")?.ok_or("its pads are missing")?;
    let node = &model[id];
    let mode = attrs::Pad::read(node)?.mode.to_owned();
    let float = model.dtype(input(node, 0)?).is_some_and(|t| t.is_float());
    let value = match node.input(2) {
        None => Some(0.0),
        Some(value) => constant_numbers(model, value)
            .and_then(|v| v.first().copied())
            .filter(|v| v.is_nan() || f64::from(*v as f32) == *v),
    };
    match value {
        Some(value) if float => {
            keep_inputs(model, id, 1);
            set(model, id, "pads", pads);
            set(model, id, "value", value as f32);
            Ok(Rewritten::InPlace)
        }
        _ if mode == "constant" => replace(model, id, |cx, node| joined(cx, node, &pads)),
        _ => replace(model, id, |cx, node| mirrored(cx, node, &pads, &mode)),
    }
}

/// The data with `pad`, which gets an axis and the pads before and after, applied to each axis.
fn padded(
    cx: &Builder,
    node: &Node,
    pads: &[i64],
    pad: impl Fn(Value, usize, [i64; 2]) -> Result<Value, Reason>,
) -> Emitted {
    let x = input(node, 0)?;
    let rank = cx.rank(x);
    let at = |i: usize| pads.get(i).copied().ok_or("there are too few pads");
    let all = (0..rank).try_fold(x, |x, axis| pad(x, axis, [at(axis)?, at(axis + rank)?]))?;
    Ok(vec![if all == x { cx.identity(x) } else { all }])
}

/// Blocks of the value around the data.
fn joined(cx: &Builder, node: &Node, pads: &[i64]) -> Emitted {
    let value = match node.input(2) {
        Some(value) => cx.reshape(value, &[]),
        None => cx.scalar(0, cx.dtype(input(node, 0)?)),
    };
    padded(cx, node, pads, |x, axis, [before, after]| {
        let block = |length: i64| {
            let mut dims = cx.shape(x);
            dims[axis] = Expr::int(length);
            cx.expand(value, &dims)
        };
        let first = (before > 0).then(|| block(before));
        let mut kept = x;
        if before < 0 || after < 0 {
            let start = Expr::int(before.saturating_neg().max(0));
            let end = cx.dim(x, axis as i64) + after.min(0);
            kept = cx.slice(x, axis, &start, &end, 1);
        }
        let last = (after > 0).then(|| block(after));
        let parts: Vec<Value> = first.into_iter().chain([kept]).chain(last).collect();
        Ok(cx.concat(&parts, axis))
    })
}

/// The modes `edge` and `reflect` by `Gather`.
fn mirrored(cx: &Builder, node: &Node, pads: &[i64], mode: &str) -> Emitted {
    padded(cx, node, pads, |x, axis, [before, after]| {
        if (before, after) == (0, 0) {
            return Ok(x);
        }
        let size = cx.dim(x, axis as i64).as_int().filter(|s| *s > 0);
        let size = size
            .ok_or("padding integers of unknown size by `edge` or `reflect` needs a newer opset")?;
        if [before, after, size].iter().any(|n| n.unsigned_abs() > LONGEST.unsigned_abs()) {
            return Err(
                "padding by `edge` or `reflect` of so many elements needs a newer opset".into()
            );
        }
        let source = |i: i64| match mode {
            "edge" => i.clamp(0, size - 1),
            _ if i < 0 => -i,
            _ if i >= size => 2 * (size - 1) - i,
            _ => i,
        };
        let places: Vec<i64> = (-before..size + after).map(source).collect();
        if places.iter().any(|p| !(0..size).contains(p)) {
            return Err("padding by more than the size needs a newer opset".into());
        }
        Ok(cx.gather(x, cx.ints(&places), axis))
    })
}

/// Known axes counted from the front.
pub(crate) fn slice_axes(model: &mut Model, id: NodeId) -> Outcome {
    let axes = known_ints(model, id, 3, "axes")?.filter(|a| a.iter().any(|&a| a < 0));
    let Some(axes) = axes else {
        return Ok(Rewritten::InPlace);
    };
    let rank = rank_of(model, id, 0)? as i64;
    let front = |&a: &i64| if a < 0 { a + rank } else { a };
    let front: Vec<i64> = axes.iter().map(front).collect();
    let narrow = || front.iter().map(|&a| i32::try_from(a).ok()).collect::<Option<Vec<i32>>>();
    // All of its integers have one type.
    let front = match model[id].input(3).and_then(|v| model.dtype(v)) {
        Some(DType::I32) => Tensor::vector(&narrow().ok_or("its axis is out of range")?),
        _ => Tensor::vector(&front),
    };
    let front = model.add_constant(front);
    model.replace_input(id, 3, Some(front));
    Ok(Rewritten::InPlace)
}
