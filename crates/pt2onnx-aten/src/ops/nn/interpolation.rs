//! Resampling of images: nearest, linear, cubic, Lanczos.

use crate::math::resampling::{Filter, Smooth};
use crate::meta::{sized, unknown};
use crate::{AtenOp, Cx, LowerError, Lowered, args::Ignored, arguments, checks, op};
use pt2onnx_ir::{Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_symbolic::Func;
use pt2onnx_tensor::DType;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_upsample_bicubic2d_aa, smooth, meta = meta_resized, cubic = true, aa = true),
    op!(aten::_upsample_bicubic2d_aa_vec, smooth, meta = meta_resized, cubic = true, aa = true),
    op!(aten::_upsample_bilinear2d_aa, smooth, meta = meta_resized, aa = true),
    op!(aten::_upsample_bilinear2d_aa_vec, smooth, meta = meta_resized, aa = true),
    op!(aten::_upsample_lanczos2d_aa, smooth, meta = meta_resized, lanczos = true, aa = true),
    op!(aten::_upsample_lanczos2d_aa_vec, smooth, meta = meta_resized, lanczos = true, aa = true),
    op!(aten::_upsample_nearest_exact1d, nearest, meta = meta_resized, exact = true),
    op!(aten::_upsample_nearest_exact1d_vec, nearest, meta = meta_resized, exact = true),
    op!(aten::_upsample_nearest_exact2d, nearest, meta = meta_resized, exact = true),
    op!(aten::_upsample_nearest_exact2d_vec, nearest, meta = meta_resized, exact = true),
    op!(aten::_upsample_nearest_exact3d, nearest, meta = meta_resized, exact = true),
    op!(aten::_upsample_nearest_exact3d_vec, nearest, meta = meta_resized, exact = true),
    op!(aten::upsample_bicubic2d, smooth, meta = meta_resized, cubic = true),
    op!(aten::upsample_bicubic2d_vec, smooth, meta = meta_resized, cubic = true),
    op!(aten::upsample_bilinear2d, smooth, meta = meta_resized),
    op!(aten::upsample_bilinear2d_vec, smooth, meta = meta_resized),
    op!(aten::upsample_linear1d, smooth, meta = meta_resized),
    op!(aten::upsample_linear1d_vec, smooth, meta = meta_resized),
    op!(aten::upsample_nearest1d, nearest, meta = meta_resized),
    op!(aten::upsample_nearest1d_vec, nearest, meta = meta_resized),
    op!(aten::upsample_nearest2d, nearest, meta = meta_resized),
    op!(aten::upsample_nearest2d_vec, nearest, meta = meta_resized),
    op!(aten::upsample_nearest3d, nearest, meta = meta_resized),
    op!(aten::upsample_nearest3d_vec, nearest, meta = meta_resized),
    op!(aten::upsample_trilinear3d, smooth, meta = meta_resized),
    op!(aten::upsample_trilinear3d_vec, smooth, meta = meta_resized),
];

arguments! {
    /// Arguments of resampling: an input `(batch, channels, ..)`, and factors for all spatial
    /// dimensions or for each. The output size is the recorded one.
    struct ResampleArgs {
        input: Value,
        output_size: Ignored,
        align_corners: Option<bool>,
        scale_factors: Option<Vec<f64>>,
        scales: Option<f64>,
        scales_d: Option<f64>,
        scales_h: Option<f64>,
        scales_w: Option<f64>,
        cubic: Option<bool>,
        lanczos: Option<bool>,
        /// Whether to antialias.
        aa: Option<bool>,
        exact: Option<bool>,
    }
}

impl ResampleArgs {
    /// The factor of each spatial dimension, as far as given.
    fn factors(&self, cx: &Cx) -> Vec<Option<f64>> {
        let each = [self.scales_d, self.scales_h, self.scales_w];
        match (&self.scale_factors, cx.rank(self.input).saturating_sub(2)) {
            (Some(all), _) => all.iter().copied().map(Some).collect(),
            (None, 1) => vec![self.scales],
            (None, n) => each[3usize.saturating_sub(n)..].to_vec(),
        }
    }
}

