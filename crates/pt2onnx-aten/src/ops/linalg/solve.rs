//! Translates linear systems and inverses.

use crate::cx::axis_of;
use crate::math::matrix::inverse::{inverse, solve, solve_any};
use crate::math::matrix::lu::factors;
use crate::math::matrix::pivots::first_of;
use crate::math::matrix::triangular::{broadcast, triangular};
use crate::{AtenOp, Complex, Cx, LowerError, Lowered, checks, cx::Outputs, op};
use pt2onnx_ir::Value;
use pt2onnx_symbolic::Expr;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_linalg_solve_ex, linalg_solve_ex_lu),
    op!(aten::inverse, inv),
    op!(aten::linalg_inv, inv),
    op!(aten::linalg_inv_ex, inv_ex),
    op!(aten::linalg_solve, linalg_solve),
    op!(aten::linalg_solve_ex, linalg_solve_ex),
    op!(aten::linalg_solve_triangular, linalg_solve_triangular),
    op!(aten::linalg_tensorinv, tensorinv),
    op!(aten::linalg_tensorsolve, tensorsolve),
    op!(aten::triangular_solve, triangular_solve),
];

/// The inverse.
fn inv(cx: &Cx, a: Complex) -> Lowered {
    Ok(inverse(cx, a).0.value(cx))
}

/// The inverse, and LAPACK's `info`: the first step whose pivot is 0, counted from 1, or 0; int32.
fn inv_ex(cx: &Cx, a: Complex) -> Lowered<[Value; 2]> {
    let (x, zeros) = inverse(cx, a);
    Ok([x.value(cx), first_of(cx, zeros)])
}

/// The solution X of `A X = B`, or of `X A = B` if not `left`.
fn linalg_solve(cx: &Cx, a: Complex, b: Complex, left: bool) -> Lowered {
    Ok(solve_any(cx, a, b, left).0.value(cx))
}

/// [`linalg_solve`] and LAPACK's `info`.
fn linalg_solve_ex(cx: &Cx, a: Complex, b: Complex, left: bool) -> Lowered<[Value; 2]> {
    let (x, zeros) = solve_any(cx, a, b, left);
    Ok([x.value(cx), first_of(cx, zeros)])
}

/// [`linalg_solve_ex`] with the LU factors and pivots, if they are used.
fn linalg_solve_ex_lu(cx: &Cx, a: Complex, b: Complex, left: bool) -> Lowered<Outputs> {
    let (x, zeros) = solve_any(cx, a, b, left);
    let wanted = cx.recorded(1).or(cx.recorded(2)).is_some();
    let lu = wanted.then(|| factors(cx, a, true));
    let packed = lu.as_ref().map(|lu| lu.packed.value(cx));
    let pivots = lu.map(|lu| lu.pivots);
    Ok([Some(x.value(cx)), packed, pivots, Some(first_of(cx, zeros))].into())
}

/// [`linalg_solve`] with a triangular A.
fn linalg_solve_triangular(
    cx: &Cx,
    a: Complex,
    b: Complex,
    upper: bool,
    left: bool,
    unitriangular: bool,
) -> Lowered {
    if left {
        return Ok(triangular(cx, a, b, upper, unitriangular).value(cx));
    }
    let (a, b) = (a.transpose(cx), b.transpose(cx));
    Ok(triangular(cx, a, b, !upper, unitriangular).transpose(cx).value(cx))
}

/// The solution X of `A X = B`, or of `A^T X = B` with `transpose`, with a triangular A; and A as
/// it was broadcast.
fn triangular_solve(
    cx: &Cx,
    b: Complex,
    a: Complex,
    upper: bool,
    transpose: bool,
    unitriangular: bool,
) -> Lowered<[Value; 2]> {
    let transposed = if transpose { a.transpose(cx) } else { a };
    let x = triangular(cx, transposed, b, upper != transpose, unitriangular);
    let (a, _) = broadcast(cx, a, b);
    Ok([x.value(cx), a.value(cx)])
}

/// The inverse of `a` as a matrix: its first `ind` dimensions are the rows, the others the columns.
fn tensorinv(cx: &Cx, a: Complex, ind: i64) -> Lowered {
    let shape = cx.shape(a.re);
    let ind = usize::try_from(ind).ok().filter(|&i| i <= shape.len());
    let ind = ind
        .ok_or_else(|| LowerError::unsupported("`ind` is larger than the number of dimensions"))?;
    let n = Expr::product(shape[..ind].to_vec());
    let square = a.map(|x| cx.reshape(x, &[n.clone(), n.clone()]));
    let back = [&shape[ind..], &shape[..ind]].concat();
    let x = inverse(cx, square).0.map(|x| cx.reshape(x, &back));
    Ok(x.value(cx))
}

