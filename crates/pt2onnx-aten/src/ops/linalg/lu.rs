//! LU factors with partial pivoting, and determinants.

use super::{
    super::num::Num,
    batch_of, column, columns_of, count_rows, diagonal,
    iterate::{Step, iterate},
    row, rows_of, shape_with, smaller,
    solve::triangular,
    triangle, unit,
};
use crate::{AtenOp, Cx, Lowered, cx::Outputs, registry::aten};
use pt2onnx_ir::{Reduction, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;
use smallvec::smallvec;

pub(in super::super) static OPS: &[AtenOp] = &[
    aten!("aten::_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)", det_lu, complex: det_lu),
    aten!("aten::_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)", slogdet_lu, complex: slogdet_lu),
    aten!("aten::_lu_with_info(Tensor self, bool pivot=True, bool check_errors=True) -> (Tensor LU, Tensor pivots, Tensor info)", lu_with_info, complex: lu_with_info),
    aten!("aten::det(Tensor self) -> Tensor", det, complex: det),
    aten!("aten::linalg_det(Tensor A) -> Tensor", det, complex: det),
    aten!("aten::linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)", linalg_lu, complex: linalg_lu),
    aten!("aten::linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)", lu_factor, complex: lu_factor),
    aten!("aten::linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor pivots, Tensor info)", lu_factor_ex, complex: lu_factor_ex),
    aten!("aten::linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor", linalg_lu_solve, complex: linalg_lu_solve),
    aten!("aten::linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)", slogdet, complex: slogdet),
    aten!("aten::logdet(Tensor self) -> Tensor", logdet, complex: logdet),
    aten!("aten::lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor", lu_solve, complex: lu_solve),
    aten!("aten::lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> (Tensor P, Tensor L, Tensor U)", lu_unpack, complex: lu_unpack),
    aten!("aten::slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)", slogdet, complex: slogdet),
];

/// `A[permutation] = L @ U`.
pub(super) struct Lu {
    /// L below the diagonal (which is 1), U on it and above.
    pub packed: Num,
    /// For each row of the factors, which of the matrix it was.
    pub permutation: Value,
    /// For each step, the row it was exchanged with, counted from 1; int32.
    pub pivots: Value,
}

/// What looks for the largest element: as LAPACK, of complex ones the sum of both parts' absolute values.
pub(super) fn magnitude(cx: &Cx, a: Num) -> Value {
    match a.im {
        None => cx.abs(a.re),
        Some(im) => cx.add(cx.abs(a.re), cx.abs(im)),
    }
}

/// For each row, which one comes there when row `k` and the row with the largest element of `column` from `k` on change
/// places; and that row.
pub(super) fn exchange(cx: &Cx, rows: Value, k: Value, column: Num) -> (Value, Value) {
    let axis = cx.rank(column.re) as i64 - 2;
    let behind = cx.select(cx.less(rows, k), -1.0, magnitude(cx, column));
    let options = attrs::ArgMax { axis, ..Default::default() };
    let largest = cx.arg_max(behind, options);
    let swapped = cx.select(cx.equal(rows, largest), k, rows);
    (cx.select(cx.equal(rows, k), largest, swapped), largest)
}

/// The rows of `a` in that order.
pub(super) fn reorder(cx: &Cx, a: Num, order: Value) -> Num {
    let axis = cx.rank(a.re) as i64 - 2;
    let order = cx.expand(order, &cx.shape(a.re));
    a.map(|x| cx.gather_elements(x, order, attrs::GatherElements { axis }))
}

/// Gaussian elimination, one column a step.
pub(super) fn factors(cx: &Cx, a: Num, pivot: bool) -> Lu {
    let (m, n) = (rows_of(cx, a), columns_of(cx, a));
    let (rows, columns) = (count_rows(cx, &m), cx.iota(&n));
    let steps = smaller(cx, &m, &n);
    let in_order = cx.expand(rows, &shape_with(&batch_of(cx, a), &[&m, &Expr::int(1)]));
    let one = cx.scalar(1, cx.dtype(a.re));
    let (state, collected) = iterate(cx, &steps, &[a, in_order.into()], |k, state| {
        let (mut a, mut permutation) = (state[0], state[1]);
        // (.., 1, 1)
        let chosen = match pivot {
            true => {
                let (order, largest) = exchange(cx, rows, k, column(cx, a, k));
                a = reorder(cx, a, order);
                permutation = reorder(cx, permutation, order);
                largest
            }
            false => {
                let ones = vec![Expr::int(1); cx.rank(a.re)];
                let shape = shape_with(&batch_of(cx, a), &[&Expr::int(1), &Expr::int(1)]);
                cx.expand(cx.reshape(k, &ones), &shape)
            }
        };
        let (column, row) = (column(cx, a, k), row(cx, a, k));
        let pivot = super::column(cx, row, k);
        let below = cx.greater(rows, k);
        // Where all is zero, there is nothing to eliminate.
        let zero = cx.equal(magnitude(cx, pivot), 0.0);
        let divisor = Num::from(one).select(cx, zero, pivot);
        let factor = column.div(cx, divisor).keep(cx, below);
        let behind = row.keep(cx, cx.greater(columns, k));
        let updated = a.sub(cx, factor.mul(cx, behind));
        let stored = factor.select(cx, below, column);
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

/// L and U apart.
fn unpack(cx: &Cx, packed: Num) -> (Num, Num) {
    let (m, n) = (rows_of(cx, packed), columns_of(cx, packed));
    let k = smaller(cx, &m, &n);
    let rank = cx.rank(packed.re);
    let cut = |a: Num, axis: usize| a.map(|x| cx.slice(x, axis, &Expr::int(0), &k, 1));
    let lower = triangle(cx, cut(packed, rank - 1), false, -1);
    let ones = unit(cx, &m, &k, cx.dtype(packed.re));
    let upper = triangle(cx, cut(packed, rank - 2), true, 0);
    (lower.add(cx, ones.into()), upper)
}

/// P with `A = P @ L @ U`: ones where a row came from.
fn permutation_matrix(cx: &Cx, permutation: Value, dtype: DType) -> Value {
    let rank = cx.rank(permutation);
    let rows = count_rows(cx, &cx.dim(permutation, -1));
    let from = cx.unsqueeze(permutation, &[rank - 1]);
    cx.cast(cx.equal(rows, from), dtype)
}

/// The order of rows that `pivots` lead to, one exchange after the other.
fn permutation_of(cx: &Cx, pivots: Value, rows: &Expr) -> Value {
    let numbers = count_rows(cx, rows);
    let mut shape = cx.shape(pivots);
    let steps = shape.pop().unwrap_or(Expr::int(0));
    let start = cx.expand(numbers, &shape_with(&shape, &[rows, &Expr::int(1)]));
    let rank = cx.rank(start);
    let (state, _) = iterate(cx, &steps, &[start.into()], |k, state| {
        let pivot = cx.sub(cx.cast(cx.gather(pivots, k, rank - 2), DType::I64), 1);
        let pivot = cx.unsqueeze(pivot, &[rank - 1]);
        let swapped = cx.select(cx.equal(numbers, pivot), k, numbers);
        let order = cx.select(cx.equal(numbers, k), pivot, swapped);
        Step::state(vec![reorder(cx, state[0], order)])
    });
    cx.squeeze(state[0].re, &[rank - 1])
}

fn linalg_lu(cx: &Cx, a: Num, pivot: bool) -> Lowered<Outputs> {
    let lu = factors(cx, a, pivot);
    let (l, u) = unpack(cx, lu.packed);
    let dtype = cx.dtype(a.re);
    let p = match pivot {
        true => like(cx, permutation_matrix(cx, lu.permutation, dtype), a),
        false => cx.full(&cx.out_shape()?, 0, dtype).into(),
    };
    let p = match (pivot, a.im) {
        // Without pivoting, an empty vector, of the matrix's type.
        (false, Some(_)) => p.complex(cx),
        _ => p,
    };
    Ok(Outputs(smallvec![Some(p.value(cx)), Some(l.value(cx)), Some(u.value(cx))]))
}

/// A real tensor, complex if `a` is.
fn like(cx: &Cx, x: Value, a: Num) -> Num {
    match a.im {
        Some(_) => Num::from(x).complex(cx),
        None => x.into(),
    }
}

/// The first step whose pivot is zero, counted from 1, or 0; int32.
fn info(cx: &Cx, packed: Num) -> Value {
    let zeros = cx.equal(magnitude(cx, diagonal(cx, packed)), 0.0);
    first_of(cx, zeros)
}

/// The first place in the last dimension that is true, counted from 1, or 0 where none is; int32.
pub(super) fn first_of(cx: &Cx, flags: Value) -> Value {
    let rank = cx.rank(flags);
    let mut shape = cx.shape(flags);
    shape.pop();
    if cx.dim(flags, -1).as_int() == Some(0) {
        return cx.full(&shape, 0, DType::I32);
    }
    let flags = cx.cast(flags, DType::I32);
    let options = attrs::ArgMax { axis: rank as i64 - 1, keepdims: false, ..Default::default() };
    let first = cx.cast(cx.add(cx.arg_max(flags, options), 1), DType::I32);
    let any = cx.reduce(Reduction::Max, flags, &[rank - 1], false);
    cx.mul(first, any)
}

fn lu_factor(cx: &Cx, a: Num, pivot: bool) -> Lowered<[Value; 2]> {
    let lu = factors(cx, a, pivot);
    Ok([lu.packed.value(cx), lu.pivots])
}

fn lu_factor_ex(cx: &Cx, a: Num, pivot: bool, _check_errors: bool) -> Lowered<[Value; 3]> {
    let lu = factors(cx, a, pivot);
    let info = info(cx, lu.packed);
    Ok([lu.packed.value(cx), lu.pivots, info])
}

fn lu_with_info(cx: &Cx, a: Num, pivot: bool, check_errors: bool) -> Lowered<[Value; 3]> {
    lu_factor_ex(cx, a, pivot, check_errors)
}

fn lu_unpack(
    cx: &Cx,
    packed: Num,
    pivots: Value,
    _unpack_data: bool,
    _unpack_pivots: bool,
) -> Lowered<Outputs> {
    let (l, u) = unpack(cx, packed);
    let wanted = |i: usize| cx.recorded(i).is_some_and(|m| m.sizes.len() > 1);
    let p = wanted(0).then(|| {
        let order = permutation_of(cx, pivots, &rows_of(cx, packed));
        let p = permutation_matrix(cx, order, cx.dtype(packed.re));
        like(cx, p, packed).value(cx)
    });
    // What is not unpacked is an empty vector.
    let empty = |i: usize| {
        cx.recorded(i).map(|m| {
            let mut sizes = m.sizes.clone();
            sizes.extend(m.dtype.is_complex().then(|| Expr::int(2)));
            cx.full(&sizes, 0, cx.dtype(packed.re))
        })
    };
    let data = |i: usize, x: Num| match wanted(i) {
        true => Some(x.value(cx)),
        false => empty(i),
    };
    Ok(Outputs(smallvec![p.or_else(|| empty(0)), data(1, l), data(2, u)]))
}

/// `A X = B`, `A^H X = B` with `adjoint`; `X A = B` if not `left`.
fn linalg_lu_solve(
    cx: &Cx,
    packed: Num,
    pivots: Value,
    b: Num,
    left: bool,
    adjoint: bool,
) -> Lowered {
    let order = permutation_of(cx, pivots, &rows_of(cx, packed));
    let p: Num = permutation_matrix(cx, order, cx.dtype(packed.re)).into();
    // X A = B is A^H X^H = B^H.
    let b = if left { b } else { b.adjoint(cx) };
    let x = match adjoint == left {
        false => {
            let y = triangular(cx, packed, p.transpose(cx).matmul(cx, b), false, true);
            triangular(cx, packed, y, true, false)
        }
        // A^H = U^H L^H P^T
        true => {
            let y = triangular(cx, packed.adjoint(cx), b, false, false);
            p.matmul(cx, triangular(cx, packed.adjoint(cx), y, true, true))
        }
    };
    let x = if left { x } else { x.adjoint(cx) };
    Ok(x.value(cx))
}

fn lu_solve(cx: &Cx, b: Num, packed: Num, pivots: Value) -> Lowered {
    linalg_lu_solve(cx, packed, pivots, b, true, false)
}

/// 1 or -1: whether the exchanges are an even number.
fn parity(cx: &Cx, lu: &Lu, dtype: DType) -> Value {
    let steps = cx.dim(lu.pivots, -1);
    let own = cx.cast(cx.add(cx.iota(&steps), 1), DType::I32);
    let moved = cx.cast(cx.not(cx.equal(lu.pivots, own)), DType::I64);
    let count = cx.reduce(Reduction::Sum, moved, &[cx.rank(moved) - 1], false);
    let odd = cx.mod_(count, cx.scalar(2, DType::I64), attrs::Mod::default());
    cx.cast(cx.sub(1, cx.mul(odd, 2)), dtype)
}

/// The product along the last dimension.
fn product(cx: &Cx, a: Num) -> Num {
    let last = cx.rank(a.re) - 1;
    match a.im {
        None => cx.reduce(Reduction::Prod, a.re, &[last], false).into(),
        Some(_) => {
            let n = cx.dim(a.re, -1);
            let mut shape = cx.shape(a.re);
            shape.pop();
            let one = cx.full(&shape, 1, cx.dtype(a.re));
            let start = Num::from(one).complex(cx);
            let (state, _) = iterate(cx, &n, &[start], |k, state| {
                let factor = as_number(cx, a, k);
                Step::state(vec![state[0].mul(cx, factor)])
            });
            state[0]
        }
    }
}

/// Element `k` of each vector.
fn as_number(cx: &Cx, a: Num, k: Value) -> Num {
    let last = cx.rank(a.re) - 1;
    a.map(|x| cx.squeeze(cx.gather(x, k, last), &[last]))
}

/// `Det` of float32, which is what ONNX Runtime computes; otherwise the product of U's diagonal.
fn det(cx: &Cx, a: Num) -> Lowered {
    let empty = cx.shape(a.re).iter().any(|d| d.as_int() == Some(0));
    if a.im.is_none() && cx.dtype(a.re) == DType::F32 && !empty {
        return Ok(cx.det(a.re));
    }
    let lu = factors(cx, a, true);
    Ok(det_of(cx, &lu).value(cx))
}

fn det_of(cx: &Cx, lu: &Lu) -> Num {
    let product = product(cx, diagonal(cx, lu.packed));
    let sign = parity(cx, lu, cx.dtype(lu.packed.re));
    product.times(cx, sign)
}

fn det_lu(cx: &Cx, a: Num) -> Lowered<[Value; 3]> {
    let lu = factors(cx, a, true);
    Ok([det_of(cx, &lu).value(cx), lu.packed.value(cx), lu.pivots])
}

/// Sign (of complex ones, the direction) and logarithm of the absolute value.
fn sign_and_log(cx: &Cx, lu: &Lu) -> (Num, Value) {
    let diagonal = diagonal(cx, lu.packed);
    let size = diagonal.abs(cx);
    let last = cx.rank(size) - 1;
    let direction = match diagonal.im {
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

fn slogdet(cx: &Cx, a: Num) -> Lowered<[Value; 2]> {
    let (sign, log) = sign_and_log(cx, &factors(cx, a, true));
    Ok([sign.value(cx), log])
}

fn slogdet_lu(cx: &Cx, a: Num) -> Lowered<[Value; 4]> {
    let lu = factors(cx, a, true);
    let (sign, log) = sign_and_log(cx, &lu);
    Ok([sign.value(cx), log, lu.packed.value(cx), lu.pivots])
}

/// The sum of logarithms; of a negative determinant NaN, of complex ones with the angle as imaginary part.
fn logdet(cx: &Cx, a: Num) -> Lowered {
    let (sign, log) = sign_and_log(cx, &factors(cx, a, true));
    match sign.im {
        None => Ok(cx.select(cx.less(sign.re, 0.0), f64::NAN, log)),
        Some(im) => {
            let angle = super::functions::angle(cx, sign.re, im);
            let both = Num { re: log, im: Some(angle) };
            Ok(both.value(cx))
        }
    }
}
