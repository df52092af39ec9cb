//! Singular values by one-sided Jacobi rotations (Hestenes), and pseudo-inverses and ranks from
//! them.

use crate::math::matrix::iterate::{Step, iterate};
use crate::math::matrix::jacobi::{SWEEPS, hermitian, pairing, rotation, sort_last, turn_columns};
use crate::math::matrix::qr::{orthogonal, reflect, signs};
use crate::math::matrix::{
    batch_of, columns_of, identity, pick_columns, rows_of, shape_with, smaller, unit,
};
use crate::math::precision::epsilon;
use crate::math::shape::has_no_elements;
use crate::{Complex, Cx};
use pt2onnx_ir::{Reduction, Type, Value};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

/// W and V of `A V = W`, where V is unitary and the columns of W are orthogonal. They are in
/// descending order of their lengths, the singular values.
struct Rotated {
    /// W.
    columns: Complex,
    /// V, if it was asked for.
    rotations: Option<Complex>,
    /// The lengths of the columns of W.
    values: Value,
}

/// Rotates pairs of columns until all are orthogonal to each other.
fn rotate(cx: &Cx, a: Complex, with_rotations: bool) -> Rotated {
    let (n, dtype) = (columns_of(cx, a), cx.dtype(a.re));
    let rank = cx.rank(a.re);
    let numbers = cx.iota(&n);
    let mut start = vec![a];
    if with_rotations {
        let shape = shape_with(&batch_of(cx, a), &[&n, &n]);
        let v = cx.expand(identity(cx, &n, dtype), &shape);
        start.push(match a.im {
            Some(_) => Complex::from(v).complex(cx),
            None => v.into(),
        });
    }
    // The largest cosine between two columns in this sweep. The loop ends after a sweep in which it
    // stayed below the bound.
    start.push(cx.scalar(0, dtype).into());
    let most = |x: Value| cx.reduce(Reduction::Max, x, &[], false);
    let (state, _) = iterate(cx, &(&n * SWEEPS), &start, |step, state| {
        let pairs = pairing(cx, &n, numbers, step, dtype);
        let total = |x: Value| cx.reduce(Reduction::Sum, x, &[rank - 2], false);
        let own = total(state[0].abs2(cx));
        let other = cx.gather(own, pairs.partners, rank - 2);
        let partners = state[0].map(|x| cx.gather(x, pairs.partners, rank - 1));
        let product = state[0].conj(cx).mul(cx, partners).map(total);
        let (cos, sin) = rotation(cx, own, other, product, pairs.order);
        // Columns that are only rounding errors count as zeros.
        let floor = cx.mul(most(own), epsilon(dtype) * epsilon(dtype));
        let scale = cx.sqrt(cx.mul(own, other));
        let open = cx.mul(product.abs(cx), cx.abs(pairs.order));
        let cosine = cx.div(open, cx.select(cx.greater(scale, floor), scale, f64::INFINITY));
        let before = state.last().map_or(cosine, |s| s.re);
        let largest = cx.maximum(before, most(cosine));
        let number = cx.squeeze(step, &[0]);
        let last = cx.mod_(cx.add(number, 1), cx.size(&n), Default::default());
        let ends = cx.equal(last, 0);
        let go_on = cx.or(cx.not(ends), cx.greater(largest, epsilon(dtype) * 4.0));
        let mut after = vec![turn_columns(cx, state[0], &pairs, cos, sin)];
        if with_rotations {
            after.push(turn_columns(cx, state[1], &pairs, cos, sin));
        }
        after.push(cx.select(ends, 0.0, largest).into());
        Step { state: after, collected: Vec::new(), go_on: Some(go_on) }
    });
    let lengths = cx.sqrt(cx.reduce(Reduction::Sum, state[0].abs2(cx), &[rank - 2], false));
    let (values, order) = sort_last(cx, lengths, true);
    Rotated {
        columns: pick_columns(cx, state[0], order),
        rotations: with_rotations.then(|| pick_columns(cx, state[1], order)),
        values,
    }
}

/// Whether a matrix is known to have at least as many columns as rows: then its adjoint takes less
/// work.
fn is_wide(cx: &Cx, a: Complex) -> bool {
    cx.constraints().prove_ge(&columns_of(cx, a), &rows_of(cx, a))
}

/// The first `k` elements of each vector.
fn first(cx: &Cx, x: Value, k: &Expr) -> Value {
    cx.slice(x, cx.rank(x) - 1, &Expr::int(0), k, 1)
}

/// The singular values in descending order.
pub fn singular_values(cx: &Cx, a: Complex) -> Value {
    let k = smaller(cx, &rows_of(cx, a), &columns_of(cx, a));
    if has_no_elements(&cx.shape(a.re)) {
        let shape = shape_with(&batch_of(cx, a), &[&k]);
        return cx.full(&shape, 0, cx.dtype(a.re));
    }
    let a = if is_wide(cx, a) { a.adjoint(cx) } else { a };
    first(cx, rotate(cx, a, false).values, &k)
}

