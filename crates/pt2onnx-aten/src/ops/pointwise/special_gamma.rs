//! The gamma function and its relatives: logarithm, derivatives, incomplete ones, zeta. Formulas are in `math/gamma.rs`.

use crate::math::gamma::{digamma, incomplete_gamma, lgamma, trigamma, zeta};
use crate::math::precision::{double, double2};
use crate::{AtenOp, Cx, LowerError, Lowered, TensorOrScalar, op::op};
use pt2onnx_ir::Value;
use pt2onnx_tensor::DType;
use std::f64::consts::PI;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::digamma, |cx: &Cx, x: Value| -> Lowered { Ok(double(cx, x, |x| digamma(cx, x))) }),
    op!(aten::igamma, |cx: &Cx, a: TensorOrScalar, x: TensorOrScalar| double2(cx, a, x, |a, x| {
        incomplete_gamma(cx, a, x, false)
    })),
    op!(aten::igammac, |cx: &Cx, a: TensorOrScalar, x: TensorOrScalar| double2(
        cx,
        a,
        x,
        |a, x| incomplete_gamma(cx, a, x, true)
    )),
    op!(aten::lgamma, |cx: &Cx, x: Value| -> Lowered { Ok(double(cx, x, |x| lgamma(cx, x))) }),
    op!(aten::mvlgamma, mvlgamma),
    op!(aten::polygamma, polygamma),
    op!(aten::special_digamma, |cx: &Cx, x: Value| -> Lowered {
        Ok(double(cx, x, |x| digamma(cx, x)))
    }),
    op!(aten::special_gammainc, |cx: &Cx, a: TensorOrScalar, x: TensorOrScalar| double2(
        cx,
        a,
        x,
        |a, x| incomplete_gamma(cx, a, x, false)
    )),
    op!(aten::special_gammaincc, |cx: &Cx, a: TensorOrScalar, x: TensorOrScalar| double2(
        cx,
        a,
        x,
        |a, x| incomplete_gamma(cx, a, x, true)
    )),
    op!(aten::special_gammaln, |cx: &Cx, x: Value| -> Lowered {
        Ok(double(cx, x, |x| lgamma(cx, x)))
    }),
    op!(aten::special_multigammaln, mvlgamma),
    op!(aten::special_polygamma, polygamma),
    op!(aten::special_psi, |cx: &Cx, x: Value| -> Lowered {
        Ok(double(cx, x, |x| digamma(cx, x)))
    }),
    op!(aten::special_zeta, |cx: &Cx, s: TensorOrScalar, q: TensorOrScalar| double2(
        cx,
        s,
        q,
        |s, q| zeta(cx, s, q)
    )),
    op!(aten::special_zeta_other_scalar, |cx: &Cx, s: TensorOrScalar, q: TensorOrScalar| double2(
        cx,
        s,
        q,
        |s, q| zeta(cx, s, q)
    )),
    op!(aten::special_zeta_self_scalar, |cx: &Cx, s: TensorOrScalar, q: TensorOrScalar| double2(
        cx,
        s,
        q,
        |s, q| zeta(cx, s, q)
    )),
];

/// `p (p - 1) / 4 log pi + sum of lgamma(x - i / 2)`, `i < p`.
fn mvlgamma(cx: &Cx, x: Value, p: i64) -> Lowered {
    if !(1..=4096).contains(&p) {
        return Err(LowerError::unsupported(format!("mvlgamma of {p} dimensions")));
    }
    Ok(double(cx, x, |x| {
        let last = cx.rank(x);
        let halves: Vec<f64> = (0..p).map(|i| i as f64 / 2.0).collect();
        let arguments = cx.sub(cx.unsqueeze(x, &[last]), cx.vector(&halves));
        let sum = cx.reduce("ReduceSum", lgamma(cx, arguments), &[last], false);
        cx.add(sum, (p * (p - 1)) as f64 / 4.0 * PI.ln())
    }))
}

/// The `n`-th derivative of `digamma`, `(-1)^(n+1) n! zeta(n + 1, x)`.
fn polygamma(cx: &Cx, n: i64, x: Value) -> Lowered {
    match n {
        0 => Ok(double(cx, x, |x| digamma(cx, x))),
        1 => Ok(trigamma(cx, x)),
        2..=170 => Ok(double(cx, x, |x| {
            let factorial: f64 = (1..=n).map(|i| i as f64).product();
            let sign = if n % 2 == 0 { -1.0 } else { 1.0 };
            let s = cx.scalar((n + 1) as f64, DType::F64);
            cx.mul(zeta(cx, s, x), sign * factorial)
        })),
        _ => Err(LowerError::unsupported(format!("polygamma of order {n}"))),
    }
}
