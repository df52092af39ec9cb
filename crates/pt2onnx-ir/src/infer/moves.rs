//! Shape rules of operators that move elements: concatenation, split, gather, reshape, slice,
//! padding.

use super::{
    facts::InferError,
    node::{Node, axes},
    shape::without,
};
use crate::types::Shape;
use pt2onnx_symbolic::Expr;

/// Operands without elements may differ in the other sizes, as ONNX Runtime compares those of the
/// rest only.
pub(super) fn concat(n: &Node) -> Option<Shape> {
    let shapes = (0..n.node.inputs().len()).map(|i| n.shape(i)).collect::<Option<Vec<_>>>()?;
    let has_elements = |shape: &&Shape| shape.iter().all(|d| d.as_int() != Some(0));
    let first = shapes.iter().find(has_elements).or(shapes.first())?;
    let axis = n.axis(0, first.len())?;
    let mut result = first.clone();
    for other in shapes.iter().filter(has_elements) {
        for (j, dim) in result.iter_mut().enumerate().filter(|(j, _)| *j != axis) {
            match other.get(j)? {
                d if dim.as_int().is_none() && d.as_int().is_some() => *dim = d.clone(),
                d => n.equal(dim, d),
            }
        }
    }
    result[axis] = Expr::ZERO;
    for shape in &shapes {
        result[axis] = &result[axis] + shape.get(axis)?;
    }
    Some(result)
}

pub(super) fn gather(n: &Node) -> Option<Shape> {
    let (mut result, indices) = (n.shape(0)?, n.shape(1)?);
    let axis = n.axis(0, result.len())?;
    if let (Some(size), Some(all)) = (result[axis].as_int(), n.numbers(1))
        && let Some(&i) = all.iter().find(|&&i| !(-size..size).contains(&i))
    {
        n.fail(InferError::Outside(i, result[axis].clone()));
    }
    result.splice(axis..=axis, indices);
    Some(result)
}

/// The shape of the indices, which is not larger than that of the data in the other dimensions.
pub(super) fn gather_elements(n: &Node) -> Option<Shape> {
    let (data, indices) = (n.shape(0)?, n.shape(1)?);
    let axis = n.axis(0, data.len())?;
    let others = indices.iter().zip(&data).enumerate().filter(|(i, _)| *i != axis);
    others.for_each(|(_, (index, size))| n.at_most(index, size));
    Some(indices)
}

pub(super) fn gather_nd(n: &Node) -> Option<Shape> {
    let (data, mut indices) = (n.shape(0)?, n.shape(1)?);
    let batch = usize::try_from(n.int("batch_dims").unwrap_or(0)).ok()?;
    let depth = usize::try_from(indices.pop()?.as_int()?).ok()?;
    indices.extend(data.get(batch + depth..)?.iter().cloned());
    Some(indices)
}

pub(super) fn reshape(n: &Node) -> Option<Shape> {
    let (Some(from), Some(mut target)) = (n.shape(0), n.contents(1)) else {
        return some_sizes(n).or_else(|| n.dims_of(1));
    };
    let copy = n.int("allowzero").unwrap_or(0) == 0;
    for (i, dim) in target.iter_mut().enumerate() {
        if copy && dim.as_int() == Some(0) {
            *dim = from.get(i)?.clone();
        }
    }
    if let Some(rest) = target.iter().position(|d| d.as_int() == Some(-1)) {
        let others = target.iter().enumerate().filter(|(i, _)| *i != rest);
        let others = Expr::product(others.map(|(_, d)| d));
        target[rest] = match (Expr::product(from.clone()), others.as_int()) {
            (_, Some(0)) => n.unknown_dim(),
            (numel, _) => numel.floor_div(&others),
        };
    }
    n.equal(&Expr::product(from), &Expr::product(target.iter().cloned()));
    Some(target)
}

/// The sizes that a `Reshape` gives, if not all elements of its target are known. A 0 or a -1 is
/// not a size.
fn some_sizes(n: &Node) -> Option<Shape> {
    let is_size = |e: &Expr| e.as_int().is_none_or(|size| size > 0);
    let size = |e: Option<Expr>| e.filter(is_size).unwrap_or_else(|| n.unknown_dim());
    Some(n.some_contents(1)?.into_iter().map(size).collect())
}

pub(super) fn flatten(n: &Node) -> Option<Shape> {
    let x = n.shape(0)?;
    let axis = match n.int("axis").unwrap_or(1) {
        a if a == x.len() as i64 => x.len(),
        a => pt2onnx_symbolic::axis(a, x.len())?,
    };
    Some(vec![Expr::product(x[..axis].to_vec()), Expr::product(x[axis..].to_vec())])
}

pub(super) fn expand(n: &Node) -> Option<Shape> {
    Some(n.broadcast(&n.shape(0)?, &n.contents(1).or_else(|| n.dims_of(1))?))
}