/// U, S and V of `A = U S V^H`. With `full`, U and V are square; else they have as many columns as
/// there are singular values.
pub fn decompose(cx: &Cx, a: Complex, full: bool) -> (Complex, Value, Complex) {
    let (m, n) = (rows_of(cx, a), columns_of(cx, a));
    if is_wide(cx, a) && m != n {
        let (v, s, u) = decompose(cx, a.adjoint(cx), full);
        return (u, s, v);
    }
    let k = smaller(cx, &m, &n);
    if has_no_elements(&cx.shape(a.re)) {
        let batch = batch_of(cx, a);
        let basis = |rows: &Expr| {
            let columns = if full { rows } else { &k };
            let ones = unit(cx, rows, columns, cx.dtype(a.re));
            let wide = cx.expand(ones, &shape_with(&batch, &[rows, columns]));
            a.im.map_or(Complex::from(wide), |_| Complex::from(wide).complex(cx))
        };
        let s = cx.full(&shape_with(&batch, &[&k]), 0, cx.dtype(a.re));
        return (basis(&m), s, basis(&n));
    }
    let rotated = rotate(cx, a, true);
    let v = rotated.rotations.unwrap_or(a);
    let v = if full || k == n { v } else { v.map(|x| first(cx, x, &k)) };
    // Columns of length zero have no direction: reflections find one for them. The triangle is
    // diagonal.
    let reflected = reflect(cx, rotated.columns);
    let columns = if full { &m } else { &k };
    let q = orthogonal(cx, reflected.vectors, reflected.taus, columns);
    let mut signs = signs(cx, reflected.matrix);
    if full {
        // The columns beyond the singular values keep their signs.
        let rest = cx.sizes(&[Expr::int(0), columns - &k]);
        let one = cx.scalar(1, cx.dtype(a.re));
        let last = cx.ints(&[cx.rank(signs.re) as i64 - 1]);
        let padded = |x: Value, with: Option<Value>| {
            if *columns == k { x } else { cx.pad(x, rest, with, last, Default::default()) }
        };
        signs = Complex::new(padded(signs.re, Some(one)), signs.im.map(|x| padded(x, None)));
    }
    let rank = cx.rank(q.re);
    let u = q.mul(cx, signs.map(|x| cx.unsqueeze(x, &[rank - 2])));
    let shape = cx.shape(q.re);
    u.parts().iter().for_each(|&x| {
        cx.set_type(x, Type::tensor(cx.dtype(x), shape.clone()));
    });
    (u, first(cx, rotated.values, &k), v)
}

/// Singular values up to `max(atol, rtol * largest)` count as 0.
pub struct Cutoff {
    /// The absolute tolerance.
    pub atol: Option<Value>,
    /// The tolerance relative to the largest singular value.
    pub rtol: Option<Value>,
}

impl Cutoff {
    /// `max(atol, rtol * largest)`. Each tolerance is one number for all matrices or one for each.
    /// If `rtol` is not given, it is the precision times the larger side of the matrix, or 0 where
    /// `atol` is positive.
    fn bound(&self, cx: &Cx, a: Complex, largest: Value) -> Value {
        let dtype = cx.dtype(a.re);
        let column = |x: Value| {
            let x = cx.cast(x, dtype);
            cx.unsqueeze(x, &[cx.rank(x)])
        };
        let (m, n) = (rows_of(cx, a), columns_of(cx, a));
        let default = || match (m.as_int(), n.as_int()) {
            (Some(m), Some(n)) => cx.scalar(epsilon(dtype) * m.max(n) as f64, dtype),
            _ => {
                let side = cx.cast(cx.size(&Expr::max(&m, &n)), dtype);
                cx.mul(side, epsilon(dtype))
            }
        };
        let atol = self.atol.map(column);
        let rtol = match (self.rtol, atol) {
            (Some(rtol), _) => column(rtol),
            (None, None) => default(),
            (None, Some(atol)) => cx.select(cx.greater(atol, 0.0), 0.0, default()),
        };
        let relative = cx.mul(rtol, largest);
        atol.map_or(relative, |atol| cx.maximum(atol, relative))
    }
}

/// The pseudo-inverse `V S^+ U^H`. Only the lower triangle of a Hermitian matrix is read.
pub fn pseudo_inverse(cx: &Cx, a: Complex, cutoff: &Cutoff, is_hermitian: bool) -> Complex {
    if has_no_elements(&cx.shape(a.re)) {
        let shape = shape_with(&batch_of(cx, a), &[&columns_of(cx, a), &rows_of(cx, a)]);
        let zeros = Complex::from(cx.full(&shape, 0, cx.dtype(a.re)));
        return zeros.like(cx, a);
    }
    let a = if is_hermitian { hermitian(cx, a, false) } else { a };
    // pinv(A) = pinv(A^H)^H
    let wide = is_wide(cx, a);
    let rotated = rotate(cx, if wide { a.adjoint(cx) } else { a }, true);
    let v = rotated.rotations.unwrap_or(a);
    let rank = cx.rank(a.re);
    let largest = cx.reduce(Reduction::Max, rotated.values, &[rank - 2], true);
    let counts = cx.greater(rotated.values, cutoff.bound(cx, a, largest));
    let inverse = cx.reciprocal(cx.select(counts, rotated.values, 1.0));
    let inverse = cx.unsqueeze(cx.select(counts, inverse, 0.0), &[rank - 2]);
    // The columns are U S.
    let u = rotated.columns.times(cx, inverse);
    let v = v.times(cx, inverse);
    if wide { u.matmul(cx, v.adjoint(cx)) } else { v.matmul(cx, u.adjoint(cx)) }
}

/// The number of singular values that are not 0.
pub fn rank_of(cx: &Cx, a: Complex, cutoff: &Cutoff, is_hermitian: bool) -> Value {
    if has_no_elements(&cx.shape(a.re)) {
        return cx.full(&batch_of(cx, a), 0, DType::I64);
    }
    let a = if is_hermitian { hermitian(cx, a, false) } else { a };
    let values = singular_values(cx, a);
    let last = cx.rank(values) - 1;
    let largest = cx.reduce(Reduction::Max, values, &[last], true);
    let counts = cx.greater(values, cutoff.bound(cx, a, largest));
    let counts = cx.cast(counts, DType::I64);
    cx.reduce(Reduction::Sum, counts, &[cx.rank(counts) - 1], false)
}
