//! Cholesky factors, and systems whose matrix is given by one.

use crate::math::matrix::cholesky::{factor_of, solve};
use crate::math::matrix::pivots::first_of;
use crate::math::matrix::{identity, rows_of};
use crate::{AtenOp, Complex, Cx, Lowered, op::op};
use pt2onnx_ir::Value;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_cholesky_solve_helper, cholesky_solve),
    op!(aten::cholesky_inverse, cholesky_inverse),
    op!(aten::cholesky_solve, cholesky_solve),
    op!(aten::linalg_cholesky, linalg_cholesky),
    op!(aten::linalg_cholesky_ex, linalg_cholesky_ex),
];

fn linalg_cholesky(cx: &Cx, a: Complex, upper: bool) -> Lowered {
    Ok(factor_of(cx, a, upper, false).0.value(cx))
}

fn linalg_cholesky_ex(
    cx: &Cx,
    a: Complex,
    upper: bool,
    _check_errors: bool,
) -> Lowered<[Value; 2]> {
    let (l, bad) = factor_of(cx, a, upper, true);
    Ok([l.value(cx), first_of(cx, bad)])
}

fn cholesky_solve(cx: &Cx, b: Complex, factor: Complex, upper: bool) -> Lowered {
    Ok(solve(cx, factor, b, upper).value(cx))
}

fn cholesky_inverse(cx: &Cx, factor: Complex, upper: bool) -> Lowered {
    let n = rows_of(cx, factor);
    let one = identity(cx, &n, cx.dtype(factor.re));
    Ok(solve(cx, factor, one.into(), upper).value(cx))
}
