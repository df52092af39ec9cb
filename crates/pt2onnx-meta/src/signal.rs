//! Infers the types of the results of Fourier transforms and of ops on complex numbers.

use crate::stand_ins::{typed, unknown, with_size};
use pt2onnx_ir::Value;
use pt2onnx_lowering::{AtenOp, Cx, LowerError, Lowered, arguments, cx::axis_of, op};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(crate) static RULES: &[AtenOp] = &[
    op!(aten::_fft_c2r, to_real),
    op!(aten::_fft_r2c, to_complex),
    op!(aten::abs, real),
    op!(aten::angle, angle),
    op!(aten::complex, complex),
    op!(aten::fft_fft, transform, out = "complex"),
    op!(aten::fft_fft2, transforms, out = "complex"),
    op!(aten::fft_fftn, transforms, out = "complex"),
    op!(aten::fft_hfft, transform, out = "real"),
    op!(aten::fft_hfft2, transforms, out = "real"),
    op!(aten::fft_hfftn, transforms, out = "real"),
    op!(aten::fft_ifft, transform, out = "complex"),
    op!(aten::fft_ifft2, transforms, out = "complex"),
    op!(aten::fft_ifftn, transforms, out = "complex"),
    op!(aten::fft_ihfft, transform, out = "half"),
    op!(aten::fft_ihfft2, transforms, out = "half"),
    op!(aten::fft_ihfftn, transforms, out = "half"),
    op!(aten::fft_irfft, transform, out = "real"),
    op!(aten::fft_irfft2, transforms, out = "real"),
    op!(aten::fft_irfftn, transforms, out = "real"),
    op!(aten::fft_rfft, transform, out = "half"),
    op!(aten::fft_rfft2, transforms, out = "half"),
    op!(aten::fft_rfftn, transforms, out = "half"),
    op!(aten::imag, real),
    op!(aten::istft, istft),
    op!(aten::polar, complex),
    op!(aten::real, real),
    op!(aten::stft, stft, center = false),
    op!(aten::stft_center, stft),
];

arguments! {
    struct Transform { input: Value, n: Option<Expr>, dim: i64, out: String }
    struct Transforms { input: Value, s: Option<Vec<Expr>>, dim: Option<Vec<i64>>, out: String }
    struct ToReal { input: Value, dim: Vec<i64>, last_dim_size: Expr }
    struct ToComplex { input: Value, dim: Vec<i64>, onesided: bool }
    struct Istft { input: Value, n_fft: i64, hop_length: Option<i64>, center: bool, length: Option<Expr>, return_complex: bool }
    struct Stft { input: Value, n_fft: i64, hop_length: Option<i64>, window: Option<Value>, center: bool, onesided: Option<bool>, return_complex: Option<bool> }
}

/// The complex type with parts of a float type.
pub(crate) fn complex_of(dtype: DType) -> Lowered<DType> {
    match dtype {
        DType::F64 | DType::C128 => Ok(DType::C128),
        DType::F32 | DType::C64 => Ok(DType::C64),
        DType::F16 | DType::C32 => Ok(DType::C32),
        _ => Err(LowerError::unsupported("no complex type has such parts")),
    }
}

fn real(cx: &Cx, x: Value) -> Lowered {
    Ok(typed(cx, cx.dtype(x).to_real(), &cx.shape(x)))
}

fn angle(cx: &Cx, x: Value) -> Lowered {
    Ok(typed(cx, cx.float_type(cx.dtype(x)).to_real(), &cx.shape(x)))
}

fn complex(cx: &Cx, a: Value, b: Value) -> Lowered {
    Ok(typed(cx, complex_of(cx.dtype(a))?, &cx.broadcast_shapes(&cx.shape(a), &cx.shape(b))))
}

fn transform(cx: &Cx, args: Transform) -> Lowered {
    let s = args.n.map(|n| vec![n]);
    transforms(cx, Transforms { input: args.input, s, dim: Some(vec![args.dim]), out: args.out })
}

