//! Rewrites nodes of opsets 1 to 6 into the forms of opset 7, the oldest that is written.

use super::raise::{ints_as_input, put};
use crate::legalise::{
    error::Reason,
    forms::{constant_numbers, input, rank_of, set},
    replace::{Done, before, replace},
};
use pt2onnx_ir::{Attribute, Builder, Model, NodeId, Value, schema};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

/// Rewrites a node that was written for opset `written`, below 7. Attributes that only told how to
/// compute are left out.
///
/// # Errors
/// What opset 7 cannot express, or too little is known of it.
pub(super) fn raise(model: &mut Model, id: NodeId, written: u32) -> Result<Done, Reason> {
    let op = model[id].op().to_owned();
    let since = schema::lookup(&op, written).map_or(0, |s| s.since);
    for told in ["consumed_inputs", "output_sequence"] {
        model[id].remove_attribute(told);
    }
    match op.as_str() {
        "Add" | "And" | "Div" | "Equal" | "Greater" | "Less" | "Mul" | "Or" | "Pow" | "Sub"
        | "Xor" => broadcast(model, id),
        "BatchNormalization" | "Dropout" => inference(model, id),
        "Cast" if since < 6 => cast(model, id),
        "Clip" if since < 6 => clip(model, id),
        "Concat" if since < 4 && model[id].attribute("axis").is_none() => {
            set(model, id, "axis", 1);
            Ok(Done::Kept)
        }
        "Gemm" => {
            model[id].remove_attribute("broadcast");
            Ok(Done::Kept)
        }
        "GlobalLpPool" | "LpPool" if since < 2 => norm(model, id),
        "PRelu" => slope(model, id),
        "Pad" if since < 2 => {
            if let Some(pads) = model[id].remove_attribute("paddings") {
                set(model, id, "pads", pads);
            }
            Ok(Done::Kept)
        }
        "Reshape" if since < 5 => ints_as_input(model, id, "shape", 1),
        "Selu" if since < 6 => selu(model, id),
        "Split" if since < 2 => split(model, id),
        "Tile" if since < 6 => tile(model, id),
        "Upsample" if since < 7 => upsample(model, id),
        _ => Ok(Done::Kept),
    }
}

/// The dimensions of the second operand are those of the first one from an axis on, by default the
/// last ones.
fn broadcast(model: &mut Model, id: NodeId) -> Result<Done, Reason> {
    let given = model[id].read::<i64>("broadcast")?.unwrap_or(0) != 0;
    let axis = model[id].read::<i64>("axis")?.and_then(|axis| usize::try_from(axis).ok());
    model[id].remove_attribute("broadcast");
    model[id].remove_attribute("axis");
    let Some(axis) = axis.filter(|_| given) else {
        return Ok(Done::Kept);
    };
    let [first, second] = [rank_of(model, id, 0)?, rank_of(model, id, 1)?];
    let after = first.checked_sub(axis + second);
    widened(model, id, after.ok_or("its second operand ends after the first one")?)
}

/// A slope of one dimension has an element for each channel.
fn slope(model: &mut Model, id: NodeId) -> Result<Done, Reason> {
    let [x, slope] = [rank_of(model, id, 0)?, rank_of(model, id, 1)?];
    widened(model, id, if slope == 1 { x.saturating_sub(2) } else { 0 })
}

/// The second input has that many more dimensions, of size 1, after its own.
fn widened(model: &mut Model, id: NodeId, more: usize) -> Result<Done, Reason> {
    if more == 0 {
        return Ok(Done::Kept);
    }
    let wide = before(model, id, |cx, node| {
        let second = input(node, 1)?;
        let rank = cx.rank(second);
        Ok(cx.unsqueeze(second, &(rank..rank + more).collect::<Vec<_>>()))
    })?;
    put(model, id, 1, wide);
    Ok(Done::Fed)
}

/// Opset 7 has no attribute that says whether the model is trained. Many producers left it out of
/// models for inference. From opset 7 on, a `BatchNormalization` with more outputs than one trains.
fn inference(model: &mut Model, id: NodeId) -> Result<Done, Reason> {
    if model[id].read::<i64>("is_test")? == Some(0) {
        return Err("it is in training mode: `is_test` is 0".into());
    }
    let outputs = model[id].outputs();
    if model[id].op() == "Dropout" || outputs.len() < 2 {
        model[id].remove_attribute("is_test");
        return Ok(Done::Kept);
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
fn cast(model: &mut Model, id: NodeId) -> Result<Done, Reason> {
    let name = model[id].read_required::<&str>("to")?.to_ascii_lowercase();
    let dtype = match name.as_str() {
        "float" => Some(DType::F32),
        "double" => Some(DType::F64),
        other => DType::ALL.iter().copied().find(|d| d.name() == other),
    };
    let dtype = dtype.ok_or_else(|| format!("it has no element type {name:?}"))?;
    set(model, id, "to", schema::data_type(dtype));
    Ok(Done::Kept)
}

/// Without a bound, there is none. Opset 6 has the largest numbers instead.
fn clip(model: &mut Model, id: NodeId) -> Result<Done, Reason> {
    for (bound, none) in [("min", f32::NEG_INFINITY), ("max", f32::INFINITY)] {
        if model[id].attribute(bound).is_none() {
            set(model, id, bound, none);
        }
    }
    Ok(Done::Kept)
}

/// The exponent became an integer.
fn norm(model: &mut Model, id: NodeId) -> Result<Done, Reason> {
    let p = model[id].read::<f32>("p")?.unwrap_or(2.0);
    if p.fract() != 0.0 {
        return Err(format!("its exponent {p} is no integer").into());
    }
    set(model, id, "p", p as i64);
    Ok(Done::Kept)
}

/// The numbers that are not given have more digits since opset 6.
fn selu(model: &mut Model, id: NodeId) -> Result<Done, Reason> {
    for (name, number) in [("alpha", 1.6732f32), ("gamma", 1.0507)] {
        if model[id].attribute(name).is_none() {
            set(model, id, name, number);
        }
    }
    Ok(Done::Kept)
}

/// The sizes could be an input, of the element type of the others.
fn split(model: &mut Model, id: NodeId) -> Result<Done, Reason> {
    if model[id].attribute("axis").is_none() {
        return Err("its axis is not given, and opset 1 says none".into());
    }
    let Some(sizes) = model[id].input(1) else {
        return Ok(Done::Kept);
    };
    let sizes = before(model, id, |cx, _| Ok(integers(cx, sizes)))?;
    put(model, id, 1, sizes);
    Ok(Done::Fed)
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
fn tile(model: &mut Model, id: NodeId) -> Result<Done, Reason> {
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

/// The last two of four dimensions had a scale each.
fn upsample(model: &mut Model, id: NodeId) -> Result<Done, Reason> {
    let height = model[id].read_required::<f32>("height_scale")?;
    let width = model[id].read_required::<f32>("width_scale")?;
    model[id].remove_attribute("height_scale");
    model[id].remove_attribute("width_scale");
    set(model, id, "scales", Attribute::Floats(vec![1.0, 1.0, height, width]));
    Ok(Done::Kept)
}
