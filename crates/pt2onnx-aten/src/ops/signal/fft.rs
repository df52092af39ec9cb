//! Fourier transforms: `DFT`, one dimension after the other.

use crate::math::{
    fourier::{FEW, Signal, half},
    shape::has_no_elements,
};
use crate::meta::{self, typed, unknown, with_size};
use crate::{AtenOp, Cx, LowerError, Lowered, args::Ignored, arguments, checks, cx::axis_of, op};
use pt2onnx_ir::{Type, Value};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_fft_c2c, fft_c2c, meta = meta::same),
    op!(aten::_fft_c2r, fft_c2r, meta = meta_to_real),
    op!(aten::_fft_r2c, fft_r2c, meta = meta_to_complex),
    op!(aten::fft_fft, along_dims(Kind::Fft), meta = meta_fft),
    op!(aten::fft_fft2, along_dims(Kind::Fft), meta = meta_fft),
    op!(aten::fft_fftfreq, fftfreq, meta = meta_frequencies),
    op!(aten::fft_fftn, along_dims(Kind::Fft), meta = meta_fft),
    op!(aten::fft_fftshift, fftshift, parts, inverse = false),
    op!(aten::fft_hfft, along_dims(Kind::Hfft), meta = meta_irfft),
    op!(aten::fft_hfft2, along_dims(Kind::Hfft), meta = meta_irfft),
    op!(aten::fft_hfftn, along_dims(Kind::Hfft), meta = meta_irfft),
    op!(aten::fft_ifft, along_dims(Kind::Ifft), meta = meta_fft),
    op!(aten::fft_ifft2, along_dims(Kind::Ifft), meta = meta_fft),
    op!(aten::fft_ifftn, along_dims(Kind::Ifft), meta = meta_fft),
    op!(aten::fft_ifftshift, fftshift, parts, inverse = true),
    op!(aten::fft_ihfft, along_dims(Kind::Ihfft), meta = meta_rfft),
    op!(aten::fft_ihfft2, along_dims(Kind::Ihfft), meta = meta_rfft),
    op!(aten::fft_ihfftn, along_dims(Kind::Ihfft), meta = meta_rfft),
    op!(aten::fft_irfft, along_dims(Kind::Irfft), meta = meta_irfft),
    op!(aten::fft_irfft2, along_dims(Kind::Irfft), meta = meta_irfft),
    op!(aten::fft_irfftn, along_dims(Kind::Irfft), meta = meta_irfft),
    op!(aten::fft_rfft, along_dims(Kind::Rfft), meta = meta_rfft),
    op!(aten::fft_rfft2, along_dims(Kind::Rfft), meta = meta_rfft),
    op!(aten::fft_rfftfreq, rfftfreq, meta = meta_half_frequencies),
    op!(aten::fft_rfftn, along_dims(Kind::Rfft), meta = meta_rfft),
];

/// The transforms of `torch.fft`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Fft,
    Ifft,
    /// A real signal to the first half of its transform. The other half mirrors it.
    Rfft,
    /// The first half of a transform to a real signal.
    Irfft,
    /// The first half of a signal that mirrors itself to its transform, which is real.
    Hfft,
    Ihfft,
}

/// The `h` of PyTorch's `norm`, which means a scale of `n^(-h / 2)`: 0 for none, 1 for `1 /
/// sqrt(n)`, 2 for `1 / n`.
fn scaling(norm: Option<&str>, forward: bool) -> Lowered<i32> {
    match (norm.unwrap_or("backward"), forward) {
        ("backward", true) | ("forward", false) => Ok(0),
        ("ortho", _) => Ok(1),
        ("backward", false) | ("forward", true) => Ok(2),
        (other, _) => Err(LowerError::unknown("norm", other)),
    }
}

