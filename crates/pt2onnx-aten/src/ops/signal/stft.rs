//! Translates short-time Fourier transforms.

use crate::math::fourier::{FEW, circle, of_short_frames};
use crate::math::shape::{constant, floats, pad_mode};
use crate::math::window::lattice;
use crate::meta::{self, typed, unknown, with_size};
use crate::{AtenOp, Complex, Cx, LowerError, Lowered, args::Ignored, arguments, checks, op};
use pt2onnx_ir::{Type, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::istft, istft, meta = meta_istft),
    op!(aten::stft, stft, meta = meta_stft, center = false),
    op!(aten::stft_center, stft, meta = meta_stft),
];

/// How a signal is cut into frames: their length, the distance between them, and whether the
/// transform is only the first half of the bins.
struct Frames {
    length: i64,
    hop: i64,
    onesided: bool,
}

impl Frames {
    /// The number of bins of the transform of a frame.
    fn bins(&self) -> i64 {
        if self.onesided { self.length / 2 + 1 } else { self.length }
    }

    /// `window`, or ones, of that length in the middle of a frame, zeros around it.
    fn window(&self, cx: &Cx, window: Option<Value>, length: i64, dtype: DType) -> Lowered {
        if length > self.length || length < 1 {
            return Err(LowerError::unsupported(format!(
                "win_length must be from 1 to n_fft, which is {}, but it is {length}",
                self.length
            )));
        }
        let size = window.and_then(|w| cx.dim(w, 0).as_int());
        if let Some(size) = size.filter(|&size| size != length) {
            return Err(LowerError::unsupported(format!(
                "the window has {size} elements, win_length is {length}"
            )));
        }
        let window = match window {
            Some(window) => cx.cast(window, dtype),
            None if length == self.length => cx.full(&[Expr::int(length)], 1, dtype),
            None => floats(cx, &[length], &vec![1.0; length as usize], dtype),
        };
        let left = (self.length - length) / 2;
        let right = self.length - length - left;
        Ok(match left + right {
            0 => window,
            _ => cx.pad(window, cx.ints(&[left, right]), None, None, Default::default()),
        })
    }

    /// Frames, made of bins by kernels, at distances of `hop`, and added up: `span` samples.
    fn overlapped(&self, cx: &Cx, bins: Value, kernels: Value, span: &Expr) -> Value {
        let options = attrs::ConvTranspose { strides: Some(vec![self.hop]), ..Default::default() };
        let sum = cx.conv_transpose(bins, kernels, None, options);
        let shape = [cx.dim(bins, 0), Expr::int(1), span.clone()];
        cx.set_type(sum, Type::tensor(cx.dtype(bins), shape));
        sum
    }

    /// Kernels of convolutions: `[c * bins + k, 0, n]` is part `c` of `exp(-2 pi i k n / length)`,
    /// times `factor(k)`, times the window. `factor` has one value for bins 0 and `length / 2` and
    /// one for the others.
    fn kernels(
        &self,
        cx: &Cx,
        factor: impl Fn(i64) -> f64,
        window: Option<Value>,
        dtype: DType,
    ) -> Value {
        let (n, bins) = (self.length, self.bins());
        let [edge, inner] = [factor(0), factor(1)];
        let kinds = if edge == inner { vec![edge] } else { vec![edge, inner] };
        // All values that occur: part `c` of turn `t` with the factor of kind `j` is at `[c, kinds
        // * t + j]`.
        let mut table = Vec::new();
        for part in 0..2 {
            for turn in 0..n {
                let (cos, sin) = circle(turn, n);
                // Without negative zeros.
                let value = if part == 0 { cos } else { 0.0 - sin };
                table.extend(kinds.iter().map(|factor| factor * value));
            }
        }
        let kinds = kinds.len() as i64;
        let kind = |k: i64| (kinds - 1).min(i64::from(k > 0 && 2 * k != n));
        let shape = [2 * bins, 1, n];
        let basis = if 2 * bins * n <= SMALL {
            let at = |part: i64, k: i64, i: i64| part * kinds * n + kinds * (k * i % n) + kind(k);
            let rows = (0..2 * bins).flat_map(|row| (0..n).map(move |i| (row, i)));
            let all = rows.map(|(row, i)| table[at(row / bins, row % bins, i) as usize]);
            floats(cx, &shape, &all.collect::<Vec<_>>(), dtype)
        } else {
            // Gathered at run time, so that the file has the table only, and all transforms of a
            // length share it.
            let table = floats(cx, &[2, kinds * n], &table, dtype);
            // Products of these sizes are exact in int32.
            let index = if n < 1 << 14 { DType::I32 } else { DType::I64 };
            let integers = |shape: &[i64], elements: Vec<i64>| match index {
                DType::I32 => {
                    constant(cx, shape, &elements.iter().map(|&e| e as i32).collect::<Vec<_>>())
                }
                _ => constant(cx, shape, &elements),
            };
            let column = |f: &dyn Fn(i64) -> i64| integers(&[bins, 1], (0..bins).map(f).collect());
            let mut turns = cx.mul(column(&|k| kinds * k), integers(&[n], (0..n).collect()));
            if kinds > 1 {
                turns = cx.add(turns, column(&kind));
            }
            let whole = cx.scalar(kinds * n, index);
            let turns = cx.mod_(turns, whole, attrs::Mod::default());
            cx.reshape(cx.gather(table, turns, 1), &shape.map(Expr::int))
        };
        window.map_or(basis, |window| cx.mul(basis, window))
    }
}

