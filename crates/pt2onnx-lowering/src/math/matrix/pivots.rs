//! Pivots: the choice and exchange of rows, and permutations as LAPACK records them.

use crate::math::matrix::iterate::{Step, iterate};
use crate::math::matrix::{count_rows, shape_with};
use crate::{Complex, Cx};
use pt2onnx_ir::{Reduction, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

/// LAPACK's CABS1: `|re| + |im|`, by which it looks for pivots.
pub fn cabs1(cx: &Cx, a: Complex) -> Value {
    match a.im {
        None => cx.abs(a.re),
        Some(im) => cx.add(cx.abs(a.re), cx.abs(im)),
    }
}

/// The order of rows after row `k` is exchanged with the pivot row, the row from `k` on with the
/// largest element of `column`; and the pivot row. As in LAPACK, a NaN in row `k` stays there, and
/// other NaN are not chosen.
pub fn exchange(cx: &Cx, rows: Value, k: Value, column: Complex) -> (Value, Value) {
    let axis = cx.rank(column.re) as i64 - 2;
    let own = cx.equal(rows, k);
    let mut sizes = cabs1(cx, column);
    if cx.propagates_nan(sizes) {
        let of_nan = cx.select(own, f64::INFINITY, cx.scalar(-1.0, cx.dtype(sizes)));
        sizes = cx.select(cx.is_nan(sizes), of_nan, sizes);
    }
    let behind = cx.select(cx.less(rows, k), -1.0, sizes);
    let options = attrs::ArgMax { axis, ..Default::default() };
    let largest = cx.arg_max(behind, options);
    (swapped(cx, rows, k, largest), largest)
}

/// The order of `rows` after the rows `a` and `b` are exchanged.
pub fn swapped(cx: &Cx, rows: Value, a: Value, b: Value) -> Value {
    let order = cx.select(cx.equal(rows, b), a, rows);
    cx.select(cx.equal(rows, a), b, order)
}

/// The rows of `a` in that order.
pub fn reorder(cx: &Cx, a: Complex, order: Value) -> Complex {
    let axis = cx.rank(a.re) as i64 - 2;
    let order = cx.expand(order, &cx.shape(a.re));
    a.map(|x| cx.gather_elements(x, order, attrs::GatherElements { axis }))
}

/// P of `A = P L U`, from the permutation with `A[permutation] = L U`.
pub fn permutation_matrix(cx: &Cx, permutation: Value, dtype: DType) -> Value {
    let rank = cx.rank(permutation);
    let rows = count_rows(cx, &cx.dim(permutation, -1));
    let from = cx.unsqueeze(permutation, &[rank - 1]);
    cx.cast(cx.equal(rows, from), dtype)
}

/// The permutation that results from the exchanges in `pivots` (counted from 1), one after the
/// other.
pub fn permutation_of(cx: &Cx, pivots: Value, rows: &Expr) -> Value {
    let numbers = count_rows(cx, rows);
    let mut shape = cx.shape(pivots);
    let steps = shape.pop().unwrap_or(Expr::int(0));
    let start = cx.expand(numbers, &shape_with(&shape, &[rows, &Expr::int(1)]));
    let rank = cx.rank(start);
    let (state, _) = iterate(cx, &steps, &[start.into()], |k, state| {
        let pivot = cx.sub(cx.cast(cx.gather(pivots, k, rank - 2), DType::I64), 1);
        let pivot = cx.unsqueeze(pivot, &[rank - 1]);
        Step::state(vec![reorder(cx, state[0], swapped(cx, numbers, k, pivot))])
    });
    cx.squeeze(state[0].re, &[rank - 1])
}

/// The index of the first true element in the last dimension, counted from 1, or 0 if there is
/// none; int32.
pub fn first_of(cx: &Cx, flags: Value) -> Value {
    let rank = cx.rank(flags);
    let mut shape = cx.shape(flags);
    shape.pop();
    if cx.dim(flags, -1).as_int() == Some(0) {
        return cx.full(&shape, 0, DType::I32);
    }
    let flags = cx.cast(flags, DType::I32);
    let options = attrs::ArgMax { axis: rank as i64 - 1, keepdims: false, ..Default::default() };
    let first = cx.cast(cx.add(cx.arg_max(flags, options), 1), DType::I32);
    let any = cx.reduce(Reduction::Max, flags, &[rank - 1], false);
    cx.mul(first, any)
}
