//! Resampling of images by matrices of weights: exact in float64, and of bytes as PyTorch rounds
//! them.

use crate::math::shape::constant;
use crate::math::window::product_along;
use crate::{Cx, Lowered};
use pt2onnx_ir::{Reduction, Value};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;
use std::f64::consts::PI;

/// How much an element at a distance counts.
#[derive(Clone, Copy, PartialEq)]
pub enum Filter {
    /// A triangle: linear interpolation.
    Linear,
    /// Keys' cubic convolution kernel with this coefficient (Keys, Cubic convolution interpolation
    /// for digital image processing, 1981).
    Cubic(f64),
    /// Lanczos' kernel with three lobes.
    Lanczos,
}

impl Filter {
    /// The distance from which on nothing counts.
    fn reach(self) -> f64 {
        match self {
            Filter::Linear => 1.0,
            Filter::Cubic(_) => 2.0,
            Filter::Lanczos => 3.0,
        }
    }

    /// The weight at distance `t`.
    fn weight(self, t: f64) -> f64 {
        let t = t.abs();
        match self {
            _ if t >= self.reach() => 0.0,
            Filter::Linear => 1.0 - t,
            Filter::Cubic(a) if t <= 1.0 => ((a + 2.0) * t - (a + 3.0)) * t * t + 1.0,
            Filter::Cubic(a) => ((a * t - 5.0 * a) * t + 8.0 * a) * t - 4.0 * a,
            Filter::Lanczos => sinc(t) * sinc(t / 3.0),
        }
    }

    /// [`Filter::weight`], computed at run time.
    fn weights(self, cx: &Cx, t: Value) -> Value {
        let t = cx.abs(t);
        let times = |x, factor: f64, more: f64| cx.add(cx.mul(x, factor), more);
        match self {
            Filter::Linear => cx.maximum(cx.sub(1.0, t), 0.0),
            Filter::Cubic(a) => {
                let near = cx.mul(cx.mul(times(t, a + 2.0, -a - 3.0), t), t);
                let far = cx.add(cx.mul(times(t, a, -5.0 * a), t), 8.0 * a);
                let far = cx.sub(cx.mul(far, t), 4.0 * a);
                let far = cx.select(cx.less(t, 2.0), far, 0.0);
                cx.select(cx.less_or_equal(t, 1.0), cx.add(near, 1.0), far)
            }
            Filter::Lanczos => {
                let sinc = |factor: f64| {
                    let angle = cx.mul(t, PI * factor);
                    cx.select(cx.equal(t, 0.0), 1.0, cx.div(cx.sin(angle), angle))
                };
                let both = cx.mul(sinc(1.0), sinc(1.0 / 3.0));
                cx.select(cx.less(t, 3.0), both, 0.0)
            }
        }
    }
}

/// `sin(pi t) / (pi t)`.
fn sinc(t: f64) -> f64 {
    match t {
        0.0 => 1.0,
        _ => (PI * t).sin() / (PI * t),
    }
}

/// A way of resampling.
pub struct Smooth {
    /// How much neighbours count.
    pub filter: Filter,
    /// Whether the window widens as the image shrinks.
    pub antialias: bool,
    /// Whether the centres of the corner elements stay in place, as PyTorch's `align_corners`.
    pub align_corners: bool,
}

impl Smooth {
    /// Each dimension resampled by a product with a matrix of weights, the last dimension first.
    /// For bytes, as in PyTorch's kernel of two dimensions, the weights are whole multiples of a
    /// power of 2, and each dimension is rounded.
    pub fn by_products(&self, cx: &Cx, x: Value, factors: &[Option<f64>]) -> Lowered {
        let (shape, dtype) = (cx.out_shape()?, cx.dtype(x));
        let whole = !dtype.is_float();
        // Sums of bytes times weights of 22 bits are exact in float64.
        let wide = if whole || dtype == DType::F64 { DType::F64 } else { DType::F32 };
        let mut result = cx.cast(x, wide);
        for axis in (2..shape.len()).rev() {
            let (from, to) = (cx.dim(x, axis as i64), &shape[axis]);
            let factor = factors.get(axis - 2).copied().flatten();
            if from == *to && factor.is_none_or(|f| f == 1.0) {
                continue;
            }
            let parts = from.as_int().zip(to.as_int()).map(|(f, t)| self.parts(f, t, factor));
            result = match (whole, parts) {
                (false, Some(parts)) => sums_along(cx, result, axis, parts),
                (false, None) => {
                    let weights = cx.cast(self.weights(cx, &from, to, factor), wide);
                    product_along(cx, result, axis, weights)
                }
                (true, Some(parts)) => {
                    rounded_product(cx, result, axis, matrix(cx, from.as_int(), &parts))
                }
                (true, None) => {
                    rounded_product(cx, result, axis, self.weights(cx, &from, to, factor))
                }
            };
        }
        Ok(cx.cast(result, dtype))
    }