/// Kernels of up to this many elements are constants.
const SMALL: i64 = 2 << 10;

arguments! {
    /// Arguments of `stft`.
    struct StftArgs {
        input: Complex,
        n_fft: i64,
        hop_length: Option<i64>,
        win_length: Option<i64>,
        window: Option<Complex>,
        center: bool,
        pad_mode: Option<String>,
        normalized: bool,
        onesided: Option<bool>,
        return_complex: Ignored,
        align_to_window: Option<bool>,
    }
}

/// `X[k, t] = sum_n window[n] x[t hop + n] exp(-2 pi i k n / n_fft)`; with `center`, of the signal
/// padded by `n_fft / 2` at both ends; with `normalized`, divided by `sqrt(n_fft)`. It is linear in
/// the window, so a complex one gives two transforms.
fn stft(cx: &Cx, args: StftArgs) -> Lowered {
    if let Some(Complex { im: Some(im), re, .. }) = args.window {
        let onesided = Some(args.onesided.unwrap_or(false));
        let of = |window: Value| {
            let args = StftArgs { window: Some(window.into()), onesided, ..args.clone() };
            stft(cx, args).map(|pairs| cx.parts(pairs))
        };
        let (re, im) = (of(re)?, of(im)?);
        let parts = Complex::new(cx.sub(re.re, im.imag(cx)), cx.add(re.imag(cx), im.re));
        return Ok(cx.pairs(parts));
    }
    let StftArgs { input: x, n_fft, win_length, onesided, .. } = args;
    let window = args.window.map(|w| w.re);
    let x = if args.center {
        let mode = args.pad_mode.unwrap_or_else(|| "reflect".to_owned());
        x.try_map(|x| centred(cx, x, n_fft / 2, &mode))?
    } else {
        x
    };
    if args.align_to_window == Some(true) {
        return Err(LowerError::unsupported(
            "frames that are aligned to the window are not supported",
        ));
    }
    let frames = Frames {
        length: n_fft,
        hop: args.hop_length.unwrap_or(n_fft / 4).max(1),
        onesided: onesided.unwrap_or(x.im.is_none()),
    };
    let dtype = cx.dtype(x.re);
    let win_length = win_length.unwrap_or(n_fft);
    let plain = window.is_none() && win_length == n_fft && !args.normalized;
    let mut window = frames.window(cx, window, win_length, dtype)?;
    if args.normalized {
        // The window is smaller than the result, and often constant.
        window = cx.mul(window, (n_fft as f64).powf(-0.5));
    }
    let single = cx.rank(x.re) == 1;
    let x = if single { x.map(|x| cx.unsqueeze(x, &[0])) } else { x };
    // ONNX Runtime's transforms of lengths that are no powers of two are far less exact than
    // convolutions.
    let convolve = x.im.is_none() && dtype == DType::F32 && n_fft.count_ones() > 1 && n_fft < 4096;
    let short = n_fft <= FEW && cx.propagates_nan(x.re);
    let result = match convolve {
        _ if short => by_sums(cx, x, (!plain).then_some(window), &frames),
        true => {
            let kernels = frames.kernels(cx, |_| 1.0, (!plain).then_some(window), dtype);
            by_convolution(cx, x.re, kernels, &frames)
        }
        false => by_operator(cx, x, window, &frames),
    };
    Ok(if single { cx.squeeze(result, &[0]) } else { result })
}

