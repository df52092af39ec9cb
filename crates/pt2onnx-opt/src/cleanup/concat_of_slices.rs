//! `Concat` of all slices of one tensor, in order, as of real and imaginary parts of pairs.

use super::{NodeView, Rewrite, known, slices};
use pt2onnx_ir::{Traits, Value, attrs};

/// The tensor, if the parts are its slices or elements.
pub(super) fn whole(n: &NodeView) -> Option<Value> {
    let axis = axis(n, attrs::Concat::axis(n.node).ok()?, n.output())?;
    let source = all(n, |piece, index| {
        let taken = taken(n, piece)?;
        (taken.axis == axis && taken.index == index).then_some(taken.source)
    })?;
    n.same_shape(source, n.output()).then_some(source)
}

/// A `Reshape` of pairs, if it was applied to each element of them: `Concat(Reshape(Gather(x, 0)),
/// Reshape(Gather(x, 1)))` along the last dimensions.
pub(super) fn reshaped(n: &NodeView) -> Option<Rewrite> {
    if !n.node.is("Concat") {
        return None;
    }
    let shape = n.shape(n.output())?;
    let last = shape.len().checked_sub(1)?;
    if axis(n, attrs::Concat::axis(n.node).ok()?, n.output())? != last {
        return None;
    }
    let source = all(n, |piece, index| {
        let view = n.producer(piece).filter(|p| p.node.traits().contains(Traits::SHAPE_ONLY))?;
        let gather = n.producer(view.node.input(0)?)?;
        let taken = element(n, &gather)?;
        let from = n.shape(taken.source)?.len();
        let alone = n.shape(piece)?.last()?.as_int() == Some(1);
        (alone && taken.axis + 1 == from && taken.index == index).then_some(taken.source)
    })?;
    let count = n.node.inputs().len() as i64;
    let sizes = super::chain::target(shape)?;
    let all = n.shape(source)?.last()?.as_int() == Some(count);
    all.then(|| n.become_view("Reshape", source, &sizes))
}

/// The tensor that all inputs were taken from: `taken` gives it for an input and its position.
fn all(n: &NodeView, taken: impl Fn(Value, i64) -> Option<Value>) -> Option<Value> {
    let mut source = None;
    for (index, piece) in n.node.inputs().iter().enumerate() {
        let from = taken((*piece)?, index as i64)?;
        if *source.get_or_insert(from) != from {
            return None;
        }
    }
    source
}

/// A part of size 1 of a tensor.
struct Part {
    source: Value,
    axis: usize,
    index: i64,
}

/// The part that a value with as many dimensions is: `Unsqueeze(Gather(x, i))`, `Gather(x, [i])` or
/// `Slice(x, i, i + 1)`.
fn taken(n: &NodeView, piece: Value) -> Option<Part> {
    let made = n.producer(piece)?;
    let rank = n.shape(piece)?.len();
    match made.node.op() {
        "Unsqueeze" | "Reshape" => {
            let gather = n.producer(made.node.input(0)?)?;
            let part = element(n, &gather)?;
            let [before, after] = [n.shape(made.node.input(0)?)?, n.shape(piece)?];
            // The new dimension stands where the old one was.
            let same = before.len() + 1 == rank
                && after.get(part.axis)?.as_int() == Some(1)
                && before[..part.axis] == after[..part.axis]
                && before[part.axis..] == after[part.axis + 1..]
                && after.iter().all(known);
            same.then_some(part)
        }
        "Slice" => {
            let (source, (index, end, axis)) =
                (made.node.input(0)?, slices::single(n.model, made.node)?);
            let part = Part { source, axis: self::axis(n, axis, source)?, index };
            (index >= 0 && Some(end) == index.checked_add(1)).then_some(part)
        }
        "Gather" => {
            let source = made.node.input(0)?;
            let index = made.ints(1).filter(|v| v.len() == 1)?[0];
            let axis = axis(n, attrs::Gather::read(made.node).ok()?.axis, source)?;
            (n.shape(made.node.input(1)?)?.len() == 1).then_some(Part { source, axis, index })
        }
        _ => None,
    }
}

/// The element that a `Gather` with a 0-d index takes.
fn element(n: &NodeView, gather: &NodeView) -> Option<Part> {
    if !gather.node.is("Gather") || !n.shape(gather.node.input(1)?)?.is_empty() {
        return None;
    }
    let source = gather.node.input(0)?;
    let index = *gather.ints(1)?.first()?;
    let axis = axis(n, attrs::Gather::read(gather.node).ok()?.axis, source)?;
    Some(Part { source, axis, index })
}

/// An axis of a value, counted from the front.
fn axis(n: &NodeView, axis: i64, value: Value) -> Option<usize> {
    crate::eval::axis(axis, n.shape(value)?.len())
}
