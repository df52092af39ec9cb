//! Fourier transforms along one dimension: `DFT`, or sums where the transform is short.

use crate::math::shape::constant;
use crate::{Complex, Cx, FromArg, ParamType};
use pt2onnx_fx::graph::Argument;
use pt2onnx_ir::{Reduction, Type, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Scalar};
use std::f64::consts::PI;

/// A tensor as `DFT` takes it: floats, with a new last dimension of size 2 (real and imaginary
/// parts) or 1 (real).
#[derive(Debug, Clone, Copy)]
pub struct Signal {
    /// The tensor.
    pub value: Value,
    /// Whether the last dimension has real and imaginary parts.
    pub complex: bool,
}

impl FromArg for Signal {
    const TAKES_COMPLEX: bool = true;

    fn accepts(ty: &ParamType) -> bool {
        Value::accepts(ty)
    }

    fn from_arg(cx: &Cx, arg: &Argument) -> Result<Self, String> {
        let value = Value::from_arg(cx, arg)?;
        let complex = matches!(arg, Argument::Tensor(name) if cx.is_complex(name));
        Ok(if complex {
            Signal { value, complex }
        } else {
            Signal { value: cx.unsqueeze(cx.to_float(value), &[cx.rank(value)]), complex }
        })
    }
}

/// The transform of frames `(.., n)` of at most [`FEW`] elements, or its first half, as sums.
pub fn of_short_frames(cx: &Cx, x: Complex, onesided: bool) -> Value {
    let axis = cx.rank(x.re) - 1;
    let signal = match x.im {
        None => Signal { value: cx.unsqueeze(x.re, &[axis + 1]), complex: false },
        Some(_) => Signal { value: x.value(cx), complex: true },
    };
    let n = cx.dim(x.re, -1).as_int().unwrap_or(FEW);
    let to = if onesided { n / 2 + 1 } else { n };
    signal.by(cx, axis, &Weights::of_complex(n, to, false)).value
}

/// Transforms of up to this length are separate sums if NaN and infinities matter.
pub const FEW: i64 = 12;

/// The factors of the elements of a signal.
struct Weights {
    from: i64,
    to: i64,
    /// The number of parts of the result: the real one, or both.
    parts: i64,
    /// The factor of an element in a result. The flags choose the imaginary part of the element,
    /// and of the result.
    weight: Box<dyn Fn(i64, i64, bool, bool) -> f64>,
}

/// `cos` and `sin` of `2 pi i / n`, 0 where they are.
pub fn circle(i: i64, n: i64) -> (f64, f64) {
    let i = i.rem_euclid(n);
    let angle = 2.0 * PI * i as f64 / n as f64;
    let cos = if 4 * i == n || 4 * i == 3 * n { 0.0 } else { angle.cos() };
    (cos, if 2 * i % n == 0 { 0.0 } else { angle.sin() })
}

impl Weights {
    /// The first `to` results of the transform of `n` elements, with `exp(-2 pi i j k / n)`, or its
    /// inverse.
    fn of_complex(n: i64, to: i64, inverse: bool) -> Self {
        let weight = move |j: i64, k: i64, from_im: bool, to_im: bool| {
            let (cos, sin) = circle(if inverse { j * k } else { -j * k }, n);
            let scale = if inverse { n as f64 } else { 1.0 };
            let weight = match (from_im, to_im) {
                (false, true) => sin,
                (true, false) => -sin,
                _ => cos,
            };
            weight / scale
        };
        Self { from: n, to, parts: 2, weight: Box::new(weight) }
    }

    /// The real signal of `n` elements whose transform begins with the elements.
    fn to_real(n: i64) -> Self {
        let weight = move |k: i64, j: i64, from_im: bool, _: bool| {
            let (cos, sin) = circle(j * k, n);
            // The other elements also count for their mirror images.
            let times = if k == 0 || 2 * k == n { 1.0 } else { 2.0 };
            times / n as f64 * if from_im { -sin } else { cos }
        };
        Self { from: n / 2 + 1, to: n, parts: 1, weight: Box::new(weight) }
    }
}