/// Sums over the frames of the signal (batch, length), without terms whose weight is 0: (batch,
/// bins, frames, 2).
fn by_sums(cx: &Cx, x: Complex, window: Option<Value>, frames: &Frames) -> Value {
    let count = (cx.dim(x.re, 1) - frames.length).floor_div(&Expr::int(frames.hop)) + 1;
    let places = lattice(cx, (&count, frames.hop), (&Expr::int(frames.length), 1));
    let cut = |x: Value| {
        let cut = cx.gather(x, places, 1);
        window.map_or(cut, |window| cx.mul(cut, window))
    };
    cx.transpose(of_short_frames(cx, x.map(cut), frames.onesided), &[0, 2, 1, 3])
}

/// `Conv` of the signal (batch, length) with [`Frames::kernels`]: (batch, bins, frames, 2).
fn by_convolution(cx: &Cx, x: Value, kernels: Value, frames: &Frames) -> Value {
    let options = attrs::Conv { strides: Some(vec![frames.hop]), ..Default::default() };
    let parts = cx.conv(cx.unsqueeze(x, &[1]), kernels, None, options);
    let (batch, count) = (cx.dim(parts, 0), cx.dim(parts, 2));
    let apart = [batch, Expr::int(2), Expr::int(frames.bins()), count];
    cx.transpose(cx.reshape(parts, &apart), &[0, 2, 3, 1])
}

/// `STFT` of the signal (batch, length): (batch, bins, frames, 2).
fn by_operator(cx: &Cx, x: Complex, window: Value, frames: &Frames) -> Value {
    let signal = match x.im {
        None => cx.unsqueeze(x.re, &[2]),
        Some(_) => x.value(cx),
    };
    let span = cx.dim(x.re, 1) - frames.length;
    let count = span.floor_div(&Expr::int(frames.hop)) + 1;
    let length = cx.scalar(frames.length, DType::I64);
    let hop = cx.scalar(frames.hop, DType::I64);
    // Written although it is the default: ONNX's shape inference has the opposite default.
    let onesided = i64::from(frames.onesided).into();
    let inputs = [signal, hop, window, length].map(Some);
    let result = cx.emit1("STFT", &inputs, vec![("onesided".into(), onesided)]);
    let shape = [cx.dim(x.re, 0), count, Expr::int(frames.bins()), Expr::int(2)];
    cx.set_type(result, Type::tensor(cx.dtype(x.re), shape));
    cx.transpose(result, &[0, 2, 1, 3])
}

/// `x` padded with `margin` samples at both ends.
fn centred(cx: &Cx, x: Value, margin: i64, mode: &str) -> Lowered {
    let mode = pad_mode(mode)?;
    let last = cx.ints(&[cx.rank(x) as i64 - 1]);
    let pads = cx.ints(&[margin, margin]);
    Ok(cx.pad(x, pads, None, last, attrs::Pad { mode }))
}

arguments! {
    /// Arguments of `istft`.
    struct IstftArgs {
        input: Complex,
        n_fft: i64,
        hop_length: Option<i64>,
        win_length: Option<i64>,
        window: Option<Complex>,
        center: bool,
        normalized: bool,
        onesided: Option<bool>,
        length: Option<Expr>,
        return_complex: bool,
    }
}

