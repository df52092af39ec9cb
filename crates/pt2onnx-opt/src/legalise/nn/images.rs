//! `Resize`, pools and `GridSample`: options that older forms do not have.

use super::{resample::resample, sampling::grid_sample};
use crate::legalise::{
    Outcome, Reason, Rewritten, attributes, constant_numbers, front, input, rank_of, replace, set,
    unless, without,
};
use pt2onnx_ir::{Model, NodeId, Traits, Value, attrs};
use pt2onnx_tensor::Tensor;

/// Scales or sizes of some axes become those of all axes.
pub(crate) fn resize_axes(model: &mut Model, id: NodeId) -> Outcome {
    let options = attrs::Resize::read(&model[id])?;
    if options.antialias {
        return resample(model, id);
    }
    let axes = options.axes;
    for policy in ["not_larger", "not_smaller"] {
        unless(model, id, "keep_aspect_ratio_policy", policy)?;
    }
    for name in ["antialias", "keep_aspect_ratio_policy"] {
        without(model, id, name)?;
    }
    let Some(axes) = axes else {
        return Ok(Rewritten::InPlace);
    };
    if model[id].input(1).is_some() {
        return Err("`roi` with `axes` needs a newer opset".into());
    }
    let rank = rank_of(model, id, 0)?;
    // Where each value is taken from: first come the values of all axes, then the given ones.
    let mut from: Vec<i64> = (0..rank as i64).collect();
    for (i, &axis) in axes.iter().enumerate() {
        from[front(axis, rank)?] = (rank + i) as i64;
    }
    replace(model, id, |cx, node| {
        let whole = |all, given| cx.gather(cx.concat(&[all, given], 0), cx.ints(&from), 0);
        let scales = node.input(2).filter(|&s| {
            cx.known_shape(s).is_none_or(|d| d.first().and_then(|d| d.as_int()) != Some(0))
        });
        let scales = scales.map(|given| {
            let known = constant_numbers(&cx.model(), given);
            let Some(known) = known else {
                return whole(cx.vector(&vec![1f32; rank]), given);
            };
            let of = |&i: &i64| match (i as usize).checked_sub(rank) {
                Some(given) => known.get(given).map_or(1.0, |&s| s as f32),
                None => 1.0,
            };
            cx.vector(&from.iter().map(of).collect::<Vec<f32>>())
        });
        let sizes = node.input(3).map(|given| {
            let x = input(node, 0)?;
            let known = cx.model().const_ints(given);
            let dims = cx.known_shape(x);
            let known = known.zip(dims).and_then(|(known, dims)| {
                let of = |&i: &i64| match (i as usize).checked_sub(rank) {
                    Some(given) => known.get(given).copied(),
                    None => dims[i as usize].as_int(),
                };
                from.iter().map(of).collect::<Option<Vec<i64>>>()
            });
            Ok::<_, Reason>(match known {
                Some(known) => cx.ints(&known),
                None => whole(cx.shape_op(x, attrs::Shape::default()), given),
            })
        });
        let mut given = node.attributes.clone();
        given.retain(|(name, _)| name != "axes");
        let inputs = [node.input(0), None, scales, sizes.transpose()?];
        Ok(vec![cx.emit1("Resize", &inputs, given)])
    })
}

