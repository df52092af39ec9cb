//! Cholesky factors, and systems whose matrix is given by one.

use crate::math::matrix::cholesky::{factor_of, solve};
use crate::math::matrix::pivots::first_of;
use crate::math::matrix::{identity, rows_of};
use crate::meta::{self, sized, typed};
use crate::{AtenOp, Complex, Cx, Lowered, args::Ignored, checks, op};
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
fn linalg_cholesky_ex(
    cx: &Cx,
    a: Complex,
    upper: bool,
    _check_errors: Ignored,
) -> Lowered<[Value; 2]> {
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
    a_factor_makes_two_triangular_systems {
        "aten.cholesky_solve(b: f32[2, 1], factor: f32[2, 2]) -> f32[2, 1]" => "
        (float[2,1] b, float[2,2] factor) => (float[2,1] cholesky_solve)
        <
          int64[2,1] val_0 = {0, 1},
          int64[1] val_1 = {0},
          float val_2 = {0.0},
          bool val_3 = {1},
          int64 val_4 = {2},
          int64 val_5 = {1}
        >
        {
          val_6 = Transpose <perm: ints = [1, 0]> (factor)
          val_22 = Loop <body: graph = body (int64 val_7, bool val_8, float[2,1] val_9) => (bool val_21, float[2,1] val_20)
          {
            val_10 = Unsqueeze (val_7, val_1)
            val_11 = Gather <axis: int = 1> (factor, val_10)
            val_12 = Gather <axis: int = 0> (val_9, val_10)
            val_13 = Gather <axis: int = 0> (val_11, val_10)
            val_14 = Div (val_12, val_13)
            val_15 = Greater (val_0, val_10)
            val_16 = Mul (val_11, val_14)
            val_17 = Where (val_15, val_16, val_2)
            val_18 = Sub (val_9, val_17)
            val_19 = Equal (val_0, val_10)
            val_20 = Where (val_19, val_14, val_18)
            val_21 = Identity (val_3)
          }> (val_4, val_3, b)
          cholesky_solve = Loop <body: graph = body (int64 val_23, bool val_24, float[2,1] val_25) => (bool val_38, float[2,1] val_37)
          {
            val_26 = Unsqueeze (val_23, val_1)
            val_27 = Sub (val_5, val_26)
            val_28 = Gather <axis: int = 1> (val_6, val_27)
            val_29 = Gather <axis: int = 0> (val_25, val_27)
            val_30 = Gather <axis: int = 0> (val_28, val_27)
            val_31 = Div (val_29, val_30)
            val_32 = Less (val_0, val_27)
            val_33 = Mul (val_28, val_31)
            val_34 = Where (val_32, val_33, val_2)
            val_35 = Sub (val_25, val_34)
            val_36 = Equal (val_0, val_27)
            val_37 = Where (val_36, val_31, val_35)
            val_38 = Identity (val_3)
          }> (val_4, val_3, val_22)
        }
        ";
    }

    empty_matrices_keep_their_batch {
        "aten.linalg_cholesky(x: f32[s0, 0, 0]) -> f32[s0, 0, 0]" => "
        (float[s0,0,0] x) => (float[s0,0,0] linalg_cholesky)
        <
          float val_0 = {0.0}
        >
        {
          val_1 = Shape <start: int = 0, end: int = 3> (x)
          linalg_cholesky = Expand (val_0, val_1)
        }
        ";
    }
}
