//! Two consecutive nodes that one node can replace: transposes, casts, slices, and nodes that only
//! change sizes.

use super::{NodeView, Operand, Rewrite, eval, known};
use pt2onnx_ir::{Attributes, Node, Traits, Use, Value, attrs, schema};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(super) fn rule(n: &NodeView) -> Option<Rewrite> {
    let x = n.node.input(0)?;
    match n.node.op() {
        op if op == "Transpose" || n.node.traits().contains(Traits::SHAPE_ONLY) => {
            let inner = n.producer(x)?;
            moves(n, &inner, inner.node.input(0)?)
        }
        "Cast" => casts(n, x),
        "CastLike" => cast_to(n, x),
        "Slice" => slices(n, x),
        "Concat" => concats(n),
        op if n.node.traits().contains(Traits::REDUCTION) => {
            reduction(n, schema::lookup(op, schema::CANONICAL_OPSET)?.name, x)
        }
        _ => None,
    }
}

/// A reduction of transposed dimensions, if those that are left keep their order.
fn reduction(n: &NodeView, op: &'static str, x: Value) -> Option<Rewrite> {
    let inner = n.producer(x).filter(|i| i.node.is("Transpose"))?;
    let source = inner.node.input(0)?;
    let perm = inner.perm()?;
    let given = n.ints(1).filter(|a| !a.is_empty())?;
    let over: Vec<usize> =
        given.iter().map(|&a| eval::axis(a, perm.len())).collect::<Option<_>>()?;
    let left = (0..perm.len()).filter(|i| !over.contains(i)).map(|i| perm[i]);
    // All reductions have these attributes.
    let keeps = attrs::ReduceSum::read(n.node).ok()?.keepdims;
    (!keeps && left.is_sorted()).then(|| {
        let mut axes: Vec<i64> = over.iter().map(|&i| perm[i]).collect();
        axes.sort_unstable();
        let inputs = [source.into(), Operand::ints(&axes)];
        n.become_op(op, inputs, n.node.attributes.clone())
    })
}

/// One node that moves elements as two do, the inner one and then `n`: it moves those of `operand`,
/// which has the sizes of the inner one's operand.
pub(super) fn moves(n: &NodeView, inner: &NodeView, operand: Value) -> Option<Rewrite> {
    transposes(n, inner, operand).or_else(|| views(n, inner, operand))
}

fn transposes(n: &NodeView, inner: &NodeView, operand: Value) -> Option<Rewrite> {
    if !(n.node.is("Transpose") && inner.node.is("Transpose")) {
        return None;
    }
    let (outer_perm, inner_perm) = (n.perm()?, inner.perm()?);
    let joined: Vec<i64> = outer_perm
        .iter()
        .map(|&p| inner_perm.get(usize::try_from(p).ok()?).copied())
        .collect::<Option<_>>()?;
    if joined.iter().copied().eq(0..joined.len() as i64) {
        return Some(n.replace_with(operand));
    }
    let attributes = Attributes::from_iter([("perm".into(), joined.into())]);
    Some(n.become_op("Transpose", [operand], attributes))
}

/// A cast to the type of another value, whose elements are not needed.
fn cast_to(n: &NodeView, x: Value) -> Option<Rewrite> {
    let to = schema::data_type(n.dtype(n.node.input(1)?)?);
    let mut attributes = n.node.attributes.clone();
    attributes.push(("to".into(), to.into()));
    Some(n.become_op("Cast", [x], attributes))
}

/// Two casts become one if the first one loses nothing. Texts of a number depend on its type.
fn casts(n: &NodeView, x: Value) -> Option<Rewrite> {
    let inner = n.producer(x).filter(|i| i.node.is("Cast"))?;
    let source = inner.node.input(0)?;
    let (from, through, to) = (n.dtype(source)?, n.dtype(x)?, n.dtype(n.output())?);
    if !widens(from, through) || to == DType::String {
        return None;
    }
    if from == to {
        return Some(n.replace_with(source));
    }
    Some(n.become_op("Cast", [source], n.node.attributes.clone()))
}