/// The first form only scales, rounding down, or up for a scale below 1. `Gather` does the rest.
pub(crate) fn resize_modes(model: &mut Model, id: NodeId) -> Outcome {
    let node = &model[id];
    let options = attrs::Resize::read(node)?;
    let asymmetric = options.coordinate_transformation_mode == "asymmetric";
    let chosen = options.nearest_mode.to_owned();
    let mode = options.mode.to_owned();
    let x = input(node, 0)?;
    let scales = match node.input(3) {
        None => node.input(2),
        Some(sizes) => {
            let known = model.const_ints(sizes).zip(model.shape(x));
            let whole = known.and_then(|(sizes, dims)| {
                let times = |(size, dim): (&i64, &pt2onnx_symbolic::Expr)| {
                    let dim = dim.as_int().filter(|d| *d > 0 && size % d == 0)?;
                    Some((size / dim) as f32)
                };
                sizes.iter().zip(dims).map(times).collect::<Option<Vec<f32>>>()
            });
            whole.map(|whole| model.add_constant(Tensor::vector(&whole)))
        }
    };
    let known = scales.and_then(|s| constant_numbers(model, s));
    let nearest = || {
        let alike = |&s: &f64| match chosen.as_str() {
            "floor" => s >= 1.0 || exact(s),
            "ceil" => s <= 1.0,
            _ => s == 1.0 || exact(s),
        };
        known.is_some_and(|scales| scales.iter().all(alike))
    };
    let first = asymmetric
        && match mode.as_str() {
            "nearest" => nearest(),
            "linear" => true,
            _ => false,
        };
    let Some(scales) = scales.filter(|_| first) else {
        return resample(model, id);
    };
    model.set_inputs(id, &[Some(x), Some(scales)]);
    model[id].attributes = attributes([("mode", mode.as_str().into())]);
    Ok(Rewritten::InPlace)
}

/// Whether all positions are whole numbers, so that nothing is rounded: the scale is `1 / 2**k`.
fn exact(scale: f64) -> bool {
    let step = 1.0 / scale;
    (1.0..1e9).contains(&step) && (step as u64).is_power_of_two() && step.fract() == 0.0
}

/// `Upsample`, the older name, if nothing becomes smaller; otherwise by `Gather`.
pub(crate) fn upsample(model: &mut Model, id: NodeId) -> Outcome {
    let (x, scales) = (input(&model[id], 0)?, input(&model[id], 1)?);
    let known = constant_numbers(model, scales);
    let all = |side: fn(f64) -> bool| known.iter().flatten().all(|&s| side(s));
    if known.is_some() && all(|s| s >= 1.0) {
        model.set_op(id, "Upsample");
        return Ok(Rewritten::InPlace);
    }
    model.set_inputs(id, &[Some(x), None, Some(scales)]);
    set(model, id, "coordinate_transformation_mode", "asymmetric");
    set(model, id, "nearest_mode", if all(|s| s <= 1.0) { "ceil" } else { "floor" });
    resample(model, id)
}

/// Dilations of 1 are removed.
pub(crate) fn undilated(model: &mut Model, id: NodeId) -> Outcome {
    match attrs::MaxPool::read(&model[id])?.dilations {
        Some(d) if d.iter().any(|&d| d != 1) => Err("dilations need a newer opset".into()),
        _ => without(model, id, "dilations"),
    }
}

/// `ceil_mode` becomes pads at the end.
pub(crate) fn pool(model: &mut Model, id: NodeId) -> Outcome {
    undilated(model, id)?;
    // `MaxPool` and `LpPool` have all of these but `count_include_pad`.
    let options = attrs::AveragePool::read(&model[id])?;
    if !options.ceil_mode {
        return without(model, id, "ceil_mode");
    }
    let node = &model[id];
    if options.count_include_pad {
        return Err("`ceil_mode` with `count_include_pad` needs a newer opset".into());
    }
    let sizes =
        |v: Value| model.shape(v)?.get(2..)?.iter().map(|d| d.as_int()).collect::<Option<Vec<_>>>();
    let known = sizes(input(node, 0)?).zip(sizes(node.outputs()[0]));
    let (from, to) = known.ok_or("`ceil_mode` of unknown sizes needs a newer opset")?;
    let kernel = attrs::AveragePool::kernel_shape(node)?;
    let strides = options.strides.unwrap_or_else(|| vec![1; from.len()]);
    let mut pads = options.pads.unwrap_or_else(|| vec![0; 2 * from.len()]);
    let n = from.len();
    if options.auto_pad != "NOTSET"
        || pads.len() != 2 * n
        || kernel.len() != n
        || strides.len() != n
    {
        return Err("this `ceil_mode` needs a newer opset".into());
    }
    for i in 0..n {
        let needed = (to[i] - 1).saturating_mul(strides[i]).saturating_add(kernel[i]);
        let missing = needed.saturating_sub(from[i] + pads[i] + pads[n + i]).max(0);
        pads[n + i] = pads[n + i].saturating_add(missing);
        if pads[n + i] >= kernel[i] {
            return Err("`ceil_mode` with windows of padding only needs a newer opset".into());
        }
    }
    set(model, id, "pads", pads);
    without(model, id, "ceil_mode")
}

