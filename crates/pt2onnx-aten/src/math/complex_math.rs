//! Functions of complex numbers by real ones. Square roots, inverse sines and cosines keep their precision near branch
//! points: W. Kahan, Branch Cuts for Complex Elementary Functions (1987).

use crate::ops::pointwise::arithmetic::atan2;
use crate::ops::pointwise::arithmetic::hypot;
use crate::ops::pointwise::unary::{cosh_of, sinh_of, tan_of};
use crate::{Complex, Cx};
use pt2onnx_ir::{Operand, Value};

pub(crate) fn map(c: Complex, f: impl Fn(Value) -> Value) -> Complex {
    Complex { re: f(c.re), im: f(c.im) }
}

pub(crate) fn add(cx: &Cx, a: Complex, b: Complex) -> Complex {
    Complex { re: cx.add(a.re, b.re), im: cx.add(a.im, b.im) }
}

pub(crate) fn sub(cx: &Cx, a: Complex, b: Complex) -> Complex {
    Complex { re: cx.sub(a.re, b.re), im: cx.sub(a.im, b.im) }
}

/// `a + b`, `b` real.
pub(crate) fn shift(cx: &Cx, a: Complex, b: impl Into<Operand>) -> Complex {
    Complex { re: cx.add(a.re, b), im: a.im }
}

/// `a * b`, `b` real.
pub(crate) fn scale(cx: &Cx, a: Complex, b: impl Into<Operand>) -> Complex {
    let b = b.into();
    map(a, |part| cx.mul(part, b))
}

pub(crate) fn neg(cx: &Cx, a: Complex) -> Complex {
    map(a, |part| cx.neg(part))
}

pub(crate) fn conj(cx: &Cx, a: Complex) -> Complex {
    Complex { re: a.re, im: cx.neg(a.im) }
}

/// `i * a`.
fn turn(cx: &Cx, a: Complex) -> Complex {
    Complex { re: cx.neg(a.im), im: a.re }
}

/// `-i * a`.
fn turn_back(cx: &Cx, a: Complex) -> Complex {
    Complex { re: a.im, im: cx.neg(a.re) }
}

/// `a * b`.
pub(crate) fn mul(cx: &Cx, a: Complex, b: Complex) -> Complex {
    Complex {
        re: cx.sub(cx.mul(a.re, b.re), cx.mul(a.im, b.im)),
        im: cx.add(cx.mul(a.re, b.im), cx.mul(a.im, b.re)),
    }
}

/// `a * conj(b) / |b|^2`; of `b = 0`, the parts of `a` over 0.
pub(crate) fn div(cx: &Cx, a: Complex, b: Complex) -> Complex {
    let (b, norm) = divisor(cx, b);
    map(mul(cx, a, conj(cx, b)), |part| cx.div(part, norm))
}

/// `conj(a) / |a|^2`; of 0, `1 / 0`.
pub(crate) fn reciprocal(cx: &Cx, a: Complex) -> Complex {
    let (a, norm) = divisor(cx, a);
    map(conj(cx, a), |part| cx.div(part, norm))
}

/// `b`, or 1 instead of 0, and `|b|^2`.
fn divisor(cx: &Cx, b: Complex) -> (Complex, Value) {
    let norm = squared_norm(cx, b);
    let re = cx.select(cx.equal(norm, 0.0), 1.0, b.re);
    (Complex { re, im: b.im }, norm)
}

fn squared_norm(cx: &Cx, a: Complex) -> Value {
    cx.add(cx.mul(a.re, a.re), cx.mul(a.im, a.im))
}

pub(crate) fn abs(cx: &Cx, a: Complex) -> Value {
    hypot(cx, a.re, a.im)
}

/// `a / |a|`, and 0 of 0.
pub(crate) fn sgn(cx: &Cx, a: Complex) -> Complex {
    let norm = abs(cx, a);
    let norm = cx.select(cx.equal(norm, 0.0), cx.scalar(1, cx.dtype(norm)), norm);
    map(a, |part| cx.div(part, norm))
}

/// `e^re (cos im + i sin im)`.
pub(crate) fn exp(cx: &Cx, a: Complex) -> Complex {
    polar(cx, cx.exp(a.re), a.im)
}

pub(crate) fn polar(cx: &Cx, length: Value, angle: Value) -> Complex {
    Complex { re: cx.mul(length, cx.cos(angle)), im: cx.mul(length, cx.sin(angle)) }
}

pub(crate) fn log(cx: &Cx, a: Complex) -> Complex {
    Complex { re: cx.log(abs(cx, a)), im: atan2(cx, a.im, a.re) }
}

/// The larger part from `sqrt((|a| + |re a|) / 2)`, the other one by division: nothing cancels.
pub(crate) fn sqrt(cx: &Cx, a: Complex) -> Complex {
    let large = cx.sqrt(cx.mul(cx.add(abs(cx, a), cx.abs(a.re)), 0.5));
    let small = cx.div(cx.abs(a.im), cx.mul(large, 2));
    let small = cx.select(cx.equal(large, 0.0), cx.scalar(0, cx.dtype(large)), small);
    let right = cx.greater_or_equal(a.re, 0.0);
    let im = cx.select(right, small, large);
    Complex {
        re: cx.select(right, large, small),
        im: cx.select(cx.less(a.im, 0.0), cx.neg(im), im),
    }
}

