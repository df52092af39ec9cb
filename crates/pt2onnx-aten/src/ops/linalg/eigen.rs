//! Eigenvalues and eigenvectors of Hermitian matrices, by Jacobi's rotations.
//!
//! A step rotates all pairs (i, j) with i + j = step modulo n at once, the modulus ordering of Luk and Park (A proof of
//! convergence for two parallel Jacobi SVD algorithms, IEEE Transactions on Computers 38, 1989); n steps meet every pair.

use super::{
    super::num::Num,
    batch_of, identity,
    iterate::{Step, iterate},
    pick_columns, rows_of, shape_with, triangle,
};
use crate::{AtenOp, Cx, Lowered, cx::Outputs, registry::aten};
use pt2onnx_ir::{Reduction, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;
use smallvec::smallvec;

pub(in super::super) static OPS: &[AtenOp] = &[
    aten!("aten::_linalg_eigh(Tensor A, str UPLO=\"L\", bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)", linalg_eigh_values, complex: linalg_eigh_values),
    aten!("aten::linalg_eigh(Tensor self, str UPLO=\"L\") -> (Tensor eigenvalues, Tensor eigenvectors)", linalg_eigh, complex: linalg_eigh),
    aten!("aten::linalg_eigvalsh(Tensor self, str UPLO=\"L\") -> Tensor", eigvalsh, complex: eigvalsh),
];

/// Sweeps over all pairs after which the rotations end at the latest; about six are usual.
pub(super) const SWEEPS: i64 = 24;

/// The distance from 1 to the next larger number.
pub(super) fn epsilon(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => f64::EPSILON,
        _ => f64::from(f32::EPSILON),
    }
}

/// Who is rotated with whom: the partner of each number, as a vector of indices.
pub(super) struct Pairing {
    pub partners: Value,
    /// 1 for the first of a pair, -1 for the second, 0 for who has no partner but itself.
    pub order: Value,
}

/// The pairs of a step.
pub(super) fn pairing(cx: &Cx, n: &Expr, numbers: Value, step: Value, dtype: DType) -> Pairing {
    let partners = cx.mod_(cx.sub(step, numbers), cx.size(n), attrs::Mod::default());
    let order = cx.cast(cx.sign(cx.sub(partners, numbers)), dtype);
    Pairing { partners, order }
}

