//! Singular values, and what is computed from them: pseudo-inverses, ranks, condition numbers.

use crate::math::matrix::inverse::inverse;
use crate::math::matrix::svd::{Cutoff, decompose, pseudo_inverse, rank_of, singular_values};
use crate::math::matrix::{
    as_column, as_vector, batch_of, columns_of, empty_output, rows_of, shape_with,
};
use crate::math::shape::has_no_elements;
use crate::meta::{self, fresh, sized, typed, unknown};
use crate::{
    AtenOp, Complex, Cx, LowerError, Lowered, TensorOrScalar, args::Ignored, arguments, checks,
    cx::Outputs, op,
};
use pt2onnx_ir::{Reduction, Type, Value};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_linalg_svd, linalg_svd_uv),
    op!(aten::linalg_cond, cond, meta = meta_condition),
    op!(aten::linalg_lstsq, lstsq, meta = meta_lstsq),
    op!(aten::linalg_matrix_rank, matrix_rank, meta = meta_matrix_rank, rtol = 0.0),
    op!(aten::linalg_matrix_rank_atol_rtol_float, matrix_rank, meta = meta_matrix_rank),
    op!(aten::linalg_matrix_rank_atol_rtol_tensor, matrix_rank, meta = meta_matrix_rank),
    op!(aten::linalg_matrix_rank_tol_tensor, matrix_rank, meta = meta_matrix_rank, rtol = 0.0),
    op!(aten::linalg_pinv, pinv, meta = meta_pinv, atol = 0.0),
    op!(aten::linalg_pinv_atol_rtol_float, pinv, meta = meta_pinv),
    op!(aten::linalg_pinv_atol_rtol_tensor, pinv, meta = meta_pinv),
    op!(aten::linalg_pinv_rcond_tensor, pinv, meta = meta_pinv),
    op!(aten::linalg_polar, polar),
    op!(aten::linalg_svd, linalg_svd, meta = meta_svd),
    op!(aten::linalg_svdvals, svdvals, meta = meta_svdvals),
    op!(aten::pinverse, pinv, meta = meta_pinv, atol = 0.0, hermitian = false),
    op!(aten::svd, svd),
];

/// U, S and `V^H` of `A = U S V^H`; with `full`, U and V are square.
fn linalg_svd(cx: &Cx, a: Complex, full: bool, _driver: Ignored) -> Lowered<[Value; 3]> {
    let (u, s, v) = decompose(cx, a, full);
    Ok([u.value(cx), s, v.adjoint(cx).value(cx)])
}

/// [`linalg_svd`]; without `vectors` only S is computed, U and `V^H` are empty.
fn linalg_svd_uv(
    cx: &Cx,
    a: Complex,
    full: bool,
    vectors: bool,
    driver: Ignored,
) -> Lowered<Outputs> {
    if vectors {
        return Ok(linalg_svd(cx, a, full, driver)?.into());
    }
    let s = singular_values(cx, a);
    Ok([empty_output(cx, 0, a), Some(s), empty_output(cx, 2, a)].into())
}

/// U, S and V (not its adjoint). Without `vectors`, U and V are zeros, as in PyTorch.
fn svd(cx: &Cx, a: Complex, some: bool, vectors: bool) -> Lowered<[Value; 3]> {
    if vectors {
        let (u, s, v) = decompose(cx, a, !some);
        return Ok([u.value(cx), s, v.value(cx)]);
    }
    let zeros = |n: &Expr| {
        let shape = shape_with(&batch_of(cx, a), &[n, n]);
        Complex::from(cx.full(&shape, 0, cx.dtype(a.re))).like(cx, a).value(cx)
    };
    let s = singular_values(cx, a);
    Ok([zeros(&rows_of(cx, a)), s, zeros(&columns_of(cx, a))])
}

/// The singular values, descending.
fn svdvals(cx: &Cx, a: Complex, _driver: Ignored) -> Lowered {
    Ok(singular_values(cx, a))
}

/// U and H of `A = U H`: U has orthonormal columns, H is Hermitian and has no negative eigenvalues.
fn polar(cx: &Cx, a: Complex) -> Lowered<[Value; 2]> {
    let (u, s, v) = decompose(cx, a, false);
    let rank = cx.rank(a.re);
    let vh = v.adjoint(cx);
    let h = v.times(cx, cx.unsqueeze(s, &[rank - 2])).matmul(cx, vh);
    Ok([u.matmul(cx, vh).value(cx), h.value(cx)])
}

