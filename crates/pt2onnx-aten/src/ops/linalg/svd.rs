//! Singular values, by Jacobi's rotations of columns (Hestenes), and what is made of them.

use super::{
    super::num::Num,
    batch_of, columns_of,
    eigen::{SWEEPS, epsilon, hermitian, pairing, rotation, sort, turn_columns},
    identity,
    iterate::{Step, iterate},
    pick_columns,
    qr::{orthogonal, reflect, signs},
    rows_of, shape_with, smaller,
};
use crate::{AtenOp, Cx, LowerError, Lowered, cx::Outputs, registry::aten};
use pt2onnx_ir::{Reduction, Value};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;
use smallvec::smallvec;

pub(in super::super) static OPS: &[AtenOp] = &[
    aten!("aten::_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)", linalg_svd_uv, complex: linalg_svd_uv),
    aten!("aten::linalg_cond(Tensor self, Scalar? p=None) -> Tensor", cond, complex: cond),
    aten!("aten::linalg_matrix_rank(Tensor self, float tol, bool hermitian=False) -> Tensor", matrix_rank_tol, complex: matrix_rank_tol),
    aten!("aten::linalg_matrix_rank.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor", matrix_rank_float, complex: matrix_rank_float),
    aten!("aten::linalg_matrix_rank.atol_rtol_tensor(Tensor input, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor", matrix_rank_tensor, complex: matrix_rank_tensor),
    aten!("aten::linalg_matrix_rank.tol_tensor(Tensor input, Tensor tol, bool hermitian=False) -> Tensor", matrix_rank_tol_tensor, complex: matrix_rank_tol_tensor),
    aten!("aten::linalg_pinv(Tensor self, float rcond, bool hermitian=False) -> Tensor", pinv_rcond, complex: pinv_rcond),
    aten!("aten::linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor", pinv_float, complex: pinv_float),
    aten!("aten::linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor", pinv_tensor, complex: pinv_tensor),
    aten!("aten::linalg_pinv.rcond_tensor(Tensor self, Tensor rcond, bool hermitian=False) -> Tensor", pinv_rcond_tensor, complex: pinv_rcond_tensor),
    aten!("aten::linalg_polar(Tensor A) -> (Tensor U, Tensor H)", polar, complex: polar),
    aten!("aten::linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)", linalg_svd, complex: linalg_svd),
    aten!("aten::linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor", svdvals, complex: svdvals),
    aten!("aten::pinverse(Tensor self, float rcond=1.0000000000000001e-15) -> Tensor", pinverse, complex: pinverse),
    aten!("aten::svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)", svd, complex: svd),
];

/// `A V = W` with orthogonal columns W, in the order of their falling lengths, the singular values.
struct Rotated {
    /// W.
    columns: Num,
    /// V, if wanted.
    rotations: Option<Num>,
    /// Lengths of the columns.
    values: Value,
}

/// One-sided Jacobi: rotates pairs of columns until all are orthogonal to each other.
fn rotate(cx: &Cx, a: Num, with_rotations: bool) -> Rotated {
    let (n, dtype) = (columns_of(cx, a), cx.dtype(a.re));
    let rank = cx.rank(a.re);
    let numbers = cx.iota(&n);
    let mut start = vec![a];
    if with_rotations {
        let shape = shape_with(&batch_of(cx, a), &[&n, &n]);
        let v = cx.expand(identity(cx, &n, dtype), &shape);
        start.push(match a.im {
            Some(_) => Num::from(v).complex(cx),
            None => v.into(),
        });
    }
    // The largest cosine between two columns since the sweep began: a whole one must stay below the bound.
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
        // Columns of nothing but rounding count as zeros.
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
    let (values, order) = sort(cx, lengths, true);
    Rotated {
        columns: pick_columns(cx, state[0], order),
        rotations: with_rotations.then(|| pick_columns(cx, state[1], order)),
        values,
    }
}

