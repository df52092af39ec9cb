//! Selects, repeats and joins elements: `Gather`, `Slice`, `Concat`, `Split`, `Expand`, `Tile`,
//! `Pad`, `Trilu`.

use super::{
    Call, Eval, Row, array, axes, axis, broadcast, by_width, dim, of_elements, shaped, tensor,
};
use ndarray::{ArrayD, Axis, Slice};
use pt2onnx_ir::attrs;
use pt2onnx_tensor::Tensor;

pub(super) static OPS: &[Row] = &[
    ("Concat", Eval::One(concat)),
    ("Expand", Eval::One(expand)),
    ("Gather", Eval::One(gather)),
    ("GatherElements", Eval::One(gather_elements)),
    ("Pad", Eval::One(pad)),
    ("Slice", Eval::One(slice)),
    ("Split", Eval::Many(split)),
    ("Tile", Eval::One(tile)),
    ("Trilu", Eval::One(trilu)),
];

fn concat(call: &Call) -> Option<Tensor> {
    let parts = call.all()?;
    let first = *parts.first()?;
    let along = axis(attrs::Concat::axis(call.node).ok()?, first.rank())?;
    let mut sizes = first.shape().to_vec();
    sizes[along] = parts.iter().try_fold(0usize, |n, t| n.checked_add(*t.shape().get(along)?))?;
    call.room(first.dtype(), &sizes)?;
    if parts.iter().any(|t| t.dtype() != first.dtype()) {
        return None;
    }
    by_width!(first.dtype(), T => {
        let arrays = parts.iter().map(|t| array::<T>(t)).collect::<Option<Vec<_>>>()?;
        let views: Vec<_> = arrays.iter().map(|a| a.view()).collect();
        tensor(first.dtype(), &ndarray::concatenate(Axis(along), &views).ok()?)
    })
}

fn expand(call: &Call) -> Option<Tensor> {
    let x = call.input(0)?;
    let sizes = broadcast(&[x.shape(), &call.sizes(1)?])?;
    call.room(x.dtype(), &sizes)?;
    by_width!(x.dtype(), T => tensor(x.dtype(), &array::<T>(x)?.broadcast(dim(&sizes))?.to_owned()))
}

/// Positions along an axis of `size`, counted from the front; `None` if one is out of bounds.
fn positions(indices: &[i64], size: usize) -> Option<Vec<usize>> {
    indices.iter().map(|&i| axis(i, size)).collect()
}

fn gather(call: &Call) -> Option<Tensor> {
    let (x, indices) = (call.input(0)?, call.input(1)?);
    let along = axis(attrs::Gather::read(call.node).ok()?.axis, x.rank())?;
    let picked = positions(&call.ints(1)?, x.shape()[along])?;
    let mut sizes = x.shape().to_vec();
    sizes.splice(along..=along, indices.shape().iter().copied());
    call.room(x.dtype(), &sizes)?;
    by_width!(x.dtype(), T => {
        let picked = array::<T>(x)?.select(Axis(along), &picked);
        tensor(x.dtype(), &picked.to_shape(dim(&sizes)).ok()?.to_owned())
    })
}

fn gather_elements(call: &Call) -> Option<Tensor> {
    let (x, indices) = (call.input(0)?, call.input(1)?);
    let along = axis(attrs::GatherElements::read(call.node).ok()?.axis, x.rank())?;
    let picked = positions(&call.ints(1)?, x.shape()[along])?;
    let fits = |(i, (&a, &b)): (usize, (&usize, &usize))| i == along || a <= b;
    if indices.rank() != x.rank() || !indices.shape().iter().zip(x.shape()).enumerate().all(fits) {
        return None;
    }
    call.room(x.dtype(), indices.shape())?;
    by_width!(x.dtype(), T => {
        let x_ = array::<T>(x)?;
        let picked = shaped(indices.shape(), picked)?;
        let element = |(at, &i): (ndarray::IxDyn, &usize)| {
            let mut at = at;
            at[along] = i;
            x_.get(at).copied()
        };
        let elements = picked.indexed_iter().map(element).collect::<Option<Vec<T>>>()?;
        of_elements(x.dtype(), indices.shape(), elements)
    })
}

fn slice(call: &Call) -> Option<Tensor> {
    let x = call.input(0)?;
    let (starts, ends) = (call.ints(1)?, call.ints(2)?);
    let along = call.ints_or(3, || (0..starts.len() as i64).collect())?;
    let steps = call.ints_or(4, || vec![1; starts.len()])?;
    if [ends.len(), along.len(), steps.len()].iter().any(|&n| n != starts.len())
        || axes(&along, x.rank()).is_none()
    {
        return None;
    }
    let mut picked = Vec::with_capacity(starts.len());
    let mut sizes = x.shape().to_vec();
    for i in 0..starts.len() {
        let along = axis(along[i], x.rank())?;
        let at = slice_positions(starts[i], ends[i], steps[i], x.shape()[along])?;
        sizes[along] = at.len();
        picked.push((Axis(along), at));
    }
    call.room(x.dtype(), &sizes)?;
    by_width!(x.dtype(), T => {
        let mut result = array::<T>(x)?;
        for (axis, at) in &picked {
            result = result.select(*axis, at);
        }
        tensor(x.dtype(), &result)
    })
}

