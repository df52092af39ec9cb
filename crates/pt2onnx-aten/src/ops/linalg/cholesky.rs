//! Cholesky factors, and systems whose matrix is given by one.

use crate::math::matrix::iterate::{Step, iterate};
use crate::math::matrix::{batch_of, column, count_rows, identity, row, rows_of, shape_with};
use crate::math::num::Num;
use crate::ops::linalg::lu::first_of;
use crate::ops::linalg::solve::triangular;
use crate::{AtenOp, Cx, Lowered, op::op};
use pt2onnx_ir::Value;
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(in super::super) static OPS: &[AtenOp] = &[
    op!(aten::_cholesky_solve_helper, cholesky_solve, complex = cholesky_solve),
    op!(aten::cholesky_inverse, cholesky_inverse, complex = cholesky_inverse),
    op!(aten::cholesky_solve, cholesky_solve, complex = cholesky_solve),
    op!(aten::linalg_cholesky, linalg_cholesky, complex = linalg_cholesky),
    op!(aten::linalg_cholesky_ex, linalg_cholesky_ex, complex = linalg_cholesky_ex),
];

/// L with `A = L L^H`, one column a step, of the lower triangle of `a`; and for each step whether the matrix was not
/// positive there. With `stop`, such a step ends it, as LAPACK's: behind it, the matrix stays as it was.
fn factor(cx: &Cx, a: Num, stop: bool) -> (Num, Value) {
    let n = rows_of(cx, a);
    let rows = count_rows(cx, &n);
    let batch = batch_of(cx, a);
    let shape = shape_with(&batch, &[&n]);
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
            // The element that failed is stored, too.
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

/// The factor that `upper` asks for, of the triangle that it names.
fn factor_of(cx: &Cx, a: Num, upper: bool, stop: bool) -> (Num, Value) {
    match upper {
        true => {
            let (l, bad) = factor(cx, a.adjoint(cx), stop);
            (l.adjoint(cx), bad)
        }
        false => factor(cx, a, stop),
    }
}

fn linalg_cholesky(cx: &Cx, a: Num, upper: bool) -> Lowered {
    Ok(factor_of(cx, a, upper, false).0.value(cx))
}

fn linalg_cholesky_ex(cx: &Cx, a: Num, upper: bool, _check_errors: bool) -> Lowered<[Value; 2]> {
    let (l, bad) = factor_of(cx, a, upper, true);
    Ok([l.value(cx), first_of(cx, bad)])
}

/// `X` with `L L^H X = B`, or `U^H U X = B`.
fn solve(cx: &Cx, factor: Num, b: Num, upper: bool) -> Num {
    let other = factor.adjoint(cx);
    let (l, u) = if upper { (other, factor) } else { (factor, other) };
    let y = triangular(cx, l, b, false, false);
    triangular(cx, u, y, true, false)
}

fn cholesky_solve(cx: &Cx, b: Num, factor: Num, upper: bool) -> Lowered {
    Ok(solve(cx, factor, b, upper).value(cx))
}

fn cholesky_inverse(cx: &Cx, factor: Num, upper: bool) -> Lowered {
    let n: Expr = rows_of(cx, factor);
    let one = identity(cx, &n, cx.dtype(factor.re));
    Ok(solve(cx, factor, one.into(), upper).value(cx))
}
