//! Factors `A = P L D L^T P^T` of symmetric and Hermitian matrices, with the pivots that LAPACK's
//! `sytf2` and `hetf2` choose.

use crate::math::matrix::iterate::{Step, iterate};
use crate::math::matrix::pivots::{cabs1, reorder, swapped};
use crate::math::matrix::{
    batch_of, column, count_rows, pick_columns, row, rows_of, shape_with, triangle,
};
use crate::{Complex, Cx};
use pt2onnx_ir::{Reduction, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

/// `(1 + sqrt(17)) / 8`: with it, blocks of one and of two rows let the elements grow alike.
const ALPHA: f64 = 0.640_388_203_202_207_6;

/// The factors.
pub struct Factors {
    /// L below the diagonal, D on it; the elements below the diagonal of a block of two rows are
    /// D's.
    pub packed: Complex,
    /// For each row, the row that was exchanged with the last row of its block, counted from 1;
    /// negative in blocks of two rows.
    pub pivots: Value,
    /// For each step, whether its column was zero.
    pub zeros: Value,
}

/// A step's choice: a block of one or two rows, and the row that is exchanged with its last one.
struct Choice {
    single: Value,
    pivot: Value,
    /// Whether there is nothing to eliminate.
    zero: Value,
}

/// The choice for row `k` (a vector of one index). It looks for large elements in column `k`, then
/// in the row of the largest.
fn choose(cx: &Cx, a: Complex, rows: Value, k: Value) -> Choice {
    let rank = cx.rank(a.re);
    let largest = |x: Value| cx.reduce(Reduction::Max, x, &[rank - 2], true);
    let sizes = cabs1(cx, column(cx, a, k));
    let own = cx.gather(sizes, k, rank - 2);
    let below = cx.select(cx.greater(rows, k), sizes, 0.0);
    let options = attrs::ArgMax { axis: rank as i64 - 2, ..Default::default() };
    // The first of equal elements. If all are zero, any of them will do.
    let candidate = cx.arg_max(below, options);
    let column_max = largest(below);
    let there = cabs1(cx, pick_columns(cx, a, cx.squeeze(candidate, &[rank - 1])));
    let at = cx.equal(rows, candidate);
    let other = largest(cx.select(at, there, 0.0));
    let beside = cx.or(at, cx.less(rows, k));
    let row_max = largest(cx.select(beside, 0.0, there));
    let zero = cx.equal(cx.maximum(own, column_max), 0.0);
    let limit = cx.mul(column_max, ALPHA);
    let stays = cx.or(
        cx.greater_or_equal(own, limit),
        cx.greater_or_equal(own, cx.mul(limit, cx.div(column_max, row_max))),
    );
    let single = cx.or(stays, cx.greater_or_equal(other, cx.mul(row_max, ALPHA)));
    Choice { single, pivot: cx.select(stays, k, candidate), zero }
}

/// The factors of the matrix whose lower triangle is that of `a`: one or two columns a step, with
/// the rows behind them updated.
pub fn factors(cx: &Cx, a: Complex, hermitian: bool) -> Factors {
    let n = rows_of(cx, a);
    let (rows, columns) = (count_rows(cx, &n), cx.iota(&n));
    let last = cx.sizes(&[&n - &Expr::int(1)]);
    let rank = cx.rank(a.re);
    let diagonal = cx.equal(rows, columns);
    let flipped = |x: Complex| if hermitian { x.conj(cx) } else { x };
    // The diagonal of a Hermitian matrix is real.
    let exact = |x: Complex| match x.im.filter(|_| hermitian) {
        Some(im) => Complex::new(x.re, cx.select(diagonal, 0.0, im)),
        None => x,
    };
    let upper = flipped(triangle(cx, a, false, -1)).transpose(cx);
    let a = exact(triangle(cx, a, false, 0).add(cx, upper));
    let one = Expr::int(1);
    let number = shape_with(&batch_of(cx, a), &[&one, &one]);
    // The pivot of a block's second row waits for the next step, which does nothing else.
    let none = cx.full(&number, 0, DType::I64);
    let empty = a.map(|x| cx.full(&cx.shape(x), 0, cx.dtype(x)));
    let (state, collected) = iterate(cx, &n, &[a, empty, none.into()], |k, state| {
        let (packed, waiting) = (state[1], state[2].re);
        let choice = choose(cx, state[0], rows, k);
        let next = cx.minimum(cx.add(k, 1), last);
        let here = cx.select(choice.single, k, next);
        let order = swapped(cx, rows, here, choice.pivot);
        let a = reorder(cx, state[0], order);
        let a = pick_columns(cx, a, cx.squeeze(order, &[rank - 1]));
        let [x, y] = [k, next].map(|k| column(cx, a, k));
        let (d, e, f) = (row(cx, x, k), row(cx, x, next), row(cx, y, next));
        let behind = cx.greater(rows, k);
        let divisor = Complex::from(cx.scalar(1, cx.dtype(a.re))).select(cx, choice.zero, d);
        let single = x.div(cx, divisor).keep(cx, behind);
        // [x y] [d e'; e f]^-1
        let determinant = d.mul(cx, f).sub(cx, e.mul(cx, flipped(e)));
        let behind = cx.greater(rows, next);
        let left = x.mul(cx, f).sub(cx, y.mul(cx, e)).div(cx, determinant).keep(cx, behind);
        let right = y.mul(cx, d).sub(cx, x.mul(cx, flipped(e))).div(cx, determinant);
        let right = right.keep(cx, cx.and(behind, cx.not(choice.single)));
        let first = single.select(cx, choice.single, left);
        let less = |a: Complex, l: Complex, k: Value| a.sub(cx, l.mul(cx, row(cx, a, k)));
        let updated = exact(less(a, first, k).sub(cx, right.mul(cx, row(cx, a, next))));

        let second_row = cx.and(cx.equal(rows, next), cx.not(choice.single));
        let first = d.select(cx, cx.equal(rows, k), e.select(cx, second_row, first));
        let second = f.select(cx, cx.equal(rows, next), right);
        let stored = first.select(cx, cx.equal(columns, k), packed);
        let second_column = cx.and(cx.equal(columns, next), cx.not(choice.single));
        let stored = second.select(cx, second_column, stored);

        let waits = cx.not(cx.equal(waiting, 0));
        let counted = cx.add(choice.pivot, 1);
        let pivot = cx.select(choice.single, counted, cx.neg(counted));
        let later = cx.select(cx.or(waits, choice.single), 0, pivot);
        let pivot = cx.cast(cx.select(waits, waiting, pivot), DType::I32);
        let zero = cx.and(choice.zero, cx.not(waits));
        Step {
            state: vec![
                state[0].select(cx, waits, updated),
                packed.select(cx, waits, stored),
                later.into(),
            ],
            collected: [pivot, zero].map(|x| cx.squeeze(x, &[rank - 2, rank - 1]).into()).into(),
            go_on: None,
        }
    });
    Factors { packed: state[1], pivots: collected[0].re, zeros: collected[1].re }
}
