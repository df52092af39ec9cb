//! Singular values, and what is computed from them: pseudo-inverses, ranks, condition numbers.

use crate::math::matrix::inverse::inverse;
use crate::math::matrix::svd::{Cutoff, decompose, pseudo_inverse, rank_of, singular_values};
use crate::math::matrix::{batch_of, columns_of, rows_of, shape_with};
use crate::{AtenOp, Complex, Cx, LowerError, Lowered, cx::Outputs, op::op};
use pt2onnx_ir::{Reduction, Value};
use pt2onnx_symbolic::Expr;
use smallvec::smallvec;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_linalg_svd, linalg_svd_uv),
    op!(aten::linalg_cond, cond),
    op!(aten::linalg_matrix_rank, matrix_rank_tol),
    op!(aten::linalg_matrix_rank_atol_rtol_float, matrix_rank_float),
    op!(aten::linalg_matrix_rank_atol_rtol_tensor, matrix_rank_tensor),
    op!(aten::linalg_matrix_rank_tol_tensor, matrix_rank_tol_tensor),
    op!(aten::linalg_pinv, pinv_rcond),
    op!(aten::linalg_pinv_atol_rtol_float, pinv_float),
    op!(aten::linalg_pinv_atol_rtol_tensor, pinv_tensor),
    op!(aten::linalg_pinv_rcond_tensor, pinv_rcond_tensor),
    op!(aten::linalg_polar, polar),
    op!(aten::linalg_svd, linalg_svd),
    op!(aten::linalg_svdvals, svdvals),
    op!(aten::pinverse, pinverse),
    op!(aten::svd, svd),
];

fn linalg_svd(cx: &Cx, a: Complex, full: bool, _driver: Option<String>) -> Lowered<[Value; 3]> {
    let (u, s, v) = decompose(cx, a, full);
    Ok([u.value(cx), s, v.adjoint(cx).value(cx)])
}

fn linalg_svd_uv(
    cx: &Cx,
    a: Complex,
    full: bool,
    vectors: bool,
    driver: Option<String>,
) -> Lowered<Outputs> {
    if vectors {
        return Ok(linalg_svd(cx, a, full, driver)?.into());
    }
    let s = singular_values(cx, a);
    let empty = |i: usize| {
        cx.recorded(i).map(|m| {
            let mut sizes = m.sizes.clone();
            sizes.extend(m.dtype.is_complex().then(|| Expr::int(2)));
            cx.full(&sizes, 0, cx.dtype(a.re))
        })
    };
    Ok(Outputs(smallvec![empty(0), Some(s), empty(2)]))
}

/// The old form: V, not its adjoint; zeros where no vectors are wanted.
fn svd(cx: &Cx, a: Complex, some: bool, vectors: bool) -> Lowered<[Value; 3]> {
    if vectors {
        let (u, s, v) = decompose(cx, a, !some);
        return Ok([u.value(cx), s, v.value(cx)]);
    }
    let zeros = |n: &Expr| {
        let shape = shape_with(&batch_of(cx, a), &[n, n]);
        let zeros = Complex::from(cx.full(&shape, 0, cx.dtype(a.re)));
        a.im.map_or(zeros, |_| zeros.complex(cx)).value(cx)
    };
    let s = singular_values(cx, a);
    Ok([zeros(&rows_of(cx, a)), s, zeros(&columns_of(cx, a))])
}

fn svdvals(cx: &Cx, a: Complex, _driver: Option<String>) -> Lowered {
    Ok(singular_values(cx, a))
}

/// `A = U H` with unitary U (or one of orthonormal columns) and positive H.
fn polar(cx: &Cx, a: Complex) -> Lowered<[Value; 2]> {
    let (u, s, v) = decompose(cx, a, false);
    let rank = cx.rank(a.re);
    let vh = v.adjoint(cx);
    let h = v.times(cx, cx.unsqueeze(s, &[rank - 2])).matmul(cx, vh);
    Ok([u.matmul(cx, vh).value(cx), h.value(cx)])
}

