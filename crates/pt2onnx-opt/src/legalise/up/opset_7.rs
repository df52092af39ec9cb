//! Forms of opsets 1 to 6 become those of opset 7, the oldest that is written.

use super::canonical::put;
use crate::legalise::{Outcome, Rewritten, before, constant_numbers, input, rank_of, replace, set};
use pt2onnx_ir::{Attribute, Builder, Model, NodeId, Value, schema};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

/// Attributes with their default values, if they are not given.
pub(crate) fn defaults<A: Into<Attribute>, const N: usize>(
    model: &mut Model,
    id: NodeId,
    defaults: [(&'static str, A); N],
) -> Outcome {
    for (name, value) in defaults {
        if model[id].attribute(name).is_none() {
            set(model, id, name, value);
        }
    }
    Ok(Rewritten::InPlace)
}

/// An attribute got another name.
pub(crate) fn pad(model: &mut Model, id: NodeId, _: bool) -> Outcome {
    if let Some(pads) = model[id].remove_attribute("paddings") {
        set(model, id, "pads", pads);
    }
    Ok(Rewritten::InPlace)
}

/// The second operand has the dimensions of the first from an axis on, by default the last ones.
pub(crate) fn broadcast(model: &mut Model, id: NodeId, _: bool) -> Outcome {
    let given = model[id].read::<i64>("broadcast")?.unwrap_or(0) != 0;
    let axis = model[id].read::<i64>("axis")?.and_then(|axis| usize::try_from(axis).ok());
    model[id].remove_attribute("broadcast");
    model[id].remove_attribute("axis");
    let Some(axis) = axis.filter(|_| given) else {
        return Ok(Rewritten::InPlace);
    };
    let [first, second] = [rank_of(model, id, 0)?, rank_of(model, id, 1)?];
    let after = first.checked_sub(axis + second);
    widened(model, id, after.ok_or("its second operand ends after the first one")?)
}

/// A slope of one dimension has an element for each channel.
pub(crate) fn slope(model: &mut Model, id: NodeId, _: bool) -> Outcome {
    let [x, slope] = [rank_of(model, id, 0)?, rank_of(model, id, 1)?];
    widened(model, id, if slope == 1 { x.saturating_sub(2) } else { 0 })
}

/// The second input has that many more dimensions, of size 1, after its own.
fn widened(model: &mut Model, id: NodeId, more: usize) -> Outcome {
    if more == 0 {
        return Ok(Rewritten::InPlace);
    }
    let wide = before(model, id, |cx, node| {
        let second = input(node, 1)?;
        let rank = cx.rank(second);
        Ok(cx.unsqueeze(second, &(rank..rank + more).collect::<Vec<_>>()))
    })?;
    put(model, id, 1, wide);
    Ok(Rewritten::Surrounded)
}

/// Opset 7 has no attribute that says whether the model is trained. Many producers left it out of
/// models for inference. From opset 7 on, a `BatchNormalization` with more outputs than one trains.
pub(crate) fn inference(model: &mut Model, id: NodeId, _: bool) -> Outcome {
    if model[id].read::<i64>("is_test")? == Some(0) {
        return Err("it is in training mode: `is_test` is 0".into());
    }
    let outputs = model[id].outputs();
    if model[id].op() == "Dropout" || outputs.len() < 2 {
        model[id].remove_attribute("is_test");
        return Ok(Rewritten::InPlace);
    }
    if outputs.iter().skip(1).any(|v| model[*v].uses().len() > 0) {
        return Err("its statistics are used".into());
    }
    replace(model, id, |cx, node| {
        let attributes = node.attributes.iter().filter(|(name, _)| &**name != "is_test").cloned();
        let made = cx.emit1("BatchNormalization", node.inputs(), attributes.collect());
        Ok(vec![made; node.outputs().len()])
    })
}

/// The type was a name: `FLOAT`, `INT64`.
pub(crate) fn cast(model: &mut Model, id: NodeId, _: bool) -> Outcome {
    let name = model[id].read_required::<&str>("to")?.to_ascii_lowercase();
    let dtype = match name.as_str() {
        "float" => Some(DType::F32),
        "double" => Some(DType::F64),
        other => DType::from_name(other),
    };
    let dtype = dtype.ok_or_else(|| format!("it has no element type {name:?}"))?;
    set(model, id, "to", schema::data_type(dtype));
    Ok(Rewritten::InPlace)
}

/// A missing bound is infinite; in opset 6, it is the largest number.
pub(crate) fn clip(model: &mut Model, id: NodeId, _: bool) -> Outcome {
    defaults(model, id, [("min", f32::NEG_INFINITY), ("max", f32::INFINITY)])
}

/// The exponent became an integer.
pub(crate) fn norm(model: &mut Model, id: NodeId, _: bool) -> Outcome {
    let p = model[id].read::<f32>("p")?.unwrap_or(2.0);
    if p.fract() != 0.0 {
        return Err(format!("its exponent {p} is not an integer").into());
    }
    set(model, id, "p", p as i64);
    Ok(Rewritten::InPlace)
}

/// The sizes could be an input, of the element type of the others.
pub(crate) fn split(model: &mut Model, id: NodeId, _: bool) -> Outcome {
    if model[id].attribute("axis").is_none() {
        return Err("its axis is not given, and opset 1 says none".into());
    }
    let Some(sizes) = model[id].input(1) else {
        return Ok(Rewritten::InPlace);
    };
    let sizes = before(model, id, |cx, _| Ok(integers(cx, sizes)))?;
    put(model, id, 1, sizes);
    Ok(Rewritten::Surrounded)
}

/// Sizes of any element type.
fn integers(cx: &Builder, sizes: Value) -> Value {
    let known = constant_numbers(&cx.model(), sizes);
    match known {
        Some(known) => cx.ints(&known.into_iter().map(|size| size as i64).collect::<Vec<_>>()),
        None => cx.cast(sizes, DType::I64),
    }
}

/// One axis was repeated.
pub(crate) fn tile(model: &mut Model, id: NodeId, _: bool) -> Outcome {
    let rank = rank_of(model, id, 0)?;
    let axis = constant_numbers(model, input(&model[id], 2)?);
    let axis = axis.ok_or("its axis is computed")?;
    let axis = (0..rank).find(|i| axis == [*i as f64]).ok_or("its axis is out of range")?;
    replace(model, id, |cx, node| {
        let count = cx.reshape(integers(cx, input(node, 1)?), &[Expr::int(1)]);
        let ones = |count: usize| cx.ints(&vec![1; count]);
        let repeats = cx.concat(&[ones(axis), count, ones(rank - axis - 1)], 0);
        Ok(vec![cx.tile_op(input(node, 0)?, repeats)])
    })
}

/// Two attributes were the scales of the last two of four dimensions.
pub(crate) fn upsample(model: &mut Model, id: NodeId, _: bool) -> Outcome {
    let height = model[id].read_required::<f32>("height_scale")?;
    let width = model[id].read_required::<f32>("width_scale")?;
    model[id].remove_attribute("height_scale");
    model[id].remove_attribute("width_scale");
    set(model, id, "scales", Attribute::Floats(vec![1.0, 1.0, height, width]));
    Ok(Rewritten::InPlace)
}
