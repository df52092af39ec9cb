//! Elementary functions of complex numbers. Their results are complex.
//!
//! Square roots, inverse sines and inverse cosines keep their precision near branch points (W.
//! Kahan, Branch Cuts for Complex Elementary Functions, 1987).

use super::Complex;
use crate::Cx;
use crate::math::arcs::{asinh_of, atan_of, atan2};
use crate::math::elementary::{copysign_of, cosh_of, expm1_of, log1p_of, sinh_of, tan_of};
use pt2onnx_ir::Value;
use pt2onnx_tensor::DType;
use std::f64::consts::FRAC_PI_2;

impl Complex {
    /// `i a`.
    fn turn(self, cx: &Cx) -> Self {
        Complex::new(cx.neg(self.imag(cx)), self.re)
    }

    /// `-i a`.
    fn turn_back(self, cx: &Cx) -> Self {
        Complex::new(self.imag(cx), cx.neg(self.re))
    }

    /// `limit` where a part of `self` is infinite, else `finite`.
    fn at_infinity(self, cx: &Cx, finite: Self, limit: impl Fn() -> Self) -> Self {
        if !cx.propagates_nan(self.re) {
            return finite;
        }
        let infinite = cx.or(is_infinite(cx, self.re), is_infinite(cx, self.imag(cx)));
        limit().select(cx, infinite, finite)
    }

    /// `e^a = e^re (cos im + i sin im)`.
    pub fn exp(self, cx: &Cx) -> Self {
        let (size, im) = (cx.exp(self.re), self.imag(cx));
        let power = Complex::polar(cx, size, im);
        if !cx.propagates_nan(size) || cx.constant_of(self.re).is_some() {
            return power;
        }
        // The angle of `e^-inf` may be infinite, and an infinite number may be real.
        let zero = cx.equal(self.re, f64::NEG_INFINITY);
        let power = power.map(|part| cx.select(zero, 0.0, part));
        Complex::new(power.re, power.im.map(|part| kept_zero(cx, im, part)))
    }

    /// `e^a - 1 = expm1(re) cos im - 2 sin(im / 2)^2 + i e^re sin im`.
    pub fn expm1(self, cx: &Cx) -> Self {
        let im = self.imag(cx);
        let half = cx.sin(cx.mul(im, 0.5));
        let re = cx.mul(expm1_of(cx, self.re), cx.cos(im));
        let re = cx.sub(re, cx.mul(cx.mul(half, half), 2));
        Complex::new(re, cx.mul(cx.exp(self.re), cx.sin(im)))
    }

    /// `log |a| + i angle(a)`.
    pub fn log(self, cx: &Cx) -> Self {
        let size = cx.cast(cx.log(self.length(cx)), cx.dtype(self.re));
        Complex::new(size, self.angle(cx))
    }

    /// `log(e^a + e^b) = m + log(1 + e^(n - m))`, where `m` is the operand with the larger real
    /// part (`a`, if both have the same) and `n` the other one.
    pub fn log_add_exp(self, cx: &Cx, b: Complex) -> Self {
        let ordered = cx.greater_or_equal(self.re, b.re);
        let (large, small) = (self.select(cx, ordered, b), b.select(cx, ordered, self));
        let mut off = small.sub(cx, large);
        // The distance of two infinities is 0.
        off.re = cx.select(cx.equal(self.re, b.re), 0.0, off.re);
        off.exp(cx).shift(cx, 1).log(cx).add(cx, large)
    }

    /// The square root whose real part is not negative. Its larger part is `sqrt((|a| + |re a|) /
    /// 2)`, the other one `|im a|` over twice the larger. No digits cancel.
    pub fn sqrt(self, cx: &Cx) -> Self {
        let (im, dtype) = (self.imag(cx), cx.dtype(self.re));
        let sum = cx.add(self.length(cx), cx.cast(cx.abs(self.re), DType::F64));
        let large = cx.cast(cx.sqrt(cx.mul(sum, 0.5)), dtype);
        let small = cx.div(cx.abs(im), cx.mul(large, 2));
        let small = cx.select(cx.equal(large, 0.0), 0.0, small);
        let small = if cx.propagates_nan(im) {
            cx.select(is_infinite(cx, im), f64::INFINITY, small)
        } else {
            small
        };
        let right = cx.greater_or_equal(self.re, 0.0);
        let side = cx.select(right, small, large);
        Complex::new(cx.select(right, large, small), copysign_of(cx, side, im))
    }

