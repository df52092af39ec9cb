//! LU factors with partial pivoting, systems that they solve, and determinants.

use crate::math::matrix::lu::{self, determinant, factors, sign_and_log, unpack};
use crate::math::matrix::pivots::{cabs1, first_of, permutation_matrix, permutation_of};
use crate::math::matrix::{diagonal, rows_of};
use crate::math::shape::has_no_elements;
use crate::{AtenOp, Complex, Cx, Lowered, cx::Outputs, op::op};
use pt2onnx_ir::Value;
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;
use smallvec::smallvec;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_linalg_det, det_lu),
    op!(aten::_linalg_slogdet, slogdet_lu),
    op!(aten::_lu_with_info, lu_with_info),
    op!(aten::det, det),
    op!(aten::linalg_det, det),
    op!(aten::linalg_lu, linalg_lu),
    op!(aten::linalg_lu_factor, lu_factor),
    op!(aten::linalg_lu_factor_ex, lu_factor_ex),
    op!(aten::linalg_lu_solve, linalg_lu_solve),
    op!(aten::linalg_slogdet, slogdet),
    op!(aten::logdet, logdet),
    op!(aten::lu_solve, lu_solve),
    op!(aten::lu_unpack, lu_unpack),
    op!(aten::slogdet, slogdet),
];

fn linalg_lu(cx: &Cx, a: Complex, pivot: bool) -> Lowered<Outputs> {
    let lu = factors(cx, a, pivot);
    let (l, u) = unpack(cx, lu.packed);
    let dtype = cx.dtype(a.re);
    let p = match pivot {
        true => like(cx, permutation_matrix(cx, lu.permutation, dtype), a),
        false => cx.full(&cx.out_shape()?, 0, dtype).into(),
    };
    let p = match (pivot, a.im) {
        // Without pivoting, an empty vector, of the matrix's type.
        (false, Some(_)) => p.complex(cx),
        _ => p,
    };
    Ok(Outputs(smallvec![Some(p.value(cx)), Some(l.value(cx)), Some(u.value(cx))]))
}

/// A real tensor, complex if `a` is.
fn like(cx: &Cx, x: Value, a: Complex) -> Complex {
    match a.im {
        Some(_) => Complex::from(x).complex(cx),
        None => x.into(),
    }
}

/// The first step whose pivot is zero, counted from 1, or 0; int32.
fn info(cx: &Cx, packed: Complex) -> Value {
    let zeros = cx.equal(cabs1(cx, diagonal(cx, packed)), 0.0);
    first_of(cx, zeros)
}

fn lu_factor(cx: &Cx, a: Complex, pivot: bool) -> Lowered<[Value; 2]> {
    let lu = factors(cx, a, pivot);
    Ok([lu.packed.value(cx), lu.pivots])
}

fn lu_factor_ex(cx: &Cx, a: Complex, pivot: bool, _check_errors: bool) -> Lowered<[Value; 3]> {
    let lu = factors(cx, a, pivot);
    let info = info(cx, lu.packed);
    Ok([lu.packed.value(cx), lu.pivots, info])
}

fn lu_with_info(cx: &Cx, a: Complex, pivot: bool, check_errors: bool) -> Lowered<[Value; 3]> {
    lu_factor_ex(cx, a, pivot, check_errors)
}

fn lu_unpack(
    cx: &Cx,
    packed: Complex,
    pivots: Value,
    _unpack_data: bool,
    _unpack_pivots: bool,
) -> Lowered<Outputs> {
    let (l, u) = unpack(cx, packed);
    let wanted = |i: usize| cx.recorded(i).is_some_and(|m| m.sizes.len() > 1);
    let p = wanted(0).then(|| {
        let order = permutation_of(cx, pivots, &rows_of(cx, packed));
        let p = permutation_matrix(cx, order, cx.dtype(packed.re));
        like(cx, p, packed).value(cx)
    });
    // What is not unpacked is an empty vector.
    let empty = |i: usize| {
        cx.recorded(i).map(|m| {
            let mut sizes = m.sizes.clone();
            sizes.extend(m.dtype.is_complex().then(|| Expr::int(2)));
            cx.full(&sizes, 0, cx.dtype(packed.re))
        })
    };
    let data = |i: usize, x: Complex| match wanted(i) {
        true => Some(x.value(cx)),
        false => empty(i),
    };
    Ok(Outputs(smallvec![p.or_else(|| empty(0)), data(1, l), data(2, u)]))
}

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

fn lu_solve(cx: &Cx, b: Complex, packed: Complex, pivots: Value) -> Lowered {
    linalg_lu_solve(cx, packed, pivots, b, true, false)
}

/// `Det` of float32, which is what ONNX Runtime computes; otherwise the product of U's diagonal.
fn det(cx: &Cx, a: Complex) -> Lowered {
    let empty = has_no_elements(&cx.shape(a.re));
    if a.im.is_none() && cx.dtype(a.re) == DType::F32 && !empty {
        return Ok(cx.det(a.re));
    }
    let lu = factors(cx, a, true);
    Ok(determinant(cx, &lu).value(cx))
}

fn det_lu(cx: &Cx, a: Complex) -> Lowered<[Value; 3]> {
    let lu = factors(cx, a, true);
    Ok([determinant(cx, &lu).value(cx), lu.packed.value(cx), lu.pivots])
}

fn slogdet(cx: &Cx, a: Complex) -> Lowered<[Value; 2]> {
    let (sign, log) = sign_and_log(cx, &factors(cx, a, true));
    Ok([sign.value(cx), log])
}

fn slogdet_lu(cx: &Cx, a: Complex) -> Lowered<[Value; 4]> {
    let lu = factors(cx, a, true);
    let (sign, log) = sign_and_log(cx, &lu);
    Ok([sign.value(cx), log, lu.packed.value(cx), lu.pivots])
}

/// The sum of logarithms; of a negative determinant NaN, of complex ones with the angle as imaginary part.
fn logdet(cx: &Cx, a: Complex) -> Lowered {
    let (sign, log) = sign_and_log(cx, &factors(cx, a, true));
    match sign.im {
        None => Ok(cx.select(cx.less(sign.re, 0.0), f64::NAN, log)),
        Some(_) => Ok(Complex::new(log, sign.angle(cx)).value(cx)),
    }
}