fn widens(from: DType, to: DType) -> bool {
    // Bits of an integer without the sign.
    let digits = |d: DType| match d {
        DType::Bool => 1,
        d if d.is_unsigned() => d.bits(),
        d => d.bits() - 1,
    };
    let (precision, range) = match to {
        DType::F64 => (53, 11),
        DType::F32 => (24, 8),
        DType::F16 => (11, 5),
        DType::BF16 => (8, 8),
        _ => (0, 0),
    };
    let integral = |d: DType| d.is_int() || d == DType::Bool;
    match from {
        // A cast to bool keeps only 0 and 1.
        _ if to == DType::Bool => false,
        _ if integral(from) && to.is_int() => {
            digits(from) <= digits(to)
                && (from.is_unsigned() || from == DType::Bool || !to.is_unsigned())
        }
        // Float16 ends at 65504, so 16 bits do not fit; its precision does not suffice either.
        _ if integral(from) => digits(from) <= precision,
        DType::F32 => precision >= 24 && range >= 8,
        DType::F16 => precision >= 11 && range >= 8,
        DType::BF16 => precision >= 8 && range >= 8,
        _ => false,
    }
}

#[derive(Clone, Copy)]
struct Bounds {
    axis: usize,
    start: i64,
    end: i64,
    step: i64,
}

/// Slices of different dimensions, and slices of one dimension without steps.
fn slices(n: &NodeView, x: Value) -> Option<Rewrite> {
    let inner = n.producer(x).filter(|i| i.node.is("Slice") && n.is_used_once(x))?;
    let source = inner.node.input(0)?;
    let (first, second) = (n.shape(source)?, n.shape(x)?);
    let rank = first.len();
    let bounds = |s: &NodeView| -> Option<Vec<Bounds>> {
        let (starts, ends) = (s.ints(1)?, s.ints(2)?);
        let axes = match s.node.input(3) {
            Some(_) => s.ints(3)?,
            None => (0..starts.len() as i64).collect(),
        };
        let steps = match s.node.input(4) {
            Some(_) => s.ints(4)?,
            None => vec![1; starts.len()],
        };
        let one = |i: usize| {
            let axis = eval::axis(*axes.get(i)?, rank)?;
            Some(Bounds { axis, start: starts[i], end: *ends.get(i)?, step: *steps.get(i)? })
        };
        (0..starts.len()).map(one).collect()
    };
    let [mut joined, more] = [bounds(&inner)?, bounds(n)?];
    for next in more {
        match joined.iter_mut().find(|b| b.axis == next.axis) {
            Some(before) => {
                let (a, b) = (
                    counted(*before, first.get(next.axis)?)?,
                    counted(next, second.get(next.axis)?)?,
                );
                before.start = a.start.checked_add(b.start)?;
                before.end = a.end.min(a.start.saturating_add(b.end));
            }
            None => joined.push(next),
        }
    }
    let of = |f: fn(&Bounds) -> i64| joined.iter().map(f).collect::<Vec<i64>>();
    let all = [of(|b| b.start), of(|b| b.end), of(|b| b.axis as i64), of(|b| b.step)];
    Some(n.become_slice(source, all))
}

fn counted(b: Bounds, size: &Expr) -> Option<Bounds> {
    let front = |i: i64| match i {
        0.. => Some(i),
        _ => Some(i.saturating_add(size.as_int()?).max(0)),
    };
    (b.step == 1).then_some(Bounds { start: front(b.start)?, end: front(b.end)?, ..b })
}

/// A `Concat` that is an operand several times is taken apart up to this many operands.
const MOST_OPERANDS: usize = 64;

/// `Concat` of `Concat`s along the same dimension, and of operands that have no elements. The last
/// one of a chain takes the operands of all.
fn concats(n: &NodeView) -> Option<Rewrite> {
    let rank = n.shape(n.output())?.len();
    let axis = |node: &Node| {
        if node.is("Concat") { eval::axis(attrs::Concat::axis(node).ok()?, rank) } else { None }
    };
    let own = axis(n.node);
    if n.model[n.output()].only_use().is_some_and(|(user, _)| axis(&n.model[user]) == own) {
        return None;
    }
    let node = Some(n.id);
    let taken_here = |v: Value, operands: usize| {
        let uses = n.model[v].uses();
        let here = |user: Use| matches!(user, Use::Input(user, _) if Some(user) == node);
        uses.len() == 1 || uses.len() * operands <= MOST_OPERANDS && uses.into_iter().all(here)
    };
    let inner = |v: Value| {
        let made = n.producer(v).filter(|made| axis(made.node) == own)?;
        taken_here(v, made.node.inputs().len()).then_some(made.node)
    };
    let mut flat = Vec::new();
    let mut open: Vec<Option<Value>> = n.node.inputs().iter().rev().copied().collect();
    while let Some(value) = open.pop() {
        match value.and_then(inner) {
            Some(made) => open.extend(made.inputs().iter().rev()),
            None => flat.push(value),
        }
    }
    let empty = |v: &Option<Value>| {
        let shape = v.and_then(|v| n.shape(v));
        shape.zip(own).is_some_and(|(s, i)| s.get(i).and_then(|d| d.as_int()) == Some(0))
    };
    if flat.iter().all(empty) {
        flat.truncate(1);
    } else {
        flat.retain(|v| !empty(v));
    }
    (flat != n.node.inputs()).then(|| n.become_op("Concat", flat, n.node.attributes.clone()))
}

