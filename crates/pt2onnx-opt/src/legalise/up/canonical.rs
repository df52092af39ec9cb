//! Forms of opsets 7 and up become those of the canonical opset: each function skips all forms
//! between. `reversible` forbids results that legalisation cannot make the older node again.

use crate::{
    eval,
    legalise::{
        Outcome, Reason, Rewritten, attributes, before, constant_numbers, input, keep_inputs,
        rank_of, replace, set,
    },
};
use pt2onnx_ir::{Model, NodeId, Value};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Tensor};

/// The default mode became another one.
pub(crate) fn roi_align(model: &mut Model, id: NodeId, _: bool) -> Outcome {
    set(model, id, "coordinate_transformation_mode", "output_half_pixel");
    Ok(Rewritten::InPlace)
}

pub(crate) fn ints_as_input(
    model: &mut Model,
    id: NodeId,
    name: &'static str,
    index: usize,
) -> Outcome {
    let ints = model[id].read::<&[i64]>(name)?.map(Tensor::vector);
    as_input(model, id, name, index, ints)
}

/// An attribute, which has these elements, becomes an input, if it is given.
fn as_input(
    model: &mut Model,
    id: NodeId,
    name: &'static str,
    index: usize,
    elements: Option<Tensor>,
) -> Outcome {
    if let Some(elements) = elements {
        let elements = model.add_constant(elements);
        model[id].remove_attribute(name);
        put(model, id, index, elements);
    }
    Ok(Rewritten::InPlace)
}

/// Older forms took axes of tensors without dimensions.
pub(crate) fn reduction(model: &mut Model, id: NodeId, _: bool) -> Outcome {
    if rank_of(model, id, 0).is_ok_and(|rank| rank == 0) {
        model[id].remove_attribute("axes");
    }
    ints_as_input(model, id, "axes", 1)
}

pub(super) fn put(model: &mut Model, id: NodeId, index: usize, value: Value) {
    let mut inputs = model[id].inputs().to_vec();
    inputs.resize(inputs.len().max(index + 1), None);
    inputs[index] = Some(value);
    model.set_inputs(id, &inputs);
}

/// Without sizes, all parts are equal, and there are as many as outputs.
pub(crate) fn split(model: &mut Model, id: NodeId, reversible: bool) -> Outcome {
    ints_as_input(model, id, "split", 1)?;
    if model[id].input(1).is_some() {
        return Ok(Rewritten::InPlace);
    }
    let count = model[id].outputs().len() as i64;
    let size = || {
        let shape = model.shape(model[id].input(0)?)?;
        let axis = model[id].read::<i64>("axis").ok()?.unwrap_or(0);
        shape.get(eval::axis(axis, shape.len())?).cloned()
    };
    let even = size().is_some_and(|s| s.modulo(&Expr::int(count)) == Expr::int(0));
    if reversible && !even {
        return Err("the size of its parts is not known".into());
    }
    set(model, id, "num_outputs", count);
    Ok(Rewritten::InPlace)
}

/// The older form flattens all dimensions from the axis on.
pub(crate) fn softmax(model: &mut Model, id: NodeId, reversible: bool) -> Outcome {
    let axis = model[id].read::<i64>("axis")?.unwrap_or(1);
    let rank = match rank_of(model, id, 0) {
        Err(_) if !reversible => return flattened(model, id, axis),
        rank => rank?,
    };
    let axis = eval::axis(axis, rank).or((axis == rank as i64).then_some(rank));
    let axis = axis.ok_or("its axis is out of range")?;
    let shape = model.shape(input(&model[id], 0)?).cloned().unwrap_or_default();
    let one = |i: usize| shape.get(i).and_then(Expr::as_int) == Some(1);
    if axis + 1 == rank || axis < rank && (axis + 1..rank).all(one) {
        set(model, id, "axis", axis as i64);
        return Ok(Rewritten::InPlace);
    }
    if reversible {
        return Err("it is over several dimensions".into());
    }
    flattened(model, id, axis as i64)
}

