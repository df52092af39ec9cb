//! Axes and sizes of tensors.

use crate::expr::Expr;

/// The most elements of a tensor: no machine can hold more, and numbers of them can be added
/// without overflow.
const MOST_ELEMENTS: i64 = 1 << 48;

/// The most dimensions of a tensor, in files and in what is inferred. PyTorch's and NumPy's have at
/// most 64.
pub const MAX_RANK: usize = 256;

/// An axis counted from the front; `None` if it is not in `-rank..rank`.
pub fn axis(axis: i64, rank: usize) -> Option<usize> {
    let front = if axis < 0 { axis.checked_add_unsigned(rank as u64)? } else { axis };
    usize::try_from(front).ok().filter(|&axis| axis < rank)
}

/// Whether a tensor can have these sizes: those that are known are not negative, and their product
/// is at most 2^48; and they are at most [`MAX_RANK`]. A size of 0 counts as 1, since it may belong
/// to a dimension that is sliced.
pub fn is_possible(shape: &[Expr]) -> bool {
    if shape.len() > MAX_RANK {
        return false;
    }
    let mut sizes = shape.iter().filter_map(Expr::as_int);
    let product = sizes.try_fold(1i64, |product, size| match size {
        0.. => product.checked_mul(size.max(1)).filter(|p| *p <= MOST_ELEMENTS),
        _ => None,
    });
    product.is_some()
}