impl Signal {
    /// The rank without the last dimension: that of PyTorch's tensor.
    pub fn rank(self, cx: &Cx) -> usize {
        cx.rank(self.value).saturating_sub(1)
    }

    /// `X[k] = sum_n x[n] exp(-2 pi i k n / N)` along `axis`, by `DFT`. The signal is cut or padded
    /// with zeros to `length` if that is given. `inverse` is the transform with `exp(+2 pi i k n /
    /// N) / N`.
    pub fn dft(self, cx: &Cx, axis: usize, length: Option<&Expr>, inverse: bool) -> Signal {
        let size = cx.dim(self.value, axis as i64);
        let length = length.filter(|&n| *n != size);
        let to = length.unwrap_or(&size).clone();
        if let Some(n) = self.small(cx, &to) {
            let weights = Weights::of_complex(n, n, inverse);
            return Signal { value: fit(cx, self.value, axis, &to), ..self }.by(cx, axis, &weights);
        }
        let options = attrs::DFT { inverse, ..Default::default() };
        self.emit(cx, axis, length, &to, 2, options)
    }

    /// The first half, `N / 2 + 1` bins, of the transform of a real signal.
    pub fn real_dft(self, cx: &Cx, axis: usize, length: Option<&Expr>) -> Signal {
        let size = cx.dim(self.value, axis as i64);
        let length = length.filter(|&n| *n != size);
        let to = length.unwrap_or(&size).clone();
        let half = half(&to);
        if let Some(n) = self.small(cx, &to) {
            let weights = Weights::of_complex(n, n / 2 + 1, false);
            return Signal { value: fit(cx, self.value, axis, &to), ..self }.by(cx, axis, &weights);
        }
        let options = attrs::DFT { onesided: true, ..Default::default() };
        self.emit(cx, axis, length, &half, 2, options)
    }

    /// The real signal of `length` whose transform has this as its first half.
    pub fn to_real(self, cx: &Cx, axis: usize, length: &Expr) -> Signal {
        if let Some(n) = self.small(cx, length) {
            let value = fit(cx, self.value, axis, &half(length));
            return Signal { value, ..self }.by(cx, axis, &Weights::to_real(n));
        }
        let complex = if self.complex {
            self.value
        } else {
            // Zeros as imaginary parts.
            let last = cx.ints(&[self.rank(cx) as i64]);
            let padded = cx.pad(self.value, cx.ints(&[0, 1]), None, last, Default::default());
            let mut shape = cx.shape(self.value);
            shape.pop();
            shape.push(Expr::int(2));
            cx.set_type(padded, Type::tensor(cx.dtype(self.value), shape));
            padded
        };
        let value = fit(cx, complex, axis, &half(length));
        let options = attrs::DFT { inverse: true, onesided: true };
        let signal = Signal { value, complex: true };
        signal.emit(cx, axis, Some(length), length, 1, options)
    }

    fn emit(
        self,
        cx: &Cx,
        axis: usize,
        length: Option<&Expr>,
        to: &Expr,
        channels: i64,
        options: attrs::DFT,
    ) -> Signal {
        let mut shape = cx.shape(self.value);
        shape[axis] = to.clone();
        shape.pop();
        shape.push(Expr::int(channels));
        let length = length.map(|n| cx.size(n));
        let value = cx.dft(self.value, length, cx.scalar(axis as i64, DType::I64), options);
        cx.set_type(value, Type::tensor(cx.dtype(self.value), shape));
        Signal { value, complex: channels == 2 }
    }

    /// `length`, if the transform is a sum of so few terms that those with a weight of 0 are left
    /// out. Runtimes multiply NaN and infinities with them; the kernels of PyTorch do not.
    fn small(self, cx: &Cx, length: &Expr) -> Option<i64> {
        length.as_int().filter(|n| (1..=FEW).contains(n) && cx.propagates_nan(self.value))
    }