fn is_empty(cx: &Cx, a: Num) -> bool {
    cx.shape(a.re).iter().any(|d| d.as_int() == Some(0))
}

/// Whether a matrix certainly has more columns than rows: then its adjoint takes less work.
fn is_wide(cx: &Cx, a: Num) -> bool {
    cx.constraints().prove_ge(&columns_of(cx, a), &rows_of(cx, a))
}

/// The first `k` of each vector.
fn first(cx: &Cx, x: Value, k: &Expr) -> Value {
    cx.slice(x, cx.rank(x) - 1, &Expr::int(0), k, 1)
}

/// Falling singular values.
pub(in super::super) fn singular_values(cx: &Cx, a: Num) -> Value {
    let k = smaller(cx, &rows_of(cx, a), &columns_of(cx, a));
    if is_empty(cx, a) {
        let shape = shape_with(&batch_of(cx, a), &[&k]);
        return cx.full(&shape, 0, cx.dtype(a.re));
    }
    let a = if is_wide(cx, a) { a.adjoint(cx) } else { a };
    first(cx, rotate(cx, a, false).values, &k)
}

/// `A = U S V^H`; U and V square with `full`, else of as many columns as there are singular values.
fn decompose(cx: &Cx, a: Num, full: bool) -> (Num, Value, Num) {
    let (m, n) = (rows_of(cx, a), columns_of(cx, a));
    if is_wide(cx, a) && m != n {
        let (v, s, u) = decompose(cx, a.adjoint(cx), full);
        return (u, s, v);
    }
    let k = smaller(cx, &m, &n);
    if is_empty(cx, a) {
        let batch = batch_of(cx, a);
        let basis = |rows: &Expr| {
            let columns = if full { rows } else { &k };
            let ones = super::unit(cx, rows, columns, cx.dtype(a.re));
            let wide = cx.expand(ones, &shape_with(&batch, &[rows, columns]));
            a.im.map_or(Num::from(wide), |_| Num::from(wide).complex(cx))
        };
        let s = cx.full(&shape_with(&batch, &[&k]), 0, cx.dtype(a.re));
        return (basis(&m), s, basis(&n));
    }
    let rotated = rotate(cx, a, true);
    let v = rotated.rotations.unwrap_or(a);
    let v = match full || k == n {
        true => v,
        false => v.map(|x| first(cx, x, &k)),
    };
    // Columns of length zero have no direction: reflections find one for them. The triangle is diagonal.
    let reflected = reflect(cx, rotated.columns);
    let columns = if full { &m } else { &k };
    let q = orthogonal(cx, reflected.vectors, reflected.taus, columns);
    let mut signs = signs(cx, reflected.matrix);
    if full {
        // The columns behind the singular values are as they come.
        let rest = cx.sizes(&[Expr::int(0), columns - &k]);
        let one = cx.scalar(1, cx.dtype(a.re));
        let last = cx.ints(&[cx.rank(signs.re) as i64 - 1]);
        let padded = |x: Value, with: Option<Value>| match *columns == k {
            true => x,
            false => cx.pad(x, rest, with, last, Default::default()),
        };
        signs = Num { re: padded(signs.re, Some(one)), im: signs.im.map(|x| padded(x, None)) };
    }
    let rank = cx.rank(q.re);
    let u = q.mul(cx, signs.map(|x| cx.unsqueeze(x, &[rank - 2])));
    let shape = cx.shape(q.re);
    u.parts().iter().for_each(|&x| {
        cx.set_type(x, pt2onnx_ir::Type::tensor(cx.dtype(x), shape.clone()));
    });
    (u, first(cx, rotated.values, &k), v)
}

fn linalg_svd(cx: &Cx, a: Num, full: bool, _driver: Option<String>) -> Lowered<[Value; 3]> {
    let (u, s, v) = decompose(cx, a, full);
    Ok([u.value(cx), s, v.adjoint(cx).value(cx)])
}

