//! Bessel functions and the Airy function, by S. Moshier's approximations (Cephes), computed in
//! float64.
//!
//! The relative error is 1e-15; near zeros of a function it is the absolute error.

use crate::Cx;
use crate::math::coefficients::*;
use crate::math::elementary::{polynomial, rational};
use pt2onnx_ir::Value;
use std::f64::consts::{FRAC_PI_4, PI};

/// `I(x)`, computed from `e^-|x| I(x)`.
fn unscaled(cx: &Cx, x: Value, scaled: Value) -> Value {
    cx.mul(cx.exp(cx.abs(x)), scaled)
}

/// Two approximations of `e^-x I(x)` of positive `x`: a polynomial in `x / 2 - 2` for `x <= 8`, and
/// one in `32 / x - 2`, over `sqrt x`, for larger `x`.
fn modified_first_kind(cx: &Cx, x: Value, small: &[f64], large: &[f64]) -> (Value, Value) {
    let small = polynomial(cx, cx.sub(cx.mul(x, 0.5), 2), small);
    let large = polynomial(cx, cx.sub(cx.div(32, x), 2), large);
    (small, cx.div(large, cx.sqrt(x)))
}

/// `e^-|x| I0(x)`.
pub fn i0e(cx: &Cx, x: Value) -> Value {
    let x = cx.abs(x);
    let (small, large) = modified_first_kind(cx, x, I0_SMALL, I0_LARGE);
    cx.select(cx.less_or_equal(x, 8.0), small, large)
}

/// `e^-|x| I1(x)`, an odd function.
pub fn i1e(cx: &Cx, x: Value) -> Value {
    let length = cx.abs(x);
    let (small, large) = modified_first_kind(cx, length, I1_SMALL, I1_LARGE);
    let near = cx.less_or_equal(length, 8.0);
    cx.select(near, cx.mul(small, x), cx.mul(large, cx.sign(x)))
}

/// `I0(x)`.
pub fn i0(cx: &Cx, x: Value) -> Value {
    unscaled(cx, x, i0e(cx, x))
}

/// `I1(x)`.
pub fn i1(cx: &Cx, x: Value) -> Value {
    unscaled(cx, x, i1e(cx, x))
}

/// `K(x)`, or `e^x K(x)` if `scaled`: `small` for `x <= 2`, otherwise a polynomial in `8 / x - 2`
/// over `sqrt x`. It is infinite at 0 and NaN below.
fn modified_second_kind(cx: &Cx, x: Value, scaled: bool, small: Value, large: &[f64]) -> Value {
    let large = polynomial(cx, cx.sub(cx.div(8, x), 2), large);
    let large = cx.div(large, cx.sqrt(x));
    let (small, large) = if scaled {
        (cx.mul(small, cx.exp(x)), large)
    } else {
        (small, cx.mul(large, cx.exp(cx.neg(x))))
    };
    let value = cx.select(cx.less_or_equal(x, 2.0), small, large);
    cx.select(cx.equal(x, 0.0), f64::INFINITY, value)
}

/// `ln(x / 2)`.
fn log_half(cx: &Cx, x: Value) -> Value {
    cx.log(cx.mul(x, 0.5))
}

/// `K0(x)`, or `e^x K0(x)` if `scaled`.
pub fn k0(cx: &Cx, x: Value, scaled: bool) -> Value {
    let series = polynomial(cx, cx.sub(cx.mul(x, x), 2), K0_SMALL);
    let i0 = unscaled(cx, x, i0e(cx, x));
    let small = cx.sub(series, cx.mul(log_half(cx, x), i0));
    modified_second_kind(cx, x, scaled, small, K0_LARGE)
}

/// `K1(x)`, or `e^x K1(x)` if `scaled`.
pub fn k1(cx: &Cx, x: Value, scaled: bool) -> Value {
    let series = polynomial(cx, cx.sub(cx.mul(x, x), 2), K1_SMALL);
    let i1 = unscaled(cx, x, i1e(cx, x));
    let small = cx.add(cx.div(series, x), cx.mul(log_half(cx, x), i1));
    modified_second_kind(cx, x, scaled, small, K1_LARGE)
}

/// The parts of the asymptotic formula of one order for large `x`.
struct Wave {
    p: Value,
    q: Value,
    sin: Value,
    cos: Value,
    /// `sqrt(2 / (pi x))`.
    height: Value,
}

fn wave(cx: &Cx, x: Value, phase: f64, [pp, pq, qp, qq]: [&[f64]; 4]) -> Wave {
    let ratio = cx.div(5, x);
    let w = cx.mul(ratio, ratio);
    let angle = cx.sub(x, phase);
    Wave {
        p: rational(cx, w, pp, pq),
        q: cx.mul(ratio, rational(cx, w, qp, qq)),
        sin: cx.sin(angle),
        cos: cx.cos(angle),
        height: cx.div((2.0 / PI).sqrt(), cx.sqrt(x)),
    }
}

impl Wave {
    fn first_kind(&self, cx: &Cx) -> Value {
        let sum = cx.sub(cx.mul(self.p, self.cos), cx.mul(self.q, self.sin));
        cx.mul(sum, self.height)
    }

    fn second_kind(&self, cx: &Cx) -> Value {
        let sum = cx.add(cx.mul(self.p, self.sin), cx.mul(self.q, self.cos));
        cx.mul(sum, self.height)
    }
}

fn wave0(cx: &Cx, x: Value) -> Wave {
    let series = [BESSEL0_PP, BESSEL0_PQ, BESSEL0_QP, BESSEL0_QQ];
    wave(cx, x, FRAC_PI_4, series)
}