    /// The elements that each result is made of, and how much of each
    /// (ATen/native/cpu/UpSampleKernel.cpp).
    fn parts(&self, from: i64, to: i64, factor: Option<f64>) -> Vec<Vec<(i64, f64)>> {
        let scale = match (self.align_corners, factor) {
            (true, _) if to > 1 => (from - 1) as f64 / (to - 1) as f64,
            (true, _) => 0.0,
            (false, Some(f)) if f > 0.0 => 1.0 / f,
            (false, _) => from as f64 / to as f64,
        };
        let parts = |i| {
            let parts =
                if self.antialias { self.widened(from, scale, i) } else { self.between(scale, i) };
            parts.into_iter().map(|(j, w)| (j.clamp(0, (from - 1).max(0)), w)).collect()
        };
        (0..to).map(parts).collect()
    }

    /// The elements around the place of result `i`, and their weights.
    fn between(&self, scale: f64, i: i64) -> Vec<(i64, f64)> {
        let place =
            if self.align_corners { scale * i as f64 } else { scale * (i as f64 + 0.5) - 0.5 };
        let place = if self.filter == Filter::Linear { place.max(0.0) } else { place };
        let first = place.floor() as i64;
        let t = place - place.floor();
        let reach = self.filter.reach() as i64;
        let each = (1 - reach..=reach).map(|k| (first + k, self.filter.weight(t - k as f64)));
        each.collect()
    }

    /// The elements in the window of result `i`, which is wider the more the image shrinks, and
    /// their weights.
    fn widened(&self, from: i64, scale: f64, i: i64) -> Vec<(i64, f64)> {
        let reach = self.filter.reach() * scale.max(1.0);
        let centre = scale * (i as f64 + 0.5);
        let first = ((centre - reach + 0.5) as i64).max(0);
        let end = ((centre + reach + 0.5) as i64).min(from);
        let weight = |j: i64| self.filter.weight((j as f64 - centre + 0.5) / scale.max(1.0));
        let all: Vec<(i64, f64)> = (first..end).map(|j| (j, weight(j))).collect();
        let total: f64 = all.iter().map(|(_, w)| w).sum();
        all.into_iter().map(|(j, w)| (j, w / total)).collect()
    }

    /// The [`matrix`] of [`Smooth::parts`], computed at run time.
    fn weights(&self, cx: &Cx, from: &Expr, to: &Expr, factor: Option<f64>) -> Value {
        let float = |v| cx.cast(v, DType::F64);
        let number = |e: &Expr| float(cx.size(e));
        let scale = match (self.align_corners, factor) {
            (true, _) => {
                let steps = number(&(to - 1));
                let ratio = cx.div(number(&(from - 1)), cx.maximum(steps, 1.0));
                cx.select(cx.greater(steps, 0.0), ratio, 0.0)
            }
            (false, Some(f)) if f > 0.0 => cx.scalar(1.0 / f, DType::F64),
            (false, _) => cx.div(number(from), number(to)),
        };
        let (i, j) = (float(cx.iota(to)), cx.unsqueeze(float(cx.iota(from)), &[1]));
        let centre = cx.mul(cx.add(i, 0.5), scale);
        if self.antialias {
            let stretch = cx.maximum(scale, 1.0);
            let reach = cx.mul(stretch, self.filter.reach());
            let first = cx.floor(cx.add(cx.sub(centre, reach), 0.5));
            let end = cx.floor(cx.add(cx.add(centre, reach), 0.5));
            let inside = cx.and(cx.greater_or_equal(j, first), cx.less(j, end));
            let distance = cx.div(cx.sub(cx.add(j, 0.5), centre), stretch);
            let weights = cx.select(inside, self.filter.weights(cx, distance), 0.0);
            let total = cx.reduce(Reduction::Sum, weights, &[0], true);
            let total = match factor {
                // A window can be outside the image.
                Some(_) => cx.select(cx.equal(total, 0.0), 1.0, total),
                None => total,
            };
            return cx.div(weights, total);
        }
        let place = if self.align_corners { cx.mul(i, scale) } else { cx.sub(centre, 0.5) };
        let last = number(&(from - 1));
        let within = |v| cx.minimum(cx.maximum(v, 0.0), last);
        if self.filter == Filter::Linear {
            return self.filter.weights(cx, cx.sub(within(place), j));
        }
        let first = cx.floor(place);
        let t = cx.sub(place, first);
        let reach = self.filter.reach() as i64;
        let each = (1 - reach..=reach).map(|k| {
            let here = cx.equal(within(cx.add(first, k as f64)), j);
            cx.select(here, self.filter.weights(cx, cx.sub(t, k as f64)), 0.0)
        });
        each.reduce(|sum, part| cx.add(sum, part)).unwrap_or(j)
    }
}