/// The tensor x with `tensordot(a, x) = b`, where `dims` of `a` have been moved to its end. As a
/// matrix, `a` has as many rows as `b` has elements.
fn tensorsolve(cx: &Cx, a: Complex, b: Complex, dims: Option<Vec<i64>>) -> Lowered {
    let rank = cx.rank(a.re);
    let moved: Vec<usize> =
        dims.unwrap_or_default().iter().map(|&d| axis_of(rank, d)).collect::<Lowered<_>>()?;
    let stay = (0..rank).filter(|d| !moved.contains(d));
    let order: Vec<usize> = stay.chain(moved.iter().copied()).collect();
    let a = a.map(|x| cx.transpose(x, &order));
    let n = cx.numel(b.re);
    let square = a.map(|x| cx.reshape(x, &[n.clone(), n.clone()]));
    let column = b.map(|x| cx.reshape(x, &[n.clone(), Expr::int(1)]));
    let shape: Vec<Expr> = cx.shape(a.re).iter().skip(cx.rank(b.re)).cloned().collect();
    let x = solve(cx, square, column).0;
    Ok(x.map(|x| cx.reshape(x, &shape)).value(cx))
}

checks! {
    // A triangular system is a loop over rows.
    "aten.linalg_solve_triangular(a: f32[2, 2], b: f32[2, 1], upper = False) -> f32[2, 1]" => "
    linalg_solve_triangular = Loop <body: graph = body (int64 val_0, bool val_1, float[2,1] val_2) => (bool val_3, float[2,1] val_4)
    {
      val_5 = Unsqueeze (val_0, [0])
      val_6 = Gather <axis: int = 1> (a, val_5)
      val_7 = Gather <axis: int = 0> (val_2, val_5)
      val_8 = Gather <axis: int = 0> (val_6, val_5)
      val_9 = Div (val_7, val_8)
      val_10 = Greater (int64[2,1] {0, 1}, val_5)
      val_11 = Mul (val_6, val_9)
      val_12 = Where (val_10, val_11, 0.0)
      val_13 = Sub (val_2, val_12)
      val_14 = Equal (int64[2,1] {0, 1}, val_5)
      val_4 = Where (val_14, val_9, val_13)
      val_3 = Identity (true)
    }> (2, true, b)
    ";

    // Vectors whose sizes have other names.
    "aten.linalg_solve(a: f32[s0, 2, 2], b: f32[s1, 2]) -> f32[s1, 2]" => r#"
    val_0 = Unsqueeze (b, [2])
    val_1 = Shape <start: int = 0, end: int = 1> (a)
    val_2 = Shape <start: int = 0, end: int = 1> (b)
    val_3 = Max (val_1, val_2)
    val_4 = Concat <axis: int = 0> (val_3, [1, 1])
    val_5 = Expand (a, val_4)
    val_6 = Concat <axis: int = 0> (val_3, [1, 1])
    val_7 = Expand (val_0, val_6)
    val_8 = Concat <axis: int = 2> (val_5, val_7)
    val_9, val_10 = Loop <body: graph = body (int64 val_11, bool val_12, float["Max(s0, s1)",2,3] val_13) => (bool val_14, float["Max(s0, s1)",2,3] val_15, bool["Max(s0, s1)"] val_16)
    {
      val_17 = Unsqueeze (val_11, [0])
      val_18 = Gather <axis: int = 2> (val_13, val_17)
      val_19 = Equal (int64[2,1] {0, 1}, val_17)
      val_20 = Abs (val_18)
      val_21 = Where (val_19, inf, -1.0)
      val_22 = IsNaN (val_20)
      val_23 = Where (val_22, val_21, val_20)
      val_24 = Less (int64[2,1] {0, 1}, val_17)
      val_25 = Where (val_24, -1.0, val_23)
      val_26 = ArgMax <axis: int = 1> (val_25)
      val_27 = Equal (int64[2,1] {0, 1}, val_26)
      val_28 = Where (val_27, val_17, int64[2,1] {0, 1})
      val_29 = Equal (int64[2,1] {0, 1}, val_17)
      val_30 = Where (val_29, val_26, val_28)
      val_31 = Expand (val_30, [1, 1, 3])
      val_32 = GatherElements <axis: int = 1> (val_13, val_31)
      val_33 = Gather <axis: int = 2> (val_32, val_17)
      val_34 = Gather <axis: int = 1> (val_32, val_17)
      val_35 = Gather <axis: int = 2> (val_34, val_17)
      val_36 = Div (val_34, val_35)
      val_37 = Mul (val_33, val_36)
      val_38 = Sub (val_32, val_37)
      val_39 = Abs (val_35)
      val_40 = Equal (val_39, 0.0)
      val_41 = Equal (int64[2,1] {0, 1}, val_17)
      val_15 = Where (val_41, val_36, val_38)
      val_16 = Squeeze (val_40, [1, 2])
      val_14 = Identity (true)
    }> (2, true, val_8)
    val_42 = Transpose <perm: ints = [1, 0]> (val_10)
    val_43 = Slice (val_9, [2], [3], [2])
    linalg_solve = Squeeze (val_43, [2])
    "#;
}
