//! Replaces cyclic padding by slices.

use crate::legalise::{Outcome, Rewritten, front, replace};
use pt2onnx_ir::{Builder, Model, NodeId, Value, attrs};

/// The mode `wrap` by slices of the other end. Other modes are kept.
pub(crate) fn wrap(model: &mut Model, id: NodeId) -> Outcome {
    if attrs::Pad::read(&model[id])?.mode != "wrap" {
        return Ok(Rewritten::InPlace);
    }
    replace(model, id, |cx, node| {
        let newer = || "mode `wrap` needs a newer opset".to_owned();
        let ints = |i: usize| cx.constant_of(node.input(i)?)?.to_vec::<i64>();
        let mut x = node.input(0).ok_or_else(newer)?;
        let shape = cx.known_shape(x).ok_or_else(newer)?;
        let pads = ints(1).ok_or_else(newer)?;
        let axes = match node.input(3) {
            Some(_) => ints(3).ok_or_else(newer)?,
            None => (0..shape.len() as i64).collect(),
        };
        for (i, &axis) in axes.iter().enumerate() {
            let dim = front(axis, shape.len())?;
            let (before, after) = pads.get(i).zip(pads.get(i + axes.len())).ok_or_else(newer)?;
            if (*before, *after) == (0, 0) {
                continue;
            }
            // Negative pads, and pads above the size, are not a single slice. PyTorch refuses the
            // latter.
            let size = shape[dim].as_int();
            let most = size.unwrap_or(i64::MAX - 1);
            if !(0..=most).contains(before) || !(0..=most).contains(after) {
                return Err(newer().into());
            }
            let mut parts = Vec::with_capacity(3);
            if *before > 0 {
                let (start, end) = size.map_or((-before, i64::MAX), |size| (size - before, size));
                parts.push(slice(cx, x, start, end, dim as i64));
            }
            parts.push(x);
            if *after > 0 {
                parts.push(slice(cx, x, 0, *after, dim as i64));
            }
            x = cx.concat(&parts, dim);
        }
        Ok(vec![x])
    })
}

fn slice(cx: &Builder, x: Value, start: i64, end: i64, axis: i64) -> Value {
    let inputs = [Some(x), Some(cx.ints(&[start])), Some(cx.ints(&[end])), Some(cx.ints(&[axis]))];
    cx.emit1("Slice", &inputs, Default::default())
}