/// Linear, cubic or Lanczos resampling: `Resize`, which has weights of float32, and can neither
/// antialias with aligned corners nor round bytes as PyTorch does, nor take factors that do not
/// give the sizes: there it is [`Smooth::by_products`].
fn smooth(cx: &Cx, args: ResampleArgs) -> Lowered {
    let (x, factors) = (args.input, args.factors(cx));
    let [cubic, lanczos, antialias, align_corners] =
        [args.cubic, args.lanczos, args.aa, args.align_corners].map(|f| f.unwrap_or(false));
    let (shape, dtype) = (cx.out_shape()?, cx.dtype(x));
    // A dimension that keeps its size stays as it is, whatever its factor, but for PyTorch's cubic
    // kernel of floats.
    let always = cubic && !antialias && dtype.is_float();
    let stays = |i: usize| shape.get(i + 2).is_some_and(|to| *to == cx.dim(x, i as i64 + 2));
    let factor =
        |(i, f): (usize, &Option<f64>)| f.map(|f| if stays(i) && !always { 1.0 } else { f });
    let factors: Vec<Option<f64>> = if align_corners {
        // The positions depend only on the sizes.
        Vec::new()
    } else {
        factors.iter().enumerate().map(factor).collect()
    };
    let by_products = lanczos
        || (antialias && align_corners)
        || !dtype.is_float()
        || dtype == DType::F64
        || !gives_sizes(cx, x, &factors)?;
    if by_products {
        let filter = match (cubic, lanczos) {
            (_, true) => Filter::Lanczos,
            // Keys' coefficient: PyTorch has Pillow's with antialiasing, else OpenCV's.
            (true, _) => Filter::Cubic(if antialias { -0.5 } else { -0.75 }),
            _ => Filter::Linear,
        };
        return Smooth { filter, antialias, align_corners }.by_products(cx, x, &factors);
    }
    let options = attrs::Resize {
        mode: if cubic { "cubic" } else { "linear" },
        coordinate_transformation_mode: if align_corners { "align_corners" } else { "half_pixel" },
        antialias,
        cubic_coeff_a: if antialias { -0.5 } else { -0.75 },
        exclude_outside: antialias,
        ..Default::default()
    };
    resize(cx, x, &factors, options)
}

/// Nearest-neighbour resampling: `Resize`. Without `exact`, it takes the element at the place
/// rounded down. If `Resize` rounds a place otherwise than PyTorch does at some size, or the
/// factors do not give the sizes, a `Gather` along each dimension.
fn nearest(cx: &Cx, args: ResampleArgs) -> Lowered {
    let (x, factors, exact) = (args.input, args.factors(cx), args.exact.unwrap_or(false));
    let shape = cx.out_shape()?;
    let n = shape.len().saturating_sub(2);
    let axis = |i: usize| {
        let factor = factors.get(i).copied().flatten();
        (cx.dim(x, i as i64 + 2), &shape[i + 2], factor)
    };
    let axes: Vec<(Expr, &Expr, Option<f64>)> = (0..n).map(axis).collect();
    if axes.iter().any(|(from, to, factor)| may_differ(exact, n, from, to, *factor)) {
        return Ok(axes.iter().zip(2..).fold(x, |x, ((from, to, factor), axis)| {
            let places = match (from.as_int(), to.as_int()) {
                (Some(from), Some(to)) => Some(cx.ints(&source(exact, n, from, to, *factor))),
                _ => computed_source(cx, exact, n, from, to, *factor),
            };
            places.map_or(x, |places| cx.gather(x, places, axis))
        }));
    }
    let (coordinates, nearest_mode) =
        if exact { ("half_pixel", "round_prefer_ceil") } else { ("asymmetric", "floor") };
    let options = attrs::Resize {
        mode: "nearest",
        coordinate_transformation_mode: coordinates,
        nearest_mode,
        ..Default::default()
    };
    resize(cx, x, &factors, options)
}

