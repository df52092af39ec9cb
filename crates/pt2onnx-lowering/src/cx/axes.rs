//! Dimensions in PyTorch's arguments, where negative ones are counted from the back.

use crate::{Cx, LowerError, Lowered};
use pt2onnx_ir::Value;

impl Cx<'_, '_> {
    /// `dim` of `x` counted from the front. As in PyTorch, a 0-d tensor counts as having one
    /// dimension.
    ///
    /// # Errors
    /// Returns an error if `x` has no such dimension.
    pub fn axis(&self, x: Value, dim: i64) -> Lowered<usize> {
        axis_of(self.rank(x).max(1), dim)
    }

    /// `dims` of `x` counted from the front. If `dims` is empty or not given, all dimensions.
    ///
    /// # Errors
    /// Returns an error if `x` has no such dimension.
    pub fn axes(&self, x: Value, dims: Option<&[i64]>) -> Lowered<Vec<usize>> {
        match dims {
            None | Some([]) => Ok((0..self.rank(x)).collect()),
            // Dimensions 0 and -1 of a 0-d tensor are allowed, but it has none.
            Some(dims) if self.rank(x) == 0 => {
                dims.iter().try_for_each(|&d| axis_of(1, d).map(drop)).map(|()| vec![])
            }
            Some(dims) => dims.iter().map(|&d| axis_of(self.rank(x), d)).collect(),
        }
    }
}

/// `dim` of a tensor of rank `rank`, counted from the front.
///
/// # Errors
/// Returns an error if `dim` is outside of `-rank..rank`.
pub fn axis_of(rank: usize, dim: i64) -> Lowered<usize> {
    pt2onnx_symbolic::axis(dim, rank).ok_or_else(|| {
        LowerError::unsupported(format!(
            "dimension {dim} is out of range for a tensor of rank {rank}"
        ))
    })
}