    /// `e^(b log a)`. Where `a` is 0, it is 0, or 1 if `b` is 0, too.
    pub fn pow(self, cx: &Cx, b: Complex) -> Self {
        let power = b.mul(cx, self.log(cx)).exp(cx);
        let one = cx.cast(cx.not(b.truth(cx)), cx.dtype(power.re));
        let zero = Complex::new(one, cx.scalar(0, cx.dtype(power.re)));
        power.select(cx, self.truth(cx), zero)
    }

    /// `sinh re cos im + i cosh re sin im`.
    pub fn sinh(self, cx: &Cx) -> Self {
        let im = self.imag(cx);
        let turned = cx.mul(cosh_of(cx, self.re), cx.sin(im));
        Complex::new(cx.mul(sinh_of(cx, self.re), cx.cos(im)), kept_zero(cx, im, turned))
    }

    /// `cosh re cos im + i sinh re sin im`.
    pub fn cosh(self, cx: &Cx) -> Self {
        let im = self.imag(cx);
        let turned = cx.mul(sinh_of(cx, self.re), cx.sin(im));
        Complex::new(cx.mul(cosh_of(cx, self.re), cx.cos(im)), kept_zero(cx, im, turned))
    }

    /// With `t = tanh re`, `u = tan im`: `(t (1 + u^2) + i u (1 - t^2)) / (1 + t^2 u^2)`.
    pub fn tanh(self, cx: &Cx) -> Self {
        let im = self.imag(cx);
        let (t, u) = (cx.tanh(self.re), tan_of(cx, im));
        let (t2, u2) = (cx.mul(t, t), cx.mul(u, u));
        let norm = cx.add(cx.mul(t2, u2), 1);
        let re = cx.div(cx.mul(t, cx.add(u2, 1)), norm);
        let turned = cx.div(cx.mul(u, cx.sub(1, t2)), norm);
        if !cx.propagates_nan(t) {
            return Complex::new(re, turned);
        }
        let limit = Complex::new(t, cx.scalar(0, cx.dtype(t)));
        let finite = Complex::new(kept_zero(cx, self.re, re), kept_zero(cx, im, turned));
        limit.select(cx, is_infinite(cx, self.re), finite)
    }

    /// `-i sinh(i a)`.
    pub fn sin(self, cx: &Cx) -> Self {
        self.turn(cx).sinh(cx).turn_back(cx)
    }

    /// `cosh(i a)`.
    pub fn cos(self, cx: &Cx) -> Self {
        self.turn(cx).cosh(cx)
    }

    /// `-i tanh(i a)`.
    pub fn tan(self, cx: &Cx) -> Self {
        self.turn(cx).tanh(cx).turn_back(cx)
    }

    /// `sqrt(1 - a)` and `sqrt(1 + a)`.
    fn roots(self, cx: &Cx) -> [Self; 2] {
        [self.neg(cx), self].map(|a| a.shift(cx, 1).sqrt(cx))
    }

    /// `atan(re a / re(r s)) + i asinh(im(conj(r) s))` with `r = sqrt(1 - a)`, `s = sqrt(1 + a)`.
    pub fn asin(self, cx: &Cx) -> Self {
        let [minus, plus] = self.roots(cx);
        let im = self.imag(cx);
        let finite = Complex::new(
            atan_of(cx, cx.div(self.re, minus.mul(cx, plus).re)),
            asinh_of(cx, minus.conj(cx).mul(cx, plus).imag(cx)),
        );
        self.at_infinity(cx, finite, || {
            let infinity = cx.scalar(f64::INFINITY, cx.dtype(im));
            Complex::new(atan2(cx, self.re, cx.abs(im)), copysign_of(cx, infinity, im))
        })
    }

