//! The gamma function and related functions, computed in float64 by asymptotic series.
//!
//! The series are Abramowitz and Stegun 6.1.41, 6.3.18, 23.2; DLMF 25.11, 8.11, 8.9. Recurrences
//! shift small arguments to where the series hold. The relative error is about 1e-14; near zeros of
//! a function it is the absolute error.

use crate::Cx;
use crate::math::control::{any, repeat};
use crate::math::elementary::{log1p_of, polynomial};
use crate::math::erf::erfc_of;
use crate::math::precision::{compute_type, double};
use pt2onnx_ir::{Reduction, Value};
use pt2onnx_tensor::DType;
use std::f64::consts::PI;

/// Whether `x` is below 8; and `x`, or then `x + 8`: an argument for which the series holds.
fn shifted(cx: &Cx, x: Value) -> (Value, Value) {
    let small = cx.less(x, 8.0);
    (small, cx.select(small, cx.add(x, 8), x))
}

/// The products `x (x + 7)`, `(x + 1) (x + 6)`, `(x + 2) (x + 5)` and `(x + 3) (x + 4)`; they
/// differ by 6, 10 and 12 from the first.
fn pairs(cx: &Cx, x: Value) -> [Value; 4] {
    let first = cx.mul(x, cx.add(x, 7));
    [first, cx.add(first, 6), cx.add(first, 10), cx.add(first, 12)]
}

/// `log(gamma(x))` for positive `x`, by Stirling's series; exactly 0 at 1 and 2.
fn lgamma_positive(cx: &Cx, x: Value) -> Value {
    let (small, y) = shifted(cx, x);
    let inverse = cx.reciprocal(y);
    let series = polynomial(
        cx,
        cx.mul(inverse, inverse),
        &[
            1.0 / 156.0,
            -691.0 / 360_360.0,
            1.0 / 1188.0,
            -1.0 / 1680.0,
            1.0 / 1260.0,
            -1.0 / 360.0,
            1.0 / 12.0,
        ],
    );
    let main = cx.mul(cx.sub(y, 0.5), cx.sub(cx.log(y), 1));
    let tail = cx.add(cx.mul(series, inverse), 0.5 * (2.0 * PI).ln() - 0.5);
    let stirling = cx.add(main, tail);
    let [a, b, c, d] = pairs(cx, x);
    let shift = cx.log(cx.mul(cx.mul(a, b), cx.mul(c, d)));
    let value = cx.select(small, cx.sub(stirling, shift), stirling);
    // Its zeros are exact, or products with infinity are not NaN.
    let zero = cx.or(cx.equal(x, 1.0), cx.equal(x, 2.0));
    cx.select(zero, 0.0, value)
}

/// `x` minus the nearest integer, so that `sin(pi x)` of an integer is exactly 0.
fn to_nearest(cx: &Cx, x: Value) -> Value {
    cx.sub(x, cx.round(x))
}

/// `log |gamma(x)|`. For negative `x` it is `log(pi / |sin(pi x)|) - lgamma(1 - x)`.
pub fn lgamma(cx: &Cx, x: Value) -> Value {
    let negative = cx.less(x, 0.0);
    let positive = cx.select(negative, cx.sub(1, x), x);
    let value = lgamma_positive(cx, positive);
    let sine = cx.abs(cx.sin(cx.mul(to_nearest(cx, x), PI)));
    let reflected = cx.sub(cx.log(cx.div(PI, sine)), value);
    let value = cx.select(negative, reflected, value);
    cx.select(cx.equal(x, f64::NEG_INFINITY), f64::INFINITY, value)
}

