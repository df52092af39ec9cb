//! Complex numbers: one type for tensors that may be complex, and one formula for each function of them.
//!
//! Absolute values and quotients are scaled: neither overflows nor vanishes where the result is a normal number. Square
//! roots, inverse sines and inverse cosines keep their precision near branch points (W. Kahan, Branch Cuts for Complex
//! Elementary Functions, 1987).

use crate::math::arcs::{asinh_of, atan_of, atan2};
use crate::math::elementary::{copysign_of, cosh_of, expm1_of, length, log1p_of, sinh_of, tan_of};
use crate::math::reduce::{may_be_empty_along, sum_of_products};
use crate::{Cx, Lowered, Number};
use pt2onnx_ir::{Model, Operand, Reduction, Value};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Scalar};
use std::{convert::Infallible, f64::consts::FRAC_PI_2};

/// A real tensor, or the two parts of a complex one.
///
/// A parameter of this type takes both kinds of tensors. [`value`](Complex::value) or [`Cx::pairs`] turn it into an output. Both
/// parts have the same element type. Their shapes broadcast together: after a sum with a larger real tensor, for example, the
/// imaginary part is still the smaller one.
///
/// Methods take the [`Cx`] with which they emit operators: `x.mul(cx, y).add(cx, z)`.
#[derive(Clone, Copy, Debug)]
pub struct Complex {
    /// The real part, or the real tensor.
    pub re: Value,
    /// The imaginary part. `None` for a real tensor.
    pub im: Option<Value>,
    /// The real/imaginary pairs that the number was given as, and their parts. These are those above, unless someone changed them.
    given: Option<(Value, Value, Option<Value>)>,
}

impl From<Value> for Complex {
    fn from(re: Value) -> Self {
        Complex::new(re, None)
    }
}

/// Construction, and use as an output.
impl Complex {
    /// A number of these parts. Without an imaginary part it is real.
    pub fn new(re: Value, im: impl Into<Option<Value>>) -> Self {
        Complex { re, im: im.into(), given: None }
    }

    /// A constant with parts of type `dtype`.
    pub fn number(cx: &Cx, number: Scalar, dtype: DType) -> Self {
        let part = |x: f64| cx.scalar(x, dtype);
        match number {
            Scalar::Complex(re, im) => Complex::new(part(re), part(im)),
            real => cx.scalar(real, dtype).into(),
        }
    }

    /// Both operands in the type of the node's result.
    ///
    /// # Errors
    /// Returns an error if PyTorch recorded no result.
    pub fn promote(cx: &Cx, a: Complex, b: Complex) -> Lowered<(Complex, Complex)> {
        let dtype = cx.out_dtype()?;
        Ok((a.cast(cx, dtype), b.cast(cx, dtype)))
    }

    /// `length * (cos angle + i sin angle)`.
    pub fn polar(cx: &Cx, length: Value, angle: Value) -> Self {
        Complex::new(cx.mul(length, cx.cos(angle)), cx.mul(length, cx.sin(angle)))
    }

    /// The imaginary part. For a real tensor it is a 0-d zero.
    pub fn imag(self, cx: &Cx) -> Value {
        self.im.unwrap_or_else(|| cx.scalar(0, cx.dtype(self.re)))
    }

    /// The number as a node's output: a real tensor as it is, a complex one as real/imaginary pairs.
    pub fn value(self, cx: &Cx) -> Value {
        if self.im.is_some() { cx.pairs(self) } else { self.re }
    }

    /// The same number, whose real/imaginary pairs are known.
    pub fn with_pairs(self, pairs: Value) -> Self {
        Complex { given: Some((pairs, self.re, self.im)), ..self }
    }

    /// The real/imaginary pairs that the number was given as. `None` for a real tensor and for a computed number.
    pub fn given_pairs(self) -> Option<Value> {
        let (pairs, re, im) = self.given?;
        ((re, im) == (self.re, self.im)).then_some(pairs)
    }

    /// The parts: one or two.
    pub fn parts(self) -> Vec<Value> {
        [Some(self.re), self.im].into_iter().flatten().collect()
    }