    /// `2 atan(re r / re s) + i asinh(im(conj(s) r))` with `r = sqrt(1 - a)`, `s = sqrt(1 + a)`.
    pub fn acos(self, cx: &Cx) -> Self {
        let [minus, plus] = self.roots(cx);
        let im = self.imag(cx);
        let finite = Complex::new(
            cx.mul(atan_of(cx, cx.div(minus.re, plus.re)), 2),
            asinh_of(cx, plus.conj(cx).mul(cx, minus).imag(cx)),
        );
        self.at_infinity(cx, finite, || {
            let infinity = cx.scalar(f64::INFINITY, cx.dtype(im));
            Complex::new(atan2(cx, cx.abs(im), self.re), cx.neg(copysign_of(cx, infinity, im)))
        })
    }

    /// `-i asin(i a)`.
    pub fn asinh(self, cx: &Cx) -> Self {
        self.turn(cx).asin(cx).turn_back(cx)
    }

    /// `asinh(re(conj(r) s)) + 2i atan(im r / re s)` with `r = sqrt(a - 1)`, `s = sqrt(a + 1)`.
    pub fn acosh(self, cx: &Cx) -> Self {
        let [minus, plus] = [-1, 1].map(|b| self.shift(cx, b).sqrt(cx));
        let finite = Complex::new(
            asinh_of(cx, minus.conj(cx).mul(cx, plus).re),
            cx.mul(atan_of(cx, cx.div(minus.imag(cx), plus.re)), 2),
        );
        self.at_infinity(cx, finite, || {
            Complex::new(cx.scalar(f64::INFINITY, cx.dtype(self.re)), self.angle(cx))
        })
    }

    /// With `x = |re|`: `sign(re) log1p(4 x / ((1 - x)^2 + im^2)) / 4`, and half the angle of
    /// `(1 + re) (1 - re) - im^2 + 2i im`.
    pub fn atanh(self, cx: &Cx) -> Self {
        let im = self.imag(cx);
        let (x, y2) = (cx.abs(self.re), cx.mul(im, im));
        let gap = cx.sub(1, x);
        let ratio = cx.div(cx.mul(x, 4), cx.add(cx.mul(gap, gap), y2));
        let re = cx.mul(cx.mul(log1p_of(cx, ratio), 0.25), cx.sign(self.re));
        let product = cx.mul(cx.add(self.re, 1), cx.sub(1, self.re));
        let angle = atan2(cx, cx.mul(im, 2), cx.sub(product, y2));
        self.at_infinity(cx, Complex::new(re, cx.mul(angle, 0.5)), || {
            let limit = |size: f64, sign| copysign_of(cx, cx.scalar(size, cx.dtype(sign)), sign);
            let angle = cx.select(cx.is_nan(im), im, limit(FRAC_PI_2, im));
            Complex::new(limit(0.0, self.re), angle)
        })
    }

    /// `-i atanh(i a)`.
    pub fn atan(self, cx: &Cx) -> Self {
        self.turn(cx).atanh(cx).turn_back(cx)
    }

    /// `1 / (1 + e^-a)`.
    pub fn sigmoid(self, cx: &Cx) -> Self {
        self.neg(cx).exp(cx).shift(cx, 1).reciprocal(cx)
    }
}

fn is_infinite(cx: &Cx, x: Value) -> Value {
    cx.equal(cx.abs(x), f64::INFINITY)
}

/// `result`, or `x` where that is 0: a part that is 0 stays 0, even if the factor that `result` has
/// beside it is not finite.
fn kept_zero(cx: &Cx, x: Value, result: Value) -> Value {
    if cx.propagates_nan(result) { cx.select(cx.equal(x, 0.0), x, result) } else { result }
}