arguments! {
    /// Arguments of [`pinv`] and [`matrix_rank`]: singular values up to `max(atol, rtol * largest)`
    /// count as zero. `tol` is an older name of `atol`, `rcond` of `rtol`.
    struct CutoffArgs {
        input: Complex,
        atol: Option<TensorOrScalar>,
        tol: Option<TensorOrScalar>,
        rtol: Option<TensorOrScalar>,
        rcond: Option<TensorOrScalar>,
        hermitian: bool,
    }
}

impl CutoffArgs {
    fn cutoff(self, cx: &Cx) -> Cutoff {
        let dtype = cx.dtype(self.input.re);
        let tensor = |x| match x {
            TensorOrScalar::Tensor(v) => v,
            number => cx.as_tensor(&number, dtype),
        };
        let [atol, rtol] =
            [self.atol.or(self.tol), self.rtol.or(self.rcond)].map(|x| x.map(tensor));
        Cutoff { atol, rtol }
    }
}

/// The pseudo-inverse: `V S^+ U^H`.
fn pinv(cx: &Cx, args: CutoffArgs) -> Lowered {
    let (a, is_hermitian) = (args.input, args.hermitian);
    Ok(pseudo_inverse(cx, a, &args.cutoff(cx), is_hermitian).value(cx))
}

/// How many singular values are not zero.
fn matrix_rank(cx: &Cx, args: CutoffArgs) -> Lowered {
    let (a, is_hermitian) = (args.input, args.hermitian);
    Ok(rank_of(cx, a, &args.cutoff(cx), is_hermitian))
}

/// The `X` of least norm for which `|A X - B|` is least; the squares of these distances; the rank
/// of `A` and its singular values. The last three are empty where LAPACK's driver does not compute
/// them.
fn lstsq(
    cx: &Cx,
    a: Complex,
    b: Complex,
    rcond: Option<f64>,
    driver: Option<String>,
) -> Lowered<Outputs> {
    let driver = driver.as_deref().unwrap_or("gelsy");
    let (real, empty) = (cx.dtype(a.re), [Expr::int(0)]);
    let is_vector = cx.rank(b.re) < cx.rank(a.re);
    let columns = if is_vector { as_column(cx, b) } else { b };
    let rtol = rcond.map(|number| cx.scalar(number, real));
    let cutoff = Cutoff { atol: None, rtol };
    let solution = pseudo_inverse(cx, a, &cutoff, false).matmul(cx, columns);
    let residuals = if cx.is_used(1) {
        Some(squared_residuals(cx, a, solution, columns, &cutoff, driver)?)
    } else {
        None
    };
    let rank = match driver {
        _ if !cx.is_used(2) => None,
        "gels" => Some(cx.full(&empty, 0, DType::I64)),
        _ => Some(rank_of(cx, a, &cutoff, false)),
    };
    let values = match driver {
        _ if !cx.is_used(3) => None,
        "gelsd" | "gelss" => Some(singular_values(cx, a)),
        _ => Some(cx.full(&empty, 0, real)),
    };
    let solution = if is_vector { as_vector(cx, solution) } else { solution };
    Ok([Some(solution.value(cx)), residuals, rank, values].into())
}

/// The column sums of `|A X - B|^2`, if `A` has more rows than columns and full rank, and the
/// driver computes them. Else no elements.
fn squared_residuals(
    cx: &Cx,
    a: Complex,
    x: Complex,
    b: Complex,
    cutoff: &Cutoff,
    driver: &str,
) -> Lowered {
    let real = cx.dtype(a.re);
    let n = columns_of(cx, a);
    let taller = rows_of(cx, a).as_int().zip(n.as_int()).map(|(m, n)| m > n);
    if driver == "gelsy" || taller == Some(false) {
        return Ok(cx.full(&[Expr::int(0)], 0, real));
    }
    if taller.is_none() {
        let why = "PyTorch computes the residuals only of matrices with more rows than columns: both numbers must be known";
        return Err(LowerError::unsupported(why));
    }
    let squares = a.matmul(cx, x).sub(cx, b).abs2(cx);
    let sums = cx.reduce(Reduction::Sum, squares, &[cx.rank(squares).saturating_sub(2)], false);
    if driver == "gels" {
        return Ok(sums);
    }
    if cx.rank(a.re) > 2 {
        let why = "PyTorch computes the residuals only if all matrices have full rank, which is not known at export; give driver=\"gels\"";
        return Err(LowerError::unsupported(why));
    }
    let full = cx.equal(rank_of(cx, a, cutoff, false), cx.size(&n));
    let count = cx.mul(cx.cast(full, DType::I64), cx.size(&cx.dim(b.re, -1)));
    let zero = cx.ints(&[0]);
    let sums = cx.slice_op(sums, zero, cx.unsqueeze(count, &[0]), Some(zero), None);
    cx.set_type(sums, Type::tensor(real, [cx.unknown_dim()]));
    Ok(sums)
}