/// The signal whose [`stft`] this is: `sum_t window[n - t hop] f_t[n - t hop] / sum_t window[n - t
/// hop]^2`, where `f_t` is the inverse transform of frame t. `ConvTranspose` adds up the frames;
/// its kernels are the inverse transform times the window, or times each part of a complex one.
fn istft(cx: &Cx, args: IstftArgs) -> Lowered {
    let IstftArgs { input: x, n_fft, window, center, length, return_complex, .. } = args;
    let (rank, dtype) = (cx.rank(x.re), cx.dtype(x.re));
    let rows = cx.dim(x.re, rank as i64 - 2);
    let onesided = args.onesided.unwrap_or(rows != Expr::int(n_fft));
    let hop = args.hop_length.unwrap_or(n_fft / 4).max(1);
    let frames = Frames { length: n_fft, hop, onesided };
    let Some(im) = x.im else {
        return Err(LowerError::unsupported("istft needs a complex tensor"));
    };
    // The first half determines a real signal. PyTorch ignores the other half.
    let halved = !return_complex && !frames.onesided;
    let frames = Frames { onesided: frames.onesided || halved, ..frames };
    let onesided = frames.onesided;
    let cut_rows = |x: Value| {
        if halved { cx.slice(x, rank - 2, &Expr::int(0), &Expr::int(frames.bins()), 1) } else { x }
    };
    let win_length = args.win_length.unwrap_or(n_fft);
    let part = |part: Option<Value>| frames.window(cx, part, win_length, dtype);
    let window = match window {
        Some(window) => window.try_map(|w| part(Some(w)))?,
        None => part(None)?.into(),
    };
    let n = n_fft as f64;
    let scale = if args.normalized { n.powf(-0.5) } else { 1.0 / n };
    // If only the first half is given, bins with a mirror image count twice.
    let twice = move |k: i64| if onesided && k > 0 && 2 * k != n_fft { 2.0 * scale } else { scale };
    let kernels = window.map(|w| frames.kernels(cx, twice, Some(w), dtype));
    let lift = |x: Value| if rank == 2 { cx.unsqueeze(x, &[0]) } else { x };
    let (re, im) = (lift(cut_rows(x.re)), lift(cut_rows(im)));
    let count = cx.dim(re, 2);
    let span = (&count - 1) * frames.hop + n_fft;
    let ones = cx.full(&[Expr::int(1), Expr::int(1), count], 1, dtype);
    let envelope = window.mul(cx, window).map(|squares| {
        let squares = cx.reshape(squares, &[1, 1, n_fft].map(Expr::int));
        frames.overlapped(cx, ones, squares, &span)
    });
    let start = if center { n_fft / 2 } else { 0 };
    let end = match &length {
        Some(length) => length + start,
        None if center => &span - n_fft / 2,
        None => span.clone(),
    };
    let cut = |x: Value| cx.slice(x, 2, &Expr::int(start), &end, 1);
    let shape = cx.out_shape()?;
    let finish = |signal: Value| {
        // Samples after the last frame are zeros.
        let signal = if length.is_none() || cx.constraints().prove_ge(&span, &end) {
            signal
        } else {
            let missing = Expr::max(&(&end - &span), &Expr::int(0));
            let pads = cx.sizes(&[Expr::int(0), missing]);
            cx.pad(signal, pads, None, cx.ints(&[2]), Default::default())
        };
        cx.reshape(signal, &shape)
    };
    // Re sum (re + i im) exp(+i ...) = sum re cos - im sin: the basis has -sin.
    let real = cx.concat(&[re, im], 1);
    // Im sum (re + i im) exp(+i ...) = sum im cos + re sin
    let imaginary = || cx.concat(&[im, cx.neg(re)], 1);
    let bins = Complex::new(real, return_complex.then(imaginary));
    let sum =
        bins.bilinear(cx, kernels, |bins, kernels| frames.overlapped(cx, bins, kernels, &span));
    Ok(sum.map(cut).div(cx, envelope.map(cut)).map(finish).value(cx))
}

arguments! {
    struct Istft { input: Value, n_fft: i64, hop_length: Option<i64>, center: bool, length: Option<Expr>, return_complex: bool }
    struct Stft { input: Value, n_fft: i64, hop_length: Option<i64>, window: Option<Value>, center: bool, onesided: Option<bool>, return_complex: Option<bool> }
}

/// Frequencies and frames; without `return_complex`, the two parts of the numbers.
fn meta_stft(cx: &Cx, args: Stft) -> Lowered {
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
    let dtype = meta::complex_of(cx.dtype(x))?;
    if args.return_complex.unwrap_or(is_complex) {
        return Ok(typed(cx, dtype, &size));
    }
    size.push(Expr::int(2));
    Ok(typed(cx, dtype.to_real(), &size))
}

/// Samples without those at either end that padding added, or as many as are asked for.
fn meta_istft(cx: &Cx, args: Istft) -> Lowered {
    let Istft { input: x, n_fft, hop_length, center, length, return_complex } = args;
    let mut size = cx.shape(x);
    let (Some(frames), Some(_)) = (size.pop(), size.pop()) else {
        return unknown("it takes matrices and batches of them");
    };
    let padding = if center { n_fft / 2 * 2 } else { 0 };
    let span = (frames - 1) * hop_length.unwrap_or(n_fft / 4) + (n_fft - padding);
    size.push(length.unwrap_or(span));
    let dtype = cx.dtype(x);
    Ok(typed(cx, if return_complex { dtype } else { dtype.to_real() }, &size))
}

