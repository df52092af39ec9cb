//! Complex numbers: one type for tensors that may be complex, and their arithmetic.
//!
//! Absolute values and quotients are scaled: neither overflows nor vanishes where the result is a
//! normal number.

mod args;
mod functions;
mod pairs;

use crate::math::arcs::atan2;
use crate::math::elementary::length;
use crate::math::reduce::{matmul_of, sum_of_products};
use crate::{Cx, Lowered, Number};
use pt2onnx_ir::{Model, Operand, Reduction, Value};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Scalar};
use std::convert::Infallible;

/// A real tensor, or the two parts of a complex one.
///
/// A parameter of this type takes both kinds of tensors. [`value`](Complex::value) or [`Cx::pairs`]
/// turn it into an output. Both parts have the same element type. Their shapes broadcast together:
/// after a sum with a larger real tensor, for example, the imaginary part is still the smaller one.
///
/// Methods take the [`Cx`] with which they emit operators: `x.mul(cx, y).add(cx, z)`.
#[derive(Clone, Copy, Debug)]
pub struct Complex {
    /// The real part, or the real tensor.
    pub re: Value,
    /// The imaginary part. `None` for a real tensor.
    pub im: Option<Value>,
    /// The real/imaginary pairs that the number was given as, and their parts. These are those
    /// above, unless someone changed them.
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

    /// The number as a node's output: a real tensor as it is, a complex one as real/imaginary
    /// pairs.
    pub fn value(self, cx: &Cx) -> Value {
        if self.im.is_some() { cx.pairs(self) } else { self.re }
    }

    /// The same number, whose real/imaginary pairs are known.
    pub fn with_pairs(self, pairs: Value) -> Self {
        Complex { given: Some((pairs, self.re, self.im)), ..self }
    }

    /// The real/imaginary pairs that the number was given as. `None` for a real tensor and for a
    /// computed number.
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
    /// `f` of each part, for functions that only move elements, and for linear maps with real
    /// coefficients.
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

    /// `f(a, b)` as real/imaginary pairs: a product or quotient with a real tensor `b`, which
    /// PyTorch takes for a complex one; see [`crossed`].
    pub fn by_real(self, cx: &Cx, b: Value, f: impl Fn(Value, Value) -> Value) -> Value {
        if !cx.propagates_nan(self.re) {
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

    /// A function that is linear in `a` and in `b`, such as a product or contraction. `f` computes
    /// it for real tensors.
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
                // ONNX Runtime forgets a transpose of `x` before a product with a vector.
                (2.., 1) if may_be_transposed(&cx.model(), x) => {
                    let product = matmul_of(cx, x, cx.unsqueeze(y, &[1]));
                    cx.squeeze(product, &[cx.rank(product) - 1])
                }
                _ => matmul_of(cx, x, y),
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

    /// `a / b`, as R. L. Smith's algorithm computes it: with `r = q / p`, where `p` is the larger
    /// part of `b` and `q` the other one, by `p + q r`. Where `b` is 0, the parts of `a` are
    /// divided by 0.
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

    /// `|a|` in float64, where squares of narrower floats neither overflow nor vanish; see
    /// [`length`].
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

    /// Numbers of type `dtype`, complex or real. A complex number becomes a real one by its real
    /// part, and true if a part is not 0.
    pub fn converted(self, cx: &Cx, dtype: DType, complex: bool) -> Self {
        match dtype {
            _ if complex => self.cast(cx, dtype),
            DType::Bool => self.truth(cx).into(),
            _ => cx.cast(self.re, dtype).into(),
        }
    }

    /// Whether a part is not 0, as bool.
    pub fn truth(self, cx: &Cx) -> Value {
        let truth = |x| cx.cast(x, DType::Bool);
        self.im.map_or_else(|| truth(self.re), |im| cx.or(truth(self.re), truth(im)))
    }
}

/// `result`, plus 0 times the other part of `pairs`. In PyTorch a real factor, divisor or count is
/// a complex number with an imaginary part of 0, which meets both parts of `pairs`: NaN or infinity
/// in one makes the other NaN.
pub fn crossed(cx: &Cx, pairs: Value, result: Value) -> Value {
    let other = cx.gather(pairs, cx.ints(&[1, 0]), cx.rank(pairs).saturating_sub(1));
    let zeros = cx.cast(cx.vector(&[-0f32, 0.0]), cx.dtype(pairs));
    cx.add(result, cx.mul(other, zeros))
}

/// Whether ONNX Runtime may compute `x` as the transpose of another value: it moves transposes
/// behind most operators.
fn may_be_transposed(model: &Model, x: Value) -> bool {
    let fixed = ["Gemm", "LayerNormalization", "MatMul"];
    model.producer(x).is_some_and(|node| !fixed.contains(&model[node].op()))
}
