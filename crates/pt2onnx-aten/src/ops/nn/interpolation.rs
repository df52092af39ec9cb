//! Resampling of images: nearest, linear, cubic.

use crate::math::window::product_along;
use crate::{AtenOp, Cx, LowerError, Lowered, args::Ignored, arguments, op::op};
use pt2onnx_ir::{Reduction, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Tensor};

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_upsample_bicubic2d_aa, smooth, cubic = true, antialias = true),
    op!(aten::_upsample_bicubic2d_aa_vec, smooth, cubic = true, antialias = true),
    op!(aten::_upsample_bilinear2d_aa, smooth, antialias = true),
    op!(aten::_upsample_bilinear2d_aa_vec, smooth, antialias = true),
    op!(aten::_upsample_nearest_exact1d, nearest, exact = true),
    op!(aten::_upsample_nearest_exact1d_vec, nearest, exact = true),
    op!(aten::_upsample_nearest_exact2d, nearest, exact = true),
    op!(aten::_upsample_nearest_exact2d_vec, nearest, exact = true),
    op!(aten::_upsample_nearest_exact3d, nearest, exact = true),
    op!(aten::_upsample_nearest_exact3d_vec, nearest, exact = true),
    op!(aten::upsample_bicubic2d, smooth, cubic = true),
    op!(aten::upsample_bicubic2d_vec, smooth, cubic = true),
    op!(aten::upsample_bilinear2d, smooth),
    op!(aten::upsample_bilinear2d_vec, smooth),
    op!(aten::upsample_linear1d, smooth),
    op!(aten::upsample_linear1d_vec, smooth),
    op!(aten::upsample_nearest1d, nearest),
    op!(aten::upsample_nearest1d_vec, nearest),
    op!(aten::upsample_nearest2d, nearest),
    op!(aten::upsample_nearest2d_vec, nearest),
    op!(aten::upsample_nearest3d, nearest),
    op!(aten::upsample_nearest3d_vec, nearest),
    op!(aten::upsample_trilinear3d, smooth),
    op!(aten::upsample_trilinear3d_vec, smooth),
];