    /// The same number with an imaginary part. A real tensor gets zeros of its shape.
    pub fn complex(self, cx: &Cx) -> Self {
        let zeros = || cx.full(&cx.shape(self.re), 0, cx.dtype(self.re));
        Complex::new(self.re, self.im.unwrap_or_else(zeros))
    }

    /// The same number, with an imaginary part if `other` has one.
    pub fn like(self, cx: &Cx, other: Complex) -> Self {
        if other.im.is_some() { self.complex(cx) } else { self }
    }
}

/// Functions that treat both parts alike.
impl Complex {
    /// `f` of each part, for functions that only move elements, and for linear maps with real coefficients.
    pub fn map(self, f: impl Fn(Value) -> Value) -> Self {
        Complex::new(f(self.re), self.im.map(f))
    }

    /// [`Complex::map`] with an `f` that can fail.
    ///
    /// # Errors
    /// Returns the errors of `f`.
    pub fn try_map(self, f: impl Fn(Value) -> Lowered) -> Lowered<Self> {
        Ok(Complex::new(f(self.re)?, self.im.map(f).transpose()?))
    }

    /// Both parts cast to `dtype`.
    pub fn cast(self, cx: &Cx, dtype: DType) -> Self {
        if cx.dtype(self.re) == dtype { self } else { self.map(|x| cx.cast(x, dtype)) }
    }

    /// Broadcast to `dims`.
    pub fn expand(self, cx: &Cx, dims: &[Expr]) -> Self {
        self.map(|x| cx.expand(x, dims))
    }

    /// The last two dimensions exchanged.
    pub fn transpose(self, cx: &Cx) -> Self {
        let rank = cx.rank(self.re);
        self.map(|x| cx.swap_axes(x, rank.saturating_sub(2), rank.saturating_sub(1)))
    }

    /// `-a`.
    pub fn neg(self, cx: &Cx) -> Self {
        self.map(|x| cx.neg(x))
    }

    /// `a * b` with a real tensor `b`.
    pub fn times(self, cx: &Cx, b: Value) -> Self {
        self.map(|x| cx.mul(x, b))
    }

    /// `a / b` with a real tensor `b`.
    pub fn over(self, cx: &Cx, b: Value) -> Self {
        self.map(|x| cx.div(x, b))
    }

    /// The real/imaginary pairs.
    pub fn as_pairs(self, cx: &Cx) -> Value {
        self.given_pairs().unwrap_or_else(|| cx.pairs(self))
    }

    /// `f(a, b)` as real/imaginary pairs: a product or quotient with a real tensor `b`, which PyTorch takes for a complex one; see
    /// [`crossed`].
    pub fn by_real(self, cx: &Cx, b: Value, f: impl Fn(Value, Value) -> Value) -> Value {
        if !cx.minds_nan(self.re) {
            return cx.pairs(self.map(|x| f(x, b)));
        }
        let pairs = self.as_pairs(cx);
        let b = if cx.rank(b) == 0 { b } else { cx.unsqueeze(b, &[cx.rank(b)]) };
        crossed(cx, pairs, f(pairs, b))
    }

    /// Elements where `condition`, else zero.
    pub fn keep(self, cx: &Cx, condition: Value) -> Self {
        self.map(|x| cx.select(condition, x, 0.0))
    }

    /// Elements of `self` where `condition`, else of `b`.
    pub fn select(self, cx: &Cx, condition: Value, b: impl Into<Complex>) -> Self {
        let b = b.into();
        let choose = |x, y| cx.select(condition, x, y);
        let im = (self.im.is_some() || b.im.is_some()).then(|| choose(self.imag(cx), b.imag(cx)));
        Complex::new(choose(self.re, b.re), im)
    }
}

/// Arithmetic.
impl Complex {
    /// `a + b`.
    pub fn add(self, cx: &Cx, b: Complex) -> Self {
        let im = match (self.im, b.im) {
            (Some(x), Some(y)) => Some(cx.add(x, y)),
            (x, y) => x.or(y),
        };
        Complex::new(cx.add(self.re, b.re), im)
    }

