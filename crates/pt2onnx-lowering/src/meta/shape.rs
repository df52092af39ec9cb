//! Sizes of parts, views and joins.

use super::types::{sized, typed, unknown};
use crate::math::matrix::{batch_of, shape_with};
use crate::{Cx, Lowered};
use pt2onnx_ir::Value;
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

/// A bound of a slice: counted from the end if it is negative, and within the size.
pub fn bound(cx: &Cx, at: &Expr, size: &Expr) -> Lowered<Expr> {
    let known = cx.constraints();
    let from_start = match () {
        () if known.prove_ge(at, &Expr::ZERO) => at.clone(),
        () if known.prove_gt(&Expr::ZERO, at) => at + size,
        () => return unknown("it is not known whether a bound is negative"),
    };
    Ok(known.simplify(&Expr::max(&Expr::min(&from_start, size), &Expr::ZERO)))
}

/// `N` dimensions at least: a vector is a row, and a matrix has a third dimension at the end.
pub fn at_least<const N: usize>(cx: &Cx, x: Value) -> Lowered {
    let (size, one) = (cx.shape(x), Expr::ONE);
    let size = match (&size[..], N) {
        ([], _) => vec![one; N],
        ([n], 2) => vec![one, n.clone()],
        ([n], 3) => vec![one.clone(), n.clone(), one],
        ([n, m], 3) => vec![n.clone(), m.clone(), one],
        _ => size,
    };
    Ok(sized(cx, x, &size))
}

/// [`at_least`] of each tensor.
pub fn all_at_least<const N: usize>(cx: &Cx, tensors: Vec<Value>) -> Lowered<Vec<Value>> {
    tensors.into_iter().map(|x| at_least::<N>(cx, x)).collect()
}

/// Elements of the diagonal `offset` columns right of the main one of a matrix.
pub fn diagonal_length(cx: &Cx, rows: &Expr, columns: &Expr, offset: i64) -> Expr {
    let (rows, columns) = if offset >= 0 {
        (rows.clone(), columns - offset)
    } else {
        (rows + offset, columns.clone())
    };
    cx.constraints().simplify(&Expr::max(&Expr::min(&rows, &columns), &Expr::ZERO))
}

/// A Vandermonde matrix: the powers of `x` in a new last dimension, as many as there are elements
/// if their count is not given.
pub fn vander(cx: &Cx, x: Value, count: Option<Expr>) -> Lowered {
    let mut size = if cx.rank(x) == 0 { vec![Expr::ONE] } else { cx.shape(x) };
    size.extend(count.or_else(|| size.last().cloned()));
    let dtype = if cx.dtype(x).is_int() { DType::I64 } else { cx.dtype(x) };
    Ok(typed(cx, dtype, &size))
}

/// Number `i` of a list. A single number holds for all dimensions.
pub fn nth(list: &[i64], i: usize, default: i64) -> i64 {
    list.get(i).or(list.first()).copied().unwrap_or(default)
}

/// The number of windows along a dimension. With `ceil`, a last window may reach past the end, but
/// does not start there.
pub fn windows(
    size: &Expr,
    [kernel, stride, padding, dilation]: [i64; 4],
    ceil: bool,
) -> Lowered<Expr> {
    let reach = dilation * (kernel - 1) + 1;
    let room = size + (2 * padding - reach);
    let count = |room: Expr| room.floor_div(&Expr::int(stride)) + 1;
    let count = match ceil {
        false => count(room),
        true if stride + padding <= reach => count(room + (stride - 1)),
        // As many as start in front of the last padding.
        true => Expr::min(&count(room + (stride - 1)), &count(size + (padding - 1))),
    };
    match count.as_int() {
        Some(..=0) => unknown("a window that is larger than what it moves over"),
        _ => Ok(count),
    }
}

/// The number of spatial dimensions. A list of one number may hold for all of them.
pub fn spatial(cx: &Cx, x: Value, given: usize) -> Lowered<usize> {
    match cx.rank(x).checked_sub(given) {
        Some(1 | 2) => Ok(given),
        _ => unknown("it is not known which dimensions are spatial"),
    }
}

/// The sizes before those of the matrices, then `more`.
pub fn batch(cx: &Cx, x: Value, more: &[&Expr]) -> Vec<Expr> {
    shape_with(&batch_of(cx, x.into()), more)
}
