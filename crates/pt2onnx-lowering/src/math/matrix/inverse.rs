//! Linear systems with a general matrix, by Gauss-Jordan elimination, and inverses.

use crate::math::matrix::iterate::{Step, iterate};
use crate::math::matrix::pivots::{cabs1, exchange, reorder};
use crate::math::matrix::triangular::broadcast;
use crate::math::matrix::{
    as_column, as_vector, batch_of, column, columns_of, count_rows, identity, row, rows_of,
    shape_with,
};
use crate::{Complex, Cx};
use pt2onnx_ir::{Type, Value};
use pt2onnx_symbolic::Expr;

/// The solution X of `A X = B`, by Gauss-Jordan elimination with partial pivoting; and for each
/// step whether its pivot was 0.
pub fn solve(cx: &Cx, a: Complex, b: Complex) -> (Complex, Value) {
    let (a, b) = broadcast(cx, a, b);
    let rank = cx.rank(a.re);
    let n = rows_of(cx, a);
    let rows = count_rows(cx, &n);
    let join = |a, b| cx.concat(&[a, b], rank - 1);
    let both = match (a.im, b.im) {
        (None, None) => join(a.re, b.re).into(),
        _ => {
            let [a, b] = [a, b].map(|x| x.complex(cx));
            Complex::new(join(a.re, b.re), join(a.imag(cx), b.imag(cx)))
        }
    };
    let (state, collected) = iterate(cx, &n, &[both], |k, state| {
        let (order, _) = exchange(cx, rows, k, column(cx, state[0], k));
        let all = reorder(cx, state[0], order);
        let (left, row) = (column(cx, all, k), row(cx, all, k));
        let pivot = column(cx, row, k);
        let row = row.div(cx, pivot);
        let rest = all.sub(cx, left.mul(cx, row));
        let zero = cx.equal(cabs1(cx, pivot), 0.0);
        let rank = cx.rank(zero);
        Step {
            state: vec![row.select(cx, cx.equal(rows, k), rest)],
            collected: vec![cx.squeeze(zero, &[rank - 2, rank - 1]).into()],
            go_on: None,
        }
    });
    let end = columns_of(cx, state[0]);
    let x = state[0].map(|x| cx.slice(x, rank - 1, &n, &end, 1));
    let shape = shape_with(&batch_of(cx, b), &[&n, &columns_of(cx, b)]);
    x.parts().iter().for_each(|&x| {
        cx.set_type(x, Type::tensor(cx.dtype(x), shape.clone()));
    });
    (x, collected[0].re)
}

/// The inverse; and for each step whether its pivot was 0.
pub fn inverse(cx: &Cx, a: Complex) -> (Complex, Value) {
    let n = rows_of(cx, a);
    solve(cx, a, identity(cx, &n, cx.dtype(a.re)).into())
}

/// [`solve`], or the solution of `X A = B` if not `left`. `b` is one vector for each matrix if it
/// has one dimension, or the shape of `a` without its last dimension. Where that depends on dynamic
/// sizes, it is vectors if it has not as many rows as `a`.
pub fn solve_any(cx: &Cx, a: Complex, b: Complex, left: bool) -> (Complex, Value) {
    let (rank_a, rank_b) = (cx.rank(a.re), cx.rank(b.re));
    let may_be = |(x, y): (&Expr, &Expr)| x == y || !x.is_static() || !y.is_static();
    let (sizes, of_vectors) = (cx.shape(b.re), &cx.shape(a.re)[..rank_a.saturating_sub(1)]);
    let vectors = rank_b == 1
        || rank_b + 1 == rank_a
            && sizes.iter().zip(of_vectors).all(may_be)
            && (sizes[..] == *of_vectors || rows_of(cx, b) != rows_of(cx, a));
    let b = if vectors { as_column(cx, b) } else { b };
    // X A = B is A^T X^T = B^T.
    let (x, zeros) = if left || vectors {
        solve(cx, a, b)
    } else {
        let (x, zeros) = solve(cx, a.transpose(cx), b.transpose(cx));
        (x.transpose(cx), zeros)
    };
    (if vectors { as_vector(cx, x) } else { x }, zeros)
}