fn linalg_svd_uv(
    cx: &Cx,
    a: Num,
    full: bool,
    vectors: bool,
    driver: Option<String>,
) -> Lowered<Outputs> {
    if vectors {
        return Ok(linalg_svd(cx, a, full, driver)?.into());
    }
    let s = singular_values(cx, a);
    let empty = |i: usize| {
        cx.recorded(i).map(|m| {
            let mut sizes = m.sizes.clone();
            sizes.extend(m.dtype.is_complex().then(|| Expr::int(2)));
            cx.full(&sizes, 0, cx.dtype(a.re))
        })
    };
    Ok(Outputs(smallvec![empty(0), Some(s), empty(2)]))
}

/// The old form: V, not its adjoint; zeros where no vectors are wanted.
fn svd(cx: &Cx, a: Num, some: bool, vectors: bool) -> Lowered<[Value; 3]> {
    if vectors {
        let (u, s, v) = decompose(cx, a, !some);
        return Ok([u.value(cx), s, v.value(cx)]);
    }
    let zeros = |n: &Expr| {
        let shape = shape_with(&batch_of(cx, a), &[n, n]);
        let zeros = Num::from(cx.full(&shape, 0, cx.dtype(a.re)));
        a.im.map_or(zeros, |_| zeros.complex(cx)).value(cx)
    };
    let s = singular_values(cx, a);
    Ok([zeros(&rows_of(cx, a)), s, zeros(&columns_of(cx, a))])
}

fn svdvals(cx: &Cx, a: Num, _driver: Option<String>) -> Lowered {
    Ok(singular_values(cx, a))
}

/// `A = U H` with unitary U (or one of orthonormal columns) and positive H.
fn polar(cx: &Cx, a: Num) -> Lowered<[Value; 2]> {
    let (u, s, v) = decompose(cx, a, false);
    let rank = cx.rank(a.re);
    let vh = v.adjoint(cx);
    let h = v.times(cx, cx.unsqueeze(s, &[rank - 2])).matmul(cx, vh);
    Ok([u.matmul(cx, vh).value(cx), h.value(cx)])
}

/// Which singular values count: those above `max(atol, rtol * largest)`.
struct Cutoff {
    atol: Option<Value>,
    rtol: Option<Value>,
}

impl Cutoff {
    fn floats(cx: &Cx, dtype: DType, atol: Option<f64>, rtol: Option<f64>) -> Self {
        let [atol, rtol] = [atol, rtol].map(|x| x.map(|x| cx.scalar(x, dtype)));
        Self { atol, rtol }
    }