checks! {
    // Large kernels are gathered from a table.
    "aten.stft(x: f32[s0], 130, 26, normalized = True, return_complex = True) -> c64[66, (s0 - 130) // 26 + 1]" => "
    val_0 = Expand (1.0, [130])
    val_1 = Mul (val_0, 0.0877058)
    val_2 = Unsqueeze (x, [0])
    val_3 = Mul (int32[66,1] {...}, int32[130] {...})
    val_4 = Mod (val_3, int32 {130})
    val_5 = Gather <axis: int = 1> (float[2,130] {...}, val_4)
    val_6 = Reshape (val_5, [132, 1, 130])
    val_7 = Mul (val_6, val_1)
    val_8 = Unsqueeze (val_2, [1])
    val_9 = Conv <strides: ints = [26]> (val_8, val_7)
    val_10 = Reshape (val_9, [1, 2, 66, -1])
    val_11 = Transpose <perm: ints = [0, 2, 3, 1]> (val_10)
    stft = Squeeze (val_11, [0])
    ";

    // Frames of other lengths than powers of two are convolutions.
    "aten.stft(x: f32[s0], 3, 1, return_complex = True) -> c64[2, s0 - 2]" => "
    val_0 = double[3,2,1,2] {1.0, 0.0, 1.0, 0.0, 1.0, 0.0, -0.5000000000000004, -0.8660254037844384, 1.0, 0.0, -0.4999999999999998, 0.8660254037844387}
    val_1 = Expand (1.0, [3])
    val_2 = Unsqueeze (x, [0])
    val_3 = Shape <start: int = 0, end: int = 1> (x)
    val_4 = Sub (val_3, [2])
    val_5 = Reshape (val_4, [])
    val_6 = Range (0, val_5, 1)
    val_7 = Unsqueeze (val_6, [1])
    val_8 = Add (val_7, [0, 1, 2])
    val_9 = Gather <axis: int = 1> (val_2, val_8)
    val_10 = Unsqueeze (val_9, [3])
    val_11 = Cast <to: int = 1> (val_0)
    val_12 = Unsqueeze (val_10, [3, 5])
    val_13 = Mul (val_12, val_11)
    val_14 = Where (bool[3,2,1,2] {1, 0, 1, 0, 1, 0, 1, 1, 1, 0, 1, 1}, val_13, 0.0)
    val_15 = ReduceSum <keepdims: int = 0> (val_14, [2, 4])
    val_16 = Transpose <perm: ints = [0, 2, 1, 3]> (val_15)
    stft = Squeeze (val_16, [0])
    ";
    "aten.stft(x: f32[8], 4, 2, return_complex = True) -> c64[3, 3]", assume_finite => "
    val_0 = Expand (1.0, [4])
    val_1 = Unsqueeze (x, [0])
    val_2 = Unsqueeze (val_1, [2])
    val_3 = STFT <onesided: int = 1> (val_2, 2, val_0, 4)
    val_4 = Transpose <perm: ints = [0, 2, 1, 3]> (val_3)
    stft = Squeeze (val_4, [0])
    ";
    "aten.stft(x: f32[8], 4, 2, return_complex = True) -> c64[3, 3]" => "
    val_0 = double[4,3,1,2] {1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, -1.0, -1.0, 0.0, 1.0, 0.0, -1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0, -1.0, 0.0}
    val_1 = bool[4,3,1,2] {1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1, 0}
    val_2 = Expand (1.0, [4])
    val_3 = Unsqueeze (x, [0])
    val_4 = Gather <axis: int = 1> (val_3, int64[3,4] {0, 1, 2, 3, 2, 3, 4, 5, 4, 5, 6, 7})
    val_5 = Unsqueeze (val_4, [3])
    val_6 = Cast <to: int = 1> (val_0)
    val_7 = Unsqueeze (val_5, [3, 5])
    val_8 = Mul (val_7, val_6)
    val_9 = Where (val_1, val_8, 0.0)
    val_10 = ReduceSum <keepdims: int = 0> (val_9, [2, 4])
    val_11 = Transpose <perm: ints = [0, 2, 1, 3]> (val_10)
    stft = Squeeze (val_11, [0])
    ";
}
