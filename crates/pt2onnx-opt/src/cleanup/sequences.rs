//! Sequences whose items are known: what is taken out of them is taken from where it was put in.

use super::eval;
use crate::{Changed, opsets::SIZES_AS_INPUTS, rewrite};
use pt2onnx_ir::{Attributes, Model, Node, NodeId, Use, Value, attrs};
use pt2onnx_tensor::Tensor;

/// Longer sequences stay unchanged.
const MOST: usize = 256;

/// Whether a node may take something out of a sequence, or split a tensor into one.
pub(super) fn concern(node: &Node) -> bool {
    node.domain.is_empty() && node.op().contains("Sequence")
}

/// Replaces a node that takes something out of a sequence, or splits a tensor into one.
pub(super) fn run(model: &mut Model, id: NodeId, opset: u32) -> Changed {
    if !model[id].domain.is_empty() {
        return false;
    }
    let done = match model[id].op() {
        "SequenceAt" => at(model, id),
        "SequenceLength" => length(model, id),
        "ConcatFromSequence" => concat(model, id),
        "SplitToSequence" if opset >= SIZES_AS_INPUTS => split(model, id),
        _ => None,
    };
    done.is_some_and(|changed| changed)
}

fn items(model: &Model, sequence: Value) -> Option<Vec<Value>> {
    let mut inserted: Vec<(Value, Option<i64>)> = Vec::new();
    let mut next = sequence;
    let mut items = loop {
        let node = &model[model.producer(next)?];
        if !node.domain.is_empty() || inserted.len() > MOST {
            return None;
        }
        match node.op() {
            "SequenceEmpty" => break Vec::new(),
            "SequenceConstruct" => break node.inputs().iter().copied().collect::<Option<_>>()?,
            "SequenceInsert" => {
                let place = match node.input(2) {
                    Some(place) => Some(model.const_int(place)?),
                    None => None,
                };
                inserted.push((node.input(1)?, place));
                next = node.input(0)?;
            }
            _ => return None,
        }
    };
    for (item, place) in inserted.into_iter().rev() {
        let count = items.len();
        let place = match place {
            None => count,
            // The position behind the last item is one, too.
            Some(place) if place == count as i64 => count,
            Some(place) => eval::axis(place, count)?,
        };
        items.insert(place, item);
    }
    Some(items)
}

/// The node that computes an input, if it is that operator.
fn made_by(model: &Model, id: NodeId, op: &str) -> Option<NodeId> {
    model.producer(model[id].input(0)?).filter(|&n| model[n].is(op))
}

fn at(model: &mut Model, id: NodeId) -> Option<Changed> {
    let index = model.const_int(model[id].input(1)?)?;
    if let Some(items) = items(model, model[id].input(0)?) {
        let item = *items.get(eval::axis(index, items.len())?)?;
        return Some(rewrite::bypass(model, id, item));
    }
    // Parts of size 1 without their dimension.
    let made = made_by(model, id, "SplitToSequence")?;
    let options = attrs::SplitToSequence::read(&model[made]).ok()?;
    if options.keepdims || model[made].input(1).is_some() {
        return None;
    }
    let x = model[made].input(0)?;
    let index = model.add_constant(Tensor::scalar(index));
    let attributes = Attributes::from_iter([("axis".into(), options.axis.into())]);
    model.merge_origins(id, made);
    rewrite::become_node(model, id, "Gather", &[Some(x), Some(index)], attributes);
    Some(true)
}

fn length(model: &mut Model, id: NodeId) -> Option<Changed> {
    let sequence = model[id].input(0)?;
    let count = match items(model, sequence) {
        Some(items) => items.len(),
        None => parts(model, made_by(model, id, "SplitToSequence")?)?.1.len(),
    };
    let count = model.add_constant(Tensor::scalar(count as i64));
    Some(rewrite::bypass(model, id, count))
}

fn concat(model: &mut Model, id: NodeId) -> Option<Changed> {
    let node = &model[id];
    let axis = attrs::ConcatFromSequence::axis(node).ok()?;
    let stacks = attrs::ConcatFromSequence::read(node).ok()?.new_axis;
    if let Some(items) = items(model, node.input(0)?) {
        if stacks || items.is_empty() {
            return None;
        }
        let inputs: Vec<Option<Value>> = items.into_iter().map(Some).collect();
        let attributes = Attributes::from_iter([("axis".into(), axis.into())]);
        rewrite::become_node(model, id, "Concat", &inputs, attributes);
        return Some(true);
    }
    // The parts of a split tensor, joined again.
    let made = made_by(model, id, "SplitToSequence")?;
    let options = attrs::SplitToSequence::read(&model[made]).ok()?;
    let x = model[made].input(0)?;
    let rank = model.rank(x)?;
    let squeezed = !options.keepdims && model[made].input(1).is_none();
    let same = eval::axis(axis, rank)? == eval::axis(options.axis, rank)? && squeezed == stacks;
    same.then(|| rewrite::bypass(model, id, x))
}

/// The axis of a `SplitToSequence`, and the sizes of the parts, which keep their dimension.
fn parts(model: &Model, id: NodeId) -> Option<(usize, Vec<i64>)> {
    let node = &model[id];
    let options = attrs::SplitToSequence::read(node).ok()?;
    let shape = model.shape(node.input(0)?)?;
    let axis = eval::axis(options.axis, shape.len())?;
    let size = || shape.get(axis)?.as_int();
    let each = match node.input(1) {
        None => 1,
        Some(given) if model.rank(given)? == 0 => model.const_int(given)?,
        Some(given) => return Some((axis, model.const_ints(given)?)),
    };
    let size = size()?;
    let whole = usize::try_from(size.checked_div(each)?).ok().filter(|&n| n <= MOST)?;
    let rest = Some(size % each).filter(|&r| r > 0);
    Some((axis, std::iter::repeat_n(each, whole).chain(rest).collect()))
}

fn split(model: &mut Model, id: NodeId) -> Option<Changed> {
    let (axis, sizes) = parts(model, id)?;
    let options = attrs::SplitToSequence::read(&model[id]).ok()?;
    let squeezed = !options.keepdims && model[id].input(1).is_none();
    if squeezed || sizes.is_empty() || sizes.len() > MOST {
        return None;
    }
    let taken = |u: Use| match u {
        Use::Input(user, 0) if model[user].is("SequenceAt") => {
            Some((user, eval::axis(model.const_int(model[user].input(1)?)?, sizes.len())?))
        }
        _ => None,
    };
    let sequence = model[id].outputs()[0];
    let users: Vec<(NodeId, usize)> = model[sequence].uses().map(taken).collect::<Option<_>>()?;
    let x = model[id].input(0)?;
    let (node, outputs) = rewrite::add_split(model, id, x, axis, &sizes)?;
    for (user, part) in users {
        model.merge_origins(node, user);
        let old = model[user].outputs()[0];
        // The first user's name is the value's.
        match model[outputs[part]].name {
            None => rewrite::substitute(model, old, outputs[part]),
            Some(_) => model.replace_all_uses(old, outputs[part]),
        }
        model.erase(user);
    }
    Some(model.erase(id))
}
