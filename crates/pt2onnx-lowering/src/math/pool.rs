//! The largest elements of windows, and their indices in the channel.

use crate::math::reduce::{Extreme, any_nan, extreme, lowest};
use crate::math::sort::arg_extreme;
use crate::math::window::batched;
use crate::{Cx, cx::Outputs};
use pt2onnx_ir::{Reduction, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

/// Windows over the spatial dimensions, one number for each dimension.
pub struct Windows {
    /// The sizes.
    pub kernel: Vec<i64>,
    /// The steps between windows.
    pub stride: Vec<i64>,
    /// At the begin and at the end.
    pub padding: Vec<i64>,
    /// The steps between a window's elements.
    pub dilation: Vec<i64>,
    /// Whether a last window may reach past the end.
    pub ceil_mode: bool,
}

impl Windows {
    /// The padding of ONNX's operators for windows over dimensions of the sizes `from` that give
    /// the sizes `to`. PyTorch leaves out a last window that starts in the padding, which some
    /// opsets of ONNX count: where its size is known, such a dimension gets less padding at the
    /// end. If elements lie behind its last window, the other dimensions get more instead of
    /// `ceil_mode`. If the padding is `counted`, or the size of another dimension is not known,
    /// these elements are left out.
    pub fn padding(&self, from: &[Expr], to: &[Expr], counted: bool) -> Padding {
        let mut end = self.padding.clone();
        let mut unread = vec![0; end.len()];
        let made = |end: &[i64], ceil_mode, unread| {
            let pads = [&self.padding[..], end].concat();
            Padding { pads, ceil_mode, unread }
        };
        if !self.ceil_mode {
            return made(&end, false, unread);
        }
        let mut needed = end.clone();
        let (mut ceil_mode, mut known) = (false, true);
        for (i, (from, to)) in from.iter().zip(to).enumerate() {
            let (Some(from), Some(to)) = (from.as_int(), to.as_int()) else {
                (ceil_mode, known) = (true, false);
                continue;
            };
            let reach = (to - 1) * self.stride[i] + self.dilation[i] * (self.kernel[i] - 1) + 1;
            let rest = reach - from - self.padding[i];
            if to * self.stride[i] >= from + self.padding[i] {
                // Fewer windows than `ceil_mode` gives.
                unread[i] = (-rest).max(0);
                end[i] = end[i].min(rest.max(0));
            }
            needed[i] = end[i].max(rest);
            ceil_mode |= rest > end[i];
        }
        if known && !(ceil_mode && counted) {
            if ceil_mode && unread.iter().any(|&n| n > 0) {
                (end, ceil_mode) = (needed, false);
            }
            unread.fill(0);
        }
        made(&end, ceil_mode, unread)
    }
}

/// How windows are padded.
pub struct Padding {
    /// At all begins, then at all ends.
    pub pads: Vec<i64>,
    /// ONNX's `ceil_mode`.
    pub ceil_mode: bool,
    /// How many elements at the end of each dimension must be left out, because ONNX would count a
    /// window there.
    pub unread: Vec<i64>,
}

/// The last `n` sizes.
pub fn last_of(shape: &[Expr], n: usize) -> &[Expr] {
    &shape[shape.len().saturating_sub(n)..]
}

/// `MaxPool`, with its second output if used: ONNX counts elements through the whole tensor,
/// PyTorch through each channel.
pub fn largest_of_windows(cx: &Cx, x: Value, windows: &Windows) -> Outputs {
    let n = windows.kernel.len();
    let to = cx.recorded(0).map_or_else(Vec::new, |meta| meta.sizes.clone());
    let Padding { mut pads, ceil_mode, unread } =
        windows.padding(last_of(&cx.shape(x), n), last_of(&to, n), false);
    let whole = cx.shape(x);
    let x = without_unread(cx, x, &unread);
    let wide = pads.iter().zip(windows.kernel.iter().cycle()).any(|(pad, kernel)| pad >= kernel);
    // ONNX Runtime refuses padding as wide as the kernel, which windows with gaps may need. Indices
    // count the padding added here: what is before the elements stays that of the operator.
    let x = if wide {
        let mut kept = pads.clone();
        kept.iter_mut().skip(if cx.is_used(1) { n } else { 0 }).for_each(|pad| *pad = 0);
        let added: Vec<i64> = pads.iter().zip(&kept).map(|(pad, kept)| pad - kept).collect();
        pads = kept;
        padded(cx, x, n, &added)
    } else {
        x
    };
    let options = attrs::MaxPool {
        strides: Some(windows.stride.clone()),
        pads: Some(pads),
        dilations: Some(windows.dilation.clone()),
        ceil_mode,
        ..Default::default()
    };
    if !cx.is_used(1) {
        return batched(cx, x, n, |x| cx.max_pool(x, &windows.kernel, options.clone())).into();
    }
    let unbatched = cx.rank(x) == n + 1;
    let x = if unbatched { cx.unsqueeze(x, &[0]) } else { x };
    let found = cx.max_pool_n(2, x, &windows.kernel, options);
    let unbatch = |v| if unbatched { cx.squeeze(v, &[0]) } else { v };
    if wide || unread.iter().skip(1).any(|&n| n > 0) {
        let indices = renumbered(cx, found[1], &cx.shape(x)[2..], last_of(&whole, n));
        return [unbatch(found[0]), unbatch(indices)].into();
    }
    let area = Expr::product(cx.shape(x)[2..].to_vec());
    let area = match area.as_int() {
        Some(_) => cx.size(&area),
        None => {
            let sizes = cx.shape_op(x, attrs::Shape { start: 2, end: None });
            cx.reduce(Reduction::Prod, sizes, &[], false)
        }
    };
    let indices = cx.mod_(found[1], area, attrs::Mod::default());
    [unbatch(found[0]), unbatch(indices)].into()
}

/// Indices in dimensions of the sizes `from`, and in more before these, as indices in dimensions of
/// the sizes `to`.
fn renumbered(cx: &Cx, indices: Value, from: &[Expr], to: &[Expr]) -> Value {
    let (mut rest, mut sum, mut stride) = (indices, None, Expr::int(1));
    for (from, to) in from.iter().zip(to).rev() {
        let size = cx.size(from);
        let part = cx.mul(cx.mod_(rest, size, attrs::Mod::default()), cx.size(&stride));
        sum = Some(sum.map_or(part, |sum| cx.add(sum, part)));
        rest = cx.div(rest, size);
        stride = &stride * to;
    }
    sum.unwrap_or(indices)
}

/// `x` without the last elements of dimensions that must be left out: [`Padding::unread`].
pub fn without_unread(cx: &Cx, x: Value, unread: &[i64]) -> Value {
    let shape = cx.shape(x);
    let first = shape.len().saturating_sub(unread.len());
    let all = shape.iter().skip(first).zip(unread).enumerate();
    all.filter(|(_, (_, n))| **n > 0)
        .fold(x, |x, (i, (size, n))| cx.slice(x, first + i, &Expr::int(0), &(size - *n), 1))
}

/// `x` with the smallest number around its last `n` dimensions.
fn padded(cx: &Cx, x: Value, n: usize, pads: &[i64]) -> Value {
    let axes: Vec<i64> = (cx.rank(x).saturating_sub(n)..cx.rank(x)).map(|a| a as i64).collect();
    let value = cx.scalar(lowest(cx.dtype(x)), cx.dtype(x));
    cx.pad(x, cx.ints(pads), value, cx.ints(&axes), Default::default())
}

/// `x` with its last `n` dimensions as one.
pub fn merge_last(cx: &Cx, x: Value, n: usize) -> Value {
    let mut shape = cx.shape(x);
    let spatial = shape.split_off(shape.len().saturating_sub(n));
    shape.push(Expr::product(spatial));
    cx.reshape(x, &shape)
}

/// The index of the largest element along `axis`. If there are NaN, it is the index of the last
/// one, as in PyTorch's pools.
pub fn arg_of_window(cx: &Cx, x: Value, axis: usize, keepdims: bool) -> Value {
    let first = arg_extreme(cx, Extreme::Max, x, axis, keepdims);
    if !cx.propagates_nan(x) {
        return first;
    }
    let nan = cx.is_nan(x);
    let options = attrs::ArgMax { axis: axis as i64, keepdims, select_last_index: true };
    let last = cx.arg_max(cx.cast(nan, DType::U8), options);
    cx.select(any_nan(cx, x, &[axis], keepdims), last, first)
}

/// The largest elements of windows, and their indices in the channel. `positions` has for each of
/// the last dimensions a tensor `(.., windows, elements)` of indices along it, where `..` are the
/// first `lead` dimensions of `x`.
pub fn largest(cx: &Cx, x: Value, spatial: &[Expr], positions: &[Value], lead: usize) -> Outputs {
    let n = spatial.len();
    // Place in the channel: of position p along dimension i, p times the size of what is behind;
    // (.., windows, elements) of all dimensions, windows first.
    let mut places: Option<Value> = None;
    for (i, &position) in positions.iter().enumerate() {
        let behind = cx.size(&Expr::product(spatial[i + 1..].to_vec()));
        let scaled = if i + 1 < n { cx.mul(position, behind) } else { position };
        let others = (0..n).filter(|&j| j != i).map(|j| lead + j);
        let mut axes: Vec<usize> = others.clone().collect();
        axes.extend(others.map(|a| a + n));
        let spread = cx.unsqueeze(scaled, &axes);
        places = Some(places.map_or(spread, |p| cx.add(p, spread)));
    }
    let places = places.unwrap_or_else(|| cx.ints(&[0]));
    // The elements of all dimensions become one dimension, after the windows.
    let places = merge_last(cx, places, n);
    let shape = cx.shape(x);
    let outer = &shape[..shape.len().saturating_sub(n)];
    let sizes = cx.shape(places);
    let windows = &sizes[lead..];
    let channels = merge_last(cx, x, n);
    let elements = if lead == 0 {
        cx.gather(channels, places, outer.len())
    } else {
        let all = cx.reshape(places, &[outer, &[Expr::product(windows.to_vec())]].concat());
        let axis = outer.len() as i64;
        let found = cx.gather_elements(channels, all, attrs::GatherElements { axis });
        cx.reshape(found, &[outer, windows].concat())
    };
    let last = cx.rank(elements) - 1;
    let values = extreme(cx, Extreme::Max, elements, &[last], false);
    if !cx.is_used(1) {
        return values.into();
    }
    let first = arg_of_window(cx, elements, last, true);
    let wide = cx.expand(places, &[outer, windows].concat());
    let axis = last as i64;
    let found = cx.gather_elements(wide, first, attrs::GatherElements { axis });
    [values, cx.squeeze(found, &[last])].into()
}
