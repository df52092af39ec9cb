//! Helps the shape rules: broadcasts shapes, multiplies matrices, removes axes.

use super::{facts::InferError, node::Node};
use crate::types::{Shape, is_unknown};
use pt2onnx_symbolic::{Constraints, Expr};

/// The shape that `a` and `b` broadcast to, by NumPy's rules. If neither of two sizes is known to
/// be 1, they are equal or one of them is 1 at run time, so the result is the larger one. Calls
/// `misfit` for two sizes that cannot broadcast.
pub(crate) fn broadcast(
    a: &[Expr],
    b: &[Expr],
    constraints: &Constraints,
    unknown_dim: impl Fn() -> Expr,
    misfit: impl Fn(&Expr, &Expr),
) -> Shape {
    let one = Expr::int(1);
    let rank = a.len().max(b.len());
    let at = |s: &[Expr], i: usize| {
        (i + s.len()).checked_sub(rank).map_or(one.clone(), |j| s[j].clone())
    };
    let dims = (0..rank).map(|i| match (at(a, i), at(b, i)) {
        (x, y) if x == y || y == one => x,
        (x, y) if x == one => y,
        (x, y) => match (x.as_int(), y.as_int()) {
            (Some(_), None) => x,
            (None, Some(_)) => y,
            (Some(_), Some(_)) => {
                misfit(&x, &y);
                x
            }
            (None, None) if constraints.prove_eq(&x, &y) == Some(true) => x,
            (None, None) if constraints.prove_eq(&y, &one) == Some(true) => x,
            (None, None) if constraints.prove_eq(&x, &one) == Some(true) => y,
            (None, None) if is_unknown(&x) || is_unknown(&y) => unknown_dim(),
            (None, None) => Expr::max(&x, &y),
        },
    });
    dims.collect()
}

/// The shape of the matrix product of `a` and `b`; `None` for tensors without dimensions.
/// `broadcast` joins the dimensions of batches.
pub(crate) fn product(
    a: &[Expr],
    b: &[Expr],
    broadcast: impl FnOnce(&[Expr], &[Expr]) -> Shape,
) -> Option<Shape> {
    let batch = |dims: &[Expr]| dims[..dims.len().saturating_sub(2)].to_vec();
    let (_, rows) = a.split_last()?;
    let (columns, front) = b.split_last()?;
    let mut result = broadcast(&batch(a), &batch(b));
    // Vectors have no rows, and no columns.
    result.extend(rows.last().cloned());
    result.extend((!front.is_empty()).then(|| columns.clone()));
    Some(result)
}

impl Node<'_> {
    /// [`broadcast`], which notes sizes that cannot broadcast as the error of the node.
    pub(super) fn broadcast(&self, a: &[Expr], b: &[Expr]) -> Shape {
        let misfit = |x: &Expr, y: &Expr| self.fail(InferError::Broadcast(x.clone(), y.clone()));
        broadcast(a, b, self.facts.constraints, || self.unknown_dim(), misfit)
    }

    /// Notes two numbers that must be equal but are not as the error of the node.
    pub(super) fn equal(&self, a: &Expr, b: &Expr) {
        if a.is_static() && b.is_static() && a != b {
            self.fail(InferError::Unequal(a.clone(), b.clone()));
        }
    }

    /// Notes scales and other vectors of other length than the channels of the first input.
    pub(super) fn equal_channels(&self) {
        for i in 1..self.node.inputs().len() {
            if let (Some(x), Some(vector)) = (self.shape(0), self.shape(i))
                && let (Some(channels), [length]) = (x.get(1), vector.as_slice())
            {
                self.equal(channels, length);
            }
        }
    }

    /// Notes a number that exceeds another one as the error of the node.
    pub(super) fn at_most(&self, a: &Expr, b: &Expr) {
        if let (Some(small), Some(large)) = (a.as_int(), b.as_int())
            && small > large
        {
            self.fail(InferError::Larger(a.clone(), b.clone()));
        }
    }

    pub(super) fn fail(&self, error: InferError) {
        self.error.borrow_mut().get_or_insert(error);
    }
}

/// `shape` without the dimensions `axes`; with `keepdims` they have size 1 instead.
pub(crate) fn without(shape: Shape, axes: &[usize], keepdims: bool) -> Shape {
    let dims = shape.into_iter().enumerate();
    if keepdims {
        dims.map(|(i, d)| if axes.contains(&i) { Expr::int(1) } else { d }).collect()
    } else {
        dims.filter(|(i, _)| !axes.contains(i)).map(|(_, d)| d).collect()
    }
}
