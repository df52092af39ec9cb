//! Parts that all evaluations use: the node and its inputs, axes, broadcasting.

use ndarray::IxDyn;
use pt2onnx_ir::Node;
use pt2onnx_symbolic::axis;
use pt2onnx_tensor::{DType, Tensor};

pub(super) enum Eval {
    One(fn(&Call) -> Option<Tensor>),
    Many(fn(&Call) -> Option<Vec<Tensor>>),
}

/// A row of a family's table.
pub(super) type Row = (&'static str, Eval);

pub(super) struct Call<'a> {
    pub node: &'a Node,
    pub inputs: &'a [Option<&'a Tensor>],
    pub max_bytes: usize,
}

impl<'a> Call<'a> {
    /// Input `i`, if given.
    pub fn input(&self, i: usize) -> Option<&'a Tensor> {
        self.inputs.get(i).copied().flatten()
    }

    /// All inputs, if none is missing.
    pub fn all(&self) -> Option<Vec<&'a Tensor>> {
        self.inputs.iter().copied().collect()
    }

    /// The elements of input `i`, int64 or int32.
    pub fn ints(&self, i: usize) -> Option<Vec<i64>> {
        self.input(i)?.to_ints()
    }

    /// The same, or a default if the input is not given.
    pub fn ints_or(&self, i: usize, default: impl FnOnce() -> Vec<i64>) -> Option<Vec<i64>> {
        if self.input(i).is_some() { self.ints(i) } else { Some(default()) }
    }

    /// The elements of input `i`, if none is negative.
    pub fn sizes(&self, i: usize) -> Option<Vec<usize>> {
        self.ints(i)?.into_iter().map(|s| usize::try_from(s).ok()).collect()
    }

    /// The only element of input `i`.
    pub fn scalar(&self, i: usize) -> Option<i64> {
        match self.ints(i)?.as_slice() {
            [one] => Some(*one),
            _ => None,
        }
    }

    /// The same, or a default if the input is not given.
    pub fn scalar_or(&self, i: usize, default: i64) -> Option<i64> {
        if self.input(i).is_some() { self.scalar(i) } else { Some(default) }
    }

    /// `Some` if a tensor of these sizes is within the limit.
    pub fn room(&self, dtype: DType, shape: &[usize]) -> Option<()> {
        let bits = shape.iter().try_fold(dtype.bits(), |n, &s| n.checked_mul(s))?;
        // ndarray also requires that the product of the sizes other than 0 is at most isize::MAX.
        let mut others = shape.iter().filter(|&&s| s != 0);
        others.try_fold(1isize, |n, &s| n.checked_mul(isize::try_from(s).ok()?))?;
        (bits.div_ceil(8) <= self.max_bytes).then_some(())
    }
}

/// Sorted, distinct axes counted from the front.
pub(super) fn axes(given: &[i64], rank: usize) -> Option<Vec<usize>> {
    let mut axes: Vec<usize> = given.iter().map(|&a| axis(a, rank)).collect::<Option<_>>()?;
    axes.sort_unstable();
    axes.windows(2).all(|w| w[0] != w[1]).then_some(axes)
}

/// The shape that all broadcast to, as NumPy does.
pub(super) fn broadcast(shapes: &[&[usize]]) -> Option<Vec<usize>> {
    let rank = shapes.iter().map(|s| s.len()).max()?;
    let mut result = vec![1; rank];
    for shape in shapes {
        for (to, &from) in result.iter_mut().rev().zip(shape.iter().rev()) {
            match (*to, from) {
                (a, b) if a == b || b == 1 => {}
                (1, b) => *to = b,
                _ => return None,
            }
        }
    }
    Some(result)
}

pub(super) fn dim(shape: &[usize]) -> IxDyn {
    IxDyn(shape)
}
