//! Linear algebra that ONNX has no operators for: loops over columns or rotations, for real and
//! complex matrices.
//!
//! All dimensions before the last two are batch dimensions.

pub mod bunch_kaufman;
pub mod cholesky;
pub mod inverse;
pub mod iterate;
pub mod jacobi;
pub mod ldl;
pub mod lu;
pub mod pivots;
pub mod product;
pub mod qr;
pub mod schur;
pub mod svd;
pub mod triangular;

use crate::{Complex, Cx};
use pt2onnx_ir::{Reduction, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

/// The number of rows.
pub fn rows_of(cx: &Cx, a: Complex) -> Expr {
    cx.dim(a.re, -2)
}

/// The number of columns.
pub fn columns_of(cx: &Cx, a: Complex) -> Expr {
    cx.dim(a.re, -1)
}

/// The batch dimensions: all but the last two.
pub fn batch_of(cx: &Cx, a: Complex) -> Vec<Expr> {
    let mut shape = cx.shape(a.re);
    shape.truncate(shape.len().saturating_sub(2));
    shape
}

/// The batch dimensions, then `more`.
pub fn shape_with(batch: &[Expr], more: &[&Expr]) -> Vec<Expr> {
    batch.iter().chain(more.iter().copied()).cloned().collect()
}

/// `min(a, b)`: simply one of them if the program's constraints prove which is smaller.
pub fn smaller(cx: &Cx, a: &Expr, b: &Expr) -> Expr {
    let constraints = cx.constraints();
    match () {
        () if constraints.prove_ge(b, a) => a.clone(),
        () if constraints.prove_ge(a, b) => b.clone(),
        () => a.min(b),
    }
}

/// The empty tensor that PyTorch recorded as output `i`, which the program does not compute. It has
/// the element type of `a`.
pub fn empty_output(cx: &Cx, i: usize, a: Complex) -> Option<Value> {
    let recorded = cx.recorded(i)?;
    let pair = recorded.dtype.is_complex().then(|| Expr::int(2));
    let sizes: Vec<Expr> = recorded.sizes.iter().cloned().chain(pair).collect();
    Some(cx.full(&sizes, 0, cx.dtype(a.re)))
}

/// `0, 1, .. n - 1` as a matrix of one column.
pub fn count_rows(cx: &Cx, n: &Expr) -> Value {
    cx.unsqueeze(cx.iota(n), &[1])
}

/// The identity matrix.
pub fn identity(cx: &Cx, n: &Expr, dtype: DType) -> Value {
    unit(cx, n, n, dtype)
}

/// The matrix of `m` rows and `n` columns with ones on the diagonal.
pub fn unit(cx: &Cx, m: &Expr, n: &Expr, dtype: DType) -> Value {
    cx.cast(cx.equal(count_rows(cx, m), cx.iota(n)), dtype)
}

/// Row `k` (a vector of one index), as a matrix of one row.
pub fn row(cx: &Cx, a: Complex, k: Value) -> Complex {
    a.map(|x| cx.gather(x, k, cx.rank(x) - 2))
}

/// Column `k` (a vector of one index), as a matrix of one column.
pub fn column(cx: &Cx, a: Complex, k: Value) -> Complex {
    a.map(|x| cx.gather(x, k, cx.rank(x) - 1))
}

/// The diagonal as a vector: other elements are set to 0, then columns are summed.
pub fn diagonal(cx: &Cx, a: Complex) -> Complex {
    let (m, n) = (rows_of(cx, a), columns_of(cx, a));
    let k = smaller(cx, &m, &n);
    let mask = cx.equal(count_rows(cx, &m), cx.iota(&n));
    let kept = a.keep(cx, mask);
    let rank = cx.rank(a.re);
    let sums = kept.map(|x| cx.reduce(Reduction::Sum, x, &[rank - 2], false));
    sums.map(|x| cx.slice(x, rank - 2, &Expr::int(0), &k, 1))
}

/// The upper triangle, or the lower one, with the diagonal `k`; the other elements are 0.
pub fn triangle(cx: &Cx, a: Complex, upper: bool, k: i64) -> Complex {
    let k = (k != 0).then(|| cx.scalar(k, DType::I64));
    a.map(|x| cx.trilu(x, k, attrs::Trilu { upper }))
}

/// A vector as a matrix of one column.
pub fn as_column(cx: &Cx, a: Complex) -> Complex {
    a.map(|x| cx.unsqueeze(x, &[cx.rank(x)]))
}

/// A matrix of one column as a vector.
pub fn as_vector(cx: &Cx, a: Complex) -> Complex {
    a.map(|x| cx.squeeze(x, &[cx.rank(x) - 1]))
}

/// The columns of `a` in that order, which is a vector of indices for each matrix.
pub fn pick_columns(cx: &Cx, a: Complex, order: Value) -> Complex {
    let rank = cx.rank(a.re);
    let mut shape = cx.shape(a.re);
    if let Some(last) = shape.last_mut() {
        *last = cx.dim(order, -1);
    }
    let order = cx.expand(cx.unsqueeze(order, &[rank - 2]), &shape);
    let options = || attrs::GatherElements { axis: rank as i64 - 1 };
    a.map(|x| cx.gather_elements(x, order, options()))
}
