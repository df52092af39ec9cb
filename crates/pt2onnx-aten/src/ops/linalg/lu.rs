//! LU factors with partial pivoting, systems that they solve, and determinants.

use crate::math::matrix::lu::{self, determinant, factors, sign_and_log, unpack};
use crate::math::matrix::pivots::{cabs1, first_of, permutation_matrix, permutation_of};
use crate::math::matrix::{diagonal, empty_output, rows_of};
use crate::math::shape::has_no_elements;
use crate::meta::{self, sized};
use crate::{AtenOp, Complex, Cx, Lowered, args::Ignored, checks, cx::Outputs, op};
use pt2onnx_ir::Value;
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;
use smallvec::smallvec;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_linalg_det, det_lu),
    op!(aten::_linalg_slogdet, slogdet_lu),
    op!(aten::_lu_with_info, lu_factor_ex),
    op!(aten::det, det, meta = meta_det),
    op!(aten::linalg_det, det, meta = meta_det),
    op!(aten::linalg_lu, linalg_lu),
    op!(aten::linalg_lu_factor, lu_factor),
    op!(aten::linalg_lu_factor_ex, lu_factor_ex),
    op!(aten::linalg_lu_solve, linalg_lu_solve),
    op!(aten::linalg_slogdet, slogdet),
    op!(aten::logdet, logdet),
    op!(aten::lu_solve, lu_solve),
    op!(aten::lu_unpack, lu_unpack, meta = meta_lu_unpack),
    op!(aten::slogdet, slogdet),
];

/// P, L and U of `A = P L U`. Without pivoting, P is an empty vector.
fn linalg_lu(cx: &Cx, a: Complex, pivot: bool) -> Lowered<[Value; 3]> {
    let lu = factors(cx, a, pivot);
    let (l, u) = unpack(cx, lu.packed);
    let dtype = cx.dtype(a.re);
    let p = if pivot {
        permutation_matrix(cx, lu.permutation, dtype)
    } else {
        cx.full(&cx.out_shape()?, 0, dtype)
    };
    Ok([Complex::from(p).like(cx, a).value(cx), l.value(cx), u.value(cx)])
}

/// LAPACK's `info`: the first step whose pivot is 0, counted from 1, or 0 if there is none; int32.
fn info(cx: &Cx, packed: Complex) -> Value {
    let zeros = cx.equal(cabs1(cx, diagonal(cx, packed)), 0.0);
    first_of(cx, zeros)
}

/// L and U packed in one matrix, and the pivots: int32, counted from 1.
fn lu_factor(cx: &Cx, a: Complex, pivot: bool) -> Lowered<[Value; 2]> {
    let lu = factors(cx, a, pivot);
    Ok([lu.packed.value(cx), lu.pivots])
}

/// [`lu_factor`] and LAPACK's `info`.
fn lu_factor_ex(cx: &Cx, a: Complex, pivot: bool) -> Lowered<[Value; 3]> {
    let lu = factors(cx, a, pivot);
    let info = info(cx, lu.packed);
    Ok([lu.packed.value(cx), lu.pivots, info])
}

/// P, L and U of packed factors. Those that the program does not unpack are empty vectors.
fn lu_unpack(
    cx: &Cx,
    packed: Complex,
    pivots: Value,
    _unpack_data: Ignored,
    _unpack_pivots: Ignored,
) -> Lowered<Outputs> {
    let (l, u) = unpack(cx, packed);
    let wanted = |i: usize| cx.recorded(i).is_some_and(|m| m.sizes.len() > 1);
    let p = wanted(0).then(|| {
        let order = permutation_of(cx, pivots, &rows_of(cx, packed));
        let p = permutation_matrix(cx, order, cx.dtype(packed.re));
        Complex::from(p).like(cx, packed).value(cx)
    });
    let empty = |i: usize| empty_output(cx, i, packed);
    let data = |i: usize, x: Complex| if wanted(i) { Some(x.value(cx)) } else { empty(i) };
    Ok(Outputs(smallvec![p.or_else(|| empty(0)), data(1, l), data(2, u)]))
}

/// The solution X of `A X = B` (`X A = B` if not `left`), or with `adjoint` of the system with
/// `A^H`, given factors of A.
fn linalg_lu_solve(
    cx: &Cx,
    packed: Complex,
    pivots: Value,
    b: Complex,
    left: bool,
    adjoint: bool,
) -> Lowered {
    Ok(lu::solve(cx, packed, pivots, b, left, adjoint).value(cx))
}

/// [`linalg_lu_solve`] in an older order of arguments.
fn lu_solve(cx: &Cx, b: Complex, packed: Complex, pivots: Value) -> Lowered {
    linalg_lu_solve(cx, packed, pivots, b, true, false)
}