/// Given lengths belong to the last dimensions, -1 keeps the size. The last transform of a real
/// signal gives half of the frequencies, and twice as many elements where it takes half of them.
fn transforms(cx: &Cx, args: Transforms) -> Lowered {
    let mut size: Vec<Expr> = cx.shape(args.input).into_iter().collect();
    let rank = size.len();
    let axes = match (&args.dim, &args.s) {
        (Some(dims), _) => dims.iter().map(|&d| axis_of(rank, d)).collect::<Lowered<Vec<_>>>()?,
        (None, Some(s)) => (rank.saturating_sub(s.len())..rank).collect(),
        (None, None) => (0..rank).collect(),
    };
    let Some(&last) = axes.last() else {
        return unknown("it transforms no dimension");
    };
    let given =
        |i: usize| args.s.as_ref().and_then(|s| s.get(i)).filter(|n| n.as_int() != Some(-1));
    for (i, &axis) in axes.iter().enumerate() {
        size[axis] = given(i).unwrap_or(&size[axis]).clone();
    }
    let dtype = complex_of(cx.float_type(cx.dtype(args.input)))?;
    let dtype = match &*args.out {
        "half" => {
            size[last] = size[last].floor_div(&Expr::int(2)) + 1;
            dtype
        }
        "real" => {
            if given(axes.len() - 1).is_none() {
                size[last] = (&size[last] - 1) * 2;
            }
            dtype.to_real()
        }
        _ => dtype,
    };
    Ok(typed(cx, dtype, &size))
}

/// Frequencies and frames; without `return_complex`, the two parts of the numbers.
fn stft(cx: &Cx, args: Stft) -> Lowered {
    let x = args.input;
    let complex = |v: Value| cx.dtype(v).is_complex();
    let is_complex = complex(x) || args.window.is_some_and(complex);
    let Some(samples) = cx.shape(x).last().cloned() else {
        return unknown("it takes vectors and matrices");
    };
    let hop = args.hop_length.unwrap_or(args.n_fft / 4);
    let padding = if args.center { args.n_fft / 2 * 2 } else { 0 };
    let frames = (samples + (padding - args.n_fft)).floor_div(&Expr::int(hop)) + 1;
    let half = args.onesided.unwrap_or(!is_complex);
    let frequencies = Expr::int(if half { args.n_fft / 2 + 1 } else { args.n_fft });
    let mut size = with_size(cx, x, cx.rank(x) - 1, frequencies);
    size.push(frames);
    let dtype = complex_of(cx.dtype(x))?;
    if args.return_complex.unwrap_or(is_complex) {
        return Ok(typed(cx, dtype, &size));
    }
    size.push(Expr::int(2));
    Ok(typed(cx, dtype.to_real(), &size))
}

/// Samples without those at either end that padding added, or as many as are asked for.
fn istft(cx: &Cx, args: Istft) -> Lowered {
    let Istft { input: x, n_fft, hop_length, center, length, return_complex } = args;
    let mut size: Vec<Expr> = cx.shape(x).into_iter().collect();
    let (Some(frames), Some(_)) = (size.pop(), size.pop()) else {
        return unknown("it takes matrices and batches of them");
    };
    let padding = if center { n_fft / 2 * 2 } else { 0 };
    let span = (frames - 1) * hop_length.unwrap_or(n_fft / 4) + (n_fft - padding);
    size.push(length.unwrap_or(span));
    let dtype = cx.dtype(x);
    Ok(typed(cx, if return_complex { dtype } else { dtype.to_real() }, &size))
}

fn to_real(cx: &Cx, args: ToReal) -> Lowered {
    let x = args.input;
    let size = match args.dim.last() {
        Some(&last) => with_size(cx, x, cx.axis(x, last)?, args.last_dim_size),
        None => return unknown("it transforms no dimension"),
    };
    Ok(typed(cx, cx.dtype(x).to_real(), &size))
}

fn to_complex(cx: &Cx, args: ToComplex) -> Lowered {
    let x = args.input;
    let mut size: Vec<Expr> = cx.shape(x).into_iter().collect();
    if let (true, Some(&last)) = (args.onesided, args.dim.last()) {
        let axis = cx.axis(x, last)?;
        size[axis] = size[axis].floor_div(&Expr::int(2)) + 1;
    }
    Ok(typed(cx, complex_of(cx.dtype(x))?, &size))
}
