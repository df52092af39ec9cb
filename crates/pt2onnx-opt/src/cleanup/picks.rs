//! Nodes that take a part of size 1 and remove its dimension: one `Gather` with a scalar index does both.

use super::seen::{Action, Seen};
use crate::eval;
use pt2onnx_ir::attrs;
use pt2onnx_tensor::Tensor;

/// `Gather(x, i)` instead of `Squeeze(Slice(x, i, i + 1))` and of `Squeeze(Gather(x, [i]))`.
pub(super) fn rule(n: &Seen) -> Option<Action> {
    let part = n.node.input(0).filter(|&v| n.node.is("Squeeze") && n.is_used_once(v))?;
    let [removed] = n.ints(1)?[..] else {
        return None;
    };
    let inner = n.producer(part)?;
    let source = inner.node.input(0)?;
    let rank = n.shape(part)?.len();
    let one = |i: usize| match inner.ints(i)?[..] {
        [one] => Some(one),
        _ => None,
    };
    let (index, axis) = match inner.node.op() {
        "Slice" => {
            let (from, to) = (one(1)?, one(2)?);
            let step = inner.node.input(4).map_or(Some(1), |_| one(4))?;
            let last = from == -1 && to >= i64::from(i32::MAX);
            let single = to == from.checked_add(1)? && to != 0 || last;
            let axis = inner.node.input(3).map_or(Some(0), |_| one(3))?;
            (single && step == 1).then_some((from, axis))?
        }
        "Gather" if n.shape(inner.node.input(1)?)?.len() == 1 => {
            (one(1)?, attrs::Gather::read(inner.node).ok()?.axis)
        }
        _ => return None,
    };
    let axis = eval::axis(axis, rank)?;
    (eval::axis(removed, rank)? == axis)
        .then(|| Action::Gather(source, Tensor::scalar(index), axis as i64))
}
