//! Cholesky factors, and systems whose matrix is given by one.

use super::{
    super::num::Num,
    batch_of, column, count_rows, identity,
    iterate::{Step, iterate},
    lu::first_of,
    row, rows_of, shape_with,
    solve::triangular,
};
use crate::{AtenOp, Cx, Lowered, registry::aten};
use pt2onnx_ir::Value;
use pt2onnx_symbolic::Expr;

pub(in super::super) static OPS: &[AtenOp] = &[
    aten!("aten::_cholesky_solve_helper(Tensor self, Tensor A, bool upper) -> Tensor", cholesky_solve, complex: cholesky_solve),
    aten!("aten::cholesky_inverse(Tensor self, bool upper=False) -> Tensor", cholesky_inverse, complex: cholesky_inverse),
    aten!("aten::cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor", cholesky_solve, complex: cholesky_solve),
    aten!("aten::linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor", linalg_cholesky, complex: linalg_cholesky),
    aten!("aten::linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)", linalg_cholesky_ex, complex: linalg_cholesky_ex),
];

/// L with `A = L L^H`, one column a step, of the lower triangle of `a`; and for each step whether the matrix was not
/// positive there.
fn factor(cx: &Cx, a: Num) -> (Num, Value) {
    let n = rows_of(cx, a);
    let rows = count_rows(cx, &n);
    let shape = shape_with(&batch_of(cx, a), &[&n]);
    let (_, collected) = iterate(cx, &n, &[a], |k, state| {
        let column = column(cx, state[0], k);
        let corner = row(cx, column, k).re;
        let rank = cx.rank(corner);
        let below = cx.greater_or_equal(rows, k);
        let l = column.over(cx, cx.sqrt(corner)).keep(cx, below);
        let rest = state[0].sub(cx, l.mul(cx, l.adjoint(cx)));
        let fine = cx.greater(cx.squeeze(corner, &[rank - 2, rank - 1]), 0.0);
        let l = l.map(|x| cx.reshape(x, &shape));
        Step {
            state: vec![rest],
            collected: vec![l, cx.not(fine).into()],
            go_on: None,
        }
    });
    (collected[0], collected[1].re)
}

/// The factor that `upper` asks for, of the triangle that it names.
fn factor_of(cx: &Cx, a: Num, upper: bool) -> (Num, Value) {
    match upper {
        true => {
            let (l, bad) = factor(cx, a.adjoint(cx));
            (l.adjoint(cx), bad)
        }
        false => factor(cx, a),
    }
}

fn linalg_cholesky(cx: &Cx, a: Num, upper: bool) -> Lowered {
    Ok(factor_of(cx, a, upper).0.value(cx))
}

fn linalg_cholesky_ex(cx: &Cx, a: Num, upper: bool, _check_errors: bool) -> Lowered<[Value; 2]> {
    let (l, bad) = factor_of(cx, a, upper);
    Ok([l.value(cx), first_of(cx, bad)])
}

/// `X` with `L L^H X = B`, or `U^H U X = B`.
fn solve(cx: &Cx, factor: Num, b: Num, upper: bool) -> Num {
    let other = factor.adjoint(cx);
    let (l, u) = if upper {
        (other, factor)
    } else {
        (factor, other)
    };
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
