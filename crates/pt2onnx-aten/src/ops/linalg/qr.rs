//! QR by Householder reflections, as LAPACK has them: `H = I - tau v v^H`, `v` with a one on the diagonal.

use super::{
    super::num::Num,
    batch_of, column, columns_of, count_rows,
    iterate::{Step, iterate},
    row, rows_of, shape_with, smaller, triangle, unit,
};
use crate::{AtenOp, Cx, LowerError, Lowered, registry::aten};
use pt2onnx_ir::{Reduction, Value};
use pt2onnx_symbolic::Expr;

pub(in super::super) static OPS: &[AtenOp] = &[
    aten!("aten::geqrf(Tensor self) -> (Tensor a, Tensor tau)", geqrf, complex: geqrf),
    aten!("aten::linalg_householder_product(Tensor input, Tensor tau) -> Tensor", householder_product, complex: householder_product),
    aten!("aten::linalg_qr(Tensor A, str mode=\"reduced\") -> (Tensor Q, Tensor R)", linalg_qr, complex: linalg_qr),
    aten!("aten::orgqr(Tensor self, Tensor input2) -> Tensor", householder_product, complex: householder_product),
    aten!("aten::ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor", ormqr, complex: ormqr),
];

/// Reflections that make a matrix triangular.
pub(super) struct Reflected {
    /// The vectors, one a column, zeros above the diagonal.
    pub vectors: Num,
    /// Their factors.
    pub taus: Num,
    /// R, and below it nothing of interest.
    pub matrix: Num,
}

/// One column a step: the reflection that maps what is left of it to its first element.
pub(super) fn reflect(cx: &Cx, a: Num) -> Reflected {
    let (m, n) = (rows_of(cx, a), columns_of(cx, a));
    let (rows, steps) = (count_rows(cx, &m), smaller(cx, &m, &n));
    let batch = batch_of(cx, a);
    let (state, collected) = iterate(cx, &steps, &[a], |k, state| {
        let column = column(cx, state[0], k);
        let below = column.keep(cx, cx.greater(rows, k));
        let alpha = row(cx, column, k);
        let rank = cx.rank(alpha.re);
        let rest = cx.reduce(Reduction::Sum, below.abs2(cx), &[rank - 2], true);
        let norm = cx.sqrt(cx.add(alpha.abs2(cx), rest));
        // Away from alpha, so that nothing cancels.
        let beta = cx.select(cx.less(alpha.re, 0.0), norm, cx.neg(norm));
        // Nothing to do: no reflection.
        let done = match alpha.im {
            None => cx.equal(rest, 0.0),
            Some(im) => cx.equal(cx.add(rest, cx.abs(im)), 0.0),
        };
        let one = cx.scalar(1, cx.dtype(norm));
        let beta = cx.select(done, one, beta);
        let tau = Num::from(beta).sub(cx, alpha).over(cx, beta);
        let tau = tau.keep(cx, cx.not(done));
        let divisor = Num::from(one).select(cx, done, alpha.sub(cx, beta.into()));
        let own = cx.cast(cx.equal(rows, k), cx.dtype(norm));
        let v = below.div(cx, divisor).add(cx, own.into());
        let along = v.adjoint(cx).matmul(cx, state[0]);
        let a = state[0].sub(cx, tau.conj(cx).mul(cx, v).mul(cx, along));
        let flat = |x: Num, dims: &[&Expr]| {
            let shape = shape_with(&batch, dims);
            x.map(|x| cx.reshape(x, &shape))
        };
        Step { state: vec![a], collected: vec![flat(v, &[&m]), flat(tau, &[])], go_on: None }
    });
    Reflected { vectors: collected[0], taus: collected[1], matrix: state[0] }
}

/// `H_1 H_2 .. H_k C`, or with `adjoint` `H_k^H .. H_1^H C`.
fn apply(cx: &Cx, vectors: Num, taus: Num, c: Num, adjoint: bool) -> Num {
    let steps = cx.dim(taus.re, -1);
    let c = if vectors.im.is_some() { c.complex(cx) } else { c };
    let taus = taus.map(|x| cx.unsqueeze(x, &[cx.rank(x) - 1]));
    let (state, _) = iterate(cx, &steps, &[c], |step, state| {
        let k = match adjoint {
            true => step,
            false => cx.sub(cx.size(&(&steps - 1)), step),
        };
        let (v, tau) = (column(cx, vectors, k), column(cx, taus, k));
        let tau = if adjoint { tau.conj(cx) } else { tau };
        let along = v.adjoint(cx).matmul(cx, state[0]);
        Step::state(vec![state[0].sub(cx, tau.mul(cx, v).mul(cx, along))])
    });
    state[0]
}

/// The first `columns` columns of Q.
pub(super) fn orthogonal(cx: &Cx, vectors: Num, taus: Num, columns: &Expr) -> Num {
    let m = rows_of(cx, vectors);
    let shape = shape_with(&batch_of(cx, vectors), &[&m, columns]);
    let start = unit(cx, &m, columns, cx.dtype(vectors.re));
    apply(cx, vectors, taus, Num::from(start).expand(cx, &shape), false)
}

/// Vectors from the form that packs them below the diagonal.
fn unpack(cx: &Cx, a: Num, taus: Num) -> Num {
    let (m, k) = (rows_of(cx, a), cx.dim(taus.re, -1));
    let rank = cx.rank(a.re);
    let first = a.map(|x| cx.slice(x, rank - 1, &Expr::int(0), &k, 1));
    let ones = unit(cx, &m, &k, cx.dtype(a.re));
    triangle(cx, first, false, -1).add(cx, ones.into())
}

fn geqrf(cx: &Cx, a: Num) -> Lowered<[Value; 2]> {
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
            cx.set_type(wide, pt2onnx_ir::Type::tensor(cx.dtype(x), cx.shape(a.re)));
            wide
        }
    };
    let packed = r.vectors.map(pads).select(cx, below, r.matrix);
    Ok([packed.value(cx), r.taus.value(cx)])
}

fn householder_product(cx: &Cx, a: Num, taus: Num) -> Lowered {
    let columns = columns_of(cx, a);
    Ok(orthogonal(cx, unpack(cx, a, taus), taus, &columns).value(cx))
}

/// `Q C`, `Q^H C`, `C Q` or `C Q^H`.
fn ormqr(cx: &Cx, a: Num, taus: Num, c: Num, left: bool, transpose: bool) -> Lowered {
    let vectors = unpack(cx, a, taus);
    let product = match left {
        true => apply(cx, vectors, taus, c, transpose),
        // (Q^H C^H)^H
        false => apply(cx, vectors, taus, c.adjoint(cx), !transpose).adjoint(cx),
    };
    Ok(product.value(cx))
}

fn linalg_qr(cx: &Cx, a: Num, mode: String) -> Lowered<[Value; 2]> {
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
            let empty = Num::from(cx.full(&cx.out_shape()?, 0, cx.dtype(a.re)));
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

/// Signs of R's diagonal, as a vector: 1 where it is zero.
pub(super) fn signs(cx: &Cx, r: Num) -> Num {
    let diagonal = super::diagonal(cx, r);
    let size = diagonal.abs(cx);
    let zero = cx.equal(size, 0.0);
    let one = cx.scalar(1, cx.dtype(size));
    let direction = diagonal.over(cx, cx.select(zero, 1.0, size));
    Num::from(one).select(cx, zero, direction)
}