/// The derivative of `lgamma`. For negative `x` it is `digamma(1 - x) - pi / tan(pi x)`. It is NaN
/// at negative integers and minus infinity at 0.
pub fn digamma(cx: &Cx, x: Value) -> Value {
    let negative = cx.less(x, 0.0);
    let positive = cx.select(negative, cx.sub(1, x), x);
    let (small, y) = shifted(cx, positive);
    let inverse = cx.reciprocal(y);
    let square = cx.mul(inverse, inverse);
    let series = polynomial(
        cx,
        square,
        &[
            1.0 / 12.0,
            -691.0 / 32_760.0,
            1.0 / 132.0,
            -1.0 / 240.0,
            1.0 / 252.0,
            -1.0 / 120.0,
            1.0 / 12.0,
        ],
    );
    let rest = cx.add(cx.mul(inverse, 0.5), cx.mul(square, series));
    let large = cx.sub(cx.log(y), rest);
    let [a, b, c, d] = pairs(cx, positive).map(|v| cx.reciprocal(v));
    let sum = cx.add(cx.add(a, b), cx.add(c, d));
    let shift = cx.mul(cx.add(cx.mul(positive, 2), 7), sum);
    let value = cx.select(small, cx.sub(large, shift), large);
    let offset = to_nearest(cx, x);
    let angle = cx.mul(offset, PI);
    let cotangent = cx.div(cx.cos(angle), cx.sin(angle));
    let reflected = cx.sub(value, cx.mul(cotangent, PI));
    let reflected = cx.select(cx.equal(offset, 0.0), f64::NAN, reflected);
    cx.select(negative, reflected, value)
}

/// The Hurwitz zeta function `sum (q + k)^-s` of `s > 1` and positive `q`: ten terms and the
/// Euler-Maclaurin formula for the rest.
fn zeta_positive(cx: &Cx, s: Value, q: Value) -> Value {
    let shape = cx.broadcast_shapes(&cx.shape(s), &cx.shape(q));
    // Infinity times 0 would be NaN.
    let q = cx.expand(cx.minimum(q, cx.scalar(1e150, DType::F64)), &shape);
    let last = shape.len();
    let exponent = cx.neg(s);
    let steps: Vec<f64> = (0..10).map(f64::from).collect();
    let bases = cx.add(cx.unsqueeze(q, &[last]), cx.vector(&steps));
    let exponents = cx.unsqueeze(exponent, &[cx.rank(s)]);
    let sum = cx.reduce(Reduction::Sum, cx.pow(bases, exponents), &[last], false);
    let w = cx.add(q, 9);
    let square = cx.reciprocal(cx.mul(w, w));
    // B(2j) / (2j)!. Terms are nested: each has two more factors of the rising power of s.
    let bernoulli = [
        1.0 / 12.0,
        -1.0 / 720.0,
        1.0 / 30_240.0,
        -1.0 / 1_209_600.0,
        1.0 / 47_900_160.0,
        -1.0 / 1.892_437_580_318_379_2e9,
    ];
    let mut series = cx.scalar(bernoulli[5], DType::F64);
    for (i, b) in bernoulli.iter().enumerate().take(5).rev() {
        let i = i as f64;
        let rising = cx.mul(cx.add(s, 2.0 * i + 1.0), cx.add(s, 2.0 * i + 2.0));
        series = cx.add(cx.mul(cx.mul(rising, square), series), *b);
    }
    let series = cx.mul(cx.div(s, w), series);
    let integral = cx.sub(cx.div(w, cx.sub(s, 1)), 0.5);
    let tail = cx.mul(cx.pow(w, exponent), cx.add(integral, series));
    cx.add(sum, tail)
}

