//! Fourier transforms: `DFT`, one dimension after the other.

use crate::{AtenOp, Cx, FromArg, LowerError, Lowered, op::op};
use pt2onnx_fx::graph::Argument;
use pt2onnx_ir::{Type, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Scalar};

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_fft_c2c, fft_c2c, complex = fft_c2c),
    op!(aten::_fft_c2r, fft_c2r, complex = fft_c2r),
    op!(aten::_fft_r2c, fft_r2c, complex = fft_r2c),
    op!(aten::fft_fft, one::<FFT>, complex = one::<FFT>),
    op!(aten::fft_fft2, two::<FFT>, complex = two::<FFT>),
    op!(aten::fft_fftfreq, fftfreq),
    op!(aten::fft_fftn, many::<FFT>, complex = many::<FFT>),
    op!(aten::fft_fftshift, fftshift, parts),
    op!(aten::fft_hfft, one::<HFFT>, complex = one::<HFFT>),
    op!(aten::fft_hfft2, two::<HFFT>, complex = two::<HFFT>),
    op!(aten::fft_hfftn, many::<HFFT>, complex = many::<HFFT>),
    op!(aten::fft_ifft, one::<IFFT>, complex = one::<IFFT>),
    op!(aten::fft_ifft2, two::<IFFT>, complex = two::<IFFT>),
    op!(aten::fft_ifftn, many::<IFFT>, complex = many::<IFFT>),
    op!(aten::fft_ifftshift, ifftshift, parts),
    op!(aten::fft_ihfft, one::<IHFFT>, complex = one::<IHFFT>),
    op!(aten::fft_ihfft2, two::<IHFFT>, complex = two::<IHFFT>),
    op!(aten::fft_ihfftn, many::<IHFFT>, complex = many::<IHFFT>),
    op!(aten::fft_irfft, one::<IRFFT>, complex = one::<IRFFT>),
    op!(aten::fft_irfft2, two::<IRFFT>, complex = two::<IRFFT>),
    op!(aten::fft_irfftn, many::<IRFFT>, complex = many::<IRFFT>),
    op!(aten::fft_rfft, one::<RFFT>, complex = one::<RFFT>),
    op!(aten::fft_rfft2, two::<RFFT>, complex = two::<RFFT>),
    op!(aten::fft_rfftfreq, rfftfreq),
    op!(aten::fft_rfftn, many::<RFFT>, complex = many::<RFFT>),
];

/// The functions of `torch.fft`.
const FFT: u8 = 0;
const IFFT: u8 = 1;
const RFFT: u8 = 2;
const IRFFT: u8 = 3;
const HFFT: u8 = 4;
const IHFFT: u8 = 5;

/// A tensor as `DFT` takes it: floats, with a last dimension of 2 if complex, of 1 if real.
#[derive(Clone, Copy)]
struct Signal {
    value: Value,
    complex: bool,
}

impl FromArg for Signal {
    const TAKES_COMPLEX: bool = true;

    fn accepts(ty: &crate::ParamType) -> bool {
        Value::accepts(ty)
    }

    fn from_arg(cx: &Cx, arg: &Argument) -> Result<Self, String> {
        let value = Value::from_arg(cx, arg)?;
        let complex = matches!(arg, Argument::Tensor(name) if cx.is_complex(name));
        Ok(match complex {
            true => Signal { value, complex },
            false => Signal { value: cx.unsqueeze(cx.to_float(value), &[cx.rank(value)]), complex },
        })
    }
}

impl Signal {
    fn rank(self, cx: &Cx) -> usize {
        cx.rank(self.value).saturating_sub(1)
    }

    /// `DFT` along `axis`: of the signal cut or padded with zeros to `length`, if one is given; with `inverse`, divided by
    /// the length.
    fn dft(self, cx: &Cx, axis: usize, length: Option<&Expr>, inverse: bool) -> Signal {
        let size = cx.dim(self.value, axis as i64);
        let length = length.filter(|&n| *n != size);
        let to = length.unwrap_or(&size).clone();
        let options = attrs::DFT { inverse, ..Default::default() };
        self.emit(cx, axis, length, &to, 2, options)
    }