    /// `a - b`.
    pub fn sub(self, cx: &Cx, b: Complex) -> Self {
        let im = match (self.im, b.im) {
            (Some(x), Some(y)) => Some(cx.sub(x, y)),
            (x, y) => x.or(y.map(|y| cx.neg(y))),
        };
        Complex::new(cx.sub(self.re, b.re), im)
    }

    /// `a + b`, `b` real.
    pub fn shift(self, cx: &Cx, b: impl Into<Operand>) -> Self {
        Complex::new(cx.add(self.re, b), self.im)
    }

    /// A function that is linear in `a` and in `b`, such as a product or contraction. `f` computes it for real tensors.
    pub fn bilinear(self, cx: &Cx, b: Complex, f: impl Fn(Value, Value) -> Value) -> Self {
        let Ok(result) = self.try_bilinear(cx, b, |x, y| Ok::<_, Infallible>(f(x, y)));
        result
    }

    /// [`Complex::bilinear`] with an `f` that can fail.
    ///
    /// # Errors
    /// Returns the errors of `f`.
    pub fn try_bilinear<E>(
        self,
        cx: &Cx,
        b: Complex,
        f: impl Fn(Value, Value) -> Result<Value, E>,
    ) -> Result<Self, E> {
        let re = f(self.re, b.re)?;
        Ok(match (self.im, b.im) {
            (None, None) => re.into(),
            (Some(x), None) => Complex::new(re, f(x, b.re)?),
            (None, Some(y)) => Complex::new(re, f(self.re, y)?),
            (Some(x), Some(y)) => {
                let re = cx.sub(re, f(x, y)?);
                Complex::new(re, cx.add(f(self.re, y)?, f(x, b.re)?))
            }
        })
    }

    /// `a * b`, element by element.
    pub fn mul(self, cx: &Cx, b: Complex) -> Self {
        self.bilinear(cx, b, |x, y| cx.mul(x, y))
    }

    /// The matrix product.
    pub fn matmul(self, cx: &Cx, b: Complex) -> Self {
        self.bilinear(cx, b, |x, y| {
            let product = || match (cx.rank(x), cx.rank(y)) {
                // ONNX Runtime forgets a transpose of `x` before a product with a vector, and leaves the memory of empty sums as it was.
                (2.., 1)
                    if may_be_transposed(&cx.model(), x) || may_be_empty_along(cx, y, &[0]) =>
                {
                    let product = cx.matmul(x, cx.unsqueeze(y, &[1]));
                    cx.squeeze(product, &[cx.rank(product) - 1])
                }
                _ => cx.matmul(x, y),
            };
            sum_of_products(cx, &[x, y], || cx.product_shape(x, y), product)
        })
    }

    /// `a * number`.
    pub fn scale(self, cx: &Cx, number: impl Into<Number>) -> Self {
        match number.into() {
            Number::Known(number @ Scalar::Complex(..)) => {
                self.mul(cx, Complex::number(cx, number, cx.dtype(self.re)))
            }
            real => self.map(|x| cx.mul(x, real)),
        }
    }

    /// `a / b`, as R. L. Smith's algorithm computes it: with `r = q / p`, where `p` is the larger part of `b` and `q` the other one,
    /// by `p + q r`. Where `b` is 0, the parts of `a` are divided by 0.
    pub fn div(self, cx: &Cx, b: Complex) -> Self {
        let Some(im) = b.im else {
            return self.over(cx, b.re);
        };
        let turned = cx.less(cx.abs(b.re), cx.abs(im));
        let ordered = |re, im| [cx.select(turned, im, re), cx.select(turned, re, im)];
        let [p, q] = ordered(b.re, im);
        let [m, n] = ordered(self.re, self.imag(cx));
        let zero = cx.equal(p, 0.0);
        let ratio = cx.div(q, cx.select(zero, 1.0, p));
        let divisor = cx.select(zero, 0.0, cx.add(p, cx.mul(q, ratio)));
        let re = cx.add(m, cx.mul(n, ratio));
        let im = cx.sub(n, cx.mul(m, ratio));
        let im = cx.select(turned, cx.neg(im), im);
        Complex::new(cx.div(re, divisor), cx.div(im, divisor))
    }

