//! The formula of attention with sinks: scores that no key has, one for each head.

use super::{attention::repeats_heads, attention_cache::appended};
use crate::{analysis::number_of, slices};
use pt2onnx_ir::{Model, Node, NodeId, Value, attrs};

/// At most this many nodes are looked at.
const FAR: usize = 64;

/// Attention with a cache and a mask, as far as [`formula`] reads it.
pub(super) struct SinkAttention {
    pub queries: Value,
    /// Past, new and all keys.
    pub keys: [Value; 3],
    /// Past, new and all values.
    pub values: [Value; 3],
    /// Numbers that are added to the scores of keys.
    pub mask: Value,
    pub scale: f32,
    /// `(1, heads, 1, 1)`.
    pub sinks: Value,
}

/// Reads the formula from its last node, the product with the values. Keys and values may be
/// repeated for several heads of queries; the largest score of a row may be subtracted from all.
pub(super) fn formula(model: &Model, id: NodeId) -> Option<SinkAttention> {
    let product = Some(&model[id]).filter(|n| n.is("MatMul"))?;
    let kept = made_by(model, product.input(0)?, "Slice")?;
    let softmax = made_by(model, kept.input(0)?, "Softmax")?;
    let last = |axis: i64| axis == -1 || axis == 3;
    let (from, to, axis) = slices::single(model, kept)?;
    let over_keys = last(attrs::Softmax::read(softmax).ok()?.axis);
    (over_keys && last(axis) && (from, to) == (0, -1)).then_some(())?;
    let mut all = softmax.input(0)?;
    if let Some(shifted) = made_by(model, all, "Sub") {
        all = shifted.input(0).filter(|&all| shifted.input(1).is_some_and(is_most(model, all)))?;
    }
    let joined =
        made_by(model, all, "Concat").filter(|n| attrs::Concat::axis(n).is_ok_and(last))?;
    let &[Some(scores), Some(sinks)] = joined.inputs() else { return None };
    let sinks = made_by(model, sinks, "Expand")?.input(0)?;
    let masked = made_by(model, scores, "Add")?;
    let (scores, mask) = (masked.input(0)?, masked.input(1)?);
    let (scores, scale) = scaled(model, scores);
    let scores = made_by(model, scores, "MatMul")?;
    let queries = scores.input(0)?;
    let transposed = model.producer(scores.input(1)?).filter(|&t| model[t].is("Transpose"))?;
    let perm = attrs::Transpose::read(&model[transposed]).ok()?.perm?;
    let sizes: Vec<_> = model.shape(sinks)?.iter().map(|d| d.as_int()).collect();
    let heads = model.shape(queries)?.get(1)?.as_int();
    let fits = perm == [0, 1, 3, 2] && sizes == [Some(1), heads, Some(1), Some(1)];
    (fits && scale.is_normal() && scale > 0.0).then_some(())?;
    let cached = |user: (NodeId, usize)| {
        let (user, input) = before_repeated(model, user)?;
        let [past, new] = appended(model, (user, input), queries)?;
        leads_only_to(model, user, id).then_some(())?;
        Some([past, new, model[user].input(input)?])
    };
    let (keys, values) = (cached((transposed, 0))?, cached((id, 1))?);
    Some(SinkAttention { queries, keys, values, mask, scale, sinks })
}

/// The node that computes a value, if it is that operator.
fn made_by<'a>(model: &'a Model, value: Value, op: &str) -> Option<&'a Node> {
    model.producer(value).map(|id| &model[id]).filter(|node| node.is(op))
}

/// Whether a value is the maximum of all scores along the last dimension, or NaN.
fn is_most(model: &Model, all: Value) -> impl Fn(Value) -> bool {
    move |value| {
        let chosen = made_by(model, value, "Where").and_then(|choice| {
            let nan = number_of(model, choice.input(1)?)?.1.is_nan();
            choice.input(2).filter(|_| nan)
        });
        let most = made_by(model, chosen.unwrap_or(value), "ReduceMax");
        most.is_some_and(|node| {
            let axes = node.input(1).and_then(|axes| model.const_int(axes));
            let kept = attrs::ReduceMax::read(node).is_ok_and(|a| a.keepdims);
            kept && node.input(0) == Some(all) && matches!(axes, Some(-1 | 3))
        })
    }
}

/// Whether nothing but one node depends on another at last, which goes with it.
fn leads_only_to(model: &Model, from: NodeId, last: NodeId) -> bool {
    let (mut open, mut left) = (vec![from], FAR);
    while let Some(id) = open.pop().filter(|_| left > 0) {
        left -= 1;
        if id == last {
            continue;
        }
        for used in model[id].outputs().iter().flat_map(|&output| model[output].uses()) {
            let Some((user, _)) = used.input() else { return false };
            open.push(user);
        }
    }
    left > 0
}

/// Scores before they are multiplied or divided by a number, and the factor.
fn scaled(model: &Model, scores: Value) -> (Value, f32) {
    let factor = |op| {
        let node = made_by(model, scores, op)?;
        Some((node.input(0)?, number_of(model, node.input(1)?)?.1))
    };
    let times = factor("Mul").or_else(|| factor("Div").map(|(x, by)| (x, 1.0 / by)));
    times.map_or((scores, 1.0), |(x, factor)| (x, factor as f32))
}

/// The use of keys or values before they are repeated for several heads, if that use is of repeated
/// ones.
fn before_repeated(model: &Model, (user, input): (NodeId, usize)) -> Option<(NodeId, usize)> {
    let many = model[user].input(input)?;
    let Some(wide) = made_by(model, many, "Reshape").and_then(|n| n.input(0)) else {
        return Some((user, input));
    };
    let apart = made_by(model, wide, "Expand")?.input(0)?;
    let first = model.producer(apart).filter(|&id| model[id].is("Unsqueeze"))?;
    let few = model[first].input(0)?;
    repeats_heads(model, [few, apart, wide, many]).then_some((first, 0))
}