    /// The first half of the transform of a real signal; the rest mirrors it.
    fn real_dft(self, cx: &Cx, axis: usize, length: Option<&Expr>) -> Signal {
        let size = cx.dim(self.value, axis as i64);
        let length = length.filter(|&n| *n != size);
        let half = half(length.unwrap_or(&size));
        let options = attrs::DFT { onesided: true, ..Default::default() };
        self.emit(cx, axis, length, &half, 2, options)
    }

    /// The real signal of `length` whose transform begins with this, divided by the length.
    fn to_real(self, cx: &Cx, axis: usize, length: &Expr) -> Signal {
        let complex = match self.complex {
            true => self.value,
            // Zeros as imaginary parts.
            false => {
                let last = cx.ints(&[self.rank(cx) as i64]);
                let padded = cx.pad(self.value, cx.ints(&[0, 1]), None, last, Default::default());
                let mut shape = cx.shape(self.value);
                shape.pop();
                shape.push(Expr::int(2));
                cx.set_type(padded, Type::tensor(cx.dtype(self.value), shape));
                padded
            }
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

    /// Complex conjugates.
    fn conj(self, cx: &Cx) -> Signal {
        let signs = || {
            let signs = cx.vector(&[1f32, -1.0]);
            cx.cast(signs, cx.dtype(self.value))
        };
        match self.complex {
            true => Signal { value: cx.mul(self.value, signs()), ..self },
            false => self,
        }
    }

    /// Times `n` to the power `halves / 2`.
    fn times_power(self, cx: &Cx, n: &Expr, halves: i32) -> Signal {
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
                match halves > 0 {
                    true => cx.mul(self.value, root),
                    false => cx.div(self.value, root),
                }
            }
        };
        Signal { value, ..self }
    }

    /// As an output: complex ones are pairs already.
    fn output(self, cx: &Cx) -> Value {
        match self.complex {
            true => self.value,
            false => cx.squeeze(self.value, &[self.rank(cx)]),
        }
    }
}

/// How many of `n` numbers are not given by the others in the transform of a real signal.
fn half(n: &Expr) -> Expr {
    n.floor_div(&Expr::int(2)) + 1
}

/// Cut, or padded with zeros, to `length` along `axis`.
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
        let missing = match cut {
            true => Expr::max(&(length - &size), &Expr::int(0)),
            false => length - &size,
        };
        let (pads, axes) = (cx.sizes(&[Expr::int(0), missing]), cx.ints(&[axis as i64]));
        result = cx.pad(result, pads, None, axes, Default::default());
    }
    if cut || pad {
        cx.set_type(result, Type::tensor(cx.dtype(x), shape));
    }
    result
}

/// Halves of the power of `1 / n` that a transform is to be scaled by: PyTorch's `norm` of a forward or inverse one.
fn scaling(norm: Option<&str>, forward: bool) -> Lowered<i32> {
    match (norm.unwrap_or("backward"), forward) {
        ("backward", true) | ("forward", false) => Ok(0),
        ("ortho", _) => Ok(1),
        ("backward", false) | ("forward", true) => Ok(2),
        (other, _) => Err(LowerError::unsupported(format!("there is no norm `{other}`"))),
    }
}

