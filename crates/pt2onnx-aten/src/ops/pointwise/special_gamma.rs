//! The gamma function and its relatives: logarithm, derivatives, incomplete ones, zeta. Formulas are in `math/gamma.rs`.

use crate::math::gamma;
use crate::math::precision::{double, double2};
use crate::{AtenOp, Cx, LowerError, Lowered, TensorOrScalar, op::op};
use pt2onnx_ir::{Reduction, Value};
use pt2onnx_tensor::DType;
use std::f64::consts::PI;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::digamma, digamma),
    op!(aten::igamma, incomplete_gamma, upper = false),
    op!(aten::igammac, incomplete_gamma, upper = true),
    op!(aten::lgamma, lgamma),
    op!(aten::mvlgamma, mvlgamma),
    op!(aten::polygamma, polygamma),
    op!(aten::special_digamma, digamma),
    op!(aten::special_gammainc, incomplete_gamma, upper = false),
    op!(aten::special_gammaincc, incomplete_gamma, upper = true),
    op!(aten::special_gammaln, lgamma),
    op!(aten::special_multigammaln, mvlgamma),
    op!(aten::special_polygamma, polygamma),
    op!(aten::special_psi, digamma),
    op!(aten::special_zeta, zeta),
    op!(aten::special_zeta_other_scalar, zeta),
    op!(aten::special_zeta_self_scalar, zeta),
];

/// The logarithmic derivative of the gamma function.
fn digamma(cx: &Cx, x: Value) -> Lowered {
    Ok(double(cx, x, |x| gamma::digamma(cx, x)))
}

/// The regularised incomplete gamma function of `a` and `x`: the lower one `P`, or the `upper` one `Q = 1 - P`.
fn incomplete_gamma(cx: &Cx, a: TensorOrScalar, x: TensorOrScalar, upper: bool) -> Lowered {
    double2(cx, a, x, |a, x| gamma::incomplete_gamma(cx, a, x, upper))
}

/// `log |gamma(x)|`.
fn lgamma(cx: &Cx, x: Value) -> Lowered {
    Ok(double(cx, x, |x| gamma::lgamma(cx, x)))
}

/// The Hurwitz zeta function, `sum (q + k)^-s` over `k >= 0`.
fn zeta(cx: &Cx, s: TensorOrScalar, q: TensorOrScalar) -> Lowered {
    double2(cx, s, q, |s, q| gamma::zeta(cx, s, q))
}

/// `p (p - 1) / 4 log pi + sum of lgamma(x - i / 2)`, `i < p`.
fn mvlgamma(cx: &Cx, x: Value, p: i64) -> Lowered {
    if !(1..=4096).contains(&p) {
        return Err(LowerError::unsupported(format!("mvlgamma of {p} dimensions")));
    }
    Ok(double(cx, x, |x| {
        let last = cx.rank(x);
        let halves: Vec<f64> = (0..p).map(|i| i as f64 / 2.0).collect();
        let arguments = cx.sub(cx.unsqueeze(x, &[last]), cx.vector(&halves));
        let sum = cx.reduce(Reduction::Sum, gamma::lgamma(cx, arguments), &[last], false);
        cx.add(sum, (p * (p - 1)) as f64 / 4.0 * PI.ln())
    }))
}

/// The `n`-th derivative of `digamma`, `(-1)^(n+1) n! zeta(n + 1, x)`.
fn polygamma(cx: &Cx, n: i64, x: Value) -> Lowered {
    match n {
        0 => digamma(cx, x),
        1 => Ok(gamma::trigamma(cx, x)),
        2..=170 => Ok(double(cx, x, |x| {
            let factorial: f64 = (1..=n).map(|i| i as f64).product();
            let sign = if n % 2 == 0 { -1.0 } else { 1.0 };
            let s = cx.scalar((n + 1) as f64, DType::F64);
            cx.mul(gamma::zeta(cx, s, x), sign * factorial)
        })),
        _ => Err(LowerError::unsupported(format!("polygamma of order {n}"))),
    }
}
