//! Gathering by several indices: by one index into a flat tensor.

use super::indices::from_front;
use crate::legalise::{
    Emitted, Outcome, Reason,
    forms::{self},
    front, input, replace,
};
use pt2onnx_ir::{Builder, Model, Node, NodeId, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

/// The distance of neighbours along each dimension in a flat tensor.
fn strides(dims: &[Expr]) -> Vec<Expr> {
    (0..dims.len()).map(|i| Expr::product(dims[i + 1..].to_vec())).collect()
}

/// The position of each element of `indices` along `axis` in the flat data.
fn flat_elements(cx: &Builder, data: Value, indices: Value, axis: usize) -> Result<Value, Reason> {
    let dims = cx.known_shape(data).ok_or("the rank of its input is not known")?;
    let apart = strides(&dims);
    let (size, step) = dims.get(axis).zip(apart.get(axis)).ok_or("its axis is out of range")?;
    let index = from_front(cx, cx.cast(indices, DType::I64), size);
    let mut place = cx.mul(index, cx.size(step));
    let sizes = cx.shape(indices);
    let along = sizes.iter().zip(&apart).enumerate();
    for (d, (size, step)) in along.filter(|(d, _)| *d != axis) {
        let others: Vec<usize> = (d + 1..sizes.len()).map(|i| i - d).collect();
        let along = cx.unsqueeze(cx.mul(cx.iota(size), cx.size(step)), &others);
        place = cx.add(place, along);
    }
    Ok(place)
}

pub(super) fn flat_tuples(cx: &Builder, dims: &[Expr], indices: Value) -> Result<Value, Reason> {
    let last = cx.rank(indices).checked_sub(1).ok_or("its indices have no dimensions")?;
    let length = cx.dim(indices, last as i64).as_int();
    let length = length.ok_or("tuples of unknown length need a newer opset")?;
    let indexed = usize::try_from(length).ok().and_then(|l| dims.get(..l));
    let indexed = indexed.ok_or("its tuples are longer than the data's shape")?;
    let apart = strides(indexed);
    let mut place: Option<Value> = None;
    for (k, (size, apart)) in indexed.iter().zip(&apart).enumerate() {
        let index = cx.take(indices, last, &Expr::int(k as i64));
        let index = cx.mul(from_front(cx, index, size), cx.size(apart));
        place = Some(place.map_or(index, |sum| cx.add(sum, index)));
    }
    place.ok_or_else(|| "empty tuples need a newer opset".into())
}

pub(super) fn axis_of(cx: &Builder, node: &Node) -> Result<usize, Reason> {
    let ranks = node.inputs().iter().flatten().filter_map(|&v| cx.known_shape(v));
    let rank = ranks.map(|s| s.len()).next();
    let rank = rank.ok_or("the rank of its input is not known")?;
    let axis = attrs::GatherElements::read(node)?.axis;
    front(axis, rank)
}

pub(crate) fn elements(cx: &Builder, node: &Node) -> Emitted {
    let (data, indices) = (input(node, 0)?, input(node, 1)?);
    let place = flat_elements(cx, data, indices, axis_of(cx, node)?)?;
    let flat = cx.reshape(data, &[cx.numel(data)]);
    Ok(vec![cx.gather(flat, place, 0)])
}

pub(crate) fn tuples(cx: &Builder, node: &Node) -> Emitted {
    let (data, indices) = (input(node, 0)?, input(node, 1)?);
    let dims = cx.shape(data);
    let place = flat_tuples(cx, &dims, indices)?;
    let rank = cx.rank(indices);
    let length = cx.dim(indices, rank as i64 - 1).as_int().unwrap_or(0) as usize;
    let (indexed, rest) = dims.split_at(length.min(dims.len()));
    let mut flat = vec![Expr::product(indexed.to_vec())];
    flat.extend_from_slice(rest);
    Ok(vec![cx.gather(cx.reshape(data, &flat), place, 0)])
}

/// `GatherND` with batch dimensions: the position in the batch becomes a part of each tuple.
pub(crate) fn batches(model: &mut Model, id: NodeId) -> Outcome {
    let count @ 1.. = attrs::GatherND::read(&model[id])?.batch_dims else {
        return forms::without(model, id, "batch_dims");
    };
    replace(model, id, |cx, node| {
        let (data, indices) = (input(node, 0)?, input(node, 1)?);
        let mut dims = cx.shape(indices);
        let last = dims.len().saturating_sub(1);
        *dims.last_mut().ok_or("its indices have no dimensions")? = Expr::int(1);
        let mut tuple = Vec::new();
        for (d, size) in dims.iter().enumerate().take(count as usize) {
            let others: Vec<usize> = (1..=last - d).collect();
            let along = cx.unsqueeze(cx.iota(size), &others);
            tuple.push(cx.expand(along, &dims));
        }
        tuple.push(indices);
        let whole = cx.concat(&tuple, last);
        Ok(vec![cx.gather_nd(data, whole, Default::default())])
    })
}

/// Older forms return the first of several equal elements, which is the last one in reversed order.
pub(crate) fn first_index(model: &mut Model, id: NodeId) -> Outcome {
    if !attrs::ArgMax::read(&model[id])?.select_last_index {
        return forms::without(model, id, "select_last_index");
    }
    replace(model, id, |cx, node| {
        let (x, axis) = (input(node, 0)?, axis_of(cx, node)?);
        let op = if node.is("ArgMax") { "ArgMax" } else { "ArgMin" };
        let one = |i: i64| cx.ints(&[i]);
        let (start, end, along) = (one(-1), one(i64::MIN), one(axis as i64));
        let reversed = cx.slice_op(x, start, end, along, one(-1));
        let mut given = node.attributes.clone();
        given.retain(|(name, _)| name != "select_last_index");
        let first = cx.emit1(op, &[Some(reversed)], given);
        Ok(vec![cx.sub(cx.size(&(cx.dim(x, axis as i64) - 1)), first)])
    })
}

/// Older forms do not shift pixels by half a pixel.
pub(crate) fn roi_align(model: &mut Model, id: NodeId) -> Outcome {
    match attrs::RoiAlign::read(&model[id])?.coordinate_transformation_mode {
        "output_half_pixel" => forms::without(model, id, "coordinate_transformation_mode"),
        _ => Err("coordinate_transformation_mode `half_pixel` needs a newer opset".into()),
    }
}
