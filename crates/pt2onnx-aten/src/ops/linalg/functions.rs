//! Functions of matrices.

use super::{
    super::num::Num,
    batch_of, eigen, identity,
    iterate::{Step, iterate},
    rows_of, shape_with,
    solve::inverse,
};
use crate::{AtenOp, Cx, Lowered, registry::aten};
use pt2onnx_ir::{Reduction, Value};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;
use std::f64::consts::PI;

pub(in super::super) static OPS: &[AtenOp] = &[
    aten!("aten::linalg_matrix_exp(Tensor self) -> Tensor", matrix_exp, complex: matrix_exp),
    aten!("aten::linalg_matrix_power(Tensor self, int n) -> Tensor", matrix_power, complex: matrix_power),
    aten!("aten::linalg_matrix_sqrth(Tensor self) -> Tensor", matrix_sqrth, complex: matrix_sqrth),
    aten!("aten::linalg_vander(Tensor x, *, SymInt? N=None) -> Tensor", vander, complex: vander),
    aten!("aten::matrix_exp(Tensor self) -> Tensor", matrix_exp, complex: matrix_exp),
    aten!("aten::matrix_power(Tensor self, int n) -> Tensor", matrix_power, complex: matrix_power),
];

/// The angle of `x + iy`.
pub(super) fn angle(cx: &Cx, x: Value, y: Value) -> Value {
    // atan(y / x) is right where x > 0; left of it, half a turn more, towards the side of y.
    let zero = cx.equal(x, 0.0);
    let slope = cx.atan(cx.div(y, cx.select(zero, 1.0, x)));
    let half = cx.select(cx.less(y, 0.0), -PI, PI);
    let turned = cx.select(cx.less(x, 0.0), cx.add(slope, half), slope);
    let upright = cx.mul(cx.sign(y), PI / 2.0);
    cx.select(zero, upright, turned)
}

/// Squares and products, as many as the bits of `n` take.
fn matrix_power(cx: &Cx, a: Num, n: i64) -> Lowered {
    let (mut left, mut square) = (n.unsigned_abs(), a);
    if n < 0 {
        square = inverse(cx, a).0;
    }
    let mut result: Option<Num> = None;
    while left > 0 {
        if left & 1 == 1 {
            result = Some(result.map_or(square, |r| r.matmul(cx, square)));
        }
        left >>= 1;
        if left > 0 {
            square = square.matmul(cx, square);
        }
    }
    let result = result.unwrap_or_else(|| {
        let n = rows_of(cx, a);
        let one = identity(cx, &n, cx.dtype(a.re));
        let wide = Num::from(cx.expand(one, &cx.shape(a.re)));
        a.im.map_or(wide, |_| wide.complex(cx))
    });
    Ok(result.value(cx))
}

/// `exp(A / 2^s)` by Taylor's series, squared s times. With norms below 1/2 after scaling, 18 terms leave less than 1e-21 of
/// it, 10 less than 2e-11 (the remainder is below 2 |A|^(n+1) / (n+1)!).
fn matrix_exp(cx: &Cx, a: Num) -> Lowered {
    let given = cx.dtype(a.re);
    if cx.shape(a.re).iter().any(|d| d.as_int() == Some(0)) {
        return Ok(a.value(cx));
    }
    // Sums and squares of half precision would lose it all.
    let dtype = if given == DType::F64 { given } else { DType::F32 };
    let a = a.cast(cx, dtype);
    let rank = cx.rank(a.re);
    let sums = cx.reduce(Reduction::Sum, a.abs(cx), &[rank - 2], true);
    let norm = cx.reduce(Reduction::Max, sums, &[rank - 1], true);
    // s = max(0, ceil(log2(norm)) + 1), for each matrix its own.
    let halvings = cx.add(cx.ceil(cx.div(cx.log(norm), std::f64::consts::LN_2)), 1.0);
    let halvings = cx.select(cx.greater(norm, 0.5), halvings, 0.0);
    let two = cx.scalar(2.0, dtype);
    let small = a.over(cx, cx.pow(two, halvings));
    let n = rows_of(cx, a);
    let one = Num::from(identity(cx, &n, dtype));
    // Horner: 1 + A/1 (1 + A/2 (1 + ..)).
    let terms = if dtype == DType::F64 { 18 } else { 10 };
    let whole = {
        let wide = Num::from(cx.expand(one.re, &shape_with(&batch_of(cx, a), &[&n, &n])));
        a.im.map_or(wide, |_| wide.complex(cx))
    };
    let (state, _) = iterate(cx, &Expr::int(terms), &[whole], |step, state| {
        let divisor = cx.cast(cx.sub(cx.scalar(terms, DType::I64), step), dtype);
        let next = small.matmul(cx, state[0]).over(cx, divisor);
        Step::state(vec![next.add(cx, one)])
    });
    // NaN and infinity halve no more than what a double can hold.
    let most = cx.clamp(
        cx.reduce(Reduction::Max, halvings, &[], false),
        Some(0.0.into()),
        Some(1100.0.into()),
    );
    let steps = cx.cast(most, DType::I64);
    let count = Expr::symbol(&format!("?halvings {}", steps.index()));
    cx.bind_scalar(count.clone(), steps);
    let (state, _) = iterate(cx, &count, &[state[0]], |step, state| {
        let more = cx.greater(halvings, cx.cast(step, dtype));
        let square = state[0].matmul(cx, state[0]);
        Step::state(vec![square.select(cx, more, state[0])])
    });
    Ok(state[0].cast(cx, given).value(cx))
}

/// The root of a positive Hermitian matrix: roots of its eigenvalues.
fn matrix_sqrth(cx: &Cx, a: Num) -> Lowered {
    if cx.shape(a.re).iter().any(|d| d.as_int() == Some(0)) {
        return Ok(a.value(cx));
    }
    let rank = cx.rank(a.re);
    let (values, vectors) = eigen::eigh(cx, eigen::hermitian(cx, a, false), true);
    let v = vectors.unwrap_or(a);
    let roots = cx.unsqueeze(cx.sqrt(cx.relu(values)), &[rank - 2]);
    Ok(v.times(cx, roots).matmul(cx, v.adjoint(cx)).value(cx))
}

/// Powers 0 to n - 1 of each element, one more a step.
fn vander(cx: &Cx, x: Num, n: Option<Expr>) -> Lowered {
    let dtype = cx.out_dtype()?;
    // A 0-d tensor counts as a vector.
    let x = match cx.rank(x.re) {
        0 => x.map(|part| cx.unsqueeze(part, &[0])),
        _ => x,
    };
    let x = x.cast(cx, dtype);
    // A number counts as a vector.
    let x = match cx.rank(x.re) {
        0 => x.map(|x| cx.unsqueeze(x, &[0])),
        _ => x,
    };
    let n = n.unwrap_or_else(|| cx.dim(x.re, -1));
    let one = Num::from(cx.full(&cx.shape(x.re), 1, dtype));
    let one = x.im.map_or(one, |_| one.complex(cx));
    let (_, powers) = iterate(cx, &n, &[one], |_, state| Step {
        state: vec![state[0].mul(cx, x)],
        collected: vec![state[0].map(|x| cx.identity(x))],
        go_on: None,
    });
    Ok(powers[0].value(cx))
}
