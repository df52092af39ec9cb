//! Schur's form `A = Q T Q^H` of general matrices by the shifted QR algorithm, and eigenvectors
//! from it.

use crate::math::matrix::iterate::{Step, iterate};
use crate::math::matrix::pivots::cabs1;
use crate::math::matrix::qr::{orthogonal, reflect};
use crate::math::matrix::{as_column, column, count_rows, identity, row, rows_of};
use crate::math::precision::epsilon;
use crate::{Complex, Cx};
use pt2onnx_ir::{Reduction, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

/// The most steps for each eigenvalue. Two or three are usual.
const STEPS: i64 = 30;

/// `a / b`, and 0 where `b` is 0.
fn quotient(cx: &Cx, a: Complex, b: Complex) -> Complex {
    a.div(cx, b).keep(cx, b.truth(cx))
}

/// The element of each matrix where both masks, of its row and of its column, are true; (.., 1, 1).
fn element(cx: &Cx, a: Complex, of_row: Value, of_column: Value) -> Complex {
    let rank = cx.rank(a.re);
    let kept = a.keep(cx, cx.and(of_row, of_column));
    kept.map(|x| cx.reduce(Reduction::Sum, x, &[rank - 2, rank - 1], true))
}

/// T and Q of `A = Q T Q^H`, where T is triangular up to rounding. A step takes the largest leading
/// block whose last row has elements left of the diagonal, subtracts Wilkinson's shift, and
/// transforms T with the Q of the block's QR factors.
pub fn schur(cx: &Cx, a: Complex) -> (Complex, Complex) {
    let (n, dtype) = (rows_of(cx, a), cx.dtype(a.re));
    let rank = cx.rank(a.re);
    let (rows, columns) = (count_rows(cx, &n), cx.iota(&n));
    let one = identity(cx, &n, dtype);
    let left = cx.less(columns, rows);
    let start = Complex::from(cx.expand(one, &cx.shape(a.re))).complex(cx);
    let (state, _) = iterate(cx, &(&n * STEPS), &[a, start], |step, state| {
        let t = state[0];
        let total = |x: Value| cx.reduce(Reduction::Sum, x, &[rank - 1], true);
        let rests = total(cabs1(cx, t.keep(cx, left)));
        let sums = total(cabs1(cx, t));
        let largest = cx.reduce(Reduction::Max, sums, &[rank - 2], true);
        let open = cx.greater(rests, cx.mul(largest, epsilon(dtype)));
        // The last row with something left, 0 if there is none.
        let last = cx.reduce(Reduction::Max, cx.select(open, rows, 0), &[rank - 2], true);
        let before = cx.sub(last, 1);
        let [at, over] = [last, before].map(|i| (cx.equal(rows, i), cx.equal(columns, i)));
        let a = element(cx, t, over.0, over.1);
        let b = element(cx, t, over.0, at.1);
        let c = element(cx, t, at.0, over.1);
        let d = element(cx, t, at.0, at.1);
        // d - bc / (h + sign(h) sqrt(h^2 + bc)) with h = (a - d) / 2: the eigenvalue of the corner
        // nearest to d.
        let h = a.sub(cx, d).scale(cx, 0.5);
        let bc = b.mul(cx, c);
        let root = h.mul(cx, h).add(cx, bc).sqrt(cx);
        let along = h.conj(cx).mul(cx, root).re;
        let root = root.map(|x| cx.neg(x)).select(cx, cx.less(along, 0.0), root);
        let shift = d.sub(cx, quotient(cx, bc, h.add(cx, root)));
        // Every tenth step uses another shift, because the usual ones can lead to cycles.
        let round = cx.mod_(step, cx.scalar(10, DType::I64), attrs::Mod::default());
        let odd = {
            let rest = cx.reduce(Reduction::Max, cx.select(at.0, rests, 0.0), &[rank - 2], true);
            let off = Complex::new(cx.mul(rest, 0.75), cx.mul(rest, 0.4375));
            d.add(cx, off)
        };
        let shift = odd.select(cx, cx.equal(round, 9), shift);
        let within = cx.and(cx.less_or_equal(rows, last), cx.less_or_equal(columns, last));
        let shifted = t.sub(cx, shift.times(cx, one));
        let block = shifted.select(cx, within, Complex::from(one).complex(cx));
        let reflected = reflect(cx, block);
        let q = orthogonal(cx, reflected.vectors, reflected.taus, &n);
        let turned = q.adjoint(cx).matmul(cx, t).matmul(cx, q);
        let most = cx.reduce(Reduction::Max, last, &[], false);
        Step {
            state: vec![turned, state[1].matmul(cx, q)],
            collected: Vec::new(),
            go_on: Some(cx.greater(most, 0)),
        }
    });
    (state[0], state[1])
}

/// The eigenvectors of the triangular matrix `t`, as the columns of a triangular matrix with ones
/// on its diagonal: one row a step, from the last one up.
pub fn back_substitution(cx: &Cx, t: Complex, values: Complex) -> Complex {
    let (n, dtype) = (rows_of(cx, t), cx.dtype(t.re));
    let rank = cx.rank(t.re);
    let (rows, columns) = (count_rows(cx, &n), cx.iota(&n));
    let lambdas = as_column(cx, values).transpose(cx);
    let most = cx.reduce(Reduction::Max, cabs1(cx, t), &[rank - 2, rank - 1], true);
    // Equal eigenvalues count as different by the rounding error, so that nothing is divided by 0.
    let least = cx.add(cx.mul(most, epsilon(dtype)), f64::from(f32::MIN_POSITIVE));
    let one = identity(cx, &n, dtype);
    let start = Complex::from(cx.expand(one, &cx.shape(t.re))).complex(cx);
    let (state, _) = iterate(cx, &n, &[start], |step, state| {
        let k = cx.sub(cx.size(&(&n - &Expr::int(1))), step);
        let of_row = row(cx, t, k);
        let corner = column(cx, of_row, k);
        let behind = of_row.keep(cx, cx.greater(columns, k));
        let sum = behind.matmul(cx, state[0]);
        let gap = lambdas.sub(cx, corner);
        let close = cx.less(cabs1(cx, gap), least);
        let gap = Complex::from(least).select(cx, close, gap);
        let found = sum.div(cx, gap);
        let here = cx.and(cx.equal(rows, k), cx.greater(columns, k));
        Step::state(vec![found.select(cx, here, state[0])])
    });
    state[0]
}