/// `exp(b log a)`; of 0, 0 (and 1 where `b` is 0, too).
pub(crate) fn pow(cx: &Cx, a: Complex, b: Complex) -> Complex {
    let power = exp(cx, mul(cx, b, log(cx, a)));
    let zero = |c: Complex| cx.and(cx.equal(c.re, 0.0), cx.equal(c.im, 0.0));
    let of_zero = zero(a);
    Complex {
        re: cx.select(of_zero, cx.cast(zero(b), cx.dtype(power.re)), power.re),
        im: cx.select(of_zero, cx.scalar(0, cx.dtype(power.im)), power.im),
    }
}

pub(crate) fn sinh(cx: &Cx, a: Complex) -> Complex {
    Complex {
        re: cx.mul(sinh_of(cx, a.re), cx.cos(a.im)),
        im: cx.mul(cosh_of(cx, a.re), cx.sin(a.im)),
    }
}

pub(crate) fn cosh(cx: &Cx, a: Complex) -> Complex {
    Complex {
        re: cx.mul(cosh_of(cx, a.re), cx.cos(a.im)),
        im: cx.mul(sinh_of(cx, a.re), cx.sin(a.im)),
    }
}

/// With `t = tanh re`, `u = tan im`: `(t (1 + u^2) + i u (1 - t^2)) / (1 + t^2 u^2)`.
pub(crate) fn tanh(cx: &Cx, a: Complex) -> Complex {
    let (t, u) = (cx.tanh(a.re), tan_of(cx, a.im));
    let (t2, u2) = (cx.mul(t, t), cx.mul(u, u));
    let norm = cx.add(cx.mul(t2, u2), 1);
    Complex {
        re: cx.div(cx.mul(t, cx.add(u2, 1)), norm),
        im: cx.div(cx.mul(u, cx.sub(1, t2)), norm),
    }
}

pub(crate) fn sin(cx: &Cx, a: Complex) -> Complex {
    turn_back(cx, sinh(cx, turn(cx, a)))
}

pub(crate) fn cos(cx: &Cx, a: Complex) -> Complex {
    cosh(cx, turn(cx, a))
}

pub(crate) fn tan(cx: &Cx, a: Complex) -> Complex {
    turn_back(cx, tanh(cx, turn(cx, a)))
}

/// `sqrt(1 - a)` and `sqrt(1 + a)`.
fn roots(cx: &Cx, a: Complex) -> [Complex; 2] {
    [sqrt(cx, shift(cx, neg(cx, a), 1)), sqrt(cx, shift(cx, a, 1))]
}

pub(crate) fn asin(cx: &Cx, a: Complex) -> Complex {
    let [minus, plus] = roots(cx, a);
    Complex {
        re: cx.atan(cx.div(a.re, mul(cx, minus, plus).re)),
        im: cx.asinh(mul(cx, conj(cx, minus), plus).im),
    }
}

pub(crate) fn acos(cx: &Cx, a: Complex) -> Complex {
    let [minus, plus] = roots(cx, a);
    Complex {
        re: cx.mul(cx.atan(cx.div(minus.re, plus.re)), 2),
        im: cx.asinh(mul(cx, conj(cx, plus), minus).im),
    }
}

pub(crate) fn asinh(cx: &Cx, a: Complex) -> Complex {
    turn_back(cx, asin(cx, turn(cx, a)))
}

pub(crate) fn acosh(cx: &Cx, a: Complex) -> Complex {
    let (minus, plus) = (sqrt(cx, shift(cx, a, -1)), sqrt(cx, shift(cx, a, 1)));
    Complex {
        re: cx.asinh(mul(cx, conj(cx, minus), plus).re),
        im: cx.mul(cx.atan(cx.div(minus.im, plus.re)), 2),
    }
}

pub(crate) fn atanh(cx: &Cx, a: Complex) -> Complex {
    let y2 = cx.mul(a.im, a.im);
    let (plus, minus) = (cx.add(a.re, 1), cx.sub(1, a.re));
    let norm = |part| cx.add(cx.mul(part, part), y2);
    let ratio = cx.div(norm(plus), norm(minus));
    let angle = atan2(cx, cx.mul(a.im, 2), cx.sub(cx.mul(plus, minus), y2));
    Complex { re: cx.mul(cx.log(ratio), 0.25), im: cx.mul(angle, 0.5) }
}

pub(crate) fn atan(cx: &Cx, a: Complex) -> Complex {
    turn_back(cx, atanh(cx, turn(cx, a)))
}

/// `1 / (1 + exp(-a))`.
pub(crate) fn sigmoid(cx: &Cx, a: Complex) -> Complex {
    reciprocal(cx, shift(cx, exp(cx, neg(cx, a)), 1))
}

/// `exp(a) - 1`: `expm1(re) cos im - 2 sin(im / 2)^2 + i e^re sin im`.
pub(crate) fn expm1(cx: &Cx, a: Complex) -> Complex {
    let half = cx.sin(cx.mul(a.im, 0.5));
    let small = crate::ops::pointwise::unary::expm1_of(cx, a.re);
    Complex {
        re: cx.sub(cx.mul(small, cx.cos(a.im)), cx.mul(cx.mul(half, half), 2)),
        im: cx.mul(cx.exp(a.re), cx.sin(a.im)),
    }
}