/// The transform along `axes`, each cut or padded to its length if it has one, scaled by
/// `n^(-halves / 2)`. If a length is not known to be short or a power of two, all are computed in
/// float64: ONNX Runtime's float32 `DFT` loses digits (docs/targets.md).
fn transform(
    cx: &Cx,
    kind: Kind,
    x: Signal,
    axes: &[(usize, Option<Expr>)],
    halves: i32,
) -> Lowered {
    let (Some(((last, last_length), others)), false) =
        (axes.split_last(), has_no_elements(&cx.shape(x.value)))
    else {
        return if axes.is_empty() && matches!(kind, Kind::Fft | Kind::Ifft) {
            Ok(if x.complex { x.value } else { cx.pairs(x.output(cx).into()) })
        } else {
            // ONNX Runtime refuses transforms of empty signals.
            nothing(cx)
        };
    };
    let size = |(axis, length): &(usize, Option<Expr>)| {
        length.clone().unwrap_or_else(|| cx.dim(x.value, *axis as i64))
    };
    let last_size = match (kind, last_length) {
        (Kind::Irfft | Kind::Hfft, None) => (cx.dim(x.value, *last as i64) - 1) * 2,
        _ => size(&(*last, last_length.clone())),
    };
    let sizes: Vec<Expr> = others.iter().map(size).chain([last_size.clone()]).collect();
    let precise = |n: &Expr| n.as_int().is_some_and(|n| n <= FEW || n & (n - 1) == 0);
    let dtype = cx.dtype(x.value);
    let wide = if sizes.iter().all(precise) { dtype } else { DType::F64 };
    let x = Signal { value: cx.cast(x.value, wide), ..x };
    let n = Expr::product(sizes);
    let each = |x: Signal, inverse: bool| {
        { others.iter() }.fold(x, |x, (axis, n)| x.dft(cx, *axis, n.as_ref(), inverse))
    };
    // The inverse operator divides by n already.
    let (signal, divided) = match kind {
        Kind::Fft | Kind::Ifft => {
            let inverse = kind == Kind::Ifft;
            let n = last_length.as_ref();
            (each(x, inverse).dft(cx, *last, n, inverse), inverse)
        }
        Kind::Rfft => {
            let x = x.real_dft(cx, *last, last_length.as_ref());
            (each(x, false), false)
        }
        // conj(rfft(x)), as x is real
        Kind::Ihfft => {
            let x = x.real_dft(cx, *last, last_length.as_ref());
            (each(x, false).conj(cx), false)
        }
        // A forward transform is the inverse of conjugates.
        _ => {
            let x = if kind == Kind::Hfft { x.conj(cx) } else { x };
            (each(x, true).to_real(cx, *last, &last_size), true)
        }
    };
    let raised = if divided { 2 } else { 0 };
    Ok(cx.cast(signal.times_power(cx, &n, raised - halves).output(cx), dtype))
}

/// An empty tensor of the recorded shape and type.
fn nothing(cx: &Cx) -> Lowered {
    let mut shape = cx.out_shape()?;
    if cx.recorded(0).is_some_and(|m| m.dtype.is_complex()) {
        shape.push(Expr::int(2));
    }
    Ok(cx.full(&shape, 0, cx.out_dtype()?))
}

arguments! {
    /// Arguments of transforms: of one dimension `n`, of several `s`.
    struct FftArgs {
        input: Signal,
        n: Option<Vec<Expr>>,
        s: Option<Vec<Expr>>,
        dim: Option<Vec<i64>>,
        norm: Option<String>,
    }
}

/// [`transform`] along `dim`; without, along as many of the last dimensions as there are lengths,
/// or along all.
const fn along_dims(kind: Kind) -> impl Fn(&Cx, FftArgs) -> Lowered + Copy {
    move |cx, args| {
        let (x, lengths) = (args.input, args.n.or(args.s));
        let rank = x.rank(cx);
        let given = lengths.as_ref().map_or(rank, Vec::len).min(rank);
        let dims = args.dim.unwrap_or_else(|| (rank - given..rank).map(|d| d as i64).collect());
        let length = |i: usize| {
            let n = lengths.as_ref()?.get(i)?;
            (n.as_int() != Some(-1)).then(|| n.clone())
        };
        let axes = dims.iter().enumerate();
        let axes: Vec<(usize, Option<Expr>)> =
            axes.map(|(i, &dim)| Ok((axis_of(rank, dim)?, length(i)))).collect::<Lowered<_>>()?;
        let forward = matches!(kind, Kind::Fft | Kind::Rfft | Kind::Hfft);
        transform(cx, kind, x, &axes, scaling(args.norm.as_deref(), forward)?)
    }
}

/// Dimensions `dims` at their full lengths.
fn whole(cx: &Cx, x: Signal, dims: &[i64]) -> Lowered<Vec<(usize, Option<Expr>)>> {
    let rank = x.rank(cx);
    dims.iter().map(|&d| Ok((axis_of(rank, d)?, None))).collect()
}

/// The form that PyTorch decomposes the others into. `normalization` is 0 for none, 1 for `1 /
/// sqrt(n)`, 2 for `1 / n`.
fn fft_c2c(cx: &Cx, x: Signal, dims: Vec<i64>, normalization: i64, forward: bool) -> Lowered {
    let kind = if forward { Kind::Fft } else { Kind::Ifft };
    transform(cx, kind, x, &whole(cx, x, &dims)?, normalization as i32)
}

