//! Resampling of images.

use crate::{AtenOp, Cx, LowerError, Lowered, registry::aten};
use pt2onnx_ir::{Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(super) static OPS: &[AtenOp] = &[
    aten!(
        "aten::_upsample_bicubic2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
        smooth2::<CUBIC_AA>
    ),
    aten!(
        "aten::_upsample_bicubic2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
        smooth::<CUBIC_AA>
    ),
    aten!(
        "aten::_upsample_bilinear2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
        smooth2::<LINEAR_AA>
    ),
    aten!(
        "aten::_upsample_bilinear2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
        smooth::<LINEAR_AA>
    ),
    aten!(
        "aten::_upsample_nearest_exact1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor",
        |cx: &Cx, x: Value, size: Vec<Expr>, s: Option<f64>| nearest_scaled::<true>(
            cx,
            x,
            size,
            &[s]
        )
    ),
    aten!(
        "aten::_upsample_nearest_exact1d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
        nearest::<true>
    ),
    aten!(
        "aten::_upsample_nearest_exact2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? scales_w=None) -> Tensor",
        |cx: &Cx, x: Value, size: Vec<Expr>, h: Option<f64>, w: Option<f64>| nearest_scaled::<true>(
            cx,
            x,
            size,
            &[h, w]
        )
    ),
    aten!(
        "aten::_upsample_nearest_exact2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
        nearest::<true>
    ),
    aten!(
        "aten::_upsample_nearest_exact3d(Tensor self, SymInt[3] output_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
        |cx: &Cx, x: Value, size: Vec<Expr>, d: Option<f64>, h: Option<f64>, w: Option<f64>| {
            nearest_scaled::<true>(cx, x, size, &[d, h, w])
        }
    ),
    aten!(
        "aten::_upsample_nearest_exact3d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
        nearest::<true>
    ),
    aten!(
        "aten::upsample_bicubic2d(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
        smooth2::<CUBIC>
    ),
    aten!(
        "aten::upsample_bicubic2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
        smooth::<CUBIC>
    ),
    aten!(
        "aten::upsample_bilinear2d(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
        smooth2::<LINEAR>
    ),
    aten!(
        "aten::upsample_bilinear2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
        smooth::<LINEAR>
    ),
    aten!(
        "aten::upsample_linear1d(Tensor self, SymInt[1] output_size, bool align_corners, float? scales=None) -> Tensor",
        |cx: &Cx, x: Value, size: Vec<Expr>, align: bool, s: Option<f64>| smooth_scaled::<LINEAR>(
            cx,
            x,
            size,
            align,
            &[s]
        )
    ),
    aten!(
        "aten::upsample_linear1d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
        smooth::<LINEAR>
    ),
    aten!(
        "aten::upsample_nearest1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor",
        |cx: &Cx, x: Value, size: Vec<Expr>, s: Option<f64>| nearest_scaled::<false>(
            cx,
            x,
            size,
            &[s]
        )
    ),
    aten!(
        "aten::upsample_nearest1d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
        nearest::<false>
    ),
    aten!(
        "aten::upsample_nearest2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? scales_w=None) -> Tensor",
        |cx: &Cx, x: Value, size: Vec<Expr>, h: Option<f64>, w: Option<f64>| nearest_scaled::<false>(
            cx,
            x,
            size,
            &[h, w]
        )
    ),
    aten!(
        "aten::upsample_nearest2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
        nearest::<false>
    ),
    aten!(
        "aten::upsample_nearest3d(Tensor self, SymInt[3] output_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
        |cx: &Cx, x: Value, size: Vec<Expr>, d: Option<f64>, h: Option<f64>, w: Option<f64>| {
            nearest_scaled::<false>(cx, x, size, &[d, h, w])
        }
    ),
    aten!(
        "aten::upsample_nearest3d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
        nearest::<false>
    ),
    aten!(
        "aten::upsample_trilinear3d(Tensor self, SymInt[3] output_size, bool align_corners, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
        |cx: &Cx,
         x: Value,
         size: Vec<Expr>,
         align: bool,
         d: Option<f64>,
         h: Option<f64>,
         w: Option<f64>| smooth_scaled::<LINEAR>(cx, x, size, align, &[d, h, w])
    ),
    aten!(
        "aten::upsample_trilinear3d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
        smooth::<LINEAR>
    ),
];

/// Kinds of [`smooth`] resampling; `_AA` with a window that widens as the image shrinks.
const LINEAR: u8 = 0;
const CUBIC: u8 = 1;
const LINEAR_AA: u8 = 2;
const CUBIC_AA: u8 = 3;

/// Elements of the scale factors given, if there are factors.
fn factors(given: Option<Vec<f64>>) -> Vec<Option<f64>> {
    given.unwrap_or_default().into_iter().map(Some).collect()
}

fn smooth<const KIND: u8>(
    cx: &Cx,
    x: Value,
    _size: Option<Vec<Expr>>,
    align_corners: bool,
    scale_factors: Option<Vec<f64>>,
) -> Lowered {
    smooth_scaled::<KIND>(cx, x, vec![], align_corners, &factors(scale_factors))
}

fn smooth2<const KIND: u8>(
    cx: &Cx,
    x: Value,
    size: Vec<Expr>,
    align_corners: bool,
    h: Option<f64>,
    w: Option<f64>,
) -> Lowered {
    smooth_scaled::<KIND>(cx, x, size, align_corners, &[h, w])
}

/// `Resize` in linear or cubic mode. Bytes are resampled as numbers and rounded.
fn smooth_scaled<const KIND: u8>(
    cx: &Cx,
    x: Value,
    _size: Vec<Expr>,
    align_corners: bool,
    factors: &[Option<f64>],
) -> Lowered {
    let cubic = matches!(KIND, CUBIC | CUBIC_AA);
    let antialias = matches!(KIND, LINEAR_AA | CUBIC_AA);
    let options = attrs::Resize {
        mode: if cubic { "cubic" } else { "linear" },
        coordinate_transformation_mode: if align_corners {
            "align_corners"
        } else {
            "half_pixel"
        },
        antialias,
        // Keys' coefficient: PyTorch takes Pillow's where it widens the window, and OpenCV's where not.
        cubic_coeff_a: if antialias { -0.5 } else { -0.75 },
        exclude_outside: antialias,
        ..Default::default()
    };
    // Corners aligned, the sizes alone say where elements lie.
    let factors = if align_corners { &[] } else { factors };
    let dtype = cx.dtype(x);
    if dtype.is_float() {
        return resize(cx, x, factors, options);
    }
    // Halves are rounded up.
    let resized = resize(cx, cx.cast(x, DType::F32), factors, options)?;
    let resized = cx.floor(cx.add(resized, 0.5));
    let held = match dtype {
        DType::U8 => cx.clamp(resized, Some(0.into()), Some(255.into())),
        _ => resized,
    };
    Ok(cx.cast(held, dtype))
}

fn nearest<const EXACT: bool>(
    cx: &Cx,
    x: Value,
    _size: Option<Vec<Expr>>,
    scale_factors: Option<Vec<f64>>,
) -> Lowered {
    nearest_scaled::<EXACT>(cx, x, vec![], &factors(scale_factors))
}

/// `Resize` in nearest mode: of the element at or before the place, or (`EXACT`) nearest to it. Where `Resize` rounds the
/// place otherwise than PyTorch does, the elements are gathered.
fn nearest_scaled<const EXACT: bool>(
    cx: &Cx,
    x: Value,
    _size: Vec<Expr>,
    factors: &[Option<f64>],
) -> Lowered {
    let shape = cx.out_shape()?;
    let n = shape.len().saturating_sub(2);
    let known: Option<Vec<(i64, i64)>> = (2..shape.len())
        .map(|a| Some((cx.dim(x, a as i64).as_int()?, shape[a].as_int()?)))
        .collect();
    if let Some(known) = known {
        let by_axis = known.iter().enumerate();
        let places: Vec<Option<Vec<i64>>> = by_axis
            .map(|(i, &(from, to))| differing::<EXACT>(from, to, factors.get(i).copied().flatten()))
            .collect();
        if places.iter().any(Option::is_some) {
            return Ok((0..n).fold(x, |x, i| {
                let (from, to) = known[i];
                let factor = factors.get(i).copied().flatten();
                cx.gather(x, cx.ints(&source::<EXACT>(from, to, factor)), i + 2)
            }));
        }
    }
    let (coordinates, nearest_mode) = match EXACT {
        true => ("half_pixel", "round_prefer_ceil"),
        false => ("asymmetric", "floor"),
    };
    let options = attrs::Resize {
        mode: "nearest",
        coordinate_transformation_mode: coordinates,
        nearest_mode,
        ..Default::default()
    };
    resize(cx, x, factors, options)
}

/// Where PyTorch reads each element, as it computes in float32: `nearest_neighbor_compute_source_index` in
/// ATen/native/UpSample.h.
fn source<const EXACT: bool>(from: i64, to: i64, factor: Option<f64>) -> Vec<i64> {
    let scale = match factor {
        Some(f) if f > 0.0 => (1.0 / f) as f32,
        _ => from as f32 / to as f32,
    };
    let place = |i: i64| match EXACT {
        true => ((i as f32 + 0.5) * scale).floor() as i64,
        false if from == to => i,
        false if to == 2 * from => i / 2,
        false => (i as f32 * scale).floor() as i64,
    };
    (0..to).map(|i| place(i).min(from - 1)).collect()
}

/// [`source`], if `Resize` reads elsewhere.
fn differing<const EXACT: bool>(from: i64, to: i64, factor: Option<f64>) -> Option<Vec<i64>> {
    let scale = factor.map_or(to as f32 / from as f32, |f| f as f32);
    let place = |i: i64| match EXACT {
        true => ((i as f32 + 0.5) / scale - 0.5 + 0.5).floor() as i64,
        false => (i as f32 / scale).floor() as i64,
    };
    let length = factor.map_or(to, |_| (from as f32 * scale).floor() as i64);
    let wanted = source::<EXACT>(from, to, factor);
    let same = length == to
        && (0..to)
            .map(|i| place(i).clamp(0, from - 1))
            .eq(wanted.iter().copied());
    (!same).then_some(wanted)
}

/// `Resize` of all but the first two dimensions, to the recorded sizes. Given factors say where elements lie, else the
/// ratio of the sizes.
fn resize(cx: &Cx, x: Value, factors: &[Option<f64>], options: attrs::Resize) -> Lowered {
    let shape = cx.out_shape()?;
    if shape == cx.shape(x) && factors.iter().flatten().all(|&f| f == 1.0) {
        return Ok(x);
    }
    if shape.len() < 3 {
        return Err(LowerError::unsupported(
            "resampling without spatial dimensions",
        ));
    }
    // A factor that is the ratio of the sizes says nothing new.
    let told = |i: usize, f: f64| match (cx.dim(x, i as i64 + 2).as_int(), shape[i + 2].as_int()) {
        (Some(from), Some(to)) => from as f64 * f == to as f64,
        _ => false,
    };
    let given: Vec<f64> = factors.iter().flatten().copied().collect();
    let scaled =
        given.len() == shape.len() - 2 && !given.iter().enumerate().all(|(i, &f)| told(i, f));
    let result = if scaled {
        let scales: Vec<f32> = [1.0, 1.0]
            .into_iter()
            .chain(given.iter().map(|&f| f as f32))
            .collect();
        // `Resize` gives `floor(size * scale)`, as PyTorch does.
        let length = |i: usize| {
            Some((cx.dim(x, i as i64 + 2).as_int()? as f32 * given[i] as f32).floor() as i64)
        };
        let other =
            |i: usize| length(i).is_some_and(|l| shape[i + 2].as_int().is_some_and(|s| s != l));
        if (0..given.len()).any(other) {
            return Err(LowerError::unsupported(
                "sizes that are not those of the scale factors",
            ));
        }
        cx.resize(x, None, cx.vector(&scales), None, options)
    } else {
        cx.resize(x, None, None, cx.sizes(&shape), options)
    };
    cx.set_type(result, pt2onnx_ir::Type::tensor(cx.dtype(x), shape));
    Ok(result)
}