/// Cosine and sine (with the direction that makes the product real) of the rotations that make `product` zero, where `own`
/// and `other` are the squares or diagonal elements of each number and of its partner.
pub(super) fn rotation(
    cx: &Cx,
    own: Value,
    other: Value,
    product: Num,
    order: Value,
) -> (Value, Num) {
    let size = product.abs(cx);
    let double = cx.mul(size, 2.0);
    let gap = cx.sub(other, own);
    // tan = sign(gap) 2|p| / (|gap| + sqrt(gap^2 + 4|p|^2)), the smaller angle; equal ones turn by 45 degrees.
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

/// Columns turned: each its own times the cosine, less its partner's times the sine.
pub(super) fn turn_columns(cx: &Cx, a: Num, pairs: &Pairing, cos: Value, sin: Num) -> Num {
    let rank = cx.rank(a.re);
    let wide = |x: Value| cx.unsqueeze(x, &[rank - 2]);
    let others = a.map(|x| cx.gather(x, pairs.partners, rank - 1));
    a.times(cx, wide(cos)).sub(cx, others.mul(cx, sin.map(wide)))
}

/// Eigenvalues of a Hermitian matrix in no order, and its eigenvectors if wanted.
fn diagonalise(cx: &Cx, a: Num, vectors: bool) -> (Value, Option<Num>) {
    let (n, dtype) = (rows_of(cx, a), cx.dtype(a.re));
    let rank = cx.rank(a.re);
    let numbers = cx.iota(&n);
    let one = identity(cx, &n, dtype);
    let off = cx.sub(1.0, one);
    let mut start = vec![a];
    if vectors {
        let v = cx.expand(one, &cx.shape(a.re));
        start.push(if a.im.is_some() { Num::from(v).complex(cx) } else { v.into() });
    }
    let on_diagonal = |a: Num| cx.reduce(Reduction::Sum, cx.mul(a.re, one), &[rank - 1], false);
    let most = |x: Value| cx.reduce(Reduction::Max, x, &[], false);
    let (state, _) = iterate(cx, &(&n * SWEEPS), &start, |step, state| {
        let pairs = pairing(cx, &n, numbers, step, dtype);
        let own = on_diagonal(state[0]);
        let other = cx.gather(own, pairs.partners, rank - 2);
        // Of row i the element at its partner: the only one where the mask is.
        let mask = cx.cast(cx.equal(cx.unsqueeze(pairs.partners, &[1]), numbers), dtype);
        let picked = state[0].times(cx, mask);
        let product = picked.map(|x| cx.reduce(Reduction::Sum, x, &[rank - 1], false));
        let (cos, sin) = rotation(cx, own, other, product, pairs.order);
        let turned = turn_columns(cx, state[0], &pairs, cos, sin);
        let turned = turn_columns(cx, turned.adjoint(cx), &pairs, cos, sin);
        // A Hermitian matrix is its own adjoint.
        let size = magnitude(cx, turned);
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

fn magnitude(cx: &Cx, a: Num) -> Value {
    super::lu::magnitude(cx, a)
}

/// The Hermitian matrix of which only that triangle is given.
pub(super) fn hermitian(cx: &Cx, a: Num, upper: bool) -> Num {
    let strict = triangle(cx, a, upper, if upper { 1 } else { -1 });
    let real = Num::from(diagonal_matrix(cx, a));
    let half = match a.im {
        Some(_) => strict.add(cx, real.complex(cx)),
        None => triangle(cx, a, upper, 0),
    };
    half.add(cx, strict.adjoint(cx))
}

/// The real parts of the diagonal, zeros around them.
fn diagonal_matrix(cx: &Cx, a: Num) -> Value {
    cx.mul(a.re, identity(cx, &rows_of(cx, a), cx.dtype(a.re)))
}

/// Ascending eigenvalues and, if wanted, their eigenvectors, of a Hermitian matrix.
pub(super) fn eigh(cx: &Cx, a: Num, vectors: bool) -> (Value, Option<Num>) {
    let n = rows_of(cx, a);
    if cx.shape(a.re).iter().any(|d| d.as_int() == Some(0)) {
        let values = cx.full(&shape_with(&batch_of(cx, a), &[&n]), 0, cx.dtype(a.re));
        return (values, vectors.then_some(a));
    }
    let (values, vectors) = diagonalise(cx, a, vectors);
    let (sorted, order) = sort(cx, values, false);
    (sorted, vectors.map(|v| pick_columns(cx, v, order)))
}

/// Sorted along the last dimension, and the order.
pub(super) fn sort(cx: &Cx, x: Value, largest: bool) -> (Value, Value) {
    let n = cx.sizes(&[cx.dim(x, -1)]);
    let options = attrs::TopK { largest, ..Default::default() };
    let [sorted, order] = cx.top_k(x, n, options);
    cx.set_type(sorted, pt2onnx_ir::Type::tensor(cx.dtype(x), cx.shape(x)));
    cx.set_type(order, pt2onnx_ir::Type::tensor(DType::I64, cx.shape(x)));
    (sorted, order)
}

fn linalg_eigh(cx: &Cx, a: Num, uplo: String) -> Lowered<Outputs> {
    linalg_eigh_values(cx, a, uplo, true)
}

fn linalg_eigh_values(cx: &Cx, a: Num, uplo: String, vectors: bool) -> Lowered<Outputs> {
    let a = hermitian(cx, a, uplo.eq_ignore_ascii_case("u"));
    let (values, vectors) = eigh(cx, a, vectors);
    let vectors = match vectors {
        Some(v) => Some(v.value(cx)),
        None => cx.recorded(1).map(|m| cx.full(&m.sizes, 0, cx.dtype(a.re))),
    };
    Ok(Outputs(smallvec![Some(values), vectors]))
}

fn eigvalsh(cx: &Cx, a: Num, uplo: String) -> Lowered {
    let a = hermitian(cx, a, uplo.eq_ignore_ascii_case("u"));
    Ok(eigh(cx, a, false).0)
}
