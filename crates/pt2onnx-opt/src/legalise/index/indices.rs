//! Indices counted from the end, which older forms do not have.

use super::axes::axis;
use crate::legalise::{Outcome, Rewritten, before, input};
use pt2onnx_ir::{Builder, Def, Model, NodeId, Traits, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

/// Nodes that are looked at, one behind the other.
const DEPTH: usize = 16;

/// Counts the indices along `axis` from the front.
pub(crate) fn indices(model: &mut Model, id: NodeId) -> Outcome {
    axis(model, id)?;
    let axis = usize::try_from(attrs::Gather::read(&model[id])?.axis);
    let axis = axis.map_err(|_| "its axis is out of range")?;
    let (Some(data), Some(index)) = (model[id].input(0), model[id].input(1)) else {
        return Ok(Rewritten::InPlace);
    };
    if nonnegative(model, index) {
        return Ok(Rewritten::InPlace);
    }
    if model.rank(data).is_none() {
        return Err("the rank of its input is not known".into());
    }
    let counted = before(model, id, |cx, _| Ok(from_front(cx, index, &cx.dim(data, axis as i64))))?;
    model.replace_input(id, 1, Some(counted));
    Ok(Rewritten::Surrounded)
}

/// Indices into a dimension of that size, with negative ones counted from the front.
pub(super) fn from_front(cx: &Builder, index: Value, size: &Expr) -> Value {
    if nonnegative(&cx.model(), index) {
        return index;
    }
    let known = cx.model().const_ints(index).zip(size.as_int());
    if let Some((known, size)) = known
        && let Some(tensor) = cx.constant_of(index)
        && cx.dtype(index) == DType::I64
    {
        let front = |&i: &i64| if i < 0 { i + size } else { i };
        let front: Vec<i64> = known.iter().map(front).collect();
        let vector = pt2onnx_tensor::Tensor::vector(&front);
        if let Some(shaped) = vector.reshaped(tensor.shape().to_vec()) {
            return cx.constant(shaped);
        }
    }
    let size = cx.cast(cx.size(size), cx.dtype(index));
    cx.select(cx.less(index, 0), cx.add(index, size), index)
}

/// Whether the last few nodes show that no element is negative, if no arithmetic overflows.
pub(crate) fn nonnegative(model: &Model, value: Value) -> bool {
    is_nonnegative(model, value, DEPTH, false)
}

/// [`nonnegative`] of any integers: arithmetic may overflow, which makes numbers negative.
pub(crate) fn nonnegative_numbers(model: &Model, value: Value) -> bool {
    is_nonnegative(model, value, DEPTH, true)
}

fn is_nonnegative(model: &Model, value: Value, depth: usize, may_wrap: bool) -> bool {
    if let Some(known) = model.const_ints(value) {
        return known.iter().all(|&i| i >= 0);
    }
    let unsigned = model.dtype(value).is_some_and(|d| d.is_unsigned() || d == DType::Bool);
    let (Def::Node(node, _), Some(depth)) = (model[value].def(), depth.checked_sub(1)) else {
        return unsigned;
    };
    let node = &model[*node];
    let traits = node.traits();
    let input = |i: usize| node.input(i).is_some_and(|v| is_nonnegative(model, v, depth, may_wrap));
    unsigned
        || match node.op() {
            "Abs" | "Add" | "Cast" | "Mul" if may_wrap => false,
            "Abs" => true,
            _ if traits.contains(Traits::COUNTING) => true,
            "TopK" => {
                model.dtype(value) == Some(DType::I64) && {
                    model.producer(value).map(|n| model[n].outputs()[1]) == Some(value)
                }
            }
            "Cast" | "Relu" => input(0),
            _ if traits.contains(Traits::DATA_MOVEMENT) => input(0),
            "Add" | "Mul" | "Min" | "Div" => (0..node.inputs().len()).all(input),
            "Max" => (0..node.inputs().len()).any(input),
            "Concat" => (0..node.inputs().len()).all(input),
            "Range" => input(0) && input(2),
            "Mod" => attrs::Mod::read(node).is_ok_and(|m| !m.fmod) && input(1),
            "Where" => (!may_wrap && wraps(model, node)) || (input(1) && input(2)),
            "Clip" => input(1),
            _ => false,
        }
}

/// Whether a `Where` is what [`from_front`] emits.
fn wraps(model: &Model, node: &pt2onnx_ir::Node) -> bool {
    let producer = |i: usize| node.input(i).and_then(|v| model.producer(v)).map(|n| &model[n]);
    let (Some(test), Some(sum)) = (producer(0), producer(1)) else { return false };
    let zero = test.input(1).and_then(|v| model.const_ints(v));
    test.is("Less")
        && sum.is("Add")
        && test.input(0) == node.input(2)
        && sum.input(0) == node.input(2)
        && zero.is_some_and(|z| z == [0])
}

/// Classes counted from the front. Those that are no class become the depth, which is none either.
pub(crate) fn one_hot(model: &mut Model, id: NodeId) -> Outcome {
    let indices = input(&model[id], 0)?;
    if nonnegative(model, indices) {
        return Ok(Rewritten::InPlace);
    }
    let counted = before(model, id, |cx, node| {
        let depth = cx.cast(cx.reshape(input(node, 1)?, &[]), cx.dtype(indices));
        let counted = cx.select(cx.less(indices, 0), cx.add(indices, depth), indices);
        Ok(cx.select(cx.less(counted, 0), depth, counted))
    })?;
    model.replace_input(id, 0, Some(counted));
    Ok(Rewritten::Surrounded)
}