/// [`fft_c2c`] of a real signal; `onesided` gives the first half.
fn fft_r2c(cx: &Cx, x: Signal, dims: Vec<i64>, normalization: i64, onesided: bool) -> Lowered {
    let kind = if onesided { Kind::Rfft } else { Kind::Fft };
    transform(cx, kind, x, &whole(cx, x, &dims)?, normalization as i32)
}

/// The inverse transform to a real signal of length `last` along the last of `dims`.
fn fft_c2r(cx: &Cx, x: Signal, dims: Vec<i64>, normalization: i64, last: Expr) -> Lowered {
    let mut axes = whole(cx, x, &dims)?;
    if let Some((_, length)) = axes.last_mut() {
        *length = Some(last);
    }
    transform(cx, Kind::Irfft, x, &axes, normalization as i32)
}

/// Moves the second half of each of `dims` to the front. If the size is odd, the second half is the
/// smaller one; for the `inverse`, the larger one.
fn fftshift(cx: &Cx, x: Value, dims: Option<Vec<i64>>, inverse: bool) -> Lowered {
    let mut result = x;
    for axis in cx.axes(x, dims.as_deref())? {
        let n = cx.dim(x, axis as i64);
        let at = if inverse { n.clone() } else { &n + 1 }.floor_div(&Expr::int(2));
        let tail = cx.slice(result, axis, &at, &n, 1);
        let head = cx.slice(result, axis, &Expr::int(0), &at, 1);
        result = cx.concat(&[tail, head], axis);
        cx.set_type(result, Type::tensor(cx.dtype(x), cx.shape(x)));
    }
    Ok(result)
}

/// The frequencies of the bins of a transform: `0, 1, .., -2, -1`, divided by `n * d`.
fn fftfreq(cx: &Cx, n: Expr, d: f64, _dtype: Ignored) -> Lowered {
    let positive = (&n + 1).floor_div(&Expr::int(2));
    let ends = [(Expr::int(0), positive.clone()), (positive - &n, Expr::int(0))];
    let [front, back] = ends.map(|(from, to)| numbers(cx, &from, &to));
    frequencies(cx, cx.concat(&[front, back], 0), n, d)
}

/// The frequencies of the bins of a real signal's transform: `0, 1, .. n / 2`, divided by `n * d`.
fn rfftfreq(cx: &Cx, n: Expr, d: f64, _dtype: Ignored) -> Lowered {
    frequencies(cx, numbers(cx, &Expr::int(0), &half(&n)), n, d)
}

/// `from, from + 1, .. to - 1`, int64.
fn numbers(cx: &Cx, from: &Expr, to: &Expr) -> Value {
    cx.range(cx.size(from), cx.size(to), cx.scalar(1, DType::I64))
}

/// `bins / (n * d)` in the recorded type.
fn frequencies(cx: &Cx, bins: Value, n: Expr, d: f64) -> Lowered {
    let dtype = cx.out_dtype()?;
    let unit = match n.as_int() {
        Some(n) => cx.scalar(1.0 / (n as f64 * d), dtype),
        None => cx.reciprocal(cx.mul(cx.cast(cx.size(&n), dtype), d)),
    };
    let result = cx.mul(cx.cast(bins, dtype), unit);
    cx.set_type(result, Type::tensor(dtype, cx.out_shape()?));
    Ok(result)
}

arguments! {
    struct MetaFftArgs {
        input: Value,
        n: Option<Vec<Expr>>,
        s: Option<Vec<Expr>>,
        dim: Option<Vec<i64>>,
    }
}

fn meta_frequencies(cx: &Cx, n: Expr, _d: Ignored, dtype: Option<DType>) -> Lowered {
    Ok(typed(cx, dtype.unwrap_or_else(|| cx.default_float()), &[n]))
}

fn meta_half_frequencies(cx: &Cx, n: Expr, d: Ignored, dtype: Option<DType>) -> Lowered {
    meta_frequencies(cx, half(&n), d, dtype)
}

fn meta_fft(cx: &Cx, args: MetaFftArgs) -> Lowered {
    let (dtype, size, _) = transformed(cx, &args)?;
    Ok(typed(cx, dtype, &size))
}

