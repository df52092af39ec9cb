//! Dimensions of size 1 that `Unsqueeze` adds: the nodes before it can keep them, a transpose after it can be part of it.

use super::seen::{Action, Seen};
use crate::{eval, facts::known};
use pt2onnx_ir::{Value, attrs};

pub(super) fn rule(n: &Seen) -> Option<Action> {
    match n.node.op() {
        "Unsqueeze" => taken(n).or_else(|| kept(n)),
        "Reshape" => kept(n),
        "Transpose" => moved(n),
        _ => None,
    }
}

/// Operators that compute each element of the result from one element of each input.
const ELEMENTWISE: &[&str] = &[
    "Abs",
    "Add",
    "Cast",
    "Clip",
    "Div",
    "Equal",
    "Exp",
    "Floor",
    "Greater",
    "GreaterOrEqual",
    "Less",
    "LessOrEqual",
    "Log",
    "Max",
    "Min",
    "Mul",
    "Neg",
    "Not",
    "Pow",
    "Reciprocal",
    "Relu",
    "Sigmoid",
    "Sqrt",
    "Sub",
    "Tanh",
];

/// `Gather(x, [i])` instead of `Unsqueeze(Gather(x, i))`, if both have the same axis.
fn taken(n: &Seen) -> Option<Action> {
    let part = n.node.input(0).filter(|&x| n.is_used_once(x))?;
    let gather = n.producer(part).filter(|p| p.node.is("Gather"))?;
    let (source, index) = (gather.node.input(0)?, gather.node.input(1)?);
    let axis = attrs::Gather::read(gather.node).ok()?.axis;
    let axis = eval::axis(axis, n.shape(source)?.len())?;
    let index = n.model[index].constant().filter(|t| t.rank() == 0 && t.has_data())?;
    let same = added(n)? == [axis];
    same.then(|| index.reshaped([1]).map(|index| Action::Gather(source, index, axis as i64)))?
}

/// A reduction that keeps the dimensions that it reduces, also with scalar arithmetic between it and the `Unsqueeze` or `Reshape`.
fn kept(n: &Seen) -> Option<Action> {
    let mut value = n.node.input(0)?;
    let mut values = Vec::new();
    loop {
        if !n.is_used_once(value) {
            return None;
        }
        let made = n.producer(value)?;
        values.push(value);
        if !ELEMENTWISE.contains(&made.node.op()) {
            let axes = reduced(&made)?;
            return adds(n, &axes)?.then_some(Action::Keep(values, axes));
        }
        value = operand(&made)?;
    }
}

/// Whether a node adds dimensions of size 1 at these places of its result, and does nothing else.
fn adds(n: &Seen, axes: &[usize]) -> Option<bool> {
    if n.node.is("Unsqueeze") {
        return Some(added(n)? == axes);
    }
    let (from, to) = (n.shape(n.node.input(0)?)?, n.shape(n.output())?);
    let one = |&i: &usize| to.get(i).and_then(|d| d.as_int()) == Some(1);
    let rest = to.iter().enumerate().filter(|(i, _)| !axes.contains(i)).map(|(_, d)| d);
    Some(axes.iter().all(one) && from.iter().all(known) && rest.eq(from))
}

/// The only input that is not a scalar.
fn operand(n: &Seen) -> Option<Value> {
    let scalar = |v: &Value| n.shape(*v).is_some_and(|s| s.is_empty());
    let mut others = n.node.inputs().iter().flatten().filter(|v| !scalar(v));
    others.next().copied().filter(|_| others.next().is_none())
}

/// The dimensions that a reduction leaves out, counted in its operand.
fn reduced(n: &Seen) -> Option<Vec<usize>> {
    let rank = n.shape(n.node.input(0)?)?.len();
    let (keeps, axes) = match n.node.op() {
        "ArgMax" | "ArgMin" => {
            // Both operators have the same attributes.
            let given = attrs::ArgMax::read(n.node).ok()?;
            (given.keepdims, vec![given.axis])
        }
        op if op.starts_with("Reduce") => {
            // All reductions have this attribute.
            (attrs::ReduceSum::read(n.node).ok()?.keepdims, n.ints(1)?)
        }
        _ => return None,
    };
    if keeps || axes.is_empty() { None } else { counted(&axes, rank) }
}

/// `Unsqueeze` of other dimensions, if the transpose after it moves only those that it adds.
fn moved(n: &Seen) -> Option<Action> {
    let inner = n.producer(n.node.input(0)?).filter(|i| i.node.is("Unsqueeze"))?;
    let source = inner.node.input(0)?;
    let perm = attrs::Transpose::read(n.node).ok()?.perm?;
    let ones = added(&inner)?;
    let is_one = |&p: &i64| ones.iter().any(|&a| a as i64 == p);
    let (axes, rest): (Vec<_>, Vec<_>) = perm.iter().enumerate().partition(|(_, p)| is_one(p));
    let axes = axes.into_iter().map(|(i, _)| i as i64).collect();
    rest.is_sorted_by_key(|(_, p)| **p).then_some(Action::Unsqueeze(source, axes))
}

/// The dimensions that `Unsqueeze` adds, counted in its result.
fn added(n: &Seen) -> Option<Vec<usize>> {
    counted(&n.ints(1)?, n.shape(n.output())?.len())
}

/// Axes in order, counted from the front.
fn counted(axes: &[i64], rank: usize) -> Option<Vec<usize>> {
    let mut axes: Vec<usize> = axes.iter().map(|&a| eval::axis(a, rank)).collect::<Option<_>>()?;
    axes.sort_unstable();
    Some(axes)
}