/// The positions of a slice. Bounds are clamped to the size: backwards, the start to the first
/// element, and the end to before it.
pub(crate) fn slice_positions(start: i64, end: i64, step: i64, size: usize) -> Option<Vec<usize>> {
    let size = i64::try_from(size).ok()?;
    let from_front = |v: i64| if v < 0 { v.saturating_add(size) } else { v };
    let (start, end) = (from_front(start), from_front(end));
    let (mut at, end) = match step {
        0 => return None,
        _ if size == 0 => return Some(Vec::new()),
        1.. => (start.clamp(0, size), end.clamp(0, size)),
        _ => (start.clamp(0, size - 1), end.clamp(-1, size - 1)),
    };
    let mut positions = Vec::new();
    while if step > 0 { at < end } else { at > end } {
        positions.push(usize::try_from(at).ok()?);
        at = at.saturating_add(step);
    }
    Some(positions)
}

fn split(call: &Call) -> Option<Vec<Tensor>> {
    let x = call.input(0)?;
    let along = axis(attrs::Split::read(call.node).ok()?.axis, x.rank())?;
    let (size, pieces) = (x.shape()[along], call.node.outputs().len());
    let lengths: Vec<usize> = match call.input(1) {
        Some(_) => call.sizes(1)?,
        None => {
            let length = size.div_ceil(pieces.max(1));
            (0..pieces).map(|i| size.saturating_sub(i.saturating_mul(length)).min(length)).collect()
        }
    };
    let total = lengths.iter().try_fold(0usize, |n, &l| n.checked_add(l));
    if lengths.len() != pieces || total != Some(size) {
        return None;
    }
    call.room(x.dtype(), x.shape())?;
    by_width!(x.dtype(), T => {
        let x_ = array::<T>(x)?;
        let mut start = 0;
        let pieces = lengths.iter().map(|&length| {
            let piece = x_.slice_axis(Axis(along), Slice::from(start..start + length));
            start += length;
            tensor(x.dtype(), &piece.to_owned())
        });
        pieces.collect()
    })
}

fn tile(call: &Call) -> Option<Tensor> {
    let x = call.input(0)?;
    let repeats = call.sizes(1).filter(|r| r.len() == x.rank())?;
    let sizes = x.shape().iter().zip(&repeats).map(|(&s, &r)| s.checked_mul(r));
    let sizes = sizes.collect::<Option<Vec<_>>>()?;
    call.room(x.dtype(), &sizes)?;
    by_width!(x.dtype(), T => {
        let mut result = array::<T>(x)?;
        for (i, &size) in sizes.iter().enumerate() {
            let at: Vec<usize> = (0..size).map(|j| j % x.shape()[i]).collect();
            result = result.select(Axis(i), &at);
        }
        tensor(x.dtype(), &result)
    })
}

/// Mode `constant` with pads that are not negative.
fn pad(call: &Call) -> Option<Tensor> {
    let x = call.input(0)?;
    let along = call.ints_or(3, || (0..x.rank() as i64).collect())?;
    let pads = call.sizes(1)?;
    let ok = attrs::Pad::read(call.node).ok()?.mode == "constant" && pads.len() == 2 * along.len();
    if !ok || axes(&along, x.rank()).is_none() {
        return None;
    }
    let (mut sizes, mut starts) = (x.shape().to_vec(), vec![0; x.rank()]);
    for (i, &a) in along.iter().enumerate() {
        let a = axis(a, x.rank())?;
        starts[a] = pads[i];
        sizes[a] = sizes[a].checked_add(pads[i])?.checked_add(pads[i + along.len()])?;
    }
    call.room(x.dtype(), &sizes)?;
    by_width!(x.dtype(), T => {
        let fill = match call.input(2) {
            Some(value) if value.dtype() == x.dtype() => *array::<T>(value)?.first()?,
            Some(_) => return None,
            None => T::default(),
        };
        let mut result = ArrayD::from_elem(dim(&sizes), fill);
        let window = |d: ndarray::AxisDescription| Slice::from(starts[d.axis.0]..starts[d.axis.0] + x.shape()[d.axis.0]);
        result.slice_each_axis_mut(window).assign(&array::<T>(x)?);
        tensor(x.dtype(), &result)
    })
}

fn trilu(call: &Call) -> Option<Tensor> {
    let x = call.input(0)?;
    let k = call.scalar_or(1, 0)?;
    let upper = attrs::Trilu::read(call.node).ok()?.upper;
    let lead = x.rank().checked_sub(2)?;
    call.room(x.dtype(), x.shape())?;
    by_width!(x.dtype(), T => {
        let mut result = array::<T>(x)?;
        for (at, v) in result.indexed_iter_mut() {
            let diagonal = at[lead + 1] as i64 - at[lead] as i64;
            if if upper { diagonal < k } else { diagonal > k } {
                *v = T::default();
            }
        }
        tensor(x.dtype(), &result)
    })
}
