//! Linear algebra that ONNX has no operators for: loops over columns and over rotations, for real and complex matrices
//! with any batch dimensions.

pub(super) mod cholesky;
pub(super) mod eigen;
pub(super) mod functions;
pub(super) mod ldl;
pub(super) mod lu;
pub(super) mod qr;
pub(super) mod schur;
pub(super) mod solve;
pub(super) mod svd;

mod iterate;

use super::num::Num;
use crate::Cx;
use pt2onnx_ir::{Reduction, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

/// Rows of a matrix.
pub(super) fn rows_of(cx: &Cx, a: Num) -> Expr {
    cx.dim(a.re, -2)
}

/// Columns of a matrix.
pub(super) fn columns_of(cx: &Cx, a: Num) -> Expr {
    cx.dim(a.re, -1)
}

/// All dimensions but the last two.
pub(super) fn batch_of(cx: &Cx, a: Num) -> Vec<Expr> {
    let mut shape = cx.shape(a.re);
    shape.truncate(shape.len().saturating_sub(2));
    shape
}

/// `batch` and more dimensions.
fn shape_with(batch: &[Expr], more: &[&Expr]) -> Vec<Expr> {
    batch.iter().chain(more.iter().copied()).cloned().collect()
}

/// The smaller one.
fn smaller(cx: &Cx, a: &Expr, b: &Expr) -> Expr {
    let constraints = cx.constraints();
    match () {
        () if constraints.prove_ge(b, a) => a.clone(),
        () if constraints.prove_ge(a, b) => b.clone(),
        () => a.min(b),
    }
}

/// `0, 1, .. n - 1` as a column.
fn count_rows(cx: &Cx, n: &Expr) -> Value {
    cx.unsqueeze(cx.iota(n), &[1])
}

/// The identity matrix.
pub(super) fn identity(cx: &Cx, n: &Expr, dtype: DType) -> Value {
    unit(cx, n, n, dtype)
}

/// Ones on the diagonal of `m` rows and `n` columns.
fn unit(cx: &Cx, m: &Expr, n: &Expr, dtype: DType) -> Value {
    cx.cast(cx.equal(count_rows(cx, m), cx.iota(n)), dtype)
}

/// Row `k` (a vector of one index), as a matrix of one row.
fn row(cx: &Cx, a: Num, k: Value) -> Num {
    a.map(|x| cx.gather(x, k, cx.rank(x) - 2))
}

/// Column `k` (a vector of one index), as a matrix of one column.
fn column(cx: &Cx, a: Num, k: Value) -> Num {
    a.map(|x| cx.gather(x, k, cx.rank(x) - 1))
}

/// The diagonal of a matrix, as a vector: where the indices are equal, summed up over the rows.
pub(super) fn diagonal(cx: &Cx, a: Num) -> Num {
    let (m, n) = (rows_of(cx, a), columns_of(cx, a));
    let k = smaller(cx, &m, &n);
    let mask = cx.equal(count_rows(cx, &m), cx.iota(&n));
    let kept = a.keep(cx, mask);
    let rank = cx.rank(a.re);
    let sums = kept.map(|x| cx.reduce(Reduction::Sum, x, &[rank - 2], false));
    sums.map(|x| cx.slice(x, rank - 2, &Expr::int(0), &k, 1))
}

/// What is above the diagonal and on it; with `upper` false, below and on it. `k` shifts the diagonal.
fn triangle(cx: &Cx, a: Num, upper: bool, k: i64) -> Num {
    let k = (k != 0).then(|| cx.scalar(k, DType::I64));
    a.map(|x| cx.trilu(x, k, attrs::Trilu { upper }))
}

/// A new last dimension of 1.
fn as_column(cx: &Cx, a: Num) -> Num {
    a.map(|x| cx.unsqueeze(x, &[cx.rank(x)]))
}

/// Without the last dimension, which is 1.
fn as_vector(cx: &Cx, a: Num) -> Num {
    a.map(|x| cx.squeeze(x, &[cx.rank(x) - 1]))
}

/// The columns of `a` that `order`, a vector for each matrix, lists.
fn pick_columns(cx: &Cx, a: Num, order: Value) -> Num {
    let rank = cx.rank(a.re);
    let mut shape = cx.shape(a.re);
    if let Some(last) = shape.last_mut() {
        *last = cx.dim(order, -1);
    }
    let order = cx.expand(cx.unsqueeze(order, &[rank - 2]), &shape);
    let options = || attrs::GatherElements { axis: rank as i64 - 1 };
    a.map(|x| cx.gather_elements(x, order, options()))
}