    /// `1 / a`.
    pub fn reciprocal(self, cx: &Cx) -> Self {
        Complex::from(cx.scalar(1, cx.dtype(self.re))).div(cx, self)
    }

    /// The complex conjugate.
    pub fn conj(self, cx: &Cx) -> Self {
        Complex::new(self.re, self.im.map(|x| cx.neg(x)))
    }

    /// The conjugate with the last two dimensions exchanged.
    pub fn adjoint(self, cx: &Cx) -> Self {
        self.transpose(cx).conj(cx)
    }

    /// `|a|^2`, which may overflow where `|a|` does not.
    pub fn abs2(self, cx: &Cx) -> Value {
        let square = |x| cx.mul(x, x);
        match self.im {
            None => square(self.re),
            Some(im) => cx.add(square(self.re), square(im)),
        }
    }

    /// `|a|`.
    pub fn abs(self, cx: &Cx) -> Value {
        match self.im {
            None => cx.abs(self.re),
            Some(_) => cx.cast(self.length(cx), cx.dtype(self.re)),
        }
    }

    /// `|a|` in float64, where squares of narrower floats neither overflow nor vanish; see [`length`].
    fn length(self, cx: &Cx) -> Value {
        match self.given_pairs().filter(|_| cx.dtype(self.re) != DType::F64) {
            Some(pairs) => {
                let last = cx.rank(pairs).saturating_sub(1);
                cx.reduce(Reduction::L2, cx.cast(pairs, DType::F64), &[last], false)
            }
            None => length(cx, self.re, self.imag(cx)),
        }
    }

    /// The angle of `a`, from `-pi` to `pi`.
    pub fn angle(self, cx: &Cx) -> Value {
        atan2(cx, self.imag(cx), self.re)
    }

    /// `a / |a|`, and 0 for 0.
    pub fn sgn(self, cx: &Cx) -> Self {
        let norm = self.abs(cx);
        self.over(cx, cx.select(cx.equal(norm, 0.0), 1.0, norm))
    }

    /// Whether a part is not 0, as bool.
    pub fn truth(self, cx: &Cx) -> Value {
        let truth = |x| cx.cast(x, DType::Bool);
        self.im.map_or_else(|| truth(self.re), |im| cx.or(truth(self.re), truth(im)))
    }
}

