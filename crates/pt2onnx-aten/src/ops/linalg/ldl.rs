//! Symmetric factors `P L D L^T P^T`, and systems whose matrix is given by them.

use crate::math::matrix::bunch_kaufman::factors;
use crate::math::matrix::ldl::solve;
use crate::math::matrix::pivots::first_of;
use crate::{AtenOp, Complex, Cx, Lowered, checks, op};
use pt2onnx_ir::Value;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::linalg_ldl_factor, ldl_factor),
    op!(aten::linalg_ldl_factor_ex, ldl_factor_ex),
    op!(aten::linalg_ldl_solve, ldl_solve),
];

/// L and D packed in one matrix, and the pivots as LAPACK records them; int32. Only the lower
/// triangle of `a` is read.
fn ldl_factor(cx: &Cx, a: Complex, hermitian: bool) -> Lowered<[Value; 2]> {
    let found = factors(cx, a, hermitian);
    Ok([found.packed.value(cx), found.pivots])
}

/// [`ldl_factor`] and LAPACK's `info`: the first column that is zero, counted from 1, or 0 if there
/// is none; int32.
fn ldl_factor_ex(cx: &Cx, a: Complex, hermitian: bool) -> Lowered<[Value; 3]> {
    let found = factors(cx, a, hermitian);
    Ok([found.packed.value(cx), found.pivots, first_of(cx, found.zeros)])
}

/// The solution X of `A X = B`; with `hermitian`, A is `P L D L^H P^T`.
fn ldl_solve(cx: &Cx, factors: Complex, pivots: Value, b: Complex, hermitian: bool) -> Lowered {
    Ok(solve(cx, factors, pivots, b, hermitian).value(cx))
}

checks! {
    // A system without columns is solved.
    "aten.linalg_ldl_solve(ld: f32[2, 2], pivots: i32[2], b: f32[2, 0]) -> f32[2, 0]" => "
    linalg_ldl_solve = Expand (0.0, [2, 0])
    ";
}