/// The operator over the last of two dimensions, which a tensor is flattened to.
fn flattened(model: &mut Model, id: NodeId, axis: i64) -> Outcome {
    let op: &'static str = match model[id].op() {
        "LogSoftmax" => "LogSoftmax",
        "Hardmax" => "Hardmax",
        _ => "Softmax",
    };
    replace(model, id, |cx, node| {
        let x = input(node, 0)?;
        let flat = cx.emit1("Flatten", &[Some(x)], attributes([("axis", axis.into())]));
        let found = cx.emit1(op, &[Some(flat)], attributes([("axis", 1.into())]));
        if cx.known_shape(x).is_some() {
            return Ok(vec![cx.reshape(found, &cx.shape(x))]);
        }
        let shape = cx.emit1("Shape", &[Some(x)], attributes([]));
        let zeros = attributes([("allowzero", 1.into())]);
        Ok(vec![cx.emit1("Reshape", &[Some(found), Some(shape)], zeros)])
    })
}

/// The mask, which had the type of the data, is bool; it says that nothing is dropped.
pub(crate) fn typed_dropout(model: &mut Model, id: NodeId, reversible: bool) -> Outcome {
    model[id].remove_attribute("ratio");
    match model[id].outputs().get(1) {
        Some(&mask) if !reversible && model[mask].uses().len() > 0 => {}
        _ => return Ok(Rewritten::InPlace),
    }
    replace(model, id, |cx, node| {
        let x = input(node, 0)?;
        let made = cx.emit("Dropout", &[Some(x)], attributes([]), 2);
        Ok(vec![made[0], cx.cast(made[1], cx.dtype(x))])
    })
}

/// A number as a scalar of the type of the first input.
fn number(model: &mut Model, id: NodeId, number: f32) -> Result<Value, Reason> {
    let dtype = model.dtype(input(&model[id], 0)?).ok_or("its element type is not known")?;
    let scalar = pt2onnx_tensor::Scalar::from(f64::from(number)).to_tensor(dtype);
    let scalar = scalar.ok_or("its element type has no numbers")?;
    Ok(model.add_constant(scalar))
}

pub(crate) fn pad(model: &mut Model, id: NodeId, _: bool) -> Outcome {
    let filled = model[id].read::<f32>("value")?.filter(|v| *v != 0.0);
    let filled = filled.map(|v| number(model, id, v)).transpose()?;
    ints_as_input(model, id, "pads", 1)?;
    model[id].remove_attribute("value");
    if let Some(filled) = filled {
        put(model, id, 2, filled);
    }
    Ok(Rewritten::InPlace)
}

pub(crate) fn slice(model: &mut Model, id: NodeId, _: bool) -> Outcome {
    for (i, name) in ["starts", "ends", "axes"].into_iter().enumerate() {
        ints_as_input(model, id, name, i + 1)?;
    }
    Ok(Rewritten::InPlace)
}

/// The older form always has bounds, and by default the largest float32.
pub(crate) fn clip(model: &mut Model, id: NodeId, _: bool) -> Outcome {
    let read = |name| Ok::<_, Reason>(model[id].read::<f32>(name)?);
    let bounds = [read("min")?.unwrap_or(f32::MIN), read("max")?.unwrap_or(f32::MAX)];
    let half = model.dtype(input(&model[id], 0)?) == Some(DType::F16);
    if half && bounds.iter().any(|b| b.is_finite() && b.abs() > 65504.0) {
        return Err("its bounds do not fit into float16".into());
    }
    for (i, bound) in bounds.into_iter().enumerate() {
        let bound = number(model, id, bound)?;
        put(model, id, i + 1, bound);
    }
    model[id].attributes.clear();
    Ok(Rewritten::InPlace)
}

