//! Cholesky factors, and systems whose matrix is given by one.

use crate::math::matrix::cholesky::{factor_of, solve};
use crate::math::matrix::pivots::first_of;
use crate::math::matrix::{identity, rows_of};
use crate::meta::{self, sized, typed};
use crate::{AtenOp, Complex, Cx, Lowered, checks, op};
use pt2onnx_ir::Value;
use pt2onnx_tensor::DType;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_cholesky_solve_helper, cholesky_solve),
    op!(aten::cholesky_inverse, cholesky_inverse),
    op!(aten::cholesky_solve, cholesky_solve),
    op!(aten::linalg_cholesky, linalg_cholesky, meta = meta::same),
    op!(aten::linalg_cholesky_ex, linalg_cholesky_ex, meta = meta_cholesky),
];

/// L with `A = L L^H`, or with `upper` U with `A = U^H U`. NaN appear where the matrix is not
/// positive definite.
fn linalg_cholesky(cx: &Cx, a: Complex, upper: bool) -> Lowered {
    Ok(factor_of(cx, a, upper, false).0.value(cx))
}

/// The factor as LAPACK leaves it when a pivot is not positive, and the step of that pivot, counted
/// from 1, or 0; int32.
fn linalg_cholesky_ex(cx: &Cx, a: Complex, upper: bool) -> Lowered<[Value; 2]> {
    let (l, bad) = factor_of(cx, a, upper, true);
    Ok([l.value(cx), first_of(cx, bad)])
}

/// The solution X of `A X = B`, given a Cholesky factor of A.
fn cholesky_solve(cx: &Cx, b: Complex, factor: Complex, upper: bool) -> Lowered {
    Ok(solve(cx, factor, b, upper).value(cx))
}

/// The inverse of A, given a Cholesky factor of A.
fn cholesky_inverse(cx: &Cx, factor: Complex, upper: bool) -> Lowered {
    let n = rows_of(cx, factor);
    let one = identity(cx, &n, cx.dtype(factor.re));
    Ok(solve(cx, factor, one.into(), upper).value(cx))
}

/// The factor, and LAPACK's `info`.
fn meta_cholesky(cx: &Cx, x: Value) -> Lowered<[Value; 2]> {
    Ok([sized(cx, x, &cx.shape(x)), typed(cx, DType::I32, &meta::batch(cx, x, &[]))])
}

checks! {
    // A factor makes two triangular systems.
    "aten.cholesky_solve(b: f32[2, 1], factor: f32[2, 2]) -> f32[2, 1]" => "
    val_0 = Transpose <perm: ints = [1, 0]> (factor)
    val_1 = Loop <body: graph = body (int64 val_2, bool val_3, float[2,1] val_4) => (bool val_5, float[2,1] val_6)
    {
      val_7 = Unsqueeze (val_2, [0])
      val_8 = Gather <axis: int = 1> (factor, val_7)
      val_9 = Gather <axis: int = 0> (val_4, val_7)
      val_10 = Gather <axis: int = 0> (val_8, val_7)
      val_11 = Div (val_9, val_10)
      val_12 = Greater (int64[2,1] {0, 1}, val_7)
      val_13 = Mul (val_8, val_11)
      val_14 = Where (val_12, val_13, 0.0)
      val_15 = Sub (val_4, val_14)
      val_16 = Equal (int64[2,1] {0, 1}, val_7)
      val_6 = Where (val_16, val_11, val_15)
      val_5 = Identity (true)
    }> (2, true, b)
    cholesky_solve = Loop <body: graph = body (int64 val_17, bool val_18, float[2,1] val_19) => (bool val_20, float[2,1] val_21)
    {
      val_22 = Unsqueeze (val_17, [0])
      val_23 = Sub (1, val_22)
      val_24 = Gather <axis: int = 1> (val_0, val_23)
      val_25 = Gather <axis: int = 0> (val_19, val_23)
      val_26 = Gather <axis: int = 0> (val_24, val_23)
      val_27 = Div (val_25, val_26)
      val_28 = Less (int64[2,1] {0, 1}, val_23)
      val_29 = Mul (val_24, val_27)
      val_30 = Where (val_28, val_29, 0.0)
      val_31 = Sub (val_19, val_30)
      val_32 = Equal (int64[2,1] {0, 1}, val_23)
      val_21 = Where (val_32, val_27, val_31)
      val_20 = Identity (true)
    }> (2, true, val_1)
    ";

    // Empty matrices keep their batch.
    "aten.linalg_cholesky(x: f32[s0, 0, 0]) -> f32[s0, 0, 0]" => "
    val_0 = Shape <start: int = 0, end: int = 3> (x)
    linalg_cholesky = Expand (0.0, val_0)
    ";
}
