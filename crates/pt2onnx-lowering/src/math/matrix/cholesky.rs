//! Computes Cholesky factors `A = L L^H`, and solves systems by them.

use crate::math::matrix::iterate::{Step, iterate};
use crate::math::matrix::triangular::triangular;
use crate::math::matrix::{batch_of, column, count_rows, row, rows_of, shape_with};
use crate::{Complex, Cx};
use pt2onnx_ir::Value;
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

/// L of `A = L L^H`, from the lower triangle of `a`, one column a step; and for each step whether
/// its pivot was not positive. With `stop`, the columns from the first such pivot on are those of
/// `a`, as in LAPACK.
fn factor(cx: &Cx, a: Complex, stop: bool) -> (Complex, Value) {
    let n = rows_of(cx, a);
    let rows = count_rows(cx, &n);
    let batch = batch_of(cx, a);
    let shape = shape_with(&batch, &[&n]);
    if n.as_int() == Some(0) {
        // A loop without steps collects nothing, not even the sizes of the batch.
        return (a, cx.full(&shape, false, DType::Bool));
    }
    let mut start = vec![a];
    if stop {
        let one = Expr::int(1);
        start.push(cx.full(&shape_with(&batch, &[&one, &one]), true, DType::Bool).into());
    }
    let (_, collected) = iterate(cx, &n, &start, |k, state| {
        let left = column(cx, state[0], k);
        let corner = row(cx, left, k).re;
        let rank = cx.rank(corner);
        let below = cx.greater_or_equal(rows, k);
        let fine = cx.greater(corner, 0.0);
        let mut l = left.over(cx, cx.sqrt(corner)).keep(cx, below);
        let rest = state[0].sub(cx, l.mul(cx, l.adjoint(cx)));
        let mut after = vec![rest];
        if let Some(going) = state.get(1) {
            let still = cx.and(going.re, fine);
            after.push(still.into());
            // As in LAPACK, the pivot that is not positive is stored, too.
            let failed = cx.and(going.re, cx.equal(rows, k));
            let untouched = left.select(cx, failed, column(cx, a, k)).keep(cx, below);
            l = l.select(cx, still, untouched);
        }
        let fine = cx.squeeze(fine, &[rank - 2, rank - 1]);
        let l = l.map(|x| cx.reshape(x, &shape));
        Step { state: after, collected: vec![l, cx.not(fine).into()], go_on: None }
    });
    (collected[0], collected[1].re)
}

/// `factor`, or with `upper` U of `A = U^H U`, from the upper triangle.
pub fn factor_of(cx: &Cx, a: Complex, upper: bool, stop: bool) -> (Complex, Value) {
    if upper {
        let (l, bad) = factor(cx, a.adjoint(cx), stop);
        (l.adjoint(cx), bad)
    } else {
        factor(cx, a, stop)
    }
}

/// The solution X of `L L^H X = B`, or with `upper` of `U^H U X = B`.
pub fn solve(cx: &Cx, factor: Complex, b: Complex, upper: bool) -> Complex {
    let other = factor.adjoint(cx);
    let (l, u) = if upper { (other, factor) } else { (factor, other) };
    let y = triangular(cx, l, b, false, false);
    triangular(cx, u, y, true, false)
}
