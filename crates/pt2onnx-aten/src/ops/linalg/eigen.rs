//! Eigenvalues and eigenvectors of Hermitian matrices.

use crate::math::matrix::empty_output;
use crate::math::matrix::jacobi::{eigh, hermitian};
use crate::meta::{self, sized, typed};
use crate::{AtenOp, Complex, Cx, Lowered, checks, cx::Outputs, op};
use pt2onnx_ir::Value;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_linalg_eigh, linalg_eigh),
    op!(aten::linalg_eigh, linalg_eigh, meta = meta_eigh, compute_v = true),
    op!(aten::linalg_eigvalsh, eigvalsh, meta = meta_eigvalsh),
];

/// The eigenvalues in ascending order and, with `compute_v`, the eigenvectors as columns. Only the
/// triangle `uplo` of A is read.
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

fn meta_eigvalsh(cx: &Cx, x: Value) -> Lowered {
    Ok(typed(cx, cx.dtype(x).to_real(), &meta::batch(cx, x, &[&cx.dim(x, -1)])))
}

fn meta_eigh(cx: &Cx, x: Value) -> Lowered<[Value; 2]> {
    Ok([meta_eigvalsh(cx, x)?, sized(cx, x, &cx.shape(x))])
}

checks! {
    // Empty matrices have no eigenvalues.
    "aten.linalg_eigh(x: f32[s0, 0, 0]) -> (f32[s0, 0], f32[s0, 0, 0])" => "
    val_0 = Shape <start: int = 0, end: int = 2> (x)
    linalg_eigh_0 = Expand (0.0, val_0)
    val_1 = Shape <start: int = 0, end: int = 3> (x)
    linalg_eigh_1 = Expand (0.0, val_1)
    ";
}
