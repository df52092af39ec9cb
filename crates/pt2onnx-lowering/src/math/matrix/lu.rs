//! LU factors with partial pivoting: `A[permutation] = L U`, and determinants from them.

use crate::math::matrix::iterate::{Step, iterate};
use crate::math::matrix::pivots::{cabs1, exchange, permutation_matrix, permutation_of, reorder};
use crate::math::matrix::product::product;
use crate::math::matrix::triangular::{broadcast, triangular};
use crate::math::matrix::{
    batch_of, column, columns_of, count_rows, diagonal, row, rows_of, shape_with, smaller,
    triangle, unit,
};
use crate::{Complex, Cx};
use pt2onnx_ir::{Reduction, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

/// The factors of `A[permutation] = L U`.
pub struct Lu {
    /// L below the diagonal (its diagonal is 1), U on and above it.
    pub packed: Complex,
    /// For each row of the factors, its row in the matrix.
    pub permutation: Value,
    /// For each step, the row that was exchanged with the row of the step, counted from 1; int32.
    pub pivots: Value,
}

/// Gaussian elimination, one column a step; with `pivot`, the row with the largest element of the
/// column comes first.
pub fn factors(cx: &Cx, a: Complex, pivot: bool) -> Lu {
    let (m, n) = (rows_of(cx, a), columns_of(cx, a));
    let (rows, columns) = (count_rows(cx, &m), cx.iota(&n));
    let steps = smaller(cx, &m, &n);
    let in_order = cx.expand(rows, &shape_with(&batch_of(cx, a), &[&m, &Expr::int(1)]));
    let one = cx.scalar(1, cx.dtype(a.re));
    let (state, collected) = iterate(cx, &steps, &[a, in_order.into()], |k, state| {
        let (mut a, mut permutation) = (state[0], state[1]);
        // (.., 1, 1)
        let chosen = if pivot {
            let (order, largest) = exchange(cx, rows, k, column(cx, a, k));
            a = reorder(cx, a, order);
            permutation = reorder(cx, permutation, order);
            largest
        } else {
            let ones = vec![Expr::int(1); cx.rank(a.re)];
            let shape = shape_with(&batch_of(cx, a), &[&Expr::int(1), &Expr::int(1)]);
            cx.expand(cx.reshape(k, &ones), &shape)
        };
        let (left, row) = (column(cx, a, k), row(cx, a, k));
        let pivot = column(cx, row, k);
        let below = cx.greater(rows, k);
        // If the column is zero, there is nothing to eliminate.
        let zero = cx.equal(cabs1(cx, pivot), 0.0);
        let divisor = Complex::from(one).select(cx, zero, pivot);
        let factor = left.div(cx, divisor);
        // NaN and infinities of other rows and columns do not count.
        let rest = cx.and(below, cx.greater(columns, k));
        let updated = a.sub(cx, factor.mul(cx, row).keep(cx, rest));
        let stored = factor.select(cx, below, left);
        let a = stored.select(cx, cx.equal(columns, k), updated);
        let rank = cx.rank(chosen);
        let counted = cx.cast(cx.add(chosen, 1), DType::I32);
        Step {
            state: vec![a, permutation],
            collected: vec![cx.squeeze(counted, &[rank - 2, rank - 1]).into()],
            go_on: None,
        }
    });
    let permutation = state[1].re;
    Lu {
        packed: state[0],
        permutation: cx.squeeze(permutation, &[cx.rank(permutation) - 1]),
        pivots: collected[0].re,
    }
}

/// L and U of packed factors.
pub fn unpack(cx: &Cx, packed: Complex) -> (Complex, Complex) {
    let (m, n) = (rows_of(cx, packed), columns_of(cx, packed));
    let k = smaller(cx, &m, &n);
    let rank = cx.rank(packed.re);
    let cut = |a: Complex, axis: usize| a.map(|x| cx.slice(x, axis, &Expr::int(0), &k, 1));
    let lower = triangle(cx, cut(packed, rank - 1), false, -1);
    let ones = unit(cx, &m, &k, cx.dtype(packed.re));
    let upper = triangle(cx, cut(packed, rank - 2), true, 0);
    (lower.add(cx, ones.into()), upper)
}

/// The solution X of `A X = B` (`X A = B` if not `left`), or with `adjoint` of the system with
/// `A^H`.
pub fn solve(
    cx: &Cx,
    packed: Complex,
    pivots: Value,
    b: Complex,
    left: bool,
    adjoint: bool,
) -> Complex {
    let order = permutation_of(cx, pivots, &rows_of(cx, packed));
    // X A = B is A^H X^H = B^H.
    let b = if left { b } else { b.adjoint(cx) };
    let (_, b) = broadcast(cx, packed, b);
    let x = if adjoint == left {
        // A^H = U^H L^H P^T
        let y = triangular(cx, packed.adjoint(cx), b, false, false);
        let sorted = triangular(cx, packed.adjoint(cx), y, true, true);
        // Where the permutation has each row.
        let p = permutation_matrix(cx, order, DType::U8);
        let options = attrs::ArgMax { axis: -1, ..Default::default() };
        reorder(cx, sorted, cx.arg_max(p, options))
    } else {
        let sorted = reorder(cx, b, cx.unsqueeze(order, &[cx.rank(order)]));
        let y = triangular(cx, packed, sorted, false, true);
        triangular(cx, packed, y, true, false)
    };
    if left { x } else { x.adjoint(cx) }
}

/// The sign of the permutation: 1 of an even number of exchanges, else -1.
fn parity(cx: &Cx, lu: &Lu, dtype: DType) -> Value {
    let steps = cx.dim(lu.pivots, -1);
    let own = cx.cast(cx.add(cx.iota(&steps), 1), DType::I32);
    let moved = cx.cast(cx.not(cx.equal(lu.pivots, own)), DType::I64);
    let count = cx.reduce(Reduction::Sum, moved, &[cx.rank(moved) - 1], false);
    let odd = cx.mod_(count, cx.scalar(2, DType::I64), attrs::Mod::default());
    cx.cast(cx.sub(1, cx.mul(odd, 2)), dtype)
}

/// The determinant: the product of U's diagonal, times the sign of the permutation.
pub fn determinant(cx: &Cx, lu: &Lu) -> Complex {
    let product = product(cx, diagonal(cx, lu.packed));
    let sign = parity(cx, lu, cx.dtype(lu.packed.re));
    product.times(cx, sign)
}

/// The determinant's sign (of complex matrices `det / |det|`) and `log|det|`.
pub fn sign_and_log(cx: &Cx, lu: &Lu) -> (Complex, Value) {
    let diagonal = diagonal(cx, lu.packed);
    let size = diagonal.abs(cx);
    let last = cx.rank(size) - 1;
    let direction = match diagonal.im {
        // PyTorch's sign of NaN is 0.
        None if cx.propagates_nan(size) => {
            cx.select(cx.is_nan(size), 0.0, cx.sign(diagonal.re)).into()
        }
        None => cx.sign(diagonal.re).into(),
        Some(_) => {
            let zero = cx.equal(size, 0.0);
            diagonal.over(cx, cx.select(zero, 1.0, size))
        }
    };
    let sign = product(cx, direction).times(cx, parity(cx, lu, cx.dtype(size)));
    let log = cx.reduce(Reduction::Sum, cx.log(size), &[last], false);
    (sign, log)
}