/// The determinant: `Det` for float32, the only type that ONNX Runtime has it for; else the product
/// of the pivots of LU.
fn det(cx: &Cx, a: Complex) -> Lowered {
    let empty = has_no_elements(&cx.shape(a.re));
    if a.im.is_none() && cx.dtype(a.re) == DType::F32 && !empty {
        return Ok(cx.det(a.re));
    }
    let lu = factors(cx, a, true);
    Ok(determinant(cx, &lu).value(cx))
}

/// The determinant, the packed factors and the pivots.
fn det_lu(cx: &Cx, a: Complex) -> Lowered<[Value; 3]> {
    let lu = factors(cx, a, true);
    Ok([determinant(cx, &lu).value(cx), lu.packed.value(cx), lu.pivots])
}

/// The determinant's sign (of complex matrices `det / |det|`) and `log|det|`.
fn slogdet(cx: &Cx, a: Complex) -> Lowered<[Value; 2]> {
    let (sign, log) = sign_and_log(cx, &factors(cx, a, true));
    Ok([sign.value(cx), log])
}

/// [`slogdet`], the packed factors and the pivots.
fn slogdet_lu(cx: &Cx, a: Complex) -> Lowered<[Value; 4]> {
    let lu = factors(cx, a, true);
    let (sign, log) = sign_and_log(cx, &lu);
    Ok([sign.value(cx), log, lu.packed.value(cx), lu.pivots])
}

/// `log(det)`: NaN of a negative determinant, complex of a complex matrix.
fn logdet(cx: &Cx, a: Complex) -> Lowered {
    let (sign, log) = sign_and_log(cx, &factors(cx, a, true));
    match sign.im {
        None => Ok(cx.select(cx.less(sign.re, 0.0), f64::NAN, log)),
        Some(_) => Ok(Complex::new(log, sign.angle(cx)).value(cx)),
    }
}

/// A number for each matrix.
fn meta_det(cx: &Cx, x: Value) -> Lowered {
    Ok(sized(cx, x, &meta::batch(cx, x, &[])))
}

/// The permutation, the lower and the upper factor.
fn meta_lu_unpack(cx: &Cx, lu: Value) -> Lowered<[Value; 3]> {
    let (m, n) = (cx.dim(lu, -2), cx.dim(lu, -1));
    let k = cx.constraints().simplify(&Expr::min(&m, &n));
    let factor = |a: &Expr, b: &Expr| sized(cx, lu, &meta::batch(cx, lu, &[a, b]));
    Ok([factor(&m, &m), factor(&m, &k), factor(&k, &n)])
}

checks! {
    // Determinants of float32 are an operator.
    "aten.linalg_det(x: f32[s0, 3, 3]) -> f32[s0]" => "linalg_det = Det (x)";

    // No pivots, no permutation.
    "aten.linalg_lu(x: f32[1, 1], pivot = False) -> (f32[0], f32[1, 1], f32[1, 1])" => "
    val_0 = Expand (0.0, [0])
    val_1, val_2, val_3 = Loop <body: graph = body (int64 val_4, bool val_5, float[1,1] val_6, int64[1,1] val_7) => (bool val_8, float[1,1] val_9, int64[1,1] val_10, int32 val_11)
    {
      val_12 = Unsqueeze (val_4, [0])
      val_13 = Reshape (val_12, [1, 1])
      val_14 = Gather <axis: int = 1> (val_6, val_12)
      val_15 = Gather <axis: int = 0> (val_6, val_12)
      val_16 = Gather <axis: int = 1> (val_15, val_12)
      val_17 = Greater (int64[1,1] {0}, val_12)
      val_18 = Abs (val_16)
      val_19 = Equal (val_18, 0.0)
      val_20 = Where (val_19, 1.0, val_16)
      val_21 = Div (val_14, val_20)
      val_22 = Greater ([0], val_12)
      val_23 = And (val_17, val_22)
      val_24 = Mul (val_21, val_15)
      val_25 = Where (val_23, val_24, 0.0)
      val_26 = Sub (val_6, val_25)
      val_27 = Where (val_17, val_21, val_14)
      val_28 = Equal ([0], val_12)
      val_9 = Where (val_28, val_27, val_26)
      val_29 = Add (val_13, 1)
      val_30 = Cast <to: int = 6> (val_29)
      val_11 = Squeeze (val_30, [0, 1])
      val_8 = Identity (true)
      val_10 = Identity (val_7)
    }> (1, true, x, int64[1,1] {0})
    val_31 = Squeeze (val_2, [1])
    val_32 = Trilu <upper: int = 0> (val_1, -1)
    val_33 = Equal (int64[1,1] {0}, [0])
    val_34 = Cast <to: int = 1> (val_33)
    linalg_lu_2 = Trilu (val_1)
    linalg_lu_1 = Add (val_32, val_34)
    linalg_lu_0 = Expand (0.0, [0])
    ";
}