/// Where PyTorch reads each element, as it computes in float32:
/// `nearest_neighbor_compute_source_index` in ATen/native/UpSample.h. The kernels of two dimensions
/// take a size that stays or doubles as a factor of 1 or 2. Those of one and three do not, but for
/// channels last and more than three channels.
fn source(exact: bool, n: usize, from: i64, to: i64, factor: Option<f64>) -> Vec<i64> {
    let scale = match factor {
        Some(f) if f > 0.0 => (1.0 / f) as f32,
        _ => from as f32 / to as f32,
    };
    let place = |i: i64| match exact {
        true => ((i as f32 + 0.5) * scale).floor() as i64,
        false if n == 2 && from == to => i,
        false if n == 2 && to == 2 * from => i / 2,
        false => (i as f32 * scale).floor() as i64,
    };
    (0..to).map(|i| place(i).min(from - 1)).collect()
}

/// [`source`] of sizes that are not known; `None` if each element is read from its own place.
fn computed_source(
    cx: &Cx,
    exact: bool,
    n: usize,
    from: &Expr,
    to: &Expr,
    factor: Option<f64>,
) -> Option<Value> {
    if !exact && n == 2 && from == to {
        return None;
    }
    let float = |size: &Expr| cx.cast(cx.size(size), DType::F32);
    let scale = match factor {
        _ if !exact && n == 2 && *to == from * 2 => cx.scalar(0.5, DType::F32),
        Some(f) if f > 0.0 => cx.scalar(1.0 / f, DType::F32),
        _ => cx.div(float(from), float(to)),
    };
    let i = cx.cast(cx.iota(to), DType::F32);
    let i = if exact { cx.add(i, 0.5) } else { i };
    let place = cx.cast(cx.floor(cx.mul(i, scale)), DType::I64);
    Some(cx.minimum(place, cx.sub(cx.size(from), 1)))
}

/// The largest size whose places are computed here.
const LARGEST: i64 = 1 << 20;

/// Whether `Resize` reads other elements than [`source`].
fn differing(exact: bool, n: usize, from: i64, to: i64, factor: Option<f64>) -> bool {
    let scale = factor.map_or(to as f32 / from as f32, |f| f as f32);
    let place = |i: i64| {
        if exact {
            ((i as f32 + 0.5) / scale - 0.5 + 0.5).floor() as i64
        } else {
            (i as f32 / scale).floor() as i64
        }
    };
    let length = factor.map_or(to, |_| (from as f32 * scale).floor() as i64);
    // ONNX Runtime copies a tensor whose sizes stay, whatever the factors.
    let read = |i| if from == to { i } else { place(i).clamp(0, from - 1) };
    length != to || !(0..to).map(read).eq(source(exact, n, from, to, factor))
}

/// Whether `Resize` reads other elements than PyTorch. Dynamic sizes are tried, where their symbols
/// are a few numbers; no size is above [`LARGEST`], for time and memory.
fn may_differ(exact: bool, n: usize, from: &Expr, to: &Expr, factor: Option<f64>) -> bool {
    const TRIED: i64 = 128;
    let tried = if from.is_static() && to.is_static() { 1 } else { TRIED };
    (1..=tried).any(|size| {
        let sizes = from.eval(&|_| Some(size)).zip(to.eval(&|_| Some(size)));
        let sizes = sizes.filter(|(from, to)| *from > 0 && *to <= LARGEST);
        sizes.is_some_and(|(from, to)| differing(exact, n, from, to, factor))
    })
}