arguments! {
    /// What resampling takes: an input `(batch, channels, ..)`, and factors for all spatial dimensions or for each. The output size is
    /// the recorded one.
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
        antialias: Option<bool>,
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

/// Linear or cubic resampling: `Resize`. Integers are resampled as floats and rounded.
fn smooth(cx: &Cx, args: ResampleArgs) -> Lowered {
    let (x, factors) = (args.input, args.factors(cx));
    let [cubic, antialias, align_corners] =
        [args.cubic, args.antialias, args.align_corners].map(|flag| flag.unwrap_or(false));
    let options = attrs::Resize {
        mode: if cubic { "cubic" } else { "linear" },
        coordinate_transformation_mode: if align_corners { "align_corners" } else { "half_pixel" },
        antialias,
        // Keys' coefficient: PyTorch has Pillow's with antialiasing, else OpenCV's.
        cubic_coeff_a: if antialias { -0.5 } else { -0.75 },
        exclude_outside: antialias,
        ..Default::default()
    };
    // With aligned corners, the sizes alone say where elements are read.
    let factors = if align_corners { &[] } else { &factors[..] };
    let dtype = cx.dtype(x);
    let how = Smooth { cubic, antialias, align_corners };
    // `Resize` cannot antialias with aligned corners, and has weights of float32; PyTorch rounds integers after each dimension.
    if ((antialias && align_corners) || !dtype.is_float() || dtype == DType::F64)
        && let Some(result) = how.by_products(cx, x, factors)?
    {
        return Ok(result);
    }
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

/// A way of linear or cubic resampling.
struct Smooth {
    cubic: bool,
    /// Whether the window widens as the image shrinks.
    antialias: bool,
    align_corners: bool,
}

impl Smooth {
    /// Each dimension resampled by a product with a matrix of weights, the last dimension first; none if the sizes are not known.
    fn by_products(&self, cx: &Cx, x: Value, factors: &[Option<f64>]) -> Lowered<Option<Value>> {
        let (shape, dtype) = (cx.out_shape()?, cx.dtype(x));
        let whole = !dtype.is_float();
        let wide = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
        let mut result = cx.cast(x, wide);
        for axis in (2..shape.len()).rev() {
            let (from, to) = (cx.dim(x, axis as i64), &shape[axis]);
            if from == *to {
                continue;
            }
            let matrix = match (from.as_int(), to.as_int()) {
                (Some(from), Some(to)) => {
                    let weights = self.weights(from, to, factors.get(axis - 2).copied().flatten());
                    let sizes = vec![from.max(0) as usize, to.max(0) as usize];
                    let tensor = Tensor::from_slice(sizes, &weights)
                        .map_err(|e| LowerError::unsupported(e.to_string()))?;
                    cx.cast(cx.constant(tensor), wide)
                }
                _ if self.antialias && self.align_corners && !self.cubic => {
                    cx.cast(triangles(cx, &from, to), wide)
                }
                _ => return Ok(None),
            };
            result = product_along(cx, result, axis, matrix);
            if whole {
                // Halves are rounded up.
                result = cx.floor(cx.add(result, 0.5));
            }
        }
        if dtype == DType::U8 && self.cubic {
            result = cx.clamp(result, Some(0.into()), Some(255.into()));
        }
        Ok(Some(cx.cast(result, dtype)))
    }

    /// The `(from, to)` matrix: how much of each element is in each result (ATen/native/cpu/UpSampleKernel.cpp).
    fn weights(&self, from: i64, to: i64, factor: Option<f64>) -> Vec<f64> {
        let scale = match (self.align_corners, factor) {
            (true, _) if to > 1 => (from - 1) as f64 / (to - 1) as f64,
            (true, _) => 0.0,
            (false, Some(f)) if f > 0.0 => 1.0 / f,
            (false, _) => from as f64 / to as f64,
        };
        let mut matrix = vec![0.0; from.saturating_mul(to).max(0) as usize];
        for i in 0..to {
            let parts = match self.antialias {
                true => self.widened(from, scale, i),
                false => self.between(scale, i),
            };
            for (j, weight) in parts {
                if from > 0 {
                    matrix[(j.clamp(0, from - 1) * to + i) as usize] += weight;
                }
            }
        }
        matrix
    }

    /// The elements around the place of result `i`, and their weights.
    fn between(&self, scale: f64, i: i64) -> Vec<(i64, f64)> {
        let place = match self.align_corners {
            true => scale * i as f64,
            false => scale * (i as f64 + 0.5) - 0.5,
        };
        let place = if self.cubic { place } else { place.max(0.0) };
        let first = place.floor() as i64;
        let t = place - place.floor();
        if !self.cubic {
            return vec![(first, 1.0 - t), (first + 1, t)];
        }
        let each = (-1..=2).map(|k| (first + k, keys(t - k as f64, -0.75)));
        each.collect()
    }

    /// The elements in the window of result `i`, which is wider the more the image shrinks, and their weights.
    fn widened(&self, from: i64, scale: f64, i: i64) -> Vec<(i64, f64)> {
        let reach = if self.cubic { 2.0 } else { 1.0 } * scale.max(1.0);
        let centre = scale * (i as f64 + 0.5);
        let first = ((centre - reach + 0.5) as i64).max(0);
        let end = ((centre + reach + 0.5) as i64).min(from);
        let weight = |j: i64| {
            let t = (j as f64 - centre + 0.5) / scale.max(1.0);
            match self.cubic {
                true => keys(t, -0.5),
                false => (1.0 - t.abs()).max(0.0),
            }
        };
        let all: Vec<(i64, f64)> = (first..end).map(|j| (j, weight(j))).collect();
        let total: f64 = all.iter().map(|(_, w)| w).sum();
        all.into_iter().map(|(j, w)| (j, w / total)).collect()
    }
}

/// Keys' cubic convolution kernel with coefficient `a` (Keys, Cubic convolution interpolation for digital image processing, 1981).
fn keys(t: f64, a: f64) -> f64 {
    match t.abs() {
        t if t <= 1.0 => ((a + 2.0) * t - (a + 3.0)) * t * t + 1.0,
        t if t < 2.0 => ((a * t - 5.0 * a) * t + 8.0 * a) * t - 4.0 * a,
        _ => 0.0,
    }
}

/// [`Smooth::weights`] of antialiased linear resampling with aligned corners, computed at run time.
fn triangles(cx: &Cx, from: &Expr, to: &Expr) -> Value {
    let float = |v| cx.cast(v, DType::F64);
    let number = |e: &Expr| float(cx.size(e));
    // At least 1, so that one result has scale 0 / 1.
    let steps = cx.maximum(number(&(to - 1)), 1.0);
    let span = if to.as_int() == Some(1) { cx.scalar(0, DType::F64) } else { number(&(from - 1)) };
    let scale = cx.div(span, steps);
    let centre = cx.mul(cx.add(float(cx.iota(to)), 0.5), scale);
    let element = cx.add(cx.unsqueeze(float(cx.iota(from)), &[1]), 0.5);
    let distance = cx.div(cx.sub(element, centre), cx.maximum(scale, 1.0));
    let weights = cx.maximum(cx.sub(1.0, cx.abs(distance)), 0.0);
    cx.div(weights, cx.reduce(Reduction::Sum, weights, &[0], true))
}

/// Nearest-neighbour resampling: `Resize`. Without `exact`, it takes the element at the place rounded down. If `Resize` rounds a place
/// otherwise than PyTorch does, a `Gather` along each dimension.
fn nearest(cx: &Cx, args: ResampleArgs) -> Lowered {
    let (x, factors, exact) = (args.input, args.factors(cx), args.exact.unwrap_or(false));
    let shape = cx.out_shape()?;
    let n = shape.len().saturating_sub(2);
    let known: Option<Vec<(i64, i64)>> = (2..shape.len())
        .map(|a| Some((cx.dim(x, a as i64).as_int()?, shape[a].as_int()?)))
        .collect();
    if let Some(known) = known {
        let by_axis = known.iter().enumerate();
        let places: Vec<Option<Vec<i64>>> = by_axis
            .map(|(i, &(from, to))| differing(exact, from, to, factors.get(i).copied().flatten()))
            .collect();
        if places.iter().any(Option::is_some) {
            return Ok((0..n).fold(x, |x, i| {
                let (from, to) = known[i];
                let factor = factors.get(i).copied().flatten();
                cx.gather(x, cx.ints(&source(exact, from, to, factor)), i + 2)
            }));
        }
    }
    let (coordinates, nearest_mode) = match exact {
        true => ("half_pixel", "round_prefer_ceil"),
        false => ("asymmetric", "floor"),
    };
    let options = attrs::Resize {
        mode: "nearest",
        coordinate_transformation_mode: coordinates,
        nearest_mode,
        ..Default::default()
    };
    resize(cx, x, &factors, options)
}

/// Where PyTorch reads each element, as it computes in float32: `nearest_neighbor_compute_source_index` in
/// ATen/native/UpSample.h.
fn source(exact: bool, from: i64, to: i64, factor: Option<f64>) -> Vec<i64> {
    let scale = match factor {
        Some(f) if f > 0.0 => (1.0 / f) as f32,
        _ => from as f32 / to as f32,
    };
    let place = |i: i64| match exact {
        true => ((i as f32 + 0.5) * scale).floor() as i64,
        false if from == to => i,
        false if to == 2 * from => i / 2,
        false => (i as f32 * scale).floor() as i64,
    };
    (0..to).map(|i| place(i).min(from - 1)).collect()
}

/// [`source`], if `Resize` reads other elements.
fn differing(exact: bool, from: i64, to: i64, factor: Option<f64>) -> Option<Vec<i64>> {
    let scale = factor.map_or(to as f32 / from as f32, |f| f as f32);
    let place = |i: i64| match exact {
        true => ((i as f32 + 0.5) / scale - 0.5 + 0.5).floor() as i64,
        false => (i as f32 / scale).floor() as i64,
    };
    let length = factor.map_or(to, |_| (from as f32 * scale).floor() as i64);
    let wanted = source(exact, from, to, factor);
    let same =
        length == to && (0..to).map(|i| place(i).clamp(0, from - 1)).eq(wanted.iter().copied());
    (!same).then_some(wanted)
}

/// `Resize` of all but the first two dimensions, to the recorded sizes. Given factors say where elements lie, else the
/// ratio of the sizes.
fn resize(cx: &Cx, x: Value, factors: &[Option<f64>], mut options: attrs::Resize) -> Lowered {
    let shape = cx.out_shape()?;
    if shape == cx.shape(x) && factors.iter().flatten().all(|&f| f == 1.0) {
        return Ok(x);
    }
    if shape.len() < 3 {
        return Err(LowerError::unsupported("resampling needs spatial dimensions"));
    }
    // A factor that is the ratio of the sizes says nothing new.
    let told = |i: usize, f: f64| match (cx.dim(x, i as i64 + 2).as_int(), shape[i + 2].as_int()) {
        (Some(from), Some(to)) => from as f64 * f == to as f64,
        _ => false,
    };
    let given: Vec<f64> = factors.iter().flatten().copied().collect();
    let scaled =
        given.len() == shape.len() - 2 && !given.iter().enumerate().all(|(i, &f)| told(i, f));
    options.axes = Some((2..shape.len() as i64).collect());
    let result = if scaled {
        let scales: Vec<f32> = given.iter().map(|&f| f as f32).collect();
        // `Resize` gives `floor(size * scale)`, as PyTorch does.
        let length = |i: usize| {
            Some((cx.dim(x, i as i64 + 2).as_int()? as f32 * given[i] as f32).floor() as i64)
        };
        let other =
            |i: usize| length(i).is_some_and(|l| shape[i + 2].as_int().is_some_and(|s| s != l));
        if (0..given.len()).any(other) {
            return Err(LowerError::unsupported("the output size does not fit the scale factors"));
        }
        cx.resize(x, None, cx.vector(&scales), None, options)
    } else {
        cx.resize(x, None, None, cx.sizes(&shape[2..]), options)
    };
    cx.set_type(result, pt2onnx_ir::Type::tensor(cx.dtype(x), shape));
    Ok(result)
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn factors_of_a_dynamic_size() {
        check!("aten.upsample_bilinear2d.vec(x: f32[1, 3, s0, 8], None, False, [2.0, 2.0]) -> f32[1, 3, 2*s0, 16]", @r#"
        (float[1,3,s0,8] x) => (float[1,3,"2*s0",16] upsample_bilinear2d)
        <
          float[2] val_0 = {2.0, 2.0}
        >
        {
          upsample_bilinear2d = Resize <axes: ints = [2, 3], mode: string = "linear"> (x, "", val_0)
        }
        "#);
    }

    #[test]
    fn bytes_are_rounded_after_each_dimension() {
        check!("aten.upsample_bilinear2d(x: u8[1, 1, 2, 3], [2, 2], False) -> u8[1, 1, 2, 2]", @"
        (uint8[1,1,2,3] x) => (uint8[1,1,2,2] upsample_bilinear2d)
        <
          double[3,2] val_0 = {0.75, 0.0, 0.25, 0.25, 0.0, 0.75},
          float val_1 = {0.5}
        >
        {
          val_2 = Cast <to: int = 1> (x)
          val_3 = Cast <to: int = 1> (val_0)
          val_4 = MatMul (val_2, val_3)
          val_5 = Add (val_4, val_1)
          val_6 = Floor (val_5)
          upsample_bilinear2d = Cast <to: int = 2> (val_6)
        }
        ");
    }
}
