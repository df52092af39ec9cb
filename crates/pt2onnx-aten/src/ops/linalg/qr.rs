//! QR decompositions, and products with the Q that Householder reflections give.

use crate::math::matrix::qr::{apply, orthogonal, reflect, unpack};
use crate::math::matrix::{columns_of, count_rows, rows_of, smaller, triangle};
use crate::{AtenOp, Complex, Cx, LowerError, Lowered, op::op};
use pt2onnx_ir::{Type, Value};
use pt2onnx_symbolic::Expr;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::geqrf, geqrf),
    op!(aten::linalg_householder_product, householder_product),
    op!(aten::linalg_qr, linalg_qr),
    op!(aten::orgqr, householder_product),
    op!(aten::ormqr, ormqr),
];

fn geqrf(cx: &Cx, a: Complex) -> Lowered<[Value; 2]> {
    let r = reflect(cx, a);
    let (m, n) = (rows_of(cx, a), columns_of(cx, a));
    let steps = cx.dim(r.taus.re, -1);
    // R with the vectors below it.
    let below = cx.greater(count_rows(cx, &m), cx.iota(&n));
    let rank = cx.rank(a.re);
    let pads = |x: Value| match n == steps {
        true => x,
        false => {
            let pads = cx.sizes(&[Expr::int(0), &n - &steps]);
            let wide = cx.pad(x, pads, None, cx.ints(&[rank as i64 - 1]), Default::default());
            cx.set_type(wide, Type::tensor(cx.dtype(x), cx.shape(a.re)));
            wide
        }
    };
    let packed = r.vectors.map(pads).select(cx, below, r.matrix);
    Ok([packed.value(cx), r.taus.value(cx)])
}

fn householder_product(cx: &Cx, a: Complex, taus: Complex) -> Lowered {
    let columns = columns_of(cx, a);
    Ok(orthogonal(cx, unpack(cx, a, taus), taus, &columns).value(cx))
}

/// `Q C`, `Q^H C`, `C Q` or `C Q^H`.
fn ormqr(cx: &Cx, a: Complex, taus: Complex, c: Complex, left: bool, transpose: bool) -> Lowered {
    let vectors = unpack(cx, a, taus);
    let product = match left {
        true => apply(cx, vectors, taus, c, transpose),
        // (Q^H C^H)^H
        false => apply(cx, vectors, taus, c.adjoint(cx), !transpose).adjoint(cx),
    };
    Ok(product.value(cx))
}

fn linalg_qr(cx: &Cx, a: Complex, mode: String) -> Lowered<[Value; 2]> {
    let (m, n) = (rows_of(cx, a), columns_of(cx, a));
    let k = smaller(cx, &m, &n);
    let reflected = reflect(cx, a);
    let rank = cx.rank(a.re);
    let first_rows = |x: Value| cx.slice(x, rank - 2, &Expr::int(0), &k, 1);
    let upper = triangle(cx, reflected.matrix, true, 0);
    let q = |columns: &Expr| orthogonal(cx, reflected.vectors, reflected.taus, columns);
    let (q, r) = match mode.as_str() {
        "reduced" => (q(&k), upper.map(first_rows)),
        "complete" => (q(&m), upper),
        "r" => {
            // Q is left out: an empty vector.
            let empty = Complex::from(cx.full(&cx.out_shape()?, 0, cx.dtype(a.re)));
            let empty = if a.im.is_some() { empty.complex(cx) } else { empty };
            (empty, upper.map(first_rows))
        }
        other => {
            let what = format!("there is no mode `{other}` of qr");
            return Err(LowerError::unsupported(what));
        }
    };
    Ok([q.value(cx), r.value(cx)])
}