/// `Resize` of all but the first two dimensions, to the recorded sizes. The positions follow from
/// the factors if they are given, else from the ratio of the sizes. There are no `axes`: ONNX
/// Runtime forgets them when it moves a `Transpose` through a `Resize`.
fn resize(cx: &Cx, x: Value, factors: &[Option<f64>], options: attrs::Resize) -> Lowered {
    let shape = cx.out_shape()?;
    if shape == cx.shape(x) && factors.iter().flatten().all(|&f| f == 1.0) {
        return Ok(x);
    }
    if shape.len() < 3 {
        return Err(LowerError::unsupported(
            "resampling needs an input with at least three dimensions",
        ));
    }
    // A factor that is the ratio of the sizes is not needed.
    let told = |i: usize, f: f64| match (cx.dim(x, i as i64 + 2).as_int(), shape[i + 2].as_int()) {
        (Some(from), Some(to)) => from as f64 * f == to as f64,
        _ => false,
    };
    let given: Vec<f64> = factors.iter().flatten().copied().collect();
    let scaled =
        given.len() == shape.len() - 2 && !given.iter().enumerate().all(|(i, &f)| told(i, f));
    let scales = if scaled {
        Some(given.iter().map(|&f| f as f32).collect())
    } else {
        ratios(cx, x, &shape)
    };
    let result = match scales {
        Some(scales) => {
            let all = [vec![1.0; 2], scales].concat();
            cx.resize(x, None, cx.vector(&all), None, options)
        }
        None => cx.resize(x, None, None, cx.sizes(&shape), options),
    };
    cx.set_type(result, pt2onnx_ir::Type::tensor(cx.dtype(x), shape));
    Ok(result)
}

/// Whether `Resize` with these factors gives the recorded sizes: `floor(size * factor)`. Dynamic
/// sizes are compared where their symbols are a few numbers.
fn gives_sizes(cx: &Cx, x: Value, factors: &[Option<f64>]) -> Lowered<bool> {
    const TRIED: [i64; 4] = [7, 16, 33, 100];
    let shape = cx.out_shape()?;
    Ok(factors.iter().zip(2..).zip(shape.iter().skip(2)).all(|((factor, axis), to)| {
        let Some(factor) = *factor else {
            return true;
        };
        let from = cx.dim(x, axis);
        let gives = |n: i64| {
            let sizes = from.eval(&|_| Some(n)).zip(to.eval(&|_| Some(n)));
            sizes.is_none_or(|(from, to)| (from as f32 * factor as f32).floor() as i64 == to)
        };
        TRIED.into_iter().all(gives)
    }))
}

/// The ratio of each size but the first two to that of the input, if some are dynamic and float32
/// holds all ratios. The sizes need not be computed then.
fn ratios(cx: &Cx, x: Value, shape: &[Expr]) -> Option<Vec<f32>> {
    const MOST: i64 = 64;
    if shape.iter().all(Expr::is_static) {
        return None;
    }
    let ratio = |(axis, to): (usize, &Expr)| {
        let from = cx.dim(x, axis as i64);
        match (from.as_int(), to.as_int()) {
            (Some(from), Some(to)) => {
                let ratio = to as f32 / from as f32;
                (f64::from(ratio) * from as f64 == to as f64).then_some(ratio)
            }
            _ => (1..=MOST).find(|&k| from.clone() * Expr::int(k) == *to).map(|k| k as f32),
        }
    };
    shape.iter().enumerate().skip(2).map(ratio).collect()
}

arguments! {
    struct Resized { input: Value, output_size: Option<Vec<Expr>>, scale_factors: Option<Vec<f64>> }
}