/// The last transform of a real signal gives half of the frequencies.
fn meta_rfft(cx: &Cx, args: MetaFftArgs) -> Lowered {
    let (dtype, mut size, (last, _)) = transformed(cx, &args)?;
    size[last] = size[last].floor_div(&Expr::int(2)) + 1;
    Ok(typed(cx, dtype, &size))
}

/// Half of the frequencies give twice as many elements, if no length is given.
fn meta_irfft(cx: &Cx, args: MetaFftArgs) -> Lowered {
    let (dtype, mut size, (last, is_given)) = transformed(cx, &args)?;
    if !is_given {
        size[last] = (&size[last] - 1) * 2;
    }
    Ok(typed(cx, dtype.to_real(), &size))
}

/// Complex type and sizes of a transform, its last axis and whether its length is given. Lengths
/// belong to the last dimensions, -1 keeps the size.
fn transformed(cx: &Cx, args: &MetaFftArgs) -> Lowered<(DType, Vec<Expr>, (usize, bool))> {
    let mut size = cx.shape(args.input);
    let (rank, lengths) = (size.len(), args.n.as_ref().or(args.s.as_ref()));
    let axes = match (&args.dim, lengths) {
        (Some(dims), _) => dims.iter().map(|&d| axis_of(rank, d)).collect::<Lowered<Vec<_>>>()?,
        (None, Some(s)) => (rank.saturating_sub(s.len())..rank).collect(),
        (None, None) => (0..rank).collect(),
    };
    let Some(&last) = axes.last() else {
        return unknown("it transforms no dimension");
    };
    let mut is_given = false;
    for (i, &axis) in axes.iter().enumerate() {
        let length = lengths.and_then(|s| s.get(i)).filter(|n| n.as_int() != Some(-1));
        is_given = length.is_some();
        size[axis] = length.unwrap_or(&size[axis]).clone();
    }
    let dtype = meta::complex_of(cx.float_type(cx.dtype(args.input)))?;
    Ok((dtype, size, (last, is_given)))
}

fn meta_to_real(cx: &Cx, x: Value, dim: Vec<i64>, _: Ignored, last_size: Expr) -> Lowered {
    let size = match dim.last() {
        Some(&last) => with_size(cx, x, cx.axis(x, last)?, last_size),
        None => return unknown("it transforms no dimension"),
    };
    Ok(typed(cx, cx.dtype(x).to_real(), &size))
}

fn meta_to_complex(cx: &Cx, x: Value, dim: Vec<i64>, _: Ignored, onesided: bool) -> Lowered {
    let mut size = cx.shape(x);
    if let (true, Some(&last)) = (onesided, dim.last()) {
        let axis = cx.axis(x, last)?;
        size[axis] = size[axis].floor_div(&Expr::int(2)) + 1;
    }
    Ok(typed(cx, meta::complex_of(cx.dtype(x))?, &size))
}

checks! {
    // The first half of the transform of a real signal.
    "aten.fft_rfft(x: f32[s0, 8]) -> c64[s0, 5]", assume_finite => r#"
    val_0 = Unsqueeze (x, [2])
    fft_rfft = DFT <onesided: int = 1> (val_0, "", 1)
    "#;
    "aten.fft_rfft(x: f32[s0, 8]) -> c64[s0, 5]" => "
    val_0 = Unsqueeze (x, [2])
    val_1 = Cast <to: int = 1> (double[8,5,1,2] {...})
    val_2 = Unsqueeze (val_0, [2, 4])
    val_3 = Mul (val_2, val_1)
    val_4 = Where (bool[8,5,1,2] {...}, val_3, 0.0)
    fft_rfft = ReduceSum <keepdims: int = 0> (val_4, [1, 3])
    ";

    // Other lengths than powers of two are computed in float64.
    "aten.fft_fft(x: c64[s0]) -> c64[s0]" => r#"
    val_0 = Cast <to: int = 11> (x)
    val_1 = DFT (val_0, "", 0)
    fft_fft = Cast <to: int = 1> (val_1)
    "#;
    "aten.fft_irfft(x: c64[301]) -> f32[600]" => "
    val_0 = Cast <to: int = 11> (x)
    val_1 = DFT <inverse: int = 1, onesided: int = 1> (val_0, 600, 0)
    val_2 = Squeeze (val_1, [1])
    fft_irfft = Cast <to: int = 1> (val_2)
    ";

    // The inverse divides by the length already.
    "aten.fft_ifft(x: c64[8], 16, norm = 'forward') -> c64[16]" => "
    val_0 = DFT <inverse: int = 1> (x, 16, 0)
    fft_ifft = Mul (val_0, 16.0)
    ";
}
