//! Eigenvalues and eigenvectors of Hermitian matrices.

use crate::math::matrix::empty_output;
use crate::math::matrix::jacobi::{eigh, hermitian};
use crate::{AtenOp, Complex, Cx, Lowered, checks, cx::Outputs, op};

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_linalg_eigh, linalg_eigh),
    op!(aten::linalg_eigh, linalg_eigh, compute_v = true),
    op!(aten::linalg_eigvalsh, eigvalsh),
];

/// The eigenvalues in ascending order and, with `compute_v`, the eigenvectors as columns. Only the triangle `uplo` of A is read.
fn linalg_eigh(cx: &Cx, a: Complex, uplo: String, compute_v: bool) -> Lowered<Outputs> {
    let a = hermitian(cx, a, uplo.eq_ignore_ascii_case("u"));
    let (values, vectors) = eigh(cx, a, compute_v);
    let vectors = vectors.map(|v| v.value(cx)).or_else(|| empty_output(cx, 1, a));
    Ok([Some(values), vectors].into())
}

/// The eigenvalues of [`linalg_eigh`].
fn eigvalsh(cx: &Cx, a: Complex, uplo: String) -> Lowered {
    let a = hermitian(cx, a, uplo.eq_ignore_ascii_case("u"));
    Ok(eigh(cx, a, false).0)
}

checks! {
    empty_matrices_have_no_eigenvalues {
        "aten.linalg_eigh(x: f32[s0, 0, 0]) -> (f32[s0, 0], f32[s0, 0, 0])" => "
        (float[s0,0,0] x) => (float[s0,0] linalg_eigh_0, float[s0,0,0] linalg_eigh_1)
        <
          int64 val_0 = {-1},
          int64[0] val_1 = {},
          int64[0,1] val_2 = {},
          float val_3 = {0.0}
        >
        {
          val_4 = Trilu <upper: int = 0> (x, val_0)
          val_5 = Equal (val_2, val_1)
          val_6 = Cast <to: int = 1> (val_5)
          val_7 = Mul (x, val_6)
          val_8 = Trilu <upper: int = 0> (x)
          val_9 = Transpose <perm: ints = [0, 2, 1]> (val_4)
          linalg_eigh_1 = Add (val_8, val_9)
          val_10 = Shape <start: int = 0, end: int = 2> (x)
          linalg_eigh_0 = Expand (val_3, val_10)
        }
        ";
    }
}
