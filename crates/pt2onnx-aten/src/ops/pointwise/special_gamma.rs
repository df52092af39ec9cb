//! The logarithm of the gamma function, its derivatives, incomplete gamma functions, and zeta.
//!
//! Formulas are in `math/gamma.rs`.

use crate::math::gamma;
use crate::math::precision::{double, double2, in_double};
use crate::{AtenOp, Cx, LowerError, Lowered, TensorOrScalar, checks, op};
use pt2onnx_ir::{Reduction, Value};
use pt2onnx_tensor::DType;
use std::f64::consts::PI;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::digamma, in_double(gamma::digamma)),
    op!(aten::igamma, incomplete_gamma, upper = false),
    op!(aten::igammac, incomplete_gamma, upper = true),
    op!(aten::lgamma, in_double(gamma::lgamma)),
    op!(aten::mvlgamma, mvlgamma),
    op!(aten::polygamma, polygamma),
    op!(aten::special_digamma, in_double(gamma::digamma)),
    op!(aten::special_gammainc, incomplete_gamma, upper = false),
    op!(aten::special_gammaincc, incomplete_gamma, upper = true),
    op!(aten::special_gammaln, in_double(gamma::lgamma)),
    op!(aten::special_multigammaln, mvlgamma),
    op!(aten::special_polygamma, polygamma),
    op!(aten::special_psi, in_double(gamma::digamma)),
    op!(aten::special_zeta, zeta),
    op!(aten::special_zeta_other_scalar, zeta),
    op!(aten::special_zeta_self_scalar, zeta),
];

/// The regularised incomplete gamma function of `a` and `x`: the lower one `P`, or the `upper` one
/// `Q = 1 - P`.
fn incomplete_gamma(cx: &Cx, a: TensorOrScalar, x: TensorOrScalar, upper: bool) -> Lowered {
    double2(cx, a, x, |a, x| gamma::incomplete_gamma(cx, a, x, upper))
}

/// The Hurwitz zeta function, `sum (q + k)^-s` over `k >= 0`.
fn zeta(cx: &Cx, s: TensorOrScalar, q: TensorOrScalar) -> Lowered {
    double2(cx, s, q, |s, q| gamma::zeta(cx, s, q))
}

/// The multivariate log-gamma function `p (p - 1) / 4 log pi + sum lgamma(x - i / 2)` over `0 <= i
/// < p`.
fn mvlgamma(cx: &Cx, x: Value, p: i64) -> Lowered {
    if !(1..=4096).contains(&p) {
        return Err(LowerError::unsupported(format!(
            "mvlgamma of {p} dimensions is not supported"
        )));
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
        0 => Ok(double(cx, x, |x| gamma::digamma(cx, x))),
        1 => Ok(gamma::trigamma(cx, x)),
        2..=170 => Ok(double(cx, x, |x| {
            let factorial: f64 = (1..=n).map(|i| i as f64).product();
            let sign = if n % 2 == 0 { -1.0 } else { 1.0 };
            let s = cx.scalar((n + 1) as f64, DType::F64);
            cx.mul(gamma::zeta(cx, s, x), sign * factorial)
        })),
        _ => Err(LowerError::unsupported(format!("polygamma of order {n} is not supported"))),
    }
}

checks! {
    // Reflected below zero.
    "aten.lgamma(x: f32[s0]) -> f32[s0]" => "
    val_0 = Cast <to: int = 11> (x)
    val_1 = Less (val_0, double {0.0})
    val_2 = Sub (double {1.0}, val_0)
    val_3 = Where (val_1, val_2, val_0)
    val_4 = Less (val_3, double {8.0})
    val_5 = Add (val_3, double {8.0})
    val_6 = Where (val_4, val_5, val_3)
    val_7 = Reciprocal (val_6)
    val_8 = Mul (val_7, val_7)
    val_9 = Mul (double {0.00641025641025641}, val_8)
    val_10 = Add (val_9, double {-0.0019175269175269176})
    val_11 = Mul (val_10, val_8)
    val_12 = Add (val_11, double {0.0008417508417508417})
    val_13 = Mul (val_12, val_8)
    val_14 = Add (val_13, double {-0.0005952380952380953})
    val_15 = Mul (val_14, val_8)
    val_16 = Add (val_15, double {0.0007936507936507937})
    val_17 = Mul (val_16, val_8)
    val_18 = Add (val_17, double {-0.002777777777777778})
    val_19 = Mul (val_18, val_8)
    val_20 = Add (val_19, double {0.08333333333333333})
    val_21 = Sub (val_6, double {0.5})
    val_22 = Log (val_6)
    val_23 = Sub (val_22, double {1.0})
    val_24 = Mul (val_21, val_23)
    val_25 = Mul (val_20, val_7)
    val_26 = Add (val_25, double {0.41893853320467267})
    val_27 = Add (val_24, val_26)
    val_28 = Add (val_3, double {7.0})
    val_29 = Mul (val_3, val_28)
    val_30 = Add (val_29, double {6.0})
    val_31 = Add (val_29, double {10.0})
    val_32 = Add (val_29, double {12.0})
    val_33 = Mul (val_29, val_30)
    val_34 = Mul (val_31, val_32)
    val_35 = Mul (val_33, val_34)
    val_36 = Log (val_35)
    val_37 = Sub (val_27, val_36)
    val_38 = Where (val_4, val_37, val_27)
    val_39 = Equal (val_3, double {1.0})
    val_40 = Equal (val_3, double {2.0})
    val_41 = Or (val_39, val_40)
    val_42 = Where (val_41, double {0.0}, val_38)
    val_43 = Round (val_0)
    val_44 = Sub (val_0, val_43)
    val_45 = Mul (val_44, double {3.141592653589793})
    val_46 = Sin (val_45)
    val_47 = Abs (val_46)
    val_48 = Div (double {3.141592653589793}, val_47)
    val_49 = Log (val_48)
    val_50 = Sub (val_49, val_42)
    val_51 = Where (val_1, val_50, val_42)
    val_52 = Equal (val_0, double {-inf})
    val_53 = Where (val_52, double {inf}, val_51)
    lgamma = Cast <to: int = 1> (val_53)
    ";
}
