//! Scattering: reductions by a loop over the indices, index tuples by one index into a flat tensor.

use super::{
    axes,
    indexing::{axis_of, flat_tuples},
    indices::from_front,
};
use crate::legalise::{Emitted, Outcome, Reason, Rewritten, before, input, replace, set, without};
use pt2onnx_ir::{Builder, Model, Node, NodeId, Type, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(super) fn reduced(model: &mut Model, id: NodeId, newer: &[&str]) -> Outcome {
    if !newer.contains(&attrs::ScatterND::read(&model[id])?.reduction) {
        return Ok(Rewritten::InPlace);
    }
    match model[id].op() {
        "ScatterND" => replace(model, id, by_tuples),
        _ => replace(model, id, by_elements),
    }
}

pub(crate) fn extremes(model: &mut Model, id: NodeId) -> Outcome {
    reduced(model, id, &["max", "min"])
}

pub(crate) fn sums(model: &mut Model, id: NodeId) -> Outcome {
    match reduced(model, id, &["add", "mul"])? {
        Rewritten::InPlace => without(model, id, "reduction"),
        done => Ok(done),
    }
}

fn combined(cx: &Builder, how: &str, a: Value, b: Value) -> Value {
    match how {
        "add" => cx.add(a, b),
        "mul" => cx.mul(a, b),
        "max" => cx.maximum(a, b),
        _ => cx.minimum(a, b),
    }
}

/// Applies `step` to the data once for each number below `count`.
fn repeated(
    cx: &Builder,
    count: &Expr,
    data: Value,
    step: impl FnOnce(Value, Value) -> Value,
) -> Result<Value, Reason> {
    let ty = cx.type_of(data).ok_or("the type of its input is not known")?;
    let scalars = [DType::I64, DType::Bool].map(|t| Type::tensor(t, []));
    let types = [&scalars[..], std::slice::from_ref(&ty)].concat();
    let body = cx.region(&types, |v| {
        let place = cx.unsqueeze(v[0], &[0]);
        vec![cx.identity(v[1]), step(place, v[2])]
    });
    let go = cx.scalar(true, DType::Bool);
    let made = cx.loop_op(1, cx.size(count), go, &[data], body);
    cx.set_type(made[0], ty);
    Ok(made[0])
}

/// A loop along the axis, so that the indices of a step are distinct.
fn by_elements(cx: &Builder, node: &Node) -> Emitted {
    let (data, indices, updates) = (input(node, 0)?, input(node, 1)?, input(node, 2)?);
    let how = attrs::ScatterND::read(node)?.reduction;
    let axis = axis_of(cx, node)?;
    let count = cx.dim(indices, axis as i64);
    let along = axis as i64;
    let made = repeated(cx, &count, data, |place, data| {
        let index = cx.gather(indices, place, axis);
        let update = cx.gather(updates, place, axis);
        let old = cx.gather_elements(data, index, attrs::GatherElements { axis: along });
        let new = combined(cx, how, old, update);
        let options = attrs::ScatterElements { axis: along, ..Default::default() };
        cx.scatter_elements(data, index, new, options)
    })?;
    Ok(vec![made])
}

/// A loop over the tuples.
fn by_tuples(cx: &Builder, node: &Node) -> Emitted {
    let (data, indices, updates) = (input(node, 0)?, input(node, 1)?, input(node, 2)?);
    let how = attrs::ScatterND::read(node)?.reduction;
    let (tuples, parts, count) = rows(cx, data, indices, updates)?;
    let made = repeated(cx, &count, data, |place, data| {
        let tuple = cx.gather(tuples, place, 0);
        let update = cx.gather(parts, place, 0);
        let old = cx.gather_nd(data, tuple, Default::default());
        let new = combined(cx, how, old, update);
        cx.scatter_nd(data, tuple, new, Default::default())
    })?;
    Ok(vec![made])
}

/// The tuples as rows of a matrix, the updates in the same order, and their number.
fn rows(
    cx: &Builder,
    data: Value,
    indices: Value,
    updates: Value,
) -> Result<(Value, Value, Expr), Reason> {
    let dims = cx.shape(indices);
    let (length, outer) = dims.split_last().ok_or("its indices have no dimensions")?;
    let known = length.as_int().and_then(|l| usize::try_from(l).ok());
    let known = known.ok_or("tuples of unknown length need a newer opset")?;
    let rest = cx.shape(data).get(known..).unwrap_or_default().to_vec();
    let count = Expr::product(outer.to_vec());
    let tuples = cx.reshape(indices, &[count.clone(), length.clone()]);
    let mut sizes = vec![count.clone()];
    sizes.extend(rest);
    Ok((tuples, cx.reshape(updates, &sizes), count))
}

/// `ScatterND` into the rows of a matrix.
pub(crate) fn tuples(cx: &Builder, node: &Node) -> Emitted {
    let (data, indices, updates) = (input(node, 0)?, input(node, 1)?, input(node, 2)?);
    let dims = cx.shape(data);
    let (tuples, parts, count) = rows(cx, data, indices, updates)?;
    let place = flat_tuples(cx, &dims, tuples)?;
    let length = cx.dim(tuples, 1).as_int().unwrap_or(0) as usize;
    let (indexed, rest) = dims.split_at(length.min(dims.len()));
    let width = Expr::product(rest.to_vec());
    let flat = cx.reshape(data, &[Expr::product(indexed.to_vec()), width.clone()]);
    let sizes = [count, width];
    let place = cx.expand(cx.unsqueeze(place, &[1]), &sizes);
    let parts = cx.reshape(parts, &sizes);
    let made = cx.scatter_elements(flat, place, parts, Default::default());
    Ok(vec![cx.reshape(made, &dims)])
}

/// `Scatter`, the older name of `ScatterElements`, with indices counted from the front.
pub(crate) fn elements(model: &mut Model, id: NodeId) -> Outcome {
    axes::axis(model, id)?;
    let (index, axis) = before(model, id, |cx, node| {
        let axis = axis_of(cx, node)?;
        let size = cx.dim(input(node, 0)?, axis as i64);
        Ok((from_front(cx, input(node, 1)?, &size), axis))
    })?;
    model.replace_input(id, 1, Some(index));
    set(model, id, "axis", axis as i64);
    model.set_op(id, "Scatter");
    Ok(Rewritten::Surrounded)
}