fn wave1(cx: &Cx, x: Value) -> Wave {
    let series = [BESSEL1_PP, BESSEL1_PQ, BESSEL1_QP, BESSEL1_QQ];
    wave(cx, x, 3.0 * FRAC_PI_4, series)
}

/// `(x^2 - z0^2) (x^2 - z1^2)` times a rational function of `x^2`, `z0` and `z1` the first zeros.
fn near_zero(cx: &Cx, x: Value, zeros: [f64; 2], p: &[f64], q: &[f64]) -> Value {
    let square = cx.mul(x, x);
    let zeros = cx.mul(cx.sub(square, zeros[0]), cx.sub(square, zeros[1]));
    cx.mul(zeros, rational(cx, square, p, q))
}

const J0_ZEROS: [f64; 2] = [5.783185962946785, 30.471262343662087];

const J1_ZEROS: [f64; 2] = [14.681970642123893, 49.2184563216946];

/// `J0(x)`.
pub fn j0(cx: &Cx, x: Value) -> Value {
    let x = cx.abs(x);
    let small = near_zero(cx, x, J0_ZEROS, J0_RP, J0_RQ);
    let large = wave0(cx, x).first_kind(cx);
    cx.select(cx.less_or_equal(x, 5.0), small, large)
}

/// `J1(x)`, an odd function.
pub fn j1(cx: &Cx, x: Value) -> Value {
    let length = cx.abs(x);
    let small = cx.mul(near_zero(cx, x, J1_ZEROS, J1_RP, J1_RQ), x);
    let large = cx.mul(wave1(cx, length).first_kind(cx), cx.sign(x));
    cx.select(cx.less_or_equal(length, 5.0), small, large)
}

/// `Y0(x)`.
pub fn y0(cx: &Cx, x: Value) -> Value {
    let series = rational(cx, cx.mul(x, x), Y0_YP, Y0_YQ);
    let j0 = near_zero(cx, x, J0_ZEROS, J0_RP, J0_RQ);
    let small = cx.add(series, cx.mul(cx.mul(cx.log(x), 2.0 / PI), j0));
    second_kind(cx, x, small, wave0(cx, x))
}

/// `Y1(x)`.
pub fn y1(cx: &Cx, x: Value) -> Value {
    let series = cx.mul(x, rational(cx, cx.mul(x, x), Y1_YP, Y1_YQ));
    let j1 = cx.mul(near_zero(cx, x, J1_ZEROS, J1_RP, J1_RQ), x);
    let rest = cx.sub(cx.mul(j1, cx.log(x)), cx.reciprocal(x));
    let small = cx.add(series, cx.mul(rest, 2.0 / PI));
    second_kind(cx, x, small, wave1(cx, x))
}

/// `Y(x)`: `small` for `x <= 5`, otherwise the asymptotic formula. It is minus infinity at 0 and
/// NaN below.
fn second_kind(cx: &Cx, x: Value, small: Value, wave: Wave) -> Value {
    let value = cx.select(cx.less_or_equal(x, 5.0), small, wave.second_kind(cx));
    cx.select(cx.equal(x, 0.0), f64::NEG_INFINITY, value)
}

/// `Ai(x)`: the Maclaurin series between -2.09 and 2.09 (up to the 12th power of `x^3`, error below
/// 1e-16), asymptotic series outside.
pub fn airy_ai(cx: &Cx, x: Value) -> Value {
    let (low, high) = (cx.less(x, -2.09), cx.greater_or_equal(x, 2.09));
    // Values outside of the branch's range would overflow.
    let inner = cx.clamp(x, Some((-2.09).into()), Some(2.09.into()));
    let cube = cx.mul(cx.mul(inner, inner), inner);
    let mut f = vec![1.0];
    let mut g = vec![1.0];
    for k in 1..=12 {
        let n = 3.0 * f64::from(k);
        f.push(f[f.len() - 1] / (n * (n - 1.0)));
        g.push(g[g.len() - 1] / (n * (n + 1.0)));
    }
    f.reverse();
    g.reverse();
    let (f, g) = (polynomial(cx, cube, &f), polynomial(cx, cube, &g));
    let series = cx
        .sub(cx.mul(f, 0.355_028_053_887_817_2), cx.mul(cx.mul(g, inner), 0.258_819_403_792_806_8));

    let length = cx.abs(x);
    let root = cx.sqrt(length);
    let zeta = cx.mul(cx.mul(length, root), 2.0 / 3.0);
    let z = cx.reciprocal(zeta);
    // 1 / sqrt(pi) over the fourth root.
    let height = cx.div(1.0 / PI.sqrt(), cx.sqrt(root));
    let decay = cx.mul(rational(cx, z, AIRY_AN, AIRY_AD), cx.exp(cx.neg(zeta)));
    let right = cx.mul(cx.mul(height, decay), 0.5);

    let square = cx.mul(z, z);
    let in_phase = cx.mul(square, rational(cx, square, AIRY_AFN, AIRY_AFD));
    let out_of_phase = cx.mul(z, rational(cx, square, AIRY_AGN, AIRY_AGD));
    let angle = cx.add(zeta, FRAC_PI_4);
    let wave =
        cx.sub(cx.mul(cx.sin(angle), cx.add(in_phase, 1)), cx.mul(cx.cos(angle), out_of_phase));
    let left = cx.mul(height, wave);

    let value = cx.select(low, left, cx.select(high, right, series));
    cx.select(cx.is_inf(x, Default::default()), f64::NAN, value)
}
