//! The logarithm of the gamma function, its derivatives, incomplete gamma functions, and zeta.
//!
//! Formulas are in `math/gamma.rs`.

use crate::math::gamma;
use crate::math::precision::{double, double2};
use crate::{AtenOp, Cx, LowerError, Lowered, TensorOrScalar, checks, op};
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

/// The regularised incomplete gamma function of `a` and `x`: the lower one `P`, or the `upper` one
/// `Q = 1 - P`.
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
        0 => digamma(cx, x),
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
    reflected_below_zero {
        "aten.lgamma(x: f32[s0]) -> f32[s0]" => "
        (float[s0] x) => (float[s0] lgamma)
        <
          double val_0 = {0.0},
          double val_1 = {1.0},
          double val_2 = {8.0},
          double val_3 = {0.00641025641025641},
          double val_4 = {-0.0019175269175269176},
          double val_5 = {0.0008417508417508417},
          double val_6 = {-0.0005952380952380953},
          double val_7 = {0.0007936507936507937},
          double val_8 = {-0.002777777777777778},
          double val_9 = {0.08333333333333333},
          double val_10 = {0.5},
          double val_11 = {0.41893853320467267},
          double val_12 = {7.0},
          double val_13 = {6.0},
          double val_14 = {10.0},
          double val_15 = {12.0},
          double val_16 = {2.0},
          double val_17 = {3.141592653589793},
          double val_18 = {-inf},
          double val_19 = {inf}
        >
        {
          val_20 = Cast <to: int = 11> (x)
          val_21 = Less (val_20, val_0)
          val_22 = Sub (val_1, val_20)
          val_23 = Where (val_21, val_22, val_20)
          val_24 = Less (val_23, val_2)
          val_25 = Add (val_23, val_2)
          val_26 = Where (val_24, val_25, val_23)
          val_27 = Reciprocal (val_26)
          val_28 = Mul (val_27, val_27)
          val_29 = Mul (val_3, val_28)
          val_30 = Add (val_29, val_4)
          val_31 = Mul (val_30, val_28)
          val_32 = Add (val_31, val_5)
          val_33 = Mul (val_32, val_28)
          val_34 = Add (val_33, val_6)
          val_35 = Mul (val_34, val_28)
          val_36 = Add (val_35, val_7)
          val_37 = Mul (val_36, val_28)
          val_38 = Add (val_37, val_8)
          val_39 = Mul (val_38, val_28)
          val_40 = Add (val_39, val_9)
          val_41 = Sub (val_26, val_10)
          val_42 = Log (val_26)
          val_43 = Sub (val_42, val_1)
          val_44 = Mul (val_41, val_43)
          val_45 = Mul (val_40, val_27)
          val_46 = Add (val_45, val_11)
          val_47 = Add (val_44, val_46)
          val_48 = Add (val_23, val_12)
          val_49 = Mul (val_23, val_48)
          val_50 = Add (val_49, val_13)
          val_51 = Add (val_49, val_14)
          val_52 = Add (val_49, val_15)
          val_53 = Mul (val_49, val_50)
          val_54 = Mul (val_51, val_52)
          val_55 = Mul (val_53, val_54)
          val_56 = Log (val_55)
          val_57 = Sub (val_47, val_56)
          val_58 = Where (val_24, val_57, val_47)
          val_59 = Equal (val_23, val_1)
          val_60 = Equal (val_23, val_16)
          val_61 = Or (val_59, val_60)
          val_62 = Where (val_61, val_0, val_58)
          val_63 = Round (val_20)
          val_64 = Sub (val_20, val_63)
          val_65 = Mul (val_64, val_17)
          val_66 = Sin (val_65)
          val_67 = Abs (val_66)
          val_68 = Div (val_17, val_67)
          val_69 = Log (val_68)
          val_70 = Sub (val_69, val_62)
          val_71 = Where (val_21, val_70, val_62)
          val_72 = Equal (val_20, val_18)
          val_73 = Where (val_72, val_19, val_71)
          lgamma = Cast <to: int = 1> (val_73)
        }
        ";
    }
}
