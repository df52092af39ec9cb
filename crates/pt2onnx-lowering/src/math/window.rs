//! Windows along a dimension: their parameters, starts and ends.

use crate::{Cx, math::shape::constant};
use pt2onnx_ir::Value;
use pt2onnx_symbolic::Expr;

/// Tables of up to this many elements are constants if all sizes are known.
const TABLE: i64 = 1 << 16;

/// The `(rows, columns)` tensor of `row * i + column * j`. Each argument is the number of rows or
/// columns, and the step.
pub fn lattice(cx: &Cx, rows: (&Expr, i64), columns: (&Expr, i64)) -> Value {
    let ((m, row), (n, column)) = (rows, columns);
    match (m.as_int(), n.as_int()) {
        (Some(m), Some(n)) if m.saturating_mul(n) <= TABLE => {
            let element = |i: i64| (0..n).map(move |j| row * i + column * j);
            constant(cx, &[m, n], &(0..m).flat_map(element).collect::<Vec<_>>())
        }
        _ => cx.add(cx.unsqueeze(cx.mul(cx.iota(m), row), &[1]), cx.mul(cx.iota(n), column)),
    }
}

/// Starts and ends of the `to` windows that divide `from` elements as evenly as possible: window
/// `j` starts at `floor(j * from / to)` and ends before `ceil((j + 1) * from / to)`.
pub fn adaptive(cx: &Cx, from: &Expr, to: &Expr) -> (Value, Value) {
    if let (Some(from), Some(to @ 1..=TABLE)) = (from.as_int(), to.as_int()) {
        let start = (0..to).map(|j| j * from / to).collect::<Vec<_>>();
        let end = (0..to).map(|j| ((j + 1) * from + to - 1) / to);
        return (cx.ints(&start), cx.ints(&end.collect::<Vec<_>>()));
    }
    let (j, from, to) = (cx.iota(to), cx.size(from), cx.size(to));
    let start = cx.div(cx.mul(j, from), to);
    // ceil(a / b) = (a + b - 1) / b
    let reach = cx.add(cx.mul(cx.add(j, 1), from), cx.sub(to, 1));
    (start, cx.div(reach, to))
}

/// The length of the longest window of [`adaptive`], or a bound for it if the sizes are not known.
pub fn adaptive_length(from: &Expr, to: &Expr) -> Expr {
    if let (Some(from), Some(to @ 1..)) = (from.as_int(), to.as_int()) {
        let length = |j: i64| ((j + 1) * from + to - 1) / to - j * from / to;
        return Expr::int((0..to.min(TABLE)).map(length).max().unwrap_or(0));
    }
    (from + (to - 1)).floor_div(to) + 1
}

/// Each vector of `x` along `axis` times a `(from, to)` matrix.
pub fn product_along(cx: &Cx, x: Value, axis: usize, matrix: Value) -> Value {
    let last = cx.rank(x).saturating_sub(1);
    if axis + 1 == last {
        return cx.matmul(cx.transpose(matrix, &[1, 0]), x);
    }
    let product = cx.matmul(cx.swap_axes(x, axis, last), matrix);
    cx.swap_axes(product, axis, last)
}

/// `given`, if it is one number repeated for each of `n` dimensions.
pub fn per_dim(given: &[i64], n: usize) -> Vec<i64> {
    match given {
        [one] => vec![*one; n],
        all => all.to_vec(),
    }
}

/// `op` on `x` with `n` spatial dimensions, given a batch dimension if it has none.
pub fn batched(cx: &Cx, x: Value, n: usize, op: impl Fn(Value) -> Value) -> Value {
    if cx.rank(x) == n + 1 { cx.squeeze(op(cx.unsqueeze(x, &[0])), &[0]) } else { op(x) }
}
