//! Linear systems: general ones by elimination, triangular ones by substitution.

use crate::math::matrix::iterate::{Step, iterate};
use crate::math::matrix::{
    as_column, as_vector, batch_of, column, columns_of, count_rows, identity, row, rows_of,
    shape_with,
};
use crate::math::num::Num;
use crate::ops::linalg::lu::{exchange, first_of, magnitude, reorder};
use crate::{AtenOp, Cx, LowerError, Lowered, cx::Outputs, op::op};
use pt2onnx_ir::Value;
use pt2onnx_symbolic::Expr;
use smallvec::smallvec;

pub(in super::super) static OPS: &[AtenOp] = &[
    op!(aten::_linalg_solve_ex, linalg_solve_ex_lu, complex = linalg_solve_ex_lu),
    op!(aten::inverse, inv, complex = inv),
    op!(aten::linalg_inv, inv, complex = inv),
    op!(aten::linalg_inv_ex, inv_ex, complex = inv_ex),
    op!(aten::linalg_solve, linalg_solve, complex = linalg_solve),
    op!(aten::linalg_solve_ex, linalg_solve_ex, complex = linalg_solve_ex),
    op!(aten::linalg_solve_triangular, linalg_solve_triangular, complex = linalg_solve_triangular),
    op!(aten::linalg_tensorinv, tensorinv, complex = tensorinv),
    op!(aten::linalg_tensorsolve, tensorsolve, complex = tensorsolve),
    op!(aten::triangular_solve, triangular_solve, complex = triangular_solve),
];

/// Both with the batch dimensions that they broadcast to.
fn broadcast(cx: &Cx, a: Num, b: Num) -> (Num, Num) {
    let batch = cx.broadcast_shapes(&batch_of(cx, a), &batch_of(cx, b));
    let wide = |x: Num| {
        let shape = shape_with(&batch, &[&rows_of(cx, x), &columns_of(cx, x)]);
        x.expand(cx, &shape)
    };
    (wide(a), wide(b))
}

/// `X` with `A X = B`, by Gauss-Jordan elimination with partial pivoting; and for each step whether its pivot was zero.
pub(crate) fn solve(cx: &Cx, a: Num, b: Num) -> (Num, Value) {
    let (a, b) = broadcast(cx, a, b);
    let rank = cx.rank(a.re);
    let n = rows_of(cx, a);
    let rows = count_rows(cx, &n);
    let both = Num {
        re: cx.concat(&[a.re, b.re], rank - 1),
        im: match (a.im, b.im) {
            (None, None) => None,
            _ => {
                let [a, b] = [a, b].map(|x| x.complex(cx).im.unwrap_or(x.re));
                Some(cx.concat(&[a, b], rank - 1))
            }
        },
    };
    let (state, collected) = iterate(cx, &n, &[both], |k, state| {
        let (order, _) = exchange(cx, rows, k, column(cx, state[0], k));
        let all = reorder(cx, state[0], order);
        let (column, row) = (column(cx, all, k), row(cx, all, k));
        let pivot = crate::math::matrix::column(cx, row, k);
        let row = row.div(cx, pivot);
        let rest = all.sub(cx, column.mul(cx, row));
        let zero = cx.equal(magnitude(cx, pivot), 0.0);
        let rank = cx.rank(zero);
        Step {
            state: vec![row.select(cx, cx.equal(rows, k), rest)],
            collected: vec![cx.squeeze(zero, &[rank - 2, rank - 1]).into()],
            go_on: None,
        }
    });
    let end = columns_of(cx, state[0]);
    let x = state[0].map(|x| cx.slice(x, rank - 1, &n, &end, 1));
    let shape = shape_with(&batch_of(cx, b), &[&n, &columns_of(cx, b)]);
    x.parts().iter().for_each(|&x| {
        cx.set_type(x, pt2onnx_ir::Type::tensor(cx.dtype(x), shape.clone()));
    });
    (x, collected[0].re)
}

/// The inverse; and for each step whether its pivot was zero.
pub(crate) fn inverse(cx: &Cx, a: Num) -> (Num, Value) {
    let n = rows_of(cx, a);
    solve(cx, a, identity(cx, &n, cx.dtype(a.re)).into())
}