pub(crate) fn top_k(model: &mut Model, id: NodeId, _: bool) -> Outcome {
    let count = Tensor::vector(&[model[id].read_required::<i64>("k")?]);
    as_input(model, id, "k", 1, Some(count))
}

/// `Upsample` of opset 9 has scales as an input, that of opset 7 as an attribute.
pub(crate) fn upsample(model: &mut Model, id: NodeId, reversible: bool) -> Outcome {
    let scales = model[id].read::<&[f32]>("scales")?.map(Tensor::vector);
    as_input(model, id, "scales", 1, scales)?;
    if model[id].read::<&str>("mode")? == Some("bilinear") {
        set(model, id, "mode", "linear");
    }
    model.set_op(id, "Resize");
    resize(model, id, reversible)
}

/// The first form of `Resize`, and `Upsample`: positions are multiples of the scale, and the
/// nearest is the one before; the one after where a scale is below 1. With scales of both kinds,
/// there are two nodes.
pub(crate) fn resize(model: &mut Model, id: NodeId, reversible: bool) -> Outcome {
    let (x, scales) = (input(&model[id], 0)?, input(&model[id], 1)?);
    let known = constant_numbers(model, scales);
    let interpolated = model[id].read::<&str>("mode")?.is_some_and(|mode| mode != "nearest");
    let any = |side: fn(f64) -> bool| known.as_ref().is_none_or(|s| s.iter().any(|&s| side(s)));
    let (wider, smaller) = (any(|s| s > 1.0), any(|s| s < 1.0));
    let form = |chosen: &'static str| {
        [("coordinate_transformation_mode", "asymmetric".into()), ("nearest_mode", chosen.into())]
    };
    if interpolated || !(wider && smaller) {
        model.set_inputs(id, &[Some(x), None, Some(scales)]);
        let chosen = if smaller && !interpolated { "ceil" } else { "floor" };
        form(chosen).into_iter().for_each(|(name, value)| set(model, id, name, value));
        return Ok(Rewritten::InPlace);
    }
    if reversible {
        return Err("some of its scales may be below 1, and some above".into());
    }
    replace(model, id, |cx, _| {
        let one = cx.scalar(1.0, DType::F32);
        let [up, down] = match &known {
            Some(known) => [f64::max, f64::min].map(|side| {
                cx.vector(&known.iter().map(|&s| side(s, 1.0) as f32).collect::<Vec<_>>())
            }),
            None => [cx.maximum(scales, one), cx.minimum(scales, one)],
        };
        let resized = |x, scales, chosen| {
            cx.emit1("Resize", &[Some(x), None, Some(scales)], attributes(form(chosen)))
        };
        Ok(vec![resized(resized(x, up, "floor"), down, "ceil")])
    })
}

/// The scales, which were always an input, had no elements where sizes were given.
pub(crate) fn resize_inputs(model: &mut Model, id: NodeId, _: bool) -> Outcome {
    let mode = model[id].read::<&str>("coordinate_transformation_mode")?;
    if mode == Some("tf_half_pixel_for_nn") {
        return Err("tf_half_pixel_for_nn has no newer form".into());
    }
    let mut inputs = model[id].inputs().to_vec();
    if let [_, _, scales, Some(_)] = &mut *inputs {
        *scales = None;
        model.set_inputs(id, &inputs);
    }
    Ok(Rewritten::InPlace)
}

/// The attribute `axis` became an input.
pub(crate) fn transform(model: &mut Model, id: NodeId, _: bool) -> Outcome {
    let axis = Tensor::scalar(model[id].read::<i64>("axis")?.unwrap_or(1));
    as_input(model, id, "axis", 2, Some(axis))
}

pub(crate) fn grid_sample(model: &mut Model, id: NodeId, _: bool) -> Outcome {
    let mode = match model[id].read::<&str>("mode")?.unwrap_or("bilinear") {
        "bilinear" => "linear",
        "bicubic" => "cubic",
        _ => "nearest",
    };
    set(model, id, "mode", mode);
    Ok(Rewritten::InPlace)
}