/// The opset from which on pools that round up drop a last window that starts in the padding.
pub(crate) const DROPPING: u32 = 22;

/// Older forms of pools do not say that such a window is dropped: pads and rounding down give the
/// same windows, where sizes are known.
pub(crate) fn windows(model: &mut Model, id: NodeId) {
    if model[id].traits().contains(Traits::POOL)
        && let Some(pads) = pads_without(model, id)
    {
        set(model, id, "pads", pads);
        model[id].remove_attribute("ceil_mode");
    }
}

/// The pads for a pool without `ceil_mode`, if it drops a window and counts no more pads then.
fn pads_without(model: &Model, id: NodeId) -> Option<Vec<i64>> {
    let node = &model[id];
    let options = attrs::AveragePool::read(node).ok().filter(|o| o.ceil_mode)?;
    let from = model.shape(node.input(0)?)?.get(2..)?.iter().map(|d| d.as_int());
    let from: Vec<i64> = from.collect::<Option<_>>()?;
    let kernel = attrs::AveragePool::kernel_shape(node).ok()?;
    let n = from.len();
    let strides = options.strides.unwrap_or_else(|| vec![1; n]);
    let dilations = options.dilations.unwrap_or_else(|| vec![1; n]);
    let mut pads = options.pads.unwrap_or_else(|| vec![0; 2 * n]);
    let fits = [kernel.len(), strides.len(), dilations.len()] == [n; 3] && pads.len() == 2 * n;
    let read = [&from, &strides, &dilations, &pads, kernel].into_iter().flatten();
    if options.auto_pad != "NOTSET" || !fits || read.into_iter().any(|x| !(0..1 << 24).contains(x))
    {
        return None;
    }
    let (mut drops, mut more) = (false, false);
    for i in 0..n {
        let span = (kernel[i] - 1) * dilations[i] + 1;
        let (start, room) = (from[i] + pads[i], from[i] + pads[i] + pads[n + i] - span);
        // Where the last window starts, and what it takes behind the end.
        let mut last = (room.max(0) + strides[i] - 1).checked_div(strides[i])? * strides[i];
        if last >= start {
            last -= strides[i];
            drops = true;
        }
        let missing = (last - room).max(0);
        more |= missing > 0;
        pads[n + i] += missing;
    }
    (drops && !(more && options.count_include_pad)).then_some(pads)
}

/// Older names of the modes, and images of two dimensions only.
pub(crate) fn grid_sample_modes(model: &mut Model, id: NodeId) -> Outcome {
    if rank_of(model, id, 0)? != 4 {
        return replace(model, id, grid_sample);
    }
    let older = match attrs::GridSample::read(&model[id])?.mode {
        "linear" => "bilinear",
        "cubic" => "bicubic",
        other => other,
    };
    let older = older.to_owned();
    set(model, id, "mode", older);
    Ok(Rewritten::InPlace)
}

/// Whether only the older form has such a `Resize`: scales beside sizes, or a dropped mode.
pub(crate) fn is_lost(model: &Model, id: NodeId) -> bool {
    let mode = model[id].read::<&str>("coordinate_transformation_mode");
    let scaled = model[id].input(2).is_some() && model[id].input(3).is_some();
    scaled || mode == Ok(Some("tf_half_pixel_for_nn"))
}