fn pinv_float(
    cx: &Cx,
    a: Complex,
    atol: Option<f64>,
    rtol: Option<f64>,
    is_hermitian: bool,
) -> Lowered {
    let cutoff = Cutoff::floats(cx, cx.dtype(a.re), atol, rtol);
    pseudo_inverse(cx, a, &cutoff, is_hermitian)
}

fn pinv_tensor(
    cx: &Cx,
    a: Complex,
    atol: Option<Value>,
    rtol: Option<Value>,
    is_hermitian: bool,
) -> Lowered {
    pseudo_inverse(cx, a, &Cutoff { atol, rtol }, is_hermitian)
}

fn pinv_rcond(cx: &Cx, a: Complex, rcond: f64, is_hermitian: bool) -> Lowered {
    pinv_float(cx, a, Some(0.0), Some(rcond), is_hermitian)
}

fn pinv_rcond_tensor(cx: &Cx, a: Complex, rcond: Value, is_hermitian: bool) -> Lowered {
    pinv_tensor(cx, a, None, Some(rcond), is_hermitian)
}

fn pinverse(cx: &Cx, a: Complex, rcond: f64) -> Lowered {
    pinv_rcond(cx, a, rcond, false)
}

fn matrix_rank_float(
    cx: &Cx,
    a: Complex,
    atol: Option<f64>,
    rtol: Option<f64>,
    is_hermitian: bool,
) -> Lowered {
    let cutoff = Cutoff::floats(cx, cx.dtype(a.re), atol, rtol);
    rank_of(cx, a, &cutoff, is_hermitian)
}

fn matrix_rank_tensor(
    cx: &Cx,
    a: Complex,
    atol: Option<Value>,
    rtol: Option<Value>,
    is_hermitian: bool,
) -> Lowered {
    rank_of(cx, a, &Cutoff { atol, rtol }, is_hermitian)
}

fn matrix_rank_tol(cx: &Cx, a: Complex, tol: f64, is_hermitian: bool) -> Lowered {
    matrix_rank_float(cx, a, Some(tol), Some(0.0), is_hermitian)
}

fn matrix_rank_tol_tensor(cx: &Cx, a: Complex, tol: Value, is_hermitian: bool) -> Lowered {
    let zero = cx.scalar(0, cx.dtype(a.re));
    matrix_rank_tensor(cx, a, Some(tol), Some(zero), is_hermitian)
}

/// The ratio of the largest to the smallest singular value; other norms: `|A| |A^-1|`.
fn cond(cx: &Cx, a: Complex, p: Option<f64>) -> Lowered {
    let norm = |a: Complex, p: f64| {
        let rank = cx.rank(a.re);
        // Sums along columns for 1, along rows for infinity.
        let (along, then) =
            if p.abs() == 1.0 { (rank - 2, rank - 2) } else { (rank - 1, rank - 2) };
        let sums = cx.reduce(Reduction::Sum, a.abs(cx), &[along], false);
        let op = if p > 0.0 { Reduction::Max } else { Reduction::Min };
        cx.reduce(op, sums, &[then], false)
    };
    match p.unwrap_or(2.0) {
        p if p.abs() == 2.0 => {
            let values = singular_values(cx, a);
            let last = cx.rank(values) - 1;
            let largest = cx.reduce(Reduction::Max, values, &[last], false);
            let smallest = cx.reduce(Reduction::Min, values, &[last], false);
            Ok(match p > 0.0 {
                true => cx.div(largest, smallest),
                false => cx.div(smallest, largest),
            })
        }
        p if p.abs() == 1.0 || p.is_infinite() => {
            let inverse = inverse(cx, a).0;
            Ok(cx.mul(norm(a, p), norm(inverse, p)))
        }
        p => {
            let what = format!("there is no condition number of order {p}");
            Err(LowerError::unsupported(what))
        }
    }
}
