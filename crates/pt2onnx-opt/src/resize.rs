//! The weights of `Resize`: along each axis, each output element is a weighted sum of a few input
//! elements.

use pt2onnx_ir::attrs;

/// For each output element, positions of input elements and their weights.
pub(crate) type Taps = Vec<Vec<(i64, f32)>>;

/// An axis that changes.
pub(crate) struct Axis {
    pub index: usize,
    pub from: i64,
    pub to: i64,
    pub scale: f32,
}

/// The taps along an axis.
///
/// # Errors
/// The mode is not known here, or runtimes differ.
pub(crate) fn taps(options: &attrs::Resize<'_>, axis: &Axis) -> Result<Taps, String> {
    let (mode, coordinates) = (options.mode, options.coordinate_transformation_mode);
    let (from, to, scale) = (axis.from, axis.to, axis.scale);
    let place = |i: i64| {
        let i = i as f32;
        Some(match coordinates {
            "half_pixel" => (i + 0.5) / scale - 0.5,
            "pytorch_half_pixel" if to == 1 => 0.0,
            "pytorch_half_pixel" => (i + 0.5) / scale - 0.5,
            "align_corners" if to == 1 => 0.0,
            "align_corners" => i * (from - 1) as f32 / (to - 1) as f32,
            "asymmetric" => i / scale,
            _ => return None,
        })
    };
    let newer = || format!("a Resize of mode `{mode}` with `{coordinates}` needs a newer opset");
    // The standard's reference takes the product for the length that these use, runtimes the size.
    let whole = (from as f32 * scale - to as f32).abs() < 1e-3;
    let by_length = match coordinates {
        "align_corners" => true,
        "pytorch_half_pixel" => to == 1,
        _ => false,
    };
    if by_length && !whole {
        return Err(format!("runtimes differ for `{coordinates}` of a size that is cut off"));
    }
    let (smooth, a, inside) = (options.antialias, options.cubic_coeff_a, options.exclude_outside);
    let each = (0..to).map(|i| {
        let place = place(i).ok_or_else(newer)?;
        Ok(match mode {
            "nearest" => vec![(nearest(options.nearest_mode, place).clamp(0, from - 1), 1.0)],
            "linear" if smooth => filtered(place, axis, inside, 1.0, |d| (1.0 - d.abs()).max(0.0)),
            "linear" => linear(place, from),
            "cubic" if smooth => filtered(place, axis, inside, 2.0, |d| cubic_weight(a, d)),
            "cubic" => cubic(options, place, from),
            _ => return Err(newer()),
        })
    });
    each.collect()
}

fn nearest(mode: &str, place: f32) -> i64 {
    let chosen = match mode {
        "floor" => place.floor(),
        "ceil" => place.ceil(),
        "round_prefer_ceil" => (place + 0.5).floor(),
        _ => (place - 0.5).ceil(),
    };
    chosen as i64
}

fn linear(place: f32, size: i64) -> Vec<(i64, f32)> {
    let place = place.clamp(0.0, (size - 1) as f32);
    let low = place.floor();
    let high = (low as i64 + 1).min(size - 1);
    let part = place - low;
    vec![(low as i64, 1.0 - part), (high, part)]
}

fn cubic_weight(a: f32, distance: f32) -> f32 {
    let d = distance.abs();
    if d <= 1.0 {
        ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0
    } else if d < 2.0 {
        ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a
    } else {
        0.0
    }
}

fn cubic(options: &attrs::Resize<'_>, place: f32, size: i64) -> Vec<(i64, f32)> {
    let low = place.floor();
    let inside = |i: &i64| (0..size).contains(i);
    let near = (-1..=2).map(|k| low as i64 + k);
    let weigh = |i: i64| (i, cubic_weight(options.cubic_coeff_a, place - i as f32));
    if options.exclude_outside {
        return normalised(near.filter(inside).map(weigh).collect());
    }
    let held = |(i, w): (i64, f32)| (i.clamp(0, size - 1), w);
    near.map(weigh).map(held).collect()
}

/// All elements that the filter covers; `inside` the image, or with its first and last element in
/// place of those outside. If the image becomes smaller, the filter is stretched.
fn filtered(
    place: f32,
    axis: &Axis,
    inside: bool,
    support: f32,
    weight: impl Fn(f32) -> f32,
) -> Vec<(i64, f32)> {
    let stretch = axis.scale.min(1.0);
    let (centre, reach) = (place + 0.5, support / stretch);
    let end = |at: f32| (at + 0.5).floor() as i64;
    let all = end(centre - reach)..end(centre + reach);
    let weigh = |i: i64| (i, weight((i as f32 - centre + 0.5) * stretch));
    let covered = all.filter(|i| !inside || (0..axis.from).contains(i));
    let held = |(i, w): (i64, f32)| (i.clamp(0, axis.from - 1), w);
    normalised(covered.map(weigh).collect()).into_iter().map(held).collect()
}

fn normalised(taps: Vec<(i64, f32)>) -> Vec<(i64, f32)> {
    let sum: f32 = taps.iter().map(|(_, w)| w).sum();
    taps.into_iter().map(|(i, w)| (i, w / sum)).collect()
}