    /// The sums of the signal times `weights` along `axis`.
    fn by(self, cx: &Cx, axis: usize, weights: &Weights) -> Signal {
        let rank = cx.rank(self.value);
        let channels = if self.complex { 2 } else { 1 };
        // The signal is (.., from, 1, .., channels, 1), the weights are (from, to, .., channels,
        // parts).
        let mut sizes = vec![weights.from, weights.to];
        sizes.extend(vec![1; rank - axis - 2]);
        sizes.extend([channels, weights.parts]);
        let count = usize::try_from(sizes.iter().product::<i64>()).unwrap_or(0);
        let numbers: Vec<f64> = (0..count as i64)
            .map(|i| {
                let (i, part) = (i / weights.parts, i % weights.parts);
                let (i, channel) = (i / channels, i % channels);
                (weights.weight)(i / weights.to, i % weights.to, channel == 1, part == 1)
            })
            .collect();
        let counts: Vec<bool> = numbers.iter().map(|&w| w != 0.0).collect();
        let numbers = cx.cast(constant(cx, &sizes, &numbers), cx.dtype(self.value));
        let wide = cx.unsqueeze(self.value, &[axis + 1, rank + 1]);
        let terms = cx.select(constant(cx, &sizes, &counts), cx.mul(wide, numbers), 0.0);
        let value = cx.reduce(Reduction::Sum, terms, &[axis, rank], false);
        Signal { value, complex: weights.parts == 2 }
    }

    /// Complex conjugates.
    pub fn conj(self, cx: &Cx) -> Signal {
        let signs = || {
            let signs = cx.vector(&[1f32, -1.0]);
            cx.cast(signs, cx.dtype(self.value))
        };
        if self.complex { Signal { value: cx.mul(self.value, signs()), ..self } } else { self }
    }

    /// The signal times `n^(halves / 2)`.
    pub fn times_power(self, cx: &Cx, n: &Expr, halves: i32) -> Signal {
        let dtype = cx.dtype(self.value);
        let value = match (halves, n.as_int()) {
            (0, _) => self.value,
            (_, Some(n)) => {
                let factor = (n as f64).powf(f64::from(halves) / 2.0);
                cx.mul(self.value, Scalar::Float(factor))
            }
            (_, None) => {
                let size = cx.cast(cx.size(n), dtype);
                let root = match halves % 2 {
                    0 => size,
                    _ => cx.sqrt(size),
                };
                if halves > 0 { cx.mul(self.value, root) } else { cx.div(self.value, root) }
            }
        };
        Signal { value, ..self }
    }

    /// As an output of the op: complex signals as real/imaginary pairs, real ones without the last
    /// dimension.
    pub fn output(self, cx: &Cx) -> Value {
        if self.complex { self.value } else { cx.squeeze(self.value, &[self.rank(cx)]) }
    }
}

/// `n / 2 + 1`: how many bins of the transform of a real signal of length `n` are independent.
pub fn half(n: &Expr) -> Expr {
    n.floor_div(&Expr::int(2)) + 1
}

/// `x` cut, or padded with zeros, to `length` along `axis`.
fn fit(cx: &Cx, x: Value, axis: usize, length: &Expr) -> Value {
    let size = cx.dim(x, axis as i64);
    let mut shape = cx.shape(x);
    shape[axis] = length.clone();
    let (cut, pad) = {
        let constraints = cx.constraints();
        (!constraints.prove_ge(length, &size), !constraints.prove_ge(&size, length))
    };
    let mut result = x;
    if cut {
        result = cx.slice(result, axis, &Expr::int(0), length, 1);
    }
    if pad {
        let missing =
            if cut { Expr::max(&(length - &size), &Expr::int(0)) } else { length - &size };
        let (pads, axes) = (cx.sizes(&[Expr::int(0), missing]), cx.ints(&[axis as i64]));
        result = cx.pad(result, pads, None, axes, Default::default());
    }
    if cut || pad {
        cx.set_type(result, Type::tensor(cx.dtype(x), shape));
    }
    result
}