    /// Each tolerance is one number for all matrices or one for each. Without a relative one, the precision times the larger
    /// side, or nothing where the absolute one is above zero.
    fn bound(&self, cx: &Cx, a: Num, largest: Value) -> Value {
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

/// `V S^+ U^H`; of a Hermitian matrix only the lower triangle counts.
fn pseudo_inverse(cx: &Cx, a: Num, cutoff: &Cutoff, is_hermitian: bool) -> Lowered {
    if is_empty(cx, a) {
        let shape = cx.out_shape()?;
        let zeros = Num::from(cx.full(&shape, 0, cx.dtype(a.re)));
        return Ok(a.im.map_or(zeros, |_| zeros.complex(cx)).value(cx));
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
    let result = match wide {
        true => u.matmul(cx, v.adjoint(cx)),
        false => v.matmul(cx, u.adjoint(cx)),
    };
    Ok(result.value(cx))
}

fn pinv_float(
    cx: &Cx,
    a: Num,
    atol: Option<f64>,
    rtol: Option<f64>,
    is_hermitian: bool,
) -> Lowered {
    let cutoff = Cutoff::floats(cx, cx.dtype(a.re), atol, rtol);
    pseudo_inverse(cx, a, &cutoff, is_hermitian)
}

fn pinv_tensor(
    cx: &Cx,
    a: Num,
    atol: Option<Value>,
    rtol: Option<Value>,
    is_hermitian: bool,
) -> Lowered {
    pseudo_inverse(cx, a, &Cutoff { atol, rtol }, is_hermitian)
}

fn pinv_rcond(cx: &Cx, a: Num, rcond: f64, is_hermitian: bool) -> Lowered {
    pinv_float(cx, a, Some(0.0), Some(rcond), is_hermitian)
}

fn pinv_rcond_tensor(cx: &Cx, a: Num, rcond: Value, is_hermitian: bool) -> Lowered {
    pinv_tensor(cx, a, None, Some(rcond), is_hermitian)
}

fn pinverse(cx: &Cx, a: Num, rcond: f64) -> Lowered {
    pinv_rcond(cx, a, rcond, false)
}

/// How many singular values count.
fn rank_of(cx: &Cx, a: Num, cutoff: &Cutoff, is_hermitian: bool) -> Lowered {
    if is_empty(cx, a) {
        return Ok(cx.full(&cx.out_shape()?, 0, DType::I64));
    }
    let a = if is_hermitian { hermitian(cx, a, false) } else { a };
    let values = singular_values(cx, a);
    let last = cx.rank(values) - 1;
    let largest = cx.reduce(Reduction::Max, values, &[last], true);
    let counts = cx.greater(values, cutoff.bound(cx, a, largest));
    let counts = cx.cast(counts, DType::I64);
    Ok(cx.reduce(Reduction::Sum, counts, &[cx.rank(counts) - 1], false))
}

fn matrix_rank_float(
    cx: &Cx,
    a: Num,
    atol: Option<f64>,
    rtol: Option<f64>,
    is_hermitian: bool,
) -> Lowered {
    let cutoff = Cutoff::floats(cx, cx.dtype(a.re), atol, rtol);
    rank_of(cx, a, &cutoff, is_hermitian)
}

fn matrix_rank_tensor(
    cx: &Cx,
    a: Num,
    atol: Option<Value>,
    rtol: Option<Value>,
    is_hermitian: bool,
) -> Lowered {
    rank_of(cx, a, &Cutoff { atol, rtol }, is_hermitian)
}

fn matrix_rank_tol(cx: &Cx, a: Num, tol: f64, is_hermitian: bool) -> Lowered {
    matrix_rank_float(cx, a, Some(tol), Some(0.0), is_hermitian)
}

fn matrix_rank_tol_tensor(cx: &Cx, a: Num, tol: Value, is_hermitian: bool) -> Lowered {
    let zero = cx.scalar(0, cx.dtype(a.re));
    matrix_rank_tensor(cx, a, Some(tol), Some(zero), is_hermitian)
}

/// The ratio of the largest to the smallest singular value; other norms: `|A| |A^-1|`.
fn cond(cx: &Cx, a: Num, p: Option<f64>) -> Lowered {
    let norm = |a: Num, p: f64| {
        let rank = cx.rank(a.re);
        // Sums along columns for 1, along rows for infinity.
        let (along, then) =
            if p.abs() == 1.0 { (rank - 2, rank - 2) } else { (rank - 1, rank - 2) };
        let sums = cx.reduce(Reduction::Sum, a.abs(cx), &[along], false);
        let op = if p > 0.0 { Reduction::Max } else { Reduction::Min };
        cx.reduce(op, sums, &[then], false)
    };
    match p.unwrap_or(2.0) {
        p if p.abs() == 2.0 => {
            let values = singular_values(cx, a);
            let last = cx.rank(values) - 1;
            let largest = cx.reduce(Reduction::Max, values, &[last], false);
            let smallest = cx.reduce(Reduction::Min, values, &[last], false);
            Ok(match p > 0.0 {
                true => cx.div(largest, smallest),
                false => cx.div(smallest, largest),
            })
        }
        p if p.abs() == 1.0 || p.is_infinite() => {
            let inverse = super::solve::inverse(cx, a).0;
            Ok(cx.mul(norm(a, p), norm(inverse, p)))
        }
        p => {
            let what = format!("there is no condition number of order {p}");
            Err(LowerError::unsupported(what))
        }
    }
}
