//! Linear systems with a triangular matrix, by substitution.

use crate::math::matrix::iterate::{Step, iterate};
use crate::math::matrix::{batch_of, column, columns_of, count_rows, row, rows_of, shape_with};
use crate::{Complex, Cx};

/// Both matrices, with their batch dimensions broadcast.
pub fn broadcast(cx: &Cx, a: Complex, b: Complex) -> (Complex, Complex) {
    let batch = cx.broadcast_shapes(&batch_of(cx, a), &batch_of(cx, b));
    let wide = |x: Complex| {
        let shape = shape_with(&batch, &[&rows_of(cx, x), &columns_of(cx, x)]);
        x.expand(cx, &shape)
    };
    (wide(a), wide(b))
}

/// The solution X of `A X = B`, where A is the upper or the lower triangle of `a`; with `unit`, its
/// diagonal counts as ones.
pub fn triangular(cx: &Cx, a: Complex, b: Complex, upper: bool, unit: bool) -> Complex {
    let (a, b) = broadcast(cx, a, b);
    let n = rows_of(cx, a);
    let rows = count_rows(cx, &n);
    let b = if a.im.is_some() { b.complex(cx) } else { b };
    let (state, _) = iterate(cx, &n, &[b], |step, state| {
        let k = if upper { cx.sub(cx.size(&(&n - 1)), step) } else { step };
        let column = column(cx, a, k);
        let known = row(cx, state[0], k);
        let known = if unit { known } else { known.div(cx, row(cx, column, k)) };
        let open = if upper { cx.less(rows, k) } else { cx.greater(rows, k) };
        // NaN and infinities of other rows do not count.
        let rest = state[0].sub(cx, column.mul(cx, known).keep(cx, open));
        Step::state(vec![known.select(cx, cx.equal(rows, k), rest)])
    });
    state[0]
}
