//! Systems whose matrix is given by LAPACK's symmetric factors `P L D L^T P^T`, D of blocks of one
//! and two rows.

use crate::math::matrix::iterate::{Step, iterate};
use crate::math::matrix::pivots::{reorder, swapped};
use crate::math::matrix::{batch_of, column, count_rows, row, rows_of, shape_with};
use crate::math::shape::has_no_elements;
use crate::{Complex, Cx};
use pt2onnx_ir::Value;
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

/// A block of D, and the rows that are exchanged there.
struct Place {
    /// The first row of the block, and the row after it (of the last row, itself).
    k: Value,
    next: Value,
    /// Whether the block has one row.
    single: Value,
    /// The order of the rows after the exchange.
    order: Value,
}

impl Place {
    /// The block at row `k`. Its pivot is the row that is exchanged with its last row, counted from
    /// 1; negative of two rows.
    fn at(cx: &Cx, pivots: Value, rows: Value, last: Value, k: Value) -> Self {
        let pivot = cx.gather(pivots, k, cx.rank(pivots) - 2);
        let single = cx.greater(pivot, 0);
        let next = cx.minimum(cx.add(k, 1), last);
        let here = cx.select(single, k, next);
        let there = cx.sub(cx.abs(pivot), 1);
        Self { k, next, single, order: swapped(cx, rows, here, there) }
    }
}

/// The solution X of `P L D L^T P^T X = B` (with `hermitian`, `L^H` stands for `L^T`): `L D`
/// forward, then `L^T` backward, one block a step.
pub fn solve(cx: &Cx, factors: Complex, pivots: Value, b: Complex, hermitian: bool) -> Complex {
    let n = rows_of(cx, factors);
    let rows = count_rows(cx, &n);
    let last = cx.sizes(&[&n - &Expr::int(1)]);
    let rank = cx.rank(pivots);
    let pivots = cx.unsqueeze(cx.cast(pivots, DType::I64), &[rank]);
    let flipped = |x: Complex| if hermitian { x.conj(cx) } else { x };
    let b = if factors.im.is_some() { b.complex(cx) } else { b };
    let batch = cx.broadcast_shapes(&batch_of(cx, factors), &batch_of(cx, b));
    let whole = shape_with(&batch, &[&n, &cx.dim(b.re, -1)]);
    if has_no_elements(&whole) {
        return b.expand(cx, &whole);
    }
    let b = b.expand(cx, &whole);
    // For each matrix, whether the row belongs to a block that was solved already.
    let one = Expr::int(1);
    let none = cx.full(&shape_with(&batch_of(cx, factors), &[&one, &one]), false, DType::Bool);
    let (state, _) = iterate(cx, &n, &[b, none.into()], |k, state| {
        let place = Place::at(cx, pivots, rows, last, k);
        let x = reorder(cx, state[0], place.order);
        let (first, second) = (row(cx, x, place.k), row(cx, x, place.next));
        let [l, m] = [place.k, place.next].map(|k| column(cx, factors, k));
        let [d, e] = [place.k, place.next].map(|k| row(cx, l, k));
        let f = row(cx, m, place.next);
        let (at, at_next) = (cx.equal(rows, place.k), cx.equal(rows, place.next));
        let less_first = x.sub(cx, l.mul(cx, first));
        let behind = cx.greater(rows, place.k);
        let one = less_first.select(cx, behind, x);
        let one = first.div(cx, d).select(cx, at, one);
        // [d e'; e f]^-1
        let determinant = d.mul(cx, f).sub(cx, e.mul(cx, flipped(e)));
        let upper = f.mul(cx, first).sub(cx, flipped(e).mul(cx, second));
        let lower = d.mul(cx, second).sub(cx, e.mul(cx, first));
        let behind = cx.greater(rows, place.next);
        let two = less_first.sub(cx, m.mul(cx, second)).select(cx, behind, x);
        let two = upper.div(cx, determinant).select(cx, at, two);
        let two = lower.div(cx, determinant).select(cx, at_next, two);
        let handled = state[1].re;
        let after = one.select(cx, place.single, two);
        let after = state[0].select(cx, handled, after);
        let pending = cx.not(cx.or(place.single, handled));
        Step::state(vec![after, pending.into()])
    });
    let (state, _) = iterate(cx, &n, &[state[0], none.into()], |step, state| {
        let place = Place::at(cx, pivots, rows, last, cx.sub(last, step));
        let x = state[0];
        let sum = |k: Value, from: Value| {
            let behind = cx.greater(rows, from);
            let l = flipped(column(cx, factors, k)).keep(cx, behind);
            l.transpose(cx).matmul(cx, x.keep(cx, behind))
        };
        let less = |k: Value, from: Value, x: Complex| {
            let known = row(cx, x, k).sub(cx, sum(k, from));
            known.select(cx, cx.equal(rows, k), x)
        };
        let one = less(place.k, place.k, x);
        let two = less(place.next, place.next, less(place.k, place.next, x));
        let solved = one.select(cx, place.single, two);
        let solved = reorder(cx, solved, place.order);
        // Steps go backward: the second row of a block comes first, and is solved together with the
        // first one.
        let waits = cx.not(cx.or(place.single, state[1].re));
        let after = x.select(cx, waits, solved);
        Step::state(vec![after, waits.into()])
    });
    state[0]
}