/// Elementary functions. Their results are complex.
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
        if !cx.minds_nan(self.re) {
            return finite;
        }
        let infinite = cx.or(is_infinite(cx, self.re), is_infinite(cx, self.imag(cx)));
        limit().select(cx, infinite, finite)
    }

    /// `e^a = e^re (cos im + i sin im)`.
    pub fn exp(self, cx: &Cx) -> Self {
        let (size, im) = (cx.exp(self.re), self.imag(cx));
        let power = Complex::polar(cx, size, im);
        if !cx.minds_nan(size) || cx.constant_of(self.re).is_some() {
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

    /// `log(e^a + e^b) = m + log(1 + e^(n - m))`, where `m` is the operand with the larger real part (`a`, if both have the same)
    /// and `n` the other one.
    pub fn log_add_exp(self, cx: &Cx, b: Complex) -> Self {
        let ordered = cx.greater_or_equal(self.re, b.re);
        let (large, small) = (self.select(cx, ordered, b), b.select(cx, ordered, self));
        let mut off = small.sub(cx, large);
        // The distance of two infinities is 0.
        off.re = cx.select(cx.equal(self.re, b.re), 0.0, off.re);
        off.exp(cx).shift(cx, 1).log(cx).add(cx, large)
    }

    /// The square root whose real part is not negative. Its larger part is `sqrt((|a| + |re a|) / 2)`, the other one `|im a|` over
    /// twice the larger. No digits cancel.
    pub fn sqrt(self, cx: &Cx) -> Self {
        let (im, dtype) = (self.imag(cx), cx.dtype(self.re));
        let sum = cx.add(self.length(cx), cx.cast(cx.abs(self.re), DType::F64));
        let large = cx.cast(cx.sqrt(cx.mul(sum, 0.5)), dtype);
        let small = cx.div(cx.abs(im), cx.mul(large, 2));
        let small = cx.select(cx.equal(large, 0.0), 0.0, small);
        let small = match cx.minds_nan(im) {
            true => cx.select(is_infinite(cx, im), f64::INFINITY, small),
            false => small,
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
        if !cx.minds_nan(t) {
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

/// `result`, or `x` where that is 0: a part that is 0 stays 0, even if the factor that `result` has beside it is not finite.
fn kept_zero(cx: &Cx, x: Value, result: Value) -> Value {
    match cx.minds_nan(result) {
        true => cx.select(cx.equal(x, 0.0), x, result),
        false => result,
    }
}

impl Cx<'_, '_> {
    /// Part 0 (real) or 1 (imaginary) of a tensor of real/imaginary pairs. If [`pairs`](Self::pairs) made the tensor, this emits
    /// nothing.
    pub fn part(&self, pairs: Value, part: usize) -> Value {
        match self.known_parts().of(pairs) {
            Some(parts) => parts[part],
            None => self.take(pairs, self.rank(pairs).saturating_sub(1), &Expr::int(part as i64)),
        }
    }

    /// Both parts of a tensor of real/imaginary pairs, which are in its last dimension.
    pub fn parts(&self, pairs: Value) -> Complex {
        Complex::new(self.part(pairs, 0), self.part(pairs, 1)).with_pairs(pairs)
    }

    /// Real/imaginary pairs: the two parts are broadcast together and stacked in a new last dimension. The imaginary parts of a real
    /// tensor are zeros.
    pub fn pairs(&self, c: Complex) -> Value {
        if let Some(pairs) = c.given_pairs() {
            return pairs;
        }
        let im = c.imag(self);
        let shape = self.broadcast_shapes(&self.shape(c.re), &self.shape(im));
        let (re, wide) = (self.expand(c.re, &shape), self.expand(im, &shape));
        let column = |part| self.unsqueeze(part, &[shape.len()]);
        let pairs = match self.is_zero(im) && !shape.is_empty() {
            true => self.with_zeros_behind(column(re)),
            false => self.concat(&[column(re), column(wide)], shape.len()),
        };
        self.known_parts().remember(pairs, [re, wide]);
        pairs
    }

    /// Whether a value is a 0-d constant of 0, as the imaginary parts of real tensors are.
    fn is_zero(&self, value: Value) -> bool {
        let constant = self.constant_of(value).filter(|t| t.rank() == 0);
        constant.is_some_and(|t| t.has_data() && t.to_bytes().iter().all(|&b| b == 0))
    }

    /// `x`, whose last dimension is 1, padded to 2.
    fn with_zeros_behind(&self, x: Value) -> Value {
        let mut pads = vec![0; 2 * self.rank(x)];
        if let Some(last) = pads.last_mut() {
            *last = 1;
        }
        let inputs = [Some(x), Some(self.ints(&pads))];
        self.emit1("Pad", &inputs, Default::default())
    }
}

/// `result`, plus 0 times the other part of `pairs`. In PyTorch a real factor, divisor or count is a complex number with an imaginary
/// part of 0, which meets both parts of `pairs`: NaN or infinity in one makes the other NaN.
pub fn crossed(cx: &Cx, pairs: Value, result: Value) -> Value {
    let other = cx.gather(pairs, cx.ints(&[1, 0]), cx.rank(pairs).saturating_sub(1));
    let zeros = cx.cast(cx.vector(&[-0f32, 0.0]), cx.dtype(pairs));
    cx.add(result, cx.mul(other, zeros))
}

/// Whether ONNX Runtime may compute `x` as the transpose of another value: it moves transposes behind most operators.
fn may_be_transposed(model: &Model, x: Value) -> bool {
    let fixed = ["Gemm", "LayerNormalization", "MatMul"];
    model.producer(x).is_some_and(|node| !fixed.contains(&model[node].op()))
}
