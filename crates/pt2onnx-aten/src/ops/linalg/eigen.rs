//! Eigenvalues and eigenvectors of Hermitian matrices.

use crate::math::matrix::jacobi::{eigh, hermitian};
use crate::{AtenOp, Complex, Cx, Lowered, cx::Outputs, op::op};
use smallvec::smallvec;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_linalg_eigh, linalg_eigh_values),
    op!(aten::linalg_eigh, linalg_eigh),
    op!(aten::linalg_eigvalsh, eigvalsh),
];

fn linalg_eigh(cx: &Cx, a: Complex, uplo: String) -> Lowered<Outputs> {
    linalg_eigh_values(cx, a, uplo, true)
}

fn linalg_eigh_values(cx: &Cx, a: Complex, uplo: String, vectors: bool) -> Lowered<Outputs> {
    let a = hermitian(cx, a, uplo.eq_ignore_ascii_case("u"));
    let (values, vectors) = eigh(cx, a, vectors);
    let vectors = match vectors {
        Some(v) => Some(v.value(cx)),
        None => cx.recorded(1).map(|m| cx.full(&m.sizes, 0, cx.dtype(a.re))),
    };
    Ok(Outputs(smallvec![Some(values), vectors]))
}

fn eigvalsh(cx: &Cx, a: Complex, uplo: String) -> Lowered {
    let a = hermitian(cx, a, uplo.eq_ignore_ascii_case("u"));
    Ok(eigh(cx, a, false).0)
}