/// The given size, or `floor(size * factor)`.
fn meta_resized(cx: &Cx, args: Resized) -> Lowered {
    let from = cx.shape(args.input);
    let mut size: Vec<Expr> = from.iter().take(2).cloned().collect();
    let scaled = |(d, factor): (&Expr, &f64)| match (d.as_int(), factor.fract() == 0.0) {
        (Some(n), _) => Expr::int((n as f64 * factor).floor() as i64),
        (None, true) => d * (*factor as i64),
        // A factor such as 0.5 or 0.25.
        (None, false) if (1.0 / factor).fract() == 0.0 => {
            d.floor_div(&Expr::int((1.0 / factor) as i64))
        }
        _ => {
            let size = Expr::call(Func::ToFloat, vec![d.clone()]);
            Expr::call(Func::TruncToInt, vec![size * Expr::float(*factor)])
        }
    };
    let given =
        args.output_size.as_ref().map(Vec::len).or(args.scale_factors.as_ref().map(Vec::len));
    if given != from.len().checked_sub(2) {
        return unknown("it does not resize the dimensions after the first two");
    }
    match (args.output_size, args.scale_factors) {
        (Some(given), _) => size.extend(given),
        (None, Some(factors)) => size.extend(from[2..].iter().zip(&factors).map(scaled)),
        (None, None) => return unknown("it has no size"),
    }
    Ok(sized(cx, args.input, &size))
}