/// The older form has one scale.
pub(crate) fn quantization(model: &mut Model, id: NodeId, reversible: bool) -> Outcome {
    let mut done = Rewritten::InPlace;
    for i in [1, 2] {
        let Some(given) = model[id].input(i) else { continue };
        let sizes = model.shape(given).ok_or("the sizes of its scale are not known")?;
        if sizes.is_empty() {
            continue;
        }
        if sizes.iter().any(|d| d.as_int() != Some(1)) {
            return Err("its scale is not a scalar".into());
        }
        let scalar = match model[given].constant().and_then(|t| t.reshaped([])) {
            Some(scalar) => model.add_constant(scalar),
            None if reversible => return Err("its scale is not a scalar".into()),
            None => {
                done = Rewritten::Surrounded;
                before(model, id, |cx, _| Ok(cx.reshape(given, &[])))?
            }
        };
        model.replace_input(id, i, Some(scalar));
    }
    Ok(done)
}

/// The older form has a scale and a bias for each group, the newer one for each channel.
pub(crate) fn group_norm(model: &mut Model, id: NodeId, reversible: bool) -> Outcome {
    if reversible {
        return Err("its scale has an element for each group".into());
    }
    let groups = model[id].read_required::<i64>("num_groups")?;
    let x = input(&model[id], 0)?;
    let channels = model.shape(x).and_then(|s| s.get(1)?.as_int());
    let channels = channels.ok_or("the number of its channels is not known")?;
    let each = channels.checked_div(groups).ok_or("it has no groups")?;
    replace(model, id, |cx, node| {
        let wide = |i: usize| {
            let column = cx.reshape(input(node, i)?, &[Expr::int(groups), Expr::int(1)]);
            let all = cx.expand(column, &[Expr::int(groups), Expr::int(each)]);
            Ok::<_, Reason>(cx.reshape(all, &[Expr::int(channels)]))
        };
        let inputs = [Some(x), Some(wide(1)?), Some(wide(2)?)];
        Ok(vec![cx.emit1("GroupNormalization", &inputs, node.attributes.clone())])
    })
}

/// Older forms train if they list statistics, used or not; opset 7 may have some per element.
pub(crate) fn batch_norm(model: &mut Model, id: NodeId, reversible: bool) -> Outcome {
    let each = model[id].read::<i64>("spatial")?.unwrap_or(1) == 0;
    let outputs = model[id].outputs();
    let trains = outputs.len() > 1;
    if outputs.iter().skip(3).any(|v| model[*v].uses().len() > 0) {
        return Err("its saved statistics are used".into());
    }
    match (trains, each) {
        (true, true) => return Err("it trains with statistics for each element".into()),
        (true, false) if reversible => return Err("it trains".into()),
        (false, true) if reversible => return Err("it has statistics for each element".into()),
        _ => {}
    }
    model[id].remove_attribute("spatial");
    if !trains && !each {
        keep_inputs(model, id, 5);
        return Ok(Rewritten::InPlace);
    }
    replace(model, id, |cx, node| {
        if each {
            let [x, scale, bias, mean, variance] = [0, 1, 2, 3, 4].map(|i| input(node, i));
            let epsilon = node.read::<f32>("epsilon")?.unwrap_or(1e-5);
            let deviation = cx.sqrt(cx.add(variance?, f64::from(epsilon)));
            let scaled = cx.mul(cx.div(cx.sub(x?, mean?), deviation), scale?);
            return Ok(vec![cx.add(scaled, bias?)]);
        }
        let mut attributes = node.attributes.clone();
        attributes.push(("training_mode".into(), 1i64.into()));
        let mut made = cx.emit("BatchNormalization", node.inputs(), attributes, 3);
        // Nothing reads the others.
        made.resize(node.outputs().len(), made[0]);
        Ok(made.to_vec())
    })
}
