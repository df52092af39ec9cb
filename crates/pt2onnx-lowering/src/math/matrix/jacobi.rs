//! Jacobi rotations, and by them the eigenvalues and eigenvectors of Hermitian matrices.
//!
//! A step rotates all pairs (i, j) with i + j = step modulo n at once, the modulus ordering of Luk
//! and Park (A proof of convergence for two parallel Jacobi SVD algorithms, IEEE Transactions on
//! Computers 38, 1989); n steps meet every pair.

use crate::math::matrix::iterate::{Step, iterate};
use crate::math::matrix::pivots::cabs1;
use crate::math::matrix::{batch_of, identity, pick_columns, rows_of, shape_with, triangle};
use crate::math::precision::epsilon;
use crate::math::shape::has_no_elements;
use crate::{Complex, Cx};
use pt2onnx_ir::{Reduction, Type, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

/// The most sweeps over all pairs. About six are usual.
pub const SWEEPS: i64 = 24;

/// The pairs of columns that a step rotates.
pub struct Pairing {
    /// The partner of each column, as a vector of indices.
    pub partners: Value,
    /// 1 for the first of a pair, -1 for the second, 0 for a column that is its own partner.
    pub order: Value,
}

/// The pairs (i, j) with `i + j = step` modulo `n`.
pub fn pairing(cx: &Cx, n: &Expr, numbers: Value, step: Value, dtype: DType) -> Pairing {
    let partners = cx.mod_(cx.sub(step, numbers), cx.size(n), attrs::Mod::default());
    let order = cx.cast(cx.sign(cx.sub(partners, numbers)), dtype);
    Pairing { partners, order }
}

/// The cosine c and the sine s of the rotations that make `product` 0. `own` and `other` are the
/// squared lengths or the diagonal elements of each column and of its partner, `product` is their
/// scalar product or off-diagonal element. For complex numbers, s has the direction of the
/// conjugate product.
pub fn rotation(
    cx: &Cx,
    own: Value,
    other: Value,
    product: Complex,
    order: Value,
) -> (Value, Complex) {
    let size = product.abs(cx);
    let double = cx.mul(size, 2.0);
    let gap = cx.sub(other, own);
    // tan = sign(gap) 2|p| / (|gap| + sqrt(gap^2 + 4|p|^2)), the smaller angle; equal ones turn by
    // 45 degrees.
    let root = cx.sqrt(cx.add(cx.mul(gap, gap), cx.mul(double, double)));
    let span = cx.add(cx.abs(gap), root);
    let side = cx.select(cx.equal(gap, 0.0), order, cx.sign(gap));
    let none = cx.or(cx.equal(span, 0.0), cx.equal(order, 0.0));
    let tan = cx.div(cx.mul(side, double), cx.select(none, 1.0, span));
    let tan = cx.select(none, 0.0, tan);
    let cos = cx.reciprocal(cx.sqrt(cx.add(cx.mul(tan, tan), 1.0)));
    let direction = match product.im {
        None => cx.sign(product.re).into(),
        Some(_) => {
            let divisor = cx.select(cx.equal(size, 0.0), 1.0, size);
            product.conj(cx).over(cx, divisor)
        }
    };
    (cos, direction.times(cx, cx.mul(tan, cos)))
}

/// The columns of `a` after a rotation: `c * own - s * partner`.
pub fn turn_columns(cx: &Cx, a: Complex, pairs: &Pairing, cos: Value, sin: Complex) -> Complex {
    let rank = cx.rank(a.re);
    let wide = |x: Value| cx.unsqueeze(x, &[rank - 2]);
    let others = a.map(|x| cx.gather(x, pairs.partners, rank - 1));
    a.times(cx, wide(cos)).sub(cx, others.mul(cx, sin.map(wide)))
}

/// The eigenvalues of a Hermitian matrix in no order, and with `vectors` its eigenvectors as
/// columns. Rotations from both sides stop when no off-diagonal element exceeds the largest element
/// times the precision.
fn diagonalise(cx: &Cx, a: Complex, vectors: bool) -> (Value, Option<Complex>) {
    let (n, dtype) = (rows_of(cx, a), cx.dtype(a.re));
    let rank = cx.rank(a.re);
    let numbers = cx.iota(&n);
    let one = identity(cx, &n, dtype);
    let (off, half) = (cx.sub(1.0, one), cx.scalar(0.5, dtype));
    let mut start = vec![a];
    if vectors {
        let v = cx.expand(one, &cx.shape(a.re));
        start.push(if a.im.is_some() { Complex::from(v).complex(cx) } else { v.into() });
    }
    let on_diagonal = |a: Complex| cx.reduce(Reduction::Sum, cx.mul(a.re, one), &[rank - 1], false);
    let most = |x: Value| cx.reduce(Reduction::Max, x, &[], false);
    let (state, _) = iterate(cx, &(&n * SWEEPS), &start, |step, state| {
        let pairs = pairing(cx, &n, numbers, step, dtype);
        let own = on_diagonal(state[0]);
        let other = cx.gather(own, pairs.partners, rank - 2);
        // The element of row i at its partner, the only one where the mask is true.
        let mask = cx.cast(cx.equal(cx.unsqueeze(pairs.partners, &[1]), numbers), dtype);
        let picked = state[0].times(cx, mask);
        let product = picked.map(|x| cx.reduce(Reduction::Sum, x, &[rank - 1], false));
        let (cos, sin) = rotation(cx, own, other, product, pairs.order);
        let turned = turn_columns(cx, state[0], &pairs, cos, sin);
        // A Hermitian matrix is its own adjoint. Rounding must not change that: where the elements
        // of a pair are next to equal, both of its columns would turn by other angles.
        let turned = turn_columns(cx, turned.adjoint(cx), &pairs, cos, sin);
        let turned = turned.add(cx, turned.adjoint(cx)).times(cx, half);
        let size = cabs1(cx, turned);
        let bound = cx.mul(most(size), epsilon(dtype));
        let go_on = cx.greater(most(cx.mul(size, off)), bound);
        let mut after = vec![turned];
        if let Some(&v) = state.get(1) {
            after.push(turn_columns(cx, v, &pairs, cos, sin));
        }
        Step { state: after, collected: Vec::new(), go_on: Some(go_on) }
    });
    (on_diagonal(state[0]), state.get(1).copied())
}

/// The Hermitian matrix whose upper or lower triangle is that of `a`.
pub fn hermitian(cx: &Cx, a: Complex, upper: bool) -> Complex {
    let strict = triangle(cx, a, upper, if upper { 1 } else { -1 });
    let real = Complex::from(diagonal_matrix(cx, a));
    let half = match a.im {
        Some(_) => strict.add(cx, real.complex(cx)),
        None => triangle(cx, a, upper, 0),
    };
    half.add(cx, strict.adjoint(cx))
}

/// The diagonal matrix of the real parts of the diagonal.
fn diagonal_matrix(cx: &Cx, a: Complex) -> Value {
    cx.mul(a.re, identity(cx, &rows_of(cx, a), cx.dtype(a.re)))
}

/// The eigenvalues of a Hermitian matrix in ascending order, and with `vectors` its eigenvectors as
/// columns.
pub fn eigh(cx: &Cx, a: Complex, vectors: bool) -> (Value, Option<Complex>) {
    let n = rows_of(cx, a);
    if has_no_elements(&cx.shape(a.re)) {
        let values = cx.full(&shape_with(&batch_of(cx, a), &[&n]), 0, cx.dtype(a.re));
        return (values, vectors.then_some(a));
    }
    let (values, vectors) = diagonalise(cx, a, vectors);
    let (sorted, order) = sort_last(cx, values, false);
    (sorted, vectors.map(|v| pick_columns(cx, v, order)))
}

/// The elements sorted along the last dimension, and their indices.
pub fn sort_last(cx: &Cx, x: Value, largest: bool) -> (Value, Value) {
    let n = cx.sizes(&[cx.dim(x, -1)]);
    let options = attrs::TopK { largest, ..Default::default() };
    let [sorted, order] = cx.top_k(x, n, options);
    cx.set_type(sorted, Type::tensor(cx.dtype(x), cx.shape(x)));
    cx.set_type(order, Type::tensor(DType::I64, cx.shape(x)));
    (sorted, order)
}
