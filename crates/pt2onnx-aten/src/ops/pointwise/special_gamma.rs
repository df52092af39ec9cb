//! The gamma function and its relatives: logarithm, derivatives, incomplete ones, zeta. Formulas are in `math/gamma.rs`.

use crate::math::gamma::{digamma, incomplete_gamma, lgamma, trigamma, zeta};
use crate::math::precision::{double, double2};
use crate::{AtenOp, Cx, LowerError, Lowered, TensorOrScalar, registry::aten};
use pt2onnx_ir::Value;
use pt2onnx_tensor::DType;
use std::f64::consts::PI;

pub(crate) static OPS: &[AtenOp] = &[
    aten!("aten::digamma(Tensor self) -> Tensor", |cx: &Cx, x: Value| -> Lowered {
        Ok(double(cx, x, |x| digamma(cx, x)))
    }),
    aten!(
        "aten::igamma(Tensor self, Tensor other) -> Tensor",
        |cx: &Cx, a: TensorOrScalar, x: TensorOrScalar| double2(cx, a, x, |a, x| incomplete_gamma(
            cx, a, x, false
        ))
    ),
    aten!(
        "aten::igammac(Tensor self, Tensor other) -> Tensor",
        |cx: &Cx, a: TensorOrScalar, x: TensorOrScalar| double2(cx, a, x, |a, x| incomplete_gamma(
            cx, a, x, true
        ))
    ),
    aten!("aten::lgamma(Tensor self) -> Tensor", |cx: &Cx, x: Value| -> Lowered {
        Ok(double(cx, x, |x| lgamma(cx, x)))
    }),
    aten!("aten::mvlgamma(Tensor self, int p) -> Tensor", mvlgamma),
    aten!("aten::polygamma(int n, Tensor self) -> Tensor", polygamma),
    aten!("aten::special_digamma(Tensor self) -> Tensor", |cx: &Cx, x: Value| -> Lowered {
        Ok(double(cx, x, |x| digamma(cx, x)))
    }),
    aten!(
        "aten::special_gammainc(Tensor self, Tensor other) -> Tensor",
        |cx: &Cx, a: TensorOrScalar, x: TensorOrScalar| double2(cx, a, x, |a, x| incomplete_gamma(
            cx, a, x, false
        ))
    ),
    aten!(
        "aten::special_gammaincc(Tensor self, Tensor other) -> Tensor",
        |cx: &Cx, a: TensorOrScalar, x: TensorOrScalar| double2(cx, a, x, |a, x| incomplete_gamma(
            cx, a, x, true
        ))
    ),
    aten!("aten::special_gammaln(Tensor self) -> Tensor", |cx: &Cx, x: Value| -> Lowered {
        Ok(double(cx, x, |x| lgamma(cx, x)))
    }),
    aten!("aten::special_multigammaln(Tensor self, int p) -> Tensor", mvlgamma),
    aten!("aten::special_polygamma(int n, Tensor self) -> Tensor", polygamma),
    aten!("aten::special_psi(Tensor self) -> Tensor", |cx: &Cx, x: Value| -> Lowered {
        Ok(double(cx, x, |x| digamma(cx, x)))
    }),
    aten!(
        "aten::special_zeta(Tensor self, Tensor other) -> Tensor",
        |cx: &Cx, s: TensorOrScalar, q: TensorOrScalar| double2(cx, s, q, |s, q| zeta(cx, s, q))
    ),
    aten!(
        "aten::special_zeta.other_scalar(Tensor self, Scalar other) -> Tensor",
        |cx: &Cx, s: TensorOrScalar, q: TensorOrScalar| double2(cx, s, q, |s, q| zeta(cx, s, q))
    ),
    aten!(
        "aten::special_zeta.self_scalar(Scalar self, Tensor other) -> Tensor",
        |cx: &Cx, s: TensorOrScalar, q: TensorOrScalar| double2(cx, s, q, |s, q| zeta(cx, s, q))
    ),
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
