//! Linear systems and inverses.

use crate::cx::axis_of;
use crate::math::matrix::inverse::{inverse, solve, solve_any};
use crate::math::matrix::lu::factors;
use crate::math::matrix::pivots::first_of;
use crate::math::matrix::triangular::{broadcast, triangular};
use crate::{AtenOp, Complex, Cx, LowerError, Lowered, cx::Outputs, op::op};
use pt2onnx_ir::Value;
use pt2onnx_symbolic::Expr;
use smallvec::smallvec;

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

fn inv(cx: &Cx, a: Complex) -> Lowered {
    Ok(inverse(cx, a).0.value(cx))
}

fn inv_ex(cx: &Cx, a: Complex, _check_errors: bool) -> Lowered<[Value; 2]> {
    let (x, zeros) = inverse(cx, a);
    Ok([x.value(cx), first_of(cx, zeros)])
}

fn linalg_solve(cx: &Cx, a: Complex, b: Complex, left: bool) -> Lowered {
    Ok(solve_any(cx, a, b, left).0.value(cx))
}

fn linalg_solve_ex(
    cx: &Cx,
    a: Complex,
    b: Complex,
    left: bool,
    _check_errors: bool,
) -> Lowered<[Value; 2]> {
    let (x, zeros) = solve_any(cx, a, b, left);
    Ok([x.value(cx), first_of(cx, zeros)])
}

/// The form that gives the factors, too.
fn linalg_solve_ex_lu(
    cx: &Cx,
    a: Complex,
    b: Complex,
    left: bool,
    _check_errors: bool,
) -> Lowered<Outputs> {
    let (x, zeros) = solve_any(cx, a, b, left);
    let wanted = cx.recorded(1).or(cx.recorded(2)).is_some();
    let lu = wanted.then(|| factors(cx, a, true));
    Ok(Outputs(smallvec![
        Some(x.value(cx)),
        lu.as_ref().map(|lu| lu.packed.value(cx)),
        lu.as_ref().map(|lu| lu.pivots),
        Some(first_of(cx, zeros)),
    ]))
}

fn linalg_solve_triangular(
    cx: &Cx,
    a: Complex,
    b: Complex,
    upper: bool,
    left: bool,
    unitriangular: bool,
) -> Lowered {
    let x = match left {
        true => triangular(cx, a, b, upper, unitriangular),
        false => {
            let (a, b) = (a.transpose(cx), b.transpose(cx));
            triangular(cx, a, b, !upper, unitriangular).transpose(cx)
        }
    };
    Ok(x.value(cx))
}

fn triangular_solve(
    cx: &Cx,
    b: Complex,
    a: Complex,
    upper: bool,
    transpose: bool,
    unitriangular: bool,
) -> Lowered<[Value; 2]> {
    let x = match transpose {
        true => triangular(cx, a.transpose(cx), b, !upper, unitriangular),
        false => triangular(cx, a, b, upper, unitriangular),
    };
    let (a, _) = broadcast(cx, a, b);
    Ok([x.value(cx), a.value(cx)])
}

/// The inverse of `a` as a matrix, whose rows are the first `ind` dimensions.
fn tensorinv(cx: &Cx, a: Complex, ind: i64) -> Lowered {
    let shape = cx.shape(a.re);
    let ind = usize::try_from(ind).ok().filter(|&i| i <= shape.len());
    let ind = ind.ok_or_else(|| LowerError::unsupported("`ind` is out of range"))?;
    let n = Expr::product(shape[..ind].to_vec());
    let square = a.map(|x| cx.reshape(x, &[n.clone(), n.clone()]));
    let back = [&shape[ind..], &shape[..ind]].concat();
    let x = inverse(cx, square).0.map(|x| cx.reshape(x, &back));
    Ok(x.value(cx))
}

/// `x` with `tensordot(a, x) = b`: as a matrix, `a` has as many rows as `b` has elements. `dims` of `a` move to its end first.
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
    let shape = cx.out_shape()?;
    let x = solve(cx, square, column).0;
    Ok(x.map(|x| cx.reshape(x, &shape)).value(cx))
}