/// `kind` along `axes`, each cut or padded to its length if it has one. `halves`: see [`scaling`].
fn transform(cx: &Cx, kind: u8, x: Signal, axes: &[(usize, Option<Expr>)], halves: i32) -> Lowered {
    let (Some(((last, last_length), others)), false) = (axes.split_last(), empty(cx, x)) else {
        return match axes.is_empty() && matches!(kind, FFT | IFFT) {
            true => Ok(match x.complex {
                true => x.value,
                false => cx.pairs(cx.real(x.output(cx))),
            }),
            // Nothing in, nothing out (ONNX Runtime refuses such transforms).
            false => nothing(cx),
        };
    };
    let size = |(axis, length): &(usize, Option<Expr>)| {
        length.clone().unwrap_or_else(|| cx.dim(x.value, *axis as i64))
    };
    let each = |x: Signal, inverse: bool| {
        { others.iter() }.fold(x, |x, (axis, n)| x.dft(cx, *axis, n.as_ref(), inverse))
    };
    // The inverse operator divides by n already.
    let (signal, divided) = match kind {
        FFT | IFFT => {
            let inverse = kind == IFFT;
            let n = last_length.as_ref();
            (each(x, inverse).dft(cx, *last, n, inverse), inverse)
        }
        RFFT => {
            let x = x.real_dft(cx, *last, last_length.as_ref());
            (each(x, false), false)
        }
        // conj(rfft(x)), as x is real
        IHFFT => {
            let x = x.real_dft(cx, *last, last_length.as_ref());
            (each(x, false).conj(cx), false)
        }
        // A forward transform is the inverse of conjugates.
        _ => {
            let x = if kind == HFFT { x.conj(cx) } else { x };
            let whole = (cx.dim(x.value, *last as i64) - 1) * 2;
            let length = last_length.clone().unwrap_or(whole);
            let real = each(x, true).to_real(cx, *last, &length);
            let n = Expr::product(others.iter().map(size).chain([length]));
            return Ok(real.times_power(cx, &n, 2 - halves).output(cx));
        }
    };
    let n = Expr::product(axes.iter().map(size));
    let raised = if divided { 2 } else { 0 };
    Ok(signal.times_power(cx, &n, raised - halves).output(cx))
}

/// Whether there certainly are no elements.
fn empty(cx: &Cx, x: Signal) -> bool {
    cx.shape(x.value).iter().any(|d| d.as_int() == Some(0))
}

/// An empty tensor of the recorded type.
fn nothing(cx: &Cx) -> Lowered {
    let mut shape = cx.out_shape()?;
    if cx.recorded(0).is_some_and(|m| m.dtype.is_complex()) {
        shape.push(Expr::int(2));
    }
    Ok(cx.full(&shape, 0, cx.out_dtype()?))
}

fn forward(kind: u8) -> bool {
    matches!(kind, FFT | RFFT | HFFT)
}

fn one<const KIND: u8>(
    cx: &Cx,
    x: Signal,
    n: Option<Expr>,
    dim: i64,
    norm: Option<String>,
) -> Lowered {
    many::<KIND>(cx, x, n.map(|n| vec![n]), Some(vec![dim]), norm)
}

fn two<const KIND: u8>(
    cx: &Cx,
    x: Signal,
    s: Option<Vec<Expr>>,
    dims: Vec<i64>,
    norm: Option<String>,
) -> Lowered {
    many::<KIND>(cx, x, s, Some(dims), norm)
}

/// Without `dims`, along the last ones, one for each length, or along all.
fn many<const KIND: u8>(
    cx: &Cx,
    x: Signal,
    s: Option<Vec<Expr>>,
    dims: Option<Vec<i64>>,
    norm: Option<String>,
) -> Lowered {
    let rank = x.rank(cx);
    let given = s.as_ref().map_or(rank, Vec::len).min(rank);
    let dims = dims.unwrap_or_else(|| (rank - given..rank).map(|d| d as i64).collect());
    let length = |i: usize| {
        let n = s.as_ref()?.get(i)?;
        (n.as_int() != Some(-1)).then(|| n.clone())
    };
    let axes = dims.iter().enumerate();
    let axes: Vec<(usize, Option<Expr>)> = axes
        .map(|(i, &dim)| Ok((crate::cx::axis_of(rank, dim)?, length(i))))
        .collect::<Lowered<_>>()?;
    transform(cx, KIND, x, &axes, scaling(norm.as_deref(), forward(KIND))?)
}