/// The condition number: of order 2 the ratio of the largest to the smallest singular value, of
/// order -2 its inverse, of orders 1, -1, inf and -inf `|A| |A^-1|`. It is 0 if there are no
/// elements.
fn cond(cx: &Cx, a: Complex, p: Option<f64>) -> Lowered {
    if has_no_elements(&cx.shape(a.re)) {
        return Ok(cx.full(&cx.out_shape()?, 0, cx.dtype(a.re)));
    }
    let norm = |a: Complex, p: f64| {
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
            Ok(if p > 0.0 { cx.div(largest, smallest) } else { cx.div(smallest, largest) })
        }
        p if p.abs() == 1.0 || p.is_infinite() => {
            let inverse = inverse(cx, a).0;
            Ok(cx.mul(norm(a, p), norm(inverse, p)))
        }
        p => {
            let what = format!("there is no condition number of order {p}");
            Err(LowerError::unsupported(what))
        }
    }
}

arguments! {
    struct LeastSquares { input: Value, b: Value, driver: Option<String> }
}

fn meta_matrix_rank(cx: &Cx, x: Value) -> Lowered {
    Ok(typed(cx, DType::I64, &meta::batch(cx, x, &[])))
}

/// A real number for each matrix.
fn meta_condition(cx: &Cx, x: Value) -> Lowered {
    Ok(typed(cx, cx.dtype(x).to_real(), &meta::batch(cx, x, &[])))
}

fn meta_svdvals(cx: &Cx, x: Value) -> Lowered {
    let count = Expr::min(&cx.dim(x, -2), &cx.dim(x, -1));
    let count = cx.constraints().simplify(&count);
    Ok(typed(cx, cx.dtype(x).to_real(), &meta::batch(cx, x, &[&count])))
}

/// The left vectors, the singular values, and the right vectors. Without `full`, as many as there
/// are values.
fn meta_svd(cx: &Cx, x: Value, full: bool) -> Lowered<[Value; 3]> {
    let (m, n, values) = (cx.dim(x, -2), cx.dim(x, -1), meta_svdvals(cx, x)?);
    let count = cx.dim(values, -1);
    let [left, right] = if full { [&m, &n] } else { [&count; 2] };
    let vectors = |sizes: [&Expr; 2]| sized(cx, x, &meta::batch(cx, x, &sizes));
    Ok([vectors([&m, left]), values, vectors([right, &n])])
}

/// Squared residuals of one matrix are none if its rank is not full; of many matrices the
/// translation does not give them.
fn meta_lstsq(cx: &Cx, args: LeastSquares) -> Lowered<[Value; 4]> {
    let LeastSquares { input: a, b, driver } = args;
    let driver = driver.as_deref().unwrap_or("gelsy");
    let (batch, sizes, none) = (meta::batch(cx, a, &[]), cx.shape(a), [Expr::ZERO]);
    let [.., m, n] = sizes.as_slice() else {
        return unknown("its first operand is not a matrix");
    };
    let columns = (cx.rank(b) == sizes.len()).then(|| cx.dim(b, -1));
    let of_each = |last: Option<Expr>| batch.iter().cloned().chain(last).collect::<Vec<_>>();
    let solution = [of_each(Some(n.clone())), Vec::from_iter(columns.clone())].concat();
    let taller = matches!((m.as_int(), n.as_int()), (Some(m), Some(n)) if m > n);
    let real = cx.dtype(a).to_real();
    let residuals = match driver {
        "gelsd" | "gelss" if taller && batch.is_empty() => vec![fresh(cx)],
        "gels" | "gelsd" | "gelss" if taller => of_each(Some(columns.unwrap_or(Expr::ONE))),
        _ => none.to_vec(),
    };
    let rank = if driver == "gels" { none.to_vec() } else { batch.clone() };
    let values = match driver {
        "gelsd" | "gelss" => of_each(Some(Expr::min(m, n))),
        _ => none.to_vec(),
    };
    Ok([
        sized(cx, a, &solution),
        typed(cx, real, &residuals),
        typed(cx, DType::I64, &rank),
        typed(cx, real, &values),
    ])
}

/// Rows and columns change places.
fn meta_pinv(cx: &Cx, x: Value) -> Lowered {
    Ok(sized(cx, x, &meta::batch(cx, x, &[&cx.dim(x, -1), &cx.dim(x, -2)])))
}

checks! {
    // Empty matrices have no singular values.
    "aten.linalg_svd(x: f32[2, 0], False) -> (f32[2, 0], f32[0], f32[0, 0])" => "
    linalg_svd_0 = Expand (0.0, [2, 0])
    linalg_svd_1 = Expand (0.0, [0])
    linalg_svd_2 = Expand (0.0, [0, 0])
    ";
}