/// The Hurwitz zeta function `zeta(s, q)`. For negative `q` and whole `s` it is, with `f = q -
/// floor(q)`: `zeta(s, f) + (-1)^s (zeta(s, 1 - f) - zeta(s, 1 - q))`, because the terms below 0
/// mirror those of the other two. It is infinite at poles, and NaN for `s` below 1 and where powers
/// of negative numbers are not real.
pub fn zeta(cx: &Cx, s: Value, q: Value) -> Value {
    let floor = cx.floor(q);
    let fraction = cx.sub(q, floor);
    let negative = cx.less_or_equal(q, 0.0);
    // The three terms are computed together, in a new last dimension.
    let shape = cx.broadcast_shapes(&cx.shape(s), &cx.shape(q));
    let last = shape.len();
    let along = |v| cx.unsqueeze(cx.expand(v, &shape), &[last]);
    let arguments = [
        cx.select(negative, fraction, q),
        cx.select(negative, cx.sub(cx.add(floor, 1), q), 1.0),
        cx.maximum(cx.sub(1, q), cx.scalar(1, DType::F64)),
    ];
    let arguments = cx.concat(&arguments.map(along), last);
    let of_three = zeta_positive(cx, along(s), arguments);
    let whole = cx.equal(s, cx.floor(s));
    let odd = cx.mod_(s, cx.scalar(2, DType::F64), pt2onnx_ir::attrs::Mod { fmod: true });
    let sign = cx.cast(cx.sub(1, cx.mul(odd, 2)), DType::F64);
    let sign = cx.select(negative, sign, 0.0);
    let weights =
        cx.concat(&[along(cx.scalar(1, DType::F64)), along(sign), along(cx.neg(sign))], last);
    let value = cx.reduce(Reduction::Sum, cx.mul(of_three, weights), &[last], false);
    let real = cx.or(whole, cx.not(negative));
    let value = cx.select(real, value, f64::NAN);
    let pole = cx.and(negative, cx.equal(q, floor));
    let value = cx.select(pole, f64::INFINITY, value);
    let value = cx.select(cx.less(s, 1.0), f64::NAN, value);
    cx.select(cx.equal(s, 1.0), f64::INFINITY, value)
}

/// The derivative of `digamma`. Below 1/2 it is `pi^2 / sin(pi x)^2 - trigamma(1 - x)`. As in
/// PyTorch, `pi x` is rounded to the type of `x`, so that poles become large numbers.
pub fn trigamma(cx: &Cx, x: Value) -> Value {
    let narrow = cx.cast(x, compute_type(cx, cx.dtype(x)));
    let angle = cx.mul(narrow, PI);
    double(cx, x, |x| {
        let reflect = cx.less(x, 0.5);
        let positive = cx.select(reflect, cx.sub(1, x), x);
        let value = zeta_positive(cx, cx.scalar(2, DType::F64), positive);
        let ratio = cx.div(PI, cx.sin(cx.cast(angle, DType::F64)));
        let reflected = cx.sub(cx.mul(ratio, ratio), value);
        cx.select(reflect, reflected, value)
    })
}