checks! {
    // Nearest places of a dynamic size that float32 rounds.
    "aten.upsample_nearest1d.vec(x: f32[1, 1, s0], [33], None) -> f32[1, 1, 33]" => "
    val_0 = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32]
    val_1 = Shape <start: int = 2, end: int = 3> (x)
    val_2 = Reshape (val_1, [])
    val_3 = Cast <to: int = 1> (val_2)
    val_4 = Cast <to: int = 1> (33)
    val_5 = Div (val_3, val_4)
    val_6 = Cast <to: int = 1> (val_0)
    val_7 = Mul (val_6, val_5)
    val_8 = Floor (val_7)
    val_9 = Cast <to: int = 7> (val_8)
    val_10 = Sub (val_2, 1)
    val_11 = Min (val_9, val_10)
    upsample_nearest1d = Gather <axis: int = 2> (x, val_11)
    ";

    // Nearest neighbours for a huge size.
    "aten.upsample_nearest1d(x: f32[1, 1, 4], [1099511627776]) -> f32[1, 1, 1099511627776]" => r#"
    upsample_nearest1d = Resize <coordinate_transformation_mode: string = "asymmetric", nearest_mode: string = "floor"> (x, "", "", [1, 1, 1099511627776])
    "#;

    // Whole multiples of a dynamic size.
    "aten.upsample_bilinear2d.vec(x: f32[1, 3, s0, 8], None, True, [4.0, 2.0]) -> f32[1, 3, 4*s0, 16]" => r#"
    upsample_bilinear2d = Resize <coordinate_transformation_mode: string = "align_corners", mode: string = "linear"> (x, "", [1.0, 1.0, 4.0, 2.0])
    "#;

    // Factors of a dynamic size.
    "aten.upsample_bilinear2d.vec(x: f32[1, 3, s0, 8], None, False, [2.0, 2.0]) -> f32[1, 3, 2*s0, 16]" => r#"
    upsample_bilinear2d = Resize <mode: string = "linear"> (x, "", [1.0, 1.0, 2.0, 2.0])
    "#;

    // Ratios of a dynamic batch.
    "aten.upsample_bilinear2d.vec(x: f32[s0, 3, 7, 8], [14, 12], False, None) -> f32[s0, 3, 14, 12]" => r#"
    upsample_bilinear2d = Resize <mode: string = "linear"> (x, "", [1.0, 1.0, 2.0, 1.5])
    "#;

    // Ratios that float32 does not hold.
    "aten.upsample_bilinear2d.vec(x: f32[s0, 3, 7, 8], [9, 12], False, None) -> f32[s0, 3, 9, 12]" => r#"
    val_0 = Shape <start: int = 0, end: int = 1> (x)
    val_1 = Concat <axis: int = 0> (val_0, [3, 9, 12])
    upsample_bilinear2d = Resize <mode: string = "linear"> (x, "", "", val_1)
    "#;

    // Factors that do not give the sizes.
    "aten.upsample_nearest2d(x: f32[1, 3, s0, s1], [n: Sym(2*s0), 4], 3.0, 0.5) -> f32[1, 3, 2*s0, 4]" => "
    val_0 = Range (0, n, 1)
    val_1 = Cast <to: int = 1> (val_0)
    val_2 = Mul (val_1, 0.5)
    val_3 = Floor (val_2)
    val_4 = Cast <to: int = 7> (val_3)
    val_5 = Shape <start: int = 2, end: int = 3> (x)
    val_6 = Reshape (val_5, [])
    val_7 = Sub (val_6, 1)
    val_8 = Min (val_4, val_7)
    val_9 = Gather <axis: int = 2> (x, val_8)
    val_10 = Cast <to: int = 1> ([0, 1, 2, 3])
    val_11 = Mul (val_10, 2.0)
    val_12 = Floor (val_11)
    val_13 = Cast <to: int = 7> (val_12)
    val_14 = Shape <start: int = 3, end: int = 4> (x)
    val_15 = Reshape (val_14, [])
    val_16 = Sub (val_15, 1)
    val_17 = Min (val_13, val_16)
    upsample_nearest2d = Gather <axis: int = 3> (val_9, val_17)
    ";

    // Bytes are rounded after each dimension.
    "aten.upsample_bilinear2d(x: u8[1, 1, 2, 3], [2, 2], False) -> u8[1, 1, 2, 2]" => "
    val_0 = Cast <to: int = 11> (x)
    val_1 = ReduceMax <keepdims: int = 0> (double[3,2] {0.75, 0.0, 0.25, 0.25, 0.0, 0.75})
    val_2 = Div (double {32767.5}, val_1)
    val_3 = Log (val_2)
    val_4 = Div (val_3, double {0.6931471805599453})
    val_5 = Ceil (val_4)
    val_6 = Sub (val_5, double {1.0})
    val_7 = Clip (val_6, double {0.0}, double {22.0})
    val_8 = Pow (double {2.0}, val_7)
    val_9 = Mul (double[3,2] {0.75, 0.0, 0.25, 0.25, 0.0, 0.75}, val_8)
    val_10 = Abs (val_9)
    val_11 = Add (val_10, double {0.5})
    val_12 = Floor (val_11)
    val_13 = Sign (val_9)
    val_14 = Mul (val_12, val_13)
    val_15 = MatMul (val_0, val_14)
    val_16 = Div (val_15, val_8)
    val_17 = Add (val_16, double {0.5})
    val_18 = Floor (val_17)
    val_19 = Clip (val_18, double {0.0}, double {255.0})
    upsample_bilinear2d = Cast <to: int = 2> (val_19)
    ";

    // Weights of dynamic sizes are computed.
    "aten.upsample_linear1d(x: f64[1, 1, s0], [4], False) -> f64[1, 1, 4]" => "
    val_0 = Shape <start: int = 2, end: int = 3> (x)
    val_1 = Reshape (val_0, [])
    val_2 = Cast <to: int = 11> (val_1)
    val_3 = Cast <to: int = 11> (4)
    val_4 = Div (val_2, val_3)
    val_5 = Cast <to: int = 11> ([0, 1, 2, 3])
    val_6 = Range (0, val_1, 1)
    val_7 = Cast <to: int = 11> (val_6)
    val_8 = Unsqueeze (val_7, [1])
    val_9 = Add (val_5, double {0.5})
    val_10 = Mul (val_9, val_4)
    val_11 = Sub (val_10, double {0.5})
    val_12 = Sub (val_0, [1])
    val_13 = Reshape (val_12, [])
    val_14 = Cast <to: int = 11> (val_13)
    val_15 = Max (val_11, double {0.0})
    val_16 = Min (val_15, val_14)
    val_17 = Sub (val_16, val_8)
    val_18 = Abs (val_17)
    val_19 = Sub (double {1.0}, val_18)
    val_20 = Max (val_19, double {0.0})
    upsample_linear1d = MatMul (x, val_20)
    ";
}