pub(super) fn transpose(n: &Node) -> Option<Shape> {
    let x = n.shape(0)?;
    match n.ints("perm") {
        None => Some(x.into_iter().rev().collect()),
        Some(perm) => perm.iter().map(|&p| x.get(usize::try_from(p).ok()?).cloned()).collect(),
    }
}

pub(super) fn squeeze(n: &Node) -> Option<Shape> {
    let x = n.shape(0)?;
    if n.input(1).is_none() {
        // Removes all dimensions of size 1, so all sizes must be numbers.
        let known = x.iter().all(|d| d.as_int().is_some());
        return known.then(|| x.into_iter().filter(|d| d.as_int() != Some(1)).collect());
    }
    let axes = n.axes(1, x.len())?;
    Some(without(x, &axes, false))
}

pub(super) fn unsqueeze(n: &Node) -> Option<Shape> {
    let mut x = n.shape(0)?;
    let given = n.numbers(1)?;
    let mut axes = axes(&given, x.len() + given.len())?;
    axes.sort_unstable();
    for axis in axes {
        if axis > x.len() {
            return None;
        }
        x.insert(axis, Expr::int(1));
    }
    Some(x)
}

pub(super) fn tile(n: &Node) -> Option<Shape> {
    let Some((x, repeats)) = n.shape(0).zip(n.contents(1)) else {
        return n.dims_of(1);
    };
    Some(x.iter().zip(&repeats).map(|(d, r)| d * r).collect())
}

pub(super) fn pad(n: &Node) -> Option<Shape> {
    let mut x = n.shape(0)?;
    let axes = n.axes(3, x.len())?;
    let pads = n.contents(1);
    for (i, &axis) in axes.iter().enumerate() {
        x[axis] = match &pads {
            Some(pads) => &x[axis] + pads.get(i)? + pads.get(i + axes.len())?,
            None => n.unknown_dim(),
        };
    }
    Some(x)
}

pub(super) fn slice(n: &Node) -> Option<Shape> {
    let mut x = n.shape(0)?;
    let count = || n.shape(1)?.first()?.as_int().and_then(|count| usize::try_from(count).ok());
    let given = match n.input(3) {
        None => count().map(|count| (0..count as i64).collect()),
        Some(_) => n.numbers(3),
    };
    let Some(given) = given else {
        return Some(x.iter().map(|_| n.unknown_dim()).collect());
    };
    let axes = axes(&given, x.len())?;
    let (starts, ends) = (n.numbers(1), n.numbers(2));
    let steps = n.input(4).map_or(Some(vec![1; axes.len()]), |_| n.numbers(4));
    for (i, &axis) in axes.iter().enumerate() {
        let known = (|| {
            let (start, end) = (*starts.as_ref()?.get(i)?, *ends.as_ref()?.get(i)?);
            let step = *steps.as_ref()?.get(i).filter(|&&s| s != 0)?;
            if step > 0 && end <= start && (start < 0) == (end < 0) {
                return Some(Expr::ZERO);
            }
            let size = x.get(axis)?.as_int()?;
            let from_front = |v: i64| if v < 0 { v.saturating_add(size) } else { v };
            let (start, end) = (from_front(start), from_front(end));
            // Number of elements: the span divided by the step, rounded up.
            let span = match step {
                _ if size == 0 => 0,
                1.. => end.clamp(0, size) - start.clamp(0, size),
                _ => start.clamp(0, size - 1) - end.clamp(-1, size - 1),
            };
            Some(Expr::int(span.max(0).unsigned_abs().div_ceil(step.unsigned_abs()) as i64))
        })();
        *x.get_mut(axis)? = known.unwrap_or_else(|| n.unknown_dim());
    }
    Some(x)
}

pub(super) fn split(n: &Node) -> Vec<Option<Shape>> {
    let count = n.node.outputs().len();
    let sizes = |size: &Expr| -> Option<Vec<Expr>> {
        Some(match n.input(1) {
            Some(_) => match n.contents(1) {
                Some(parts) => {
                    n.equal(&Expr::sum(parts.iter().cloned()), size);
                    parts
                }
                None => (0..count).map(|_| n.unknown_dim()).collect(),
            },
            None => {
                let (size, pieces) = (size.as_int()?, count as i64);
                let length = (size + pieces - 1) / pieces;
                let rest = |i| Expr::int(length.min(size - length * i).max(0));
                (0..pieces).map(rest).collect()
            }
        })
    };
    let all = || {
        let x = n.shape(0)?;
        let axis = n.axis(0, x.len())?;
        let of = |size: Expr| {
            let mut x = x.clone();
            x[axis] = size;
            Some(x)
        };
        Some(sizes(&x[axis])?.into_iter().map(of).collect())
    };
    let mut shapes: Vec<_> = all().unwrap_or_default();
    shapes.resize(count, None);
    shapes
}
