//! Functions of matrices: powers, exponentials, roots; Vandermonde matrices.

use crate::math::matrix::inverse::inverse;
use crate::math::matrix::iterate::{Step, iterate};
use crate::math::matrix::jacobi::{eigh, hermitian};
use crate::math::matrix::{batch_of, identity, rows_of, shape_with};
use crate::math::shape::has_no_elements;
use crate::meta;
use crate::{AtenOp, Complex, Cx, Lowered, checks, op};
use pt2onnx_ir::Reduction;
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::linalg_matrix_exp, matrix_exp),
    op!(aten::linalg_matrix_power, matrix_power),
    op!(aten::linalg_matrix_sqrth, matrix_sqrth, meta = meta::same),
    op!(aten::linalg_vander, vander, meta = meta::vander),
    op!(aten::matrix_exp, matrix_exp),
    op!(aten::matrix_power, matrix_power),
];

/// `A^n` by repeated squaring. For negative `n`, it is a power of the inverse.
fn matrix_power(cx: &Cx, a: Complex, n: i64) -> Lowered {
    let (mut left, mut square) = (n.unsigned_abs(), a);
    if n < 0 {
        square = inverse(cx, a).0;
    }
    let mut result: Option<Complex> = None;
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
        Complex::from(cx.expand(one, &cx.shape(a.re))).like(cx, a)
    });
    Ok(result.value(cx))
}

/// `exp(A)`: `exp(A / 2^s)` by Taylor's series, squared s times. After scaling, the 1-norm is at
/// most 1/2. The remainder after n terms is below `2 |A|^(n+1) / (n+1)!`: 2e-11 for the 10 terms of
/// float32, 1e-21 for the 18 terms of float64.
fn matrix_exp(cx: &Cx, a: Complex) -> Lowered {
    let given = cx.dtype(a.re);
    if has_no_elements(&cx.shape(a.re)) {
        return Ok(a.value(cx));
    }
    // Half precision is too narrow for sums and squares.
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
    let one = Complex::from(identity(cx, &n, dtype));
    // Horner: 1 + A/1 (1 + A/2 (1 + ..)).
    let terms = if dtype == DType::F64 { 18 } else { 10 };
    let whole = {
        let wide = Complex::from(cx.expand(one.re, &shape_with(&batch_of(cx, a), &[&n, &n])));
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

/// The square root of a Hermitian matrix without negative eigenvalues: `V sqrt(D) V^H` of `A = V D
/// V^H`.
fn matrix_sqrth(cx: &Cx, a: Complex) -> Lowered {
    if has_no_elements(&cx.shape(a.re)) {
        return Ok(a.value(cx));
    }
    let rank = cx.rank(a.re);
    let (values, vectors) = eigh(cx, hermitian(cx, a, false), true);
    let v = vectors.unwrap_or(a);
    let roots = cx.unsqueeze(cx.sqrt(cx.relu(values)), &[rank - 2]);
    Ok(v.times(cx, roots).matmul(cx, v.adjoint(cx)).value(cx))
}

/// The Vandermonde matrix: powers 0 to `n - 1` of each element, one power a step.
fn vander(cx: &Cx, x: Complex, n: Option<Expr>) -> Lowered {
    let dtype = cx.out_dtype()?;
    // A 0-d tensor counts as a vector.
    let x = match cx.rank(x.re) {
        0 => x.map(|part| cx.unsqueeze(part, &[0])),
        _ => x,
    };
    let x = x.cast(cx, dtype);
    let n = n.unwrap_or_else(|| cx.dim(x.re, -1));
    let one = Complex::from(cx.full(&cx.shape(x.re), 1, dtype));
    let one = x.im.map_or(one, |_| one.complex(cx));
    let (_, powers) = iterate(cx, &n, &[one], |_, state| Step {
        state: vec![state[0].mul(cx, x)],
        collected: vec![state[0].map(|x| cx.identity(x))],
        go_on: None,
    });
    Ok(powers[0].value(cx))
}

checks! {
    // A power takes as many products as its bits.
    "aten.linalg_matrix_power(x: f32[s0, 2, 2], 5) -> f32[s0, 2, 2]" => "
    val_0 = MatMul (x, x)
    val_1 = MatMul (val_0, val_0)
    linalg_matrix_power = MatMul (x, val_1)
    ";
}