/// Views keep the order of elements: the last one can take the first one's operand.
fn views(n: &NodeView, inner: &NodeView, operand: Value) -> Option<Rewrite> {
    if !(is_view(inner) && is_view(n)) {
        return None;
    }
    // An `Unsqueeze` can take the transpose, whatever the sizes.
    let moved = n.node.is("Transpose") && inner.node.is("Unsqueeze");
    if moved || n.checks_sizes() || inner.checks_sizes() {
        return None;
    }
    let source = inner.node.input(0)?;
    if n.same_shape(source, n.output()) || cancels(n, inner) {
        return Some(n.replace_with(operand));
    }
    if let Some(sizes) = target(n.shape(n.output())?) {
        return Some(n.become_view("Reshape", operand, &sizes));
    }
    if !n.node.is("Reshape") {
        return ones(n, inner, operand);
    }
    let keeps = match n.ints(1) {
        _ if attrs::Reshape::read(n.node).ok()?.allowzero => true,
        // A 0 copies the operand's size, so that size must be the same in both operands.
        Some(sizes) => {
            let (from, through) = (n.shape(source)?, n.shape(inner.output())?);
            let same =
                |i: usize| from.get(i).is_some_and(|d| known(d) && Some(d) == through.get(i));
            sizes.iter().enumerate().all(|(i, &s)| s != 0 || same(i))
        }
        // Sizes computed at run time may be 0.
        None => false,
    };
    keeps.then(|| {
        let inputs = [Some(operand), n.node.input(1)];
        n.become_op("Reshape", inputs, n.node.attributes.clone())
    })
}

fn is_view(n: &NodeView) -> bool {
    match n.node.op() {
        "Transpose" => n.moves_ones() == Some(true),
        _ => n.node.traits().contains(Traits::SHAPE_ONLY),
    }
}

/// The axes of input 1, sorted and counted from the front.
fn axes(n: &NodeView, rank: usize) -> Option<Vec<usize>> {
    let mut axes: Vec<usize> =
        n.ints(1)?.iter().map(|&a| eval::axis(a, rank)).collect::<Option<_>>()?;
    axes.sort_unstable();
    Some(axes)
}

/// Dimensions of size 1 that both nodes add, or both remove.
fn ones(n: &NodeView, inner: &NodeView, operand: Value) -> Option<Rewrite> {
    let rank = |v: Value| Some(n.shape(v)?.len());
    let (start, middle, end) =
        (rank(inner.node.input(0)?)?, rank(inner.output())?, rank(n.output())?);
    // The dimensions of the larger shape that the smaller one does not have, and those of the
    // middle one.
    let (outer, kept, adds) = match (inner.node.op(), n.node.op()) {
        ("Unsqueeze", "Unsqueeze") => (axes(n, end)?, axes(inner, middle)?, true),
        ("Squeeze", "Squeeze") => (axes(inner, start)?, axes(n, middle)?, false),
        _ => return None,
    };
    let rest: Vec<usize> = (0..start.max(end)).filter(|i| !outer.contains(i)).collect();
    let inside = kept.iter().map(|&i| rest.get(i).copied()).collect::<Option<Vec<usize>>>()?;
    let mut axes: Vec<i64> = outer.into_iter().chain(inside).map(|i| i as i64).collect();
    axes.sort_unstable();
    Some(n.become_view(if adds { "Unsqueeze" } else { "Squeeze" }, operand, &axes))
}

/// Whether the outer node removes the dimensions that the inner one adds.
fn cancels(n: &NodeView, inner: &NodeView) -> bool {
    let squeezed = || {
        let rank = n.shape(inner.output())?.len();
        Some(axes(n, rank)? == axes(inner, rank)?)
    };
    let same = || n.ints(1).is_some_and(|axes| inner.ints(1) == Some(axes));
    n.node.is("Squeeze") && inner.node.is("Unsqueeze") && (same() || squeezed() == Some(true))
}

/// Sizes for `Reshape` that hold for any operand: at most one is unknown, none is 0.
pub(super) fn target(shape: &[Expr]) -> Option<Vec<i64>> {
    let sizes: Vec<i64> = shape.iter().map(|d| d.as_int().unwrap_or(-1)).collect();
    let unknown = sizes.iter().filter(|&&s| s < 0).count();
    (unknown <= 1 && !sizes.contains(&0)).then_some(sizes)
}