/// The `(from, to)` matrix: how much of each element is in each result.
fn matrix(cx: &Cx, from: Option<i64>, parts: &[Vec<(i64, f64)>]) -> Value {
    let (rows, columns) = (from.unwrap_or(0).max(0), parts.len());
    let mut matrix = vec![0.0; (rows as usize).saturating_mul(columns)];
    for (i, parts) in parts.iter().enumerate() {
        for &(j, weight) in parts {
            if let Some(part) = matrix.get_mut(j as usize * columns + i) {
                *part += weight;
            }
        }
    }
    constant(cx, &[rows, columns as i64], &matrix)
}

/// Each result along `axis` as the sum of its elements by their weights. A product with a
/// [`matrix`] would spread NaN and infinity.
fn sums_along(cx: &Cx, x: Value, axis: usize, mut parts: Vec<Vec<(i64, f64)>>) -> Value {
    let most = parts.iter().map(Vec::len).max().unwrap_or(0);
    for parts in &mut parts {
        // Results of fewer elements have halves of the first one, those of none have nothing of
        // any.
        while parts.len() < most {
            let (place, weight) = parts.first().map_or((0, 0.0), |&(j, w)| (j, w / 2.0));
            if let Some(first) = parts.first_mut() {
                first.1 = weight;
            }
            parts.push((place, weight));
        }
    }
    let sizes = [parts.len() as i64, most as i64];
    let (places, weights): (Vec<i64>, Vec<f64>) = parts.into_iter().flatten().unzip();
    let places = constant(cx, &sizes, &places);
    let weights = cx.cast(constant(cx, &sizes, &weights), cx.dtype(x));
    let elements = cx.gather(x, places, axis);
    let behind: Vec<usize> = (2..2 + cx.rank(x).saturating_sub(axis + 1)).collect();
    let products = cx.mul(elements, cx.unsqueeze(weights, &behind));
    cx.reduce(Reduction::Sum, products, &[axis + 1], false)
}

/// Bytes, as float64, along `axis` times weights that are rounded to multiples of `2^-p`. `p` is at
/// most 22, and so small that the largest weight is below 2^15 of these multiples. The results are
/// rounded (halves up) and clamped to 0 to 255.
fn rounded_product(cx: &Cx, x: Value, axis: usize, weights: Value) -> Value {
    let most = cx.reduce(Reduction::Max, weights, &[], false);
    // The first p for which 2^(p + 1) times the largest weight, rounded, is 2^15 or more.
    let ratio = cx.div(32767.5, most);
    let doublings = cx.sub(cx.ceil(cx.div(cx.log(ratio), std::f64::consts::LN_2)), 1.0);
    let unit = cx.pow(2.0, cx.clamp(doublings, Some(0.0.into()), Some(22.0.into())));
    let scaled = cx.mul(weights, unit);
    // Halves are rounded away from zero.
    let whole = cx.mul(cx.floor(cx.add(cx.abs(scaled), 0.5)), cx.sign(scaled));
    let sums = product_along(cx, x, axis, whole);
    let rounded = cx.floor(cx.add(cx.div(sums, unit), 0.5));
    cx.clamp(rounded, Some(0.0.into()), Some(255.0.into()))
}