/// Dimensions of the decomposed forms.
fn whole(cx: &Cx, x: Signal, dims: &[i64]) -> Lowered<Vec<(usize, Option<Expr>)>> {
    let rank = x.rank(cx);
    dims.iter().map(|&d| Ok((crate::cx::axis_of(rank, d)?, None))).collect()
}

/// `normalization` of the decomposed forms: 0 none, 1 by the root of n, 2 by n.
fn fft_c2c(cx: &Cx, x: Signal, dims: Vec<i64>, normalization: i64, forward: bool) -> Lowered {
    let kind = if forward { FFT } else { IFFT };
    transform(cx, kind, x, &whole(cx, x, &dims)?, normalization as i32)
}

fn fft_r2c(cx: &Cx, x: Signal, dims: Vec<i64>, normalization: i64, onesided: bool) -> Lowered {
    let kind = if onesided { RFFT } else { FFT };
    transform(cx, kind, x, &whole(cx, x, &dims)?, normalization as i32)
}

fn fft_c2r(cx: &Cx, x: Signal, dims: Vec<i64>, normalization: i64, last: Expr) -> Lowered {
    let mut axes = whole(cx, x, &dims)?;
    if let Some((_, length)) = axes.last_mut() {
        *length = Some(last);
    }
    transform(cx, IRFFT, x, &axes, normalization as i32)
}

/// The second half moves to the front, of an odd number the smaller one.
fn fftshift(cx: &Cx, x: Value, dims: Option<Vec<i64>>) -> Lowered {
    turn(cx, x, dims, |n| (n + 1).floor_div(&Expr::int(2)))
}

/// The inverse of [`fftshift`].
fn ifftshift(cx: &Cx, x: Value, dims: Option<Vec<i64>>) -> Lowered {
    turn(cx, x, dims, |n| n.floor_div(&Expr::int(2)))
}

/// Along each of `dims`, what is behind `split` before what is in front of it.
fn turn(cx: &Cx, x: Value, dims: Option<Vec<i64>>, split: impl Fn(&Expr) -> Expr) -> Lowered {
    let mut result = x;
    for axis in cx.axes(x, dims.as_deref())? {
        let n = cx.dim(x, axis as i64);
        let at = split(&n);
        let tail = cx.slice(result, axis, &at, &n, 1);
        let head = cx.slice(result, axis, &Expr::int(0), &at, 1);
        result = cx.concat(&[tail, head], axis);
        cx.set_type(result, Type::tensor(cx.dtype(x), cx.shape(x)));
    }
    Ok(result)
}

/// The frequencies of a transform's bins: `0, 1, .., -2, -1`, divided by `n * d`.
fn fftfreq(cx: &Cx, n: Expr, d: f64, dtype: Option<DType>) -> Lowered {
    let positive = (&n + 1).floor_div(&Expr::int(2));
    let ends = [(Expr::int(0), positive.clone()), (positive - &n, Expr::int(0))];
    let [front, back] = ends.map(|(from, to)| numbers(cx, &from, &to));
    frequencies(cx, cx.concat(&[front, back], 0), n, d, dtype)
}

/// The frequencies of the bins that a real signal's transform has.
fn rfftfreq(cx: &Cx, n: Expr, d: f64, dtype: Option<DType>) -> Lowered {
    frequencies(cx, numbers(cx, &Expr::int(0), &half(&n)), n, d, dtype)
}

fn numbers(cx: &Cx, from: &Expr, to: &Expr) -> Value {
    cx.range(cx.size(from), cx.size(to), cx.scalar(1, DType::I64))
}

fn frequencies(cx: &Cx, bins: Value, n: Expr, d: f64, _: Option<DType>) -> Lowered {
    let dtype = cx.out_dtype()?;
    let unit = match n.as_int() {
        Some(n) => cx.scalar(1.0 / (n as f64 * d), dtype),
        None => cx.reciprocal(cx.mul(cx.cast(cx.size(&n), dtype), d)),
    };
    let result = cx.mul(cx.cast(bins, dtype), unit);
    cx.set_type(result, Type::tensor(dtype, cx.out_shape()?));
    Ok(result)
}
