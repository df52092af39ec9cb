//! QR by Householder reflections, as LAPACK has them: `H = I - tau v v^H`, `v` with a one on the
//! diagonal.

use crate::math::matrix::iterate::{Step, iterate};
use crate::math::matrix::{
    batch_of, column, columns_of, count_rows, diagonal, row, rows_of, shape_with, smaller,
    triangle, unit,
};
use crate::{Complex, Cx};
use pt2onnx_ir::Reduction;
use pt2onnx_symbolic::Expr;

/// Householder reflections that make a matrix triangular.
pub struct Reflected {
    /// The vectors v, one in each column: zeros above the diagonal, ones on it.
    pub vectors: Complex,
    /// The factors tau.
    pub taus: Complex,
    /// R in the upper triangle. The elements below it are rounding errors.
    pub matrix: Complex,
}

/// Makes `a` triangular, one column a step: the reflection maps the column from the diagonal on to
/// its first element.
pub fn reflect(cx: &Cx, a: Complex) -> Reflected {
    let (m, n) = (rows_of(cx, a), columns_of(cx, a));
    let (rows, steps) = (count_rows(cx, &m), smaller(cx, &m, &n));
    let batch = batch_of(cx, a);
    let columns = cx.iota(&n);
    let (state, collected) = iterate(cx, &steps, &[a], |k, state| {
        let column = column(cx, state[0], k);
        let below = column.keep(cx, cx.greater(rows, k));
        let alpha = row(cx, column, k);
        let rank = cx.rank(alpha.re);
        let rest = cx.reduce(Reduction::Sum, below.abs2(cx), &[rank - 2], true);
        let norm = cx.sqrt(cx.add(alpha.abs2(cx), rest));
        // The sign is opposite to that of alpha, so that no digits cancel.
        let beta = cx.select(cx.less(alpha.re, 0.0), norm, cx.neg(norm));
        // If the column already has this form, there is no reflection.
        let done = match alpha.im {
            None => cx.equal(rest, 0.0),
            Some(im) => cx.equal(cx.add(rest, cx.abs(im)), 0.0),
        };
        let one = cx.scalar(1, cx.dtype(norm));
        let beta = cx.select(done, one, beta);
        let tau = Complex::from(beta).sub(cx, alpha).over(cx, beta);
        let tau = tau.keep(cx, cx.not(done));
        let divisor = Complex::from(one).select(cx, done, alpha.sub(cx, beta.into()));
        let own = cx.cast(cx.equal(rows, k), cx.dtype(norm));
        let v = below.div(cx, divisor).add(cx, own.into());
        let propagates_nan = cx.propagates_nan(a.re);
        let from_k =
            if propagates_nan { state[0].keep(cx, cx.greater_or_equal(rows, k)) } else { state[0] };
        let along = v.adjoint(cx).matmul(cx, from_k);
        let mut a = state[0].sub(cx, tau.conj(cx).mul(cx, v).mul(cx, along));
        if propagates_nan {
            // The zeros of v and tau spread NaN in the columns that follow, as in LAPACK; not to
            // the column itself, nor to rows above.
            let before = cx.less_or_equal(columns, k);
            let kept = cx.or(cx.less(rows, k), cx.and(done, before));
            a = state[0].select(cx, kept, a);
        }
        let flat = |x: Complex, dims: &[&Expr]| {
            let shape = shape_with(&batch, dims);
            x.map(|x| cx.reshape(x, &shape))
        };
        Step { state: vec![a], collected: vec![flat(v, &[&m]), flat(tau, &[])], go_on: None }
    });
    Reflected { vectors: collected[0], taus: collected[1], matrix: state[0] }
}

/// `Q C = H_1 H_2 .. H_k C`, or with `adjoint` `Q^H C`.
pub fn apply(cx: &Cx, vectors: Complex, taus: Complex, c: Complex, adjoint: bool) -> Complex {
    let steps = cx.dim(taus.re, -1);
    let c = if vectors.im.is_some() { c.complex(cx) } else { c };
    let taus = taus.map(|x| cx.unsqueeze(x, &[cx.rank(x) - 1]));
    let (state, _) = iterate(cx, &steps, &[c], |step, state| {
        let k = if adjoint { step } else { cx.sub(cx.size(&(&steps - 1)), step) };
        let (v, tau) = (column(cx, vectors, k), column(cx, taus, k));
        let tau = if adjoint { tau.conj(cx) } else { tau };
        let along = v.adjoint(cx).matmul(cx, state[0]);
        Step::state(vec![state[0].sub(cx, tau.mul(cx, v).mul(cx, along))])
    });
    state[0]
}

/// The first `columns` columns of Q.
pub fn orthogonal(cx: &Cx, vectors: Complex, taus: Complex, columns: &Expr) -> Complex {
    let m = rows_of(cx, vectors);
    let shape = shape_with(&batch_of(cx, vectors), &[&m, columns]);
    let start = unit(cx, &m, columns, cx.dtype(vectors.re));
    apply(cx, vectors, taus, Complex::from(start).expand(cx, &shape), false)
}

/// The vectors that are packed below the diagonal of `a`.
pub fn unpack(cx: &Cx, a: Complex, taus: Complex) -> Complex {
    let (m, k) = (rows_of(cx, a), cx.dim(taus.re, -1));
    let rank = cx.rank(a.re);
    let first = a.map(|x| cx.slice(x, rank - 1, &Expr::int(0), &k, 1));
    let ones = unit(cx, &m, &k, cx.dtype(a.re));
    triangle(cx, first, false, -1).add(cx, ones.into())
}

/// `r / |r|` of the elements of R's diagonal, as a vector. It is 1 where `r` is 0.
pub fn signs(cx: &Cx, r: Complex) -> Complex {
    let diagonal = diagonal(cx, r);
    let size = diagonal.abs(cx);
    let zero = cx.equal(size, 0.0);
    let one = cx.scalar(1, cx.dtype(size));
    let direction = diagonal.over(cx, cx.select(zero, 1.0, size));
    Complex::from(one).select(cx, zero, direction)
}