fn inv(cx: &Cx, a: Num) -> Lowered {
    Ok(inverse(cx, a).0.value(cx))
}

fn inv_ex(cx: &Cx, a: Num, _check_errors: bool) -> Lowered<[Value; 2]> {
    let (x, zeros) = inverse(cx, a);
    Ok([x.value(cx), first_of(cx, zeros)])
}

/// `b` counts as vectors, one for each matrix, if it has one dimension or the sizes of `a` without the last.
fn solve_any(cx: &Cx, a: Num, b: Num, left: bool) -> (Num, Value) {
    let (rank_a, rank_b) = (cx.rank(a.re), cx.rank(b.re));
    let as_vectors = rank_b + 1 == rank_a && cx.shape(b.re) == cx.shape(a.re)[..rank_b];
    let vectors = rank_b == 1 || as_vectors;
    let b = if vectors { as_column(cx, b) } else { b };
    // X A = B is A^T X^T = B^T.
    let (x, zeros) = match left || vectors {
        true => solve(cx, a, b),
        false => {
            let (x, zeros) = solve(cx, a.transpose(cx), b.transpose(cx));
            (x.transpose(cx), zeros)
        }
    };
    (if vectors { as_vector(cx, x) } else { x }, zeros)
}

fn linalg_solve(cx: &Cx, a: Num, b: Num, left: bool) -> Lowered {
    Ok(solve_any(cx, a, b, left).0.value(cx))
}

fn linalg_solve_ex(
    cx: &Cx,
    a: Num,
    b: Num,
    left: bool,
    _check_errors: bool,
) -> Lowered<[Value; 2]> {
    let (x, zeros) = solve_any(cx, a, b, left);
    Ok([x.value(cx), first_of(cx, zeros)])
}

/// The form that gives the factors, too.
fn linalg_solve_ex_lu(
    cx: &Cx,
    a: Num,
    b: Num,
    left: bool,
    _check_errors: bool,
) -> Lowered<Outputs> {
    let (x, zeros) = solve_any(cx, a, b, left);
    let wanted = cx.recorded(1).or(cx.recorded(2)).is_some();
    let lu = wanted.then(|| crate::ops::linalg::lu::factors(cx, a, true));
    Ok(Outputs(smallvec![
        Some(x.value(cx)),
        lu.as_ref().map(|lu| lu.packed.value(cx)),
        lu.as_ref().map(|lu| lu.pivots),
        Some(first_of(cx, zeros)),
    ]))
}

/// `X` with `A X = B`, of `A` only the triangle; with `unit`, its diagonal counts as ones.
pub(crate) fn triangular(cx: &Cx, a: Num, b: Num, upper: bool, unit: bool) -> Num {
    let (a, b) = broadcast(cx, a, b);
    let n = rows_of(cx, a);
    let rows = count_rows(cx, &n);
    let b = if a.im.is_some() { b.complex(cx) } else { b };
    let (state, _) = iterate(cx, &n, &[b], |step, state| {
        let k = match upper {
            true => cx.sub(cx.size(&(&n - 1)), step),
            false => step,
        };
        let column = column(cx, a, k);
        let known = row(cx, state[0], k);
        let known = match unit {
            true => known,
            false => known.div(cx, row(cx, column, k)),
        };
        let open = match upper {
            true => cx.less(rows, k),
            false => cx.greater(rows, k),
        };
        let rest = state[0].sub(cx, column.keep(cx, open).mul(cx, known));
        Step::state(vec![known.select(cx, cx.equal(rows, k), rest)])
    });
    state[0]
}

fn linalg_solve_triangular(
    cx: &Cx,
    a: Num,
    b: Num,
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
    b: Num,
    a: Num,
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
fn tensorinv(cx: &Cx, a: Num, ind: i64) -> Lowered {
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
fn tensorsolve(cx: &Cx, a: Num, b: Num, dims: Option<Vec<i64>>) -> Lowered {
    let rank = cx.rank(a.re);
    let moved: Vec<usize> = dims
        .unwrap_or_default()
        .iter()
        .map(|&d| crate::cx::axis_of(rank, d))
        .collect::<Lowered<_>>()?;
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
