//! The gamma function's relatives, computed in float64 by their asymptotic series (Abramowitz and Stegun, 6.1.41, 6.3.18,
//! 23.2; DLMF 25.11, 8.11, 8.9), into whose range the argument is shifted by recurrence: relative error about 1e-14,
//! absolute where they cross zero.

use super::{
    loops::{any, repeat},
    precision::{compute_type, double, double2},
    special::polynomial,
};
use crate::{AtenOp, Cx, LowerError, Lowered, TensorOrScalar, registry::aten};
use pt2onnx_ir::{Reduction, Value};
use pt2onnx_tensor::DType;
use std::f64::consts::PI;

pub(super) static OPS: &[AtenOp] = &[
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

/// `x`, or `x + 8` below 8 (which `true` says), where the series holds.
fn shifted(cx: &Cx, x: Value) -> (Value, Value) {
    let small = cx.less(x, 8.0);
    (small, cx.select(small, cx.add(x, 8), x))
}

/// `x (x + 7)`, to which 6, 10 and 12 added give the other products of `x ..= x + 7` taken in pairs from both ends.
fn pairs(cx: &Cx, x: Value) -> [Value; 4] {
    let first = cx.mul(x, cx.add(x, 7));
    [first, cx.add(first, 6), cx.add(first, 10), cx.add(first, 12)]
}

/// `log gamma` of positive numbers: Stirling's series.
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
    cx.select(small, cx.sub(stirling, shift), stirling)
}

/// `x` less the nearest whole number: sines of `pi x` are exact zeros where they should be.
fn to_nearest(cx: &Cx, x: Value) -> Value {
    cx.sub(x, cx.round(x))
}

/// Of negative numbers, `log(pi / |sin(pi x)|) - lgamma(1 - x)`.
fn lgamma(cx: &Cx, x: Value) -> Value {
    let negative = cx.less(x, 0.0);
    let positive = cx.select(negative, cx.sub(1, x), x);
    let value = lgamma_positive(cx, positive);
    let sine = cx.abs(cx.sin(cx.mul(to_nearest(cx, x), PI)));
    let reflected = cx.sub(cx.log(cx.div(PI, sine)), value);
    let value = cx.select(negative, reflected, value);
    cx.select(cx.equal(x, f64::NEG_INFINITY), f64::INFINITY, value)
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
        let sum = cx.reduce(Reduction::Sum, lgamma(cx, arguments), &[last], false);
        cx.add(sum, (p * (p - 1)) as f64 / 4.0 * PI.ln())
    }))
}

/// The derivative of `lgamma`; of negative numbers `digamma(1 - x) - pi / tan(pi x)`, NaN at their poles and minus infinity
/// at 0.
fn digamma(cx: &Cx, x: Value) -> Value {
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

/// Hurwitz's zeta function of `s > 1` and positive `q`: ten terms, then the Euler-Maclaurin formula.
fn zeta_positive(cx: &Cx, s: Value, q: Value) -> Value {
    let shape = cx.broadcast_shapes(&cx.shape(s), &cx.shape(q));
    // Infinity would meet 0 in a product.
    let q = cx.expand(cx.minimum(q, cx.scalar(1e150, DType::F64)), &shape);
    let last = shape.len();
    let exponent = cx.neg(s);
    let steps: Vec<f64> = (0..10).map(f64::from).collect();
    let bases = cx.add(cx.unsqueeze(q, &[last]), cx.vector(&steps));
    let exponents = cx.unsqueeze(exponent, &[cx.rank(s)]);
    let sum = cx.reduce(Reduction::Sum, cx.pow(bases, exponents), &[last], false);
    let w = cx.add(q, 9);
    let square = cx.reciprocal(cx.mul(w, w));
    // B(2j) / (2j)!, nested: each term holds two factors more of the rising power of s.
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

/// Of negative `q` and whole `s`, with `f = q - floor(q)`: `zeta(s, f) + (-1)^s (zeta(s, 1 - f) - zeta(s, 1 - q))`, since the
/// terms below 0 are those of the other two mirrored. Infinity at poles, NaN of `s` below 1 and where powers of negative
/// numbers are not real.
fn zeta(cx: &Cx, s: Value, q: Value) -> Value {
    let floor = cx.floor(q);
    let fraction = cx.sub(q, floor);
    let negative = cx.less_or_equal(q, 0.0);
    // One dimension more for the three.
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

/// Below 1/2 by reflection, `pi^2 / sin(pi x)^2 - trigamma(1 - x)`. PyTorch's sine is that of the rounded `pi x`, so that its
/// poles are large numbers; so here.
fn trigamma(cx: &Cx, x: Value) -> Value {
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

/// The regularised incomplete gamma functions, the lower one `P` or the upper one `Q = 1 - P`. Up to `a + 1` the power series
/// of `P` (DLMF 8.11.4), whose terms are positive, beyond the continued fraction of `Q` (8.9.2) by Lentz's method: both in
/// loops until no element changes by more than rounding, 10000 steps at most. Of `a` above a million, for which that may be
/// too few, Temme's uniform expansion.
fn incomplete_gamma(cx: &Cx, a: Value, x: Value, upper: bool) -> Value {
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

    // At the ends: 0 of x = 0, 1 of x infinite; 1 of a = 0, 0 of a infinite; both at once, and negative ones, are undefined.
    let (nought, full) = if upper { (1.0, 0.0) } else { (0.0, 1.0) };
    let value = match upper {
        true => cx.select(by_series, cx.sub(1, lower_value), upper_value),
        false => cx.select(by_series, lower_value, cx.sub(1, upper_value)),
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

/// `P` or `Q` of large `a` (N. M. Temme 1979, DLMF 8.12.3 and 8.12.4): with `eta^2 / 2 = x/a - 1 - log(x/a)`,
/// `erfc(-+eta sqrt(a / 2)) / 2` and the first term of the series, near `eta = 0` `eta / 12 - 1/3`. Error below 1e-7.
fn temme(cx: &Cx, a: Value, x: Value, upper: bool) -> Value {
    let sign = if upper { 1.0 } else { -1.0 };
    let sigma = cx.div(cx.sub(x, a), a);
    let half_square = cx.sub(sigma, super::unary::log1p_of(cx, sigma));
    // Beyond 100 the bell is 0 in any case.
    let half_square = cx.clamp(half_square, Some(0.0.into()), Some(100.0.into()));
    let eta = cx.mul(cx.sqrt(cx.mul(half_square, 2)), cx.sign(sigma));
    let argument = cx.mul(cx.mul(eta, cx.sqrt(cx.mul(a, 0.5))), sign);
    let main = cx.mul(super::special::erfc_of(cx, argument), 0.5);
    let bell = cx.exp(cx.neg(cx.mul(a, half_square)));
    let height = cx.div(bell, cx.sqrt(cx.mul(a, 2.0 * PI)));
    let series = cx.sub(cx.div(eta, 12), 1.0 / 3.0);
    cx.add(main, cx.mul(cx.mul(height, series), sign))
}
