//! Eigenvalues and eigenvectors of general matrices.

use crate::math::matrix::schur::{back_substitution, schur};
use crate::math::matrix::{batch_of, columns_of, diagonal, shape_with};
use crate::math::shape::has_no_elements;
use crate::{AtenOp, Complex, Cx, Lowered, checks, op};
use pt2onnx_ir::{Reduction, Value, attrs};

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_linalg_eigvals, eigvals),
    op!(aten::linalg_eig, eig),
    op!(aten::linalg_eigvals, eigvals),
];

/// The eigenvalues and eigenvectors of empty matrices.
fn nothing(cx: &Cx, a: Complex) -> (Complex, Complex) {
    let n = columns_of(cx, a);
    let shape = shape_with(&batch_of(cx, a), &[&n]);
    let values = Complex::from(cx.full(&shape, 0, cx.dtype(a.re)));
    (values.complex(cx), a.complex(cx))
}

/// The eigenvalues, complex, in the order of Schur's form.
fn eigvals(cx: &Cx, a: Complex) -> Lowered {
    let values = if has_no_elements(&cx.shape(a.re)) {
        nothing(cx, a).0
    } else {
        diagonal(cx, schur(cx, a.complex(cx)).0)
    };
    Ok(values.value(cx))
}

/// The eigenvalues in the order of Schur's form, and the eigenvectors as columns, complex. Each
/// vector has length 1, and its largest element is real.
fn eig(cx: &Cx, a: Complex) -> Lowered<[Value; 2]> {
    if has_no_elements(&cx.shape(a.re)) {
        let (values, vectors) = nothing(cx, a);
        return Ok([values.value(cx), vectors.value(cx)]);
    }
    let (t, q) = schur(cx, a.complex(cx));
    let values = diagonal(cx, t);
    let y = back_substitution(cx, t, values);
    let v = q.matmul(cx, y);
    let rank = cx.rank(v.re);
    let squares = v.abs2(cx);
    let length = cx.sqrt(cx.reduce(Reduction::Sum, squares, &[rank - 2], true));
    let axis = rank as i64 - 2;
    let options = attrs::ArgMax { axis, ..Default::default() };
    let largest = cx.arg_max(squares, options);
    let pick = |x: Value| cx.gather_elements(x, largest, attrs::GatherElements { axis });
    let lead = v.map(pick);
    let phase = lead.conj(cx).over(cx, cx.mul(lead.abs(cx), length));
    Ok([values.value(cx), v.mul(cx, phase).value(cx)])
}

checks! {
    // Empty matrices have complex eigenvalues.
    "aten.linalg_eigvals(x: f32[0, 0]) -> c64[0]" => "linalg_eigvals = Expand (0.0, [0, 2])";
}
