//! Guards that change nothing: against NaN that come in another way, against queries without keys
//! where all have some, against signs of zeros that nothing looks at.

use super::{NodeView, Rewrite, eval};
use crate::{
    analysis::{every, number_of},
    masks,
};
use pt2onnx_ir::{Attributes, Model, Use, Value, attrs};
use pt2onnx_tensor::DType;

/// Masks of up to this many bytes are read.
const READ: usize = 1 << 20;

pub(super) fn rule(n: &NodeView) -> Option<Rewrite> {
    match n.node.op() {
        "Where" => negated(n)
            .or_else(|| hidden(n).or_else(|| unsigned(n)).map(|kept| n.replace_with(kept))),
        "Add" | "Sub" | "Mul" | "Div" => twice(n),
        _ => None,
    }
}

/// `Where(c, b, a)` instead of `Where(Not(c), a, b)`.
fn negated(n: &NodeView) -> Option<Rewrite> {
    let condition = n.node.input(0).filter(|&c| n.is_used_once(c))?;
    let not = n.producer(condition).filter(|p| p.node.is("Not"))?;
    let inputs = [not.node.input(0), n.node.input(2), n.node.input(1)];
    Some(n.become_op("Where", inputs, Attributes::new()))
}

/// One guard is enough for arithmetic of `Where(c, NaN, a)` and `Where(c, NaN, b)`: both have their
/// NaN at the same places.
fn twice(n: &NodeView) -> Option<Rewrite> {
    let guarded = |v: Value| {
        let guard = n.producer(v).filter(|p| p.node.is("Where"))?;
        let (condition, nan, kept) =
            (guard.node.input(0)?, guard.node.input(1)?, guard.node.input(2)?);
        let is_nan = number_of(n.model, nan).is_some_and(|(_, number)| number.is_nan());
        (is_nan && n.same_shape(kept, v)).then_some((condition, kept))
    };
    let (a, b) = (n.node.input(0)?, n.node.input(1)?);
    let [(first, _), (second, kept)] = [guarded(a)?, guarded(b)?];
    (first == second && n.same_shape(a, b)).then(|| n.set_input(1, kept))
}

/// The softmax of masked scores `s` without its guard against queries without keys, `Where(Equal(s,
/// -inf), 0, Softmax(s))`, if the mask is a constant that leaves each query a key. The guard may
/// also ask for `ReduceMax(s)`.
fn hidden(n: &NodeView) -> Option<Value> {
    let equal = n.producer(n.node.input(0)?).filter(|p| p.node.is("Equal"))?;
    let is = |v: Option<Value>, number| Some(number_of(n.model, v?)?.1 == number);
    let weights = n.node.input(2)?;
    let softmax = n.producer(weights).filter(|p| p.node.is("Softmax"))?;
    if !is(equal.node.input(1), f64::NEG_INFINITY)? || !is(n.node.input(1), 0.0)? {
        return None;
    }
    let scores = softmax.node.input(0)?;
    let asked = equal.node.input(0)?;
    let largest = n.producer(asked).filter(|p| p.node.is("ReduceMax"));
    let asked = largest.map_or(Some(asked), |p| p.node.input(0))?;
    let axis = attrs::Softmax::read(softmax.node).ok()?.axis;
    let last = eval::axis(axis, n.shape(scores)?.len())? + 1 == n.shape(scores)?.len();
    if asked != scores || !last || !n.same_shape(weights, n.output()) {
        return None;
    }
    let sum = n.producer(scores).filter(|p| p.node.is("Add"))?;
    let read = |v: &Value| n.model[*v].constant().is_some_and(|t| t.nbytes() <= READ);
    let mask = sum.node.inputs().iter().flatten().copied().find(read)?;
    masks::has_keys(n.model, mask).then_some(weights)
}

/// The difference `d = a - b` without the sign of `a` where it is 0, `Where(Cast(d), d, a * 0)`, if
/// no reader looks at that sign. Where `a` is infinite, `d` is not 0.
fn unsigned(n: &NodeView) -> Option<Value> {
    let made_by = |input, op: &str| n.producer(n.node.input(input)?).filter(|p| p.node.is(op));
    let (cast, difference, zero) = (made_by(0, "Cast")?, made_by(1, "Sub")?, made_by(2, "Mul")?);
    let d = difference.output();
    let is_zero = number_of(n.model, zero.node.input(1)?)?.1 == 0.0;
    let matches = is_zero
        && cast.node.input(0) == Some(d)
        && n.dtype(cast.output()) == Some(DType::Bool)
        && zero.node.input(0) == difference.node.input(0)
        && n.same_shape(d, n.output());
    let unseen = || n.model[n.output()].uses().all(|at| ignores_sign_of_zero(n.model, at));
    (matches && unseen()).then_some(d)
}

/// Whether a reader's result is the same for 0 and -0.
fn ignores_sign_of_zero(model: &Model, at: Use) -> bool {
    let Some((id, input)) = at.input() else { return false };
    let node = &model[id];
    let other = || node.input(1 - input).and_then(|v| model[v].constant());
    match node.op() {
        "Equal" | "Less" | "Greater" | "LessOrEqual" | "GreaterOrEqual" => true,
        "Add" | "Sub" => other().is_some_and(|t| every(t, |number| number != 0.0)),
        _ => false,
    }
}