/// The regularised incomplete gamma function: the lower one, `P(a, x)`, or the upper one, `Q = 1 -
/// P`. For `x` below `a + 1` it is the power series of `P` (DLMF 8.11.4), otherwise the continued
/// fraction of `Q` (8.9.2) by Lentz's method. Both loops end when no element changes by more than
/// rounding, after 10000 steps at the latest. Above `a` = 1e6 that may be too few: there Temme's
/// uniform expansion is used.
pub fn incomplete_gamma(cx: &Cx, a: Value, x: Value, upper: bool) -> Value {
    let shape = cx.broadcast_shapes(&cx.shape(a), &cx.shape(x));
    let finite = |v| cx.less(v, f64::INFINITY);
    let regular =
        cx.and(cx.and(cx.greater(a, 0.0), cx.greater(x, 0.0)), cx.and(finite(a), finite(x)));
    let large_a = cx.greater(a, 1e6);
    let in_loop = cx.and(regular, cx.not(large_a));
    let one = cx.scalar(1, DType::F64);
    let a_or_1 = cx.expand(cx.select(in_loop, a, one), &shape);
    let x_or_1 = cx.expand(cx.select(in_loop, x, one), &shape);
    let turn = cx.add(a_or_1, 1);
    let by_series = cx.less(x_or_1, turn);
    // x^a e^-x / gamma(a)
    let exponent = cx.sub(cx.mul(a_or_1, cx.log(x_or_1)), x_or_1);
    let factor = cx.exp(cx.sub(exponent, lgamma_positive(cx, a_or_1)));

    let trips = cx.scalar(10_000i64, DType::I64);
    let small = cx.minimum(x_or_1, turn);
    let ones = cx.expand(one, &shape);
    let last = repeat(cx, Some(trips), &[a_or_1, ones, ones], |_, carried| {
        let n = cx.add(carried[0], 1);
        let term = cx.mul(carried[1], cx.div(small, n));
        let sum = cx.add(carried[2], term);
        let changes = cx.greater(term, cx.mul(sum, f64::EPSILON / 2.0));
        (Some(any(cx, changes)), vec![n, term, sum])
    });
    let lower_value = cx.mul(factor, cx.div(last[2], a_or_1));

    let large = cx.maximum(x_or_1, turn);
    let b = cx.sub(cx.add(large, 1), a_or_1);
    let c = cx.expand(cx.scalar(1e300, DType::F64), &shape);
    let d = cx.reciprocal(b);
    let last = repeat(cx, Some(trips), &[b, c, d, d], |step, carried| {
        let i = cx.add(cx.cast(step, DType::F64), 1);
        let numerator = cx.mul(cx.sub(a_or_1, i), i);
        let b = cx.add(carried[0], 2);
        let d = cx.reciprocal(cx.add(cx.mul(numerator, carried[2]), b));
        let c = cx.add(b, cx.div(numerator, carried[1]));
        let change = cx.mul(c, d);
        let changes = cx.greater(cx.abs(cx.sub(change, 1)), f64::EPSILON * 2.0);
        (Some(any(cx, changes)), vec![b, c, d, cx.mul(carried[3], change)])
    });
    let upper_value = cx.mul(factor, last[3]);

    // P is 0 for x = 0 and for infinite a, and 1 for infinite x and for a = 0. If both apply, or a
    // or x is negative, it is NaN.
    let (nought, full) = if upper { (1.0, 0.0) } else { (0.0, 1.0) };
    let value = if upper {
        cx.select(by_series, cx.sub(1, lower_value), upper_value)
    } else {
        cx.select(by_series, lower_value, cx.sub(1, upper_value))
    };
    let value = cx.select(large_a, temme(cx, a, x, upper), value);
    let rising = cx.or(cx.equal(a, 0.0), cx.equal(x, f64::INFINITY));
    let falling = cx.or(cx.equal(x, 0.0), cx.equal(a, f64::INFINITY));
    let at_end = cx.select(rising, cx.scalar(full, DType::F64), nought);
    let defined = cx.and(
        cx.and(cx.greater_or_equal(a, 0.0), cx.greater_or_equal(x, 0.0)),
        cx.not(cx.and(rising, falling)),
    );
    let at_end = cx.select(defined, at_end, f64::NAN);
    cx.select(regular, value, at_end)
}

/// `P` or `Q` of large `a` (N. M. Temme 1979, DLMF 8.12.3 and 8.12.4). With `eta^2 / 2 = x/a - 1 -
/// log(x/a)` it is `erfc(-+eta sqrt(a / 2)) / 2` plus the first term of a series, which is `eta /
/// 12 - 1/3` near `eta = 0`. The error is below 1e-7.
fn temme(cx: &Cx, a: Value, x: Value, upper: bool) -> Value {
    let sign = if upper { 1.0 } else { -1.0 };
    let sigma = cx.div(cx.sub(x, a), a);
    let half_square = cx.sub(sigma, log1p_of(cx, sigma));
    // Beyond 100 the bell is 0 in any case.
    let half_square = cx.clamp(half_square, Some(0.0.into()), Some(100.0.into()));
    let eta = cx.mul(cx.sqrt(cx.mul(half_square, 2)), cx.sign(sigma));
    let argument = cx.mul(cx.mul(eta, cx.sqrt(cx.mul(a, 0.5))), sign);
    let main = cx.mul(erfc_of(cx, argument), 0.5);
    let bell = cx.exp(cx.neg(cx.mul(a, half_square)));
    let height = cx.div(bell, cx.sqrt(cx.mul(a, 2.0 * PI)));
    let series = cx.sub(cx.div(eta, 12), 1.0 / 3.0);
    cx.add(main, cx.mul(cx.mul(height, series), sign))
}
