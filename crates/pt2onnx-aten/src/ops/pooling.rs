//! Pooling over spatial windows.

use super::{
    convolution::{batched, per_dim},
    sliding::{adaptive, adaptive_length, product_along},
};
use crate::{AtenOp, Cx, LowerError, Lowered, cx::Outputs, registry::aten};
use pt2onnx_ir::{Reduction, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Tensor};

pub(super) static OPS: &[AtenOp] = &[
    aten!(
        "aten::_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor",
        adaptive_avg_pool
    ),
    aten!(
        "aten::_adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor",
        adaptive_avg_pool
    ),
    aten!(
        "aten::adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor",
        adaptive_avg_pool
    ),
    aten!(
        "aten::adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor",
        adaptive_avg_pool
    ),
    aten!(
        "aten::adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor",
        adaptive_avg_pool
    ),
    aten!(
        "aten::adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)",
        adaptive_max_pool
    ),
    aten!(
        "aten::adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)",
        adaptive_max_pool
    ),
    aten!(
        "aten::adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor, Tensor)",
        adaptive_max_pool
    ),
    aten!(
        "aten::avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], bool ceil_mode=False, bool count_include_pad=True) -> Tensor",
        |cx: &Cx,
         x: Value,
         kernel: Vec<i64>,
         stride: Vec<i64>,
         padding: Vec<i64>,
         ceil_mode: bool,
         count_include_pad: bool| {
            avg_pool::<1>(cx, x, kernel, stride, padding, ceil_mode, count_include_pad, None)
        }
    ),
    aten!(
        "aten::avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
        avg_pool::<2>
    ),
    aten!(
        "aten::avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
        avg_pool::<3>
    ),
    aten!(
        "aten::fractional_max_pool2d(Tensor self, int[2] kernel_size, int[2] output_size, Tensor random_samples) -> (Tensor, Tensor)",
        fractional_max_pool
    ),
    aten!(
        "aten::fractional_max_pool3d(Tensor self, int[3] kernel_size, int[3] output_size, Tensor random_samples) -> (Tensor, Tensor)",
        fractional_max_pool
    ),
    aten!(
        "aten::max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], int[1] dilation=[1], bool ceil_mode=False) -> Tensor",
        max_pool::<1>
    ),
    aten!(
        "aten::max_pool1d_with_indices(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], int[1] dilation=[1], bool ceil_mode=False) -> (Tensor, Tensor)",
        max_pool_with_indices::<1>
    ),
    aten!(
        "aten::max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> Tensor",
        max_pool::<2>
    ),
    aten!(
        "aten::max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
        max_pool_with_indices::<2>
    ),
    aten!(
        "aten::max_pool2d_with_indices_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, int[2] dilation, bool ceil_mode, Tensor indices) -> Tensor",
        max_pool_backward::<2>
    ),
    aten!(
        "aten::max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool ceil_mode=False) -> Tensor",
        max_pool::<3>
    ),
    aten!(
        "aten::max_pool3d_with_indices(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
        max_pool_with_indices::<3>
    ),
    aten!(
        "aten::max_pool3d_with_indices_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] stride, int[3] padding, int[3] dilation, bool ceil_mode, Tensor indices) -> Tensor",
        max_pool_backward::<3>
    ),
    aten!(
        "aten::max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor",
        |cx: &Cx, x: Value, indices: Value, size: Vec<Expr>| max_unpool(cx, x, indices, size)
    ),
    aten!(
        "aten::max_unpool3d(Tensor self, Tensor indices, SymInt[3] output_size, int[3] stride, int[3] padding) -> Tensor",
        |cx: &Cx,
         x: Value,
         indices: Value,
         size: Vec<Expr>,
         _stride: Vec<i64>,
         _padding: Vec<i64>| max_unpool(cx, x, indices, size)
    ),
];

/// The sizes and strides of windows; no stride means the kernel's size.
fn windows<const N: usize>(kernel: &[i64], stride: &[i64]) -> (Vec<i64>, Vec<i64>) {
    let kernel = per_dim(kernel, N);
    let stride = match stride {
        [] => kernel.clone(),
        given => per_dim(given, N),
    };
    (kernel, stride)
}

fn max_pool_options<const N: usize>(
    stride: Vec<i64>,
    padding: &[i64],
    dilation: &[i64],
    ceil_mode: bool,
) -> attrs::MaxPool<'static> {
    let padding = per_dim(padding, N);
    attrs::MaxPool {
        strides: Some(stride),
        pads: Some([&padding[..], &padding[..]].concat()),
        dilations: Some(per_dim(dilation, N)),
        ceil_mode,
        ..Default::default()
    }
}

/// `MaxPool`.
fn max_pool<const N: usize>(
    cx: &Cx,
    x: Value,
    kernel: Vec<i64>,
    stride: Vec<i64>,
    padding: Vec<i64>,
    dilation: Vec<i64>,
    ceil_mode: bool,
) -> Lowered {
    let (kernel, stride) = windows::<N>(&kernel, &stride);
    let options = max_pool_options::<N>(stride, &padding, &dilation, ceil_mode);
    Ok(batched(cx, x, N, |x| cx.max_pool(x, &kernel, options.clone())))
}

/// `MaxPool` with its second output. ONNX counts elements through the whole tensor, PyTorch through each channel.
fn max_pool_with_indices<const N: usize>(
    cx: &Cx,
    x: Value,
    kernel: Vec<i64>,
    stride: Vec<i64>,
    padding: Vec<i64>,
    dilation: Vec<i64>,
    ceil_mode: bool,
) -> Lowered<Outputs> {
    if !cx.is_used(1) {
        return Ok(max_pool::<N>(cx, x, kernel, stride, padding, dilation, ceil_mode)?.into());
    }
    let (kernel, stride) = windows::<N>(&kernel, &stride);
    let options = max_pool_options::<N>(stride, &padding, &dilation, ceil_mode);
    let unbatched = cx.rank(x) == N + 1;
    let x = if unbatched { cx.unsqueeze(x, &[0]) } else { x };
    let found = cx.max_pool_n(2, x, &kernel, options);
    let area = Expr::product(cx.shape(x)[2..].to_vec());
    let area = match area.as_int() {
        Some(_) => cx.size(&area),
        None => {
            let sizes = cx.shape_op(x, attrs::Shape { start: 2, end: None });
            cx.reduce(Reduction::Prod, sizes, &[], false)
        }
    };
    let indices = cx.mod_(found[1], area, attrs::Mod::default());
    let unbatch = |v| if unbatched { cx.squeeze(v, &[0]) } else { v };
    Ok([unbatch(found[0]), unbatch(indices)].into())
}

/// `x` with its last `n` dimensions as one.
fn flat(cx: &Cx, x: Value, n: usize) -> Value {
    let mut shape = cx.shape(x);
    let spatial = shape.split_off(shape.len().saturating_sub(n));
    shape.push(Expr::product(spatial));
    cx.reshape(x, &shape)
}

/// Values set down at their indices among zeros.
fn max_unpool(cx: &Cx, x: Value, indices: Value, size: Vec<Expr>) -> Lowered {
    let mut shape = cx.shape(x);
    let n = size.len();
    shape.truncate(shape.len().saturating_sub(n));
    let options = attrs::ScatterElements { axis: shape.len() as i64, ..Default::default() };
    let area = Expr::product(size.clone());
    let zeros = cx.full(&[&shape[..], &[area]].concat(), 0, cx.dtype(x));
    let filled = cx.scatter_elements(zeros, flat(cx, indices, n), flat(cx, x, n), options);
    shape.extend(size);
    Ok(cx.reshape(filled, &shape))
}

/// Gradients added up where the largest elements were.
#[expect(clippy::too_many_arguments, reason = "ATen's signature")]
fn max_pool_backward<const N: usize>(
    cx: &Cx,
    grad: Value,
    x: Value,
    _kernel: Vec<i64>,
    _stride: Vec<i64>,
    _padding: Vec<i64>,
    _dilation: Vec<i64>,
    _ceil_mode: bool,
    indices: Value,
) -> Lowered {
    // Halves are added up in float32.
    let wide = match cx.dtype(x) {
        DType::F16 | DType::BF16 => DType::F32,
        other => other,
    };
    let zeros = cx.full(&cx.shape(flat(cx, x, N)), 0, wide);
    let options = attrs::ScatterElements { axis: -1, reduction: "add" };
    let grad = cx.cast(flat(cx, grad, N), wide);
    let sums = cx.scatter_elements(zeros, flat(cx, indices, N), grad, options);
    Ok(cx.cast(cx.reshape(sums, &cx.shape(x)), cx.dtype(x)))
}

/// `AveragePool`. Where the divisor is given, sums by a convolution.
#[expect(clippy::too_many_arguments, reason = "ATen's signature")]
fn avg_pool<const N: usize>(
    cx: &Cx,
    x: Value,
    kernel: Vec<i64>,
    stride: Vec<i64>,
    padding: Vec<i64>,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor: Option<i64>,
) -> Lowered {
    let (kernel, stride) = windows::<N>(&kernel, &stride);
    let padding = per_dim(&padding, N);
    let mut sizes = cx.out_shape()?;
    let sizes = sizes.split_off(sizes.len().saturating_sub(N));
    if let Some(divisor) = divisor {
        return window_sums(cx, x, &kernel, &stride, &padding, ceil_mode, &sizes, divisor);
    }
    let padded = padding.iter().any(|&p| p != 0);
    let options = attrs::AveragePool {
        strides: Some(stride),
        pads: Some([&padding[..], &padding[..]].concat()),
        ceil_mode,
        // Without padding it says how a window that is not whole counts: PyTorch counts what is there.
        count_include_pad: padded && count_include_pad,
        ..Default::default()
    };
    Ok(batched(cx, x, N, |x| cx.average_pool(x, &kernel, options.clone())))
}

/// The first elements along the last dimensions: without windows that start in the padding behind.
fn cropped(cx: &Cx, x: Value, sizes: &[Expr]) -> Value {
    let first = cx.rank(x).saturating_sub(sizes.len());
    sizes.iter().enumerate().fold(x, |x, (i, size)| cx.slice(x, first + i, &Expr::int(0), size, 1))
}

/// Sums of windows, divided by `divisor`: a convolution with ones, of each channel on its own.
#[expect(clippy::too_many_arguments, reason = "all that windows have")]
fn window_sums(
    cx: &Cx,
    x: Value,
    kernel: &[i64],
    stride: &[i64],
    padding: &[i64],
    ceil_mode: bool,
    sizes: &[Expr],
    divisor: i64,
) -> Lowered {
    let n = kernel.len();
    let shape = cx.shape(x);
    let (outer, spatial) = shape.split_at(shape.len().saturating_sub(n));
    let planes: Vec<Expr> = [Expr::product(outer.to_vec()), Expr::int(1)]
        .into_iter()
        .chain(spatial.iter().cloned())
        .collect();
    // A little more at the end lets the last window in that is not whole.
    let end = padding.iter().zip(stride);
    let end = end.map(|(&p, &s)| if ceil_mode { p + s - 1 } else { p });
    let options = attrs::Conv {
        strides: Some(stride.to_vec()),
        pads: Some(padding.iter().copied().chain(end).collect()),
        ..Default::default()
    };
    let window: Vec<Expr> = [1, 1].iter().chain(kernel).map(|&k| Expr::int(k)).collect();
    let ones = cx.full(&window, 1, cx.dtype(x));
    let sums = cropped(cx, cx.conv(cx.reshape(x, &planes), ones, None, options), sizes);
    Ok(cx.reshape(cx.div(sums, divisor), &[outer, sizes].concat()))
}

/// The last dimensions with their windows, if those are all of one size.
fn even_windows(cx: &Cx, x: Value, output_size: &[Expr]) -> Option<Vec<i64>> {
    let shape = cx.shape(x);
    let spatial = shape.get(shape.len().checked_sub(output_size.len())?..)?;
    let pairs = spatial.iter().zip(output_size);
    let even = pairs.map(|(from, to)| match (from.as_int(), to.as_int()?) {
        (Some(from), to @ 1..) if from > 0 && from % to == 0 => Some(from / to),
        _ => None,
    });
    even.collect()
}

/// Means of windows that divide each dimension as evenly as can be. Over everything it is one mean, windows of one size are
/// an `AveragePool`; else, along each dimension, a product with the matrix of the windows.
fn adaptive_avg_pool(cx: &Cx, x: Value, output_size: Vec<Expr>) -> Lowered {
    let n = output_size.len();
    let rank = cx.rank(x);
    let first = rank.saturating_sub(n);
    if output_size.iter().all(|s| s.as_int() == Some(1)) {
        let axes: Vec<usize> = (first..rank).collect();
        return Ok(cx.reduce(Reduction::Mean, x, &axes, true));
    }
    if let Some(kernel) = even_windows(cx, x, &output_size) {
        if kernel.iter().all(|&k| k == 1) {
            return Ok(x);
        }
        let options = attrs::AveragePool { strides: Some(kernel.clone()), ..Default::default() };
        return Ok(batched(cx, x, n, |x| cx.average_pool(x, &kernel, options.clone())));
    }
    if cx.numel(x).as_int() == Some(0) {
        return Ok(cx.full(&cx.out_shape()?, 0, cx.dtype(x)));
    }
    // PyTorch adds up halves in float32.
    let wide = match cx.dtype(x) {
        DType::F64 => DType::F64,
        _ => DType::F32,
    };
    let mut result = cx.cast(x, wide);
    for (i, to) in output_size.iter().enumerate() {
        let axis = first + i;
        let from = cx.dim(x, axis as i64);
        if from == *to {
            continue;
        }
        let means = cx.cast(window_means(cx, &from, to)?, wide);
        result = product_along(cx, result, axis, means);
    }
    Ok(cx.cast(result, cx.dtype(x)))
}

/// Column `j` of the matrix holds `1 / n` for the `n` elements of window `j`.
fn window_means(cx: &Cx, from: &Expr, to: &Expr) -> Lowered {
    if let (Some(from), Some(to)) = (from.as_int(), to.as_int()) {
        let mut matrix = vec![0f64; from.saturating_mul(to).max(0) as usize];
        for j in 0..to {
            let (start, end) = (j * from / to, ((j + 1) * from + to - 1) / to);
            for i in start..end {
                matrix[(i * to + j) as usize] = 1.0 / (end - start) as f64;
            }
        }
        let shape = vec![from.max(0) as usize, to.max(0) as usize];
        let tensor = Tensor::from_slice(shape, &matrix);
        return Ok(cx.constant(tensor.map_err(|e| LowerError::unsupported(e.to_string()))?));
    }
    let (start, end) = adaptive(cx, from, to);
    let i = cx.unsqueeze(cx.iota(from), &[1]);
    let inside = cx.and(cx.greater_or_equal(i, start), cx.less(i, end));
    let share = |v| cx.cast(v, DType::F64);
    Ok(cx.div(share(inside), share(cx.sub(end, start))))
}

/// Largest elements of windows that divide each dimension as evenly as can be, and where they stand in the channel.
fn adaptive_max_pool(cx: &Cx, x: Value, output_size: Vec<Expr>) -> Lowered<Outputs> {
    let n = output_size.len();
    if let Some(kernel) = even_windows(cx, x, &output_size) {
        let (stride, zero, one) = (kernel.clone(), vec![0], vec![1]);
        return match n {
            1 => max_pool_with_indices::<1>(cx, x, kernel, stride, zero, one, false),
            2 => max_pool_with_indices::<2>(cx, x, kernel, stride, zero, one, false),
            _ => max_pool_with_indices::<3>(cx, x, kernel, stride, zero, one, false),
        };
    }
    let shape = cx.shape(x);
    if output_size.iter().all(|s| s.as_int() == Some(1)) {
        let axes: Vec<usize> = (shape.len().saturating_sub(n)..shape.len()).collect();
        let values = cx.reduce(Reduction::Max, x, &axes, true);
        let found = cx.is_used(1).then(|| {
            let options = attrs::ArgMax { axis: -1, keepdims: false, ..Default::default() };
            cx.unsqueeze(cx.arg_max(flat(cx, x, n), options), &axes)
        });
        return Ok([Some(values), found].into());
    }
    let spatial = shape[shape.len().saturating_sub(n)..].to_vec();
    let positions: Vec<Value> = spatial
        .iter()
        .zip(&output_size)
        .map(|(from, to)| {
            let (start, end) = adaptive(cx, from, to);
            let offsets = cx.iota(&adaptive_length(from, to));
            // Behind a window's end its last element stands in.
            let all = cx.add(cx.unsqueeze(start, &[1]), offsets);
            cx.minimum(all, cx.unsqueeze(cx.sub(end, 1), &[1]))
        })
        .collect();
    Ok(largest(cx, x, &spatial, &positions, 0))
}

/// The largest elements at the positions given for each of the last dimensions, and where they stand in the channel.
/// Positions are `(.., windows, elements)`, with `lead` dimensions before that are those of `x`.
fn largest(cx: &Cx, x: Value, spatial: &[Expr], positions: &[Value], lead: usize) -> Outputs {
    let n = spatial.len();
    // Place in the channel: of position p along dimension i, p times the size of what is behind; (.., windows, elements)
    // of all dimensions, windows first.
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
    // Elements of all dimensions as one, the windows before it.
    let places = flat(cx, places, n);
    let shape = cx.shape(x);
    let outer = &shape[..shape.len().saturating_sub(n)];
    let sizes = cx.shape(places);
    let windows = &sizes[lead..];
    let channels = flat(cx, x, n);
    let elements = if lead == 0 {
        cx.gather(channels, places, outer.len())
    } else {
        let all = cx.reshape(places, &[outer, &[Expr::product(windows.to_vec())]].concat());
        let axis = outer.len() as i64;
        let found = cx.gather_elements(channels, all, attrs::GatherElements { axis });
        cx.reshape(found, &[outer, windows].concat())
    };
    let last = cx.rank(elements) - 1;
    let values = cx.reduce(Reduction::Max, elements, &[last], false);
    if !cx.is_used(1) {
        return values.into();
    }
    let first = cx.arg_max(
        elements,
        attrs::ArgMax { axis: last as i64, keepdims: true, ..Default::default() },
    );
    let wide = cx.expand(places, &[outer, windows].concat());
    let axis = last as i64;
    let found = cx.gather_elements(wide, first, attrs::GatherElements { axis });
    [values, cx.squeeze(found, &[last])].into()
}

/// Largest elements of windows whose places the samples say: window `i` starts at `floor((i + u) * a) - floor(u * a)`, where
/// `a = (size - kernel) / (windows - 1)`, the last one at the end.
fn fractional_max_pool(
    cx: &Cx,
    x: Value,
    kernel: Vec<i64>,
    output_size: Vec<Expr>,
    samples: Value,
) -> Lowered<Outputs> {
    let n = output_size.len();
    let shape = cx.shape(x);
    let lead = shape.len().saturating_sub(n);
    let spatial = shape[lead..].to_vec();
    let kernel = per_dim(&kernel, n);
    // (batch, channels, dimensions), the batch left out where `x` has none.
    let samples = match lead {
        1 => cx.squeeze(samples, &[0]),
        _ => samples,
    };
    let wide = cx.dtype(samples);
    let mut positions = Vec::new();
    for (i, to) in output_size.iter().enumerate() {
        // The samples of two dimensions come the other way round.
        let which = if n == 2 { 1 - i } else { i };
        let u = cx.slice(samples, lead, &Expr::int(which as i64), &Expr::int(which as i64 + 1), 1);
        let room = cx.size(&(&spatial[i] - kernel[i]));
        let last = to - 1;
        let start = if last.as_int() == Some(0) {
            cx.expand(room, &[&shape[..lead], &[Expr::int(1)]].concat())
        } else {
            let a = cx.div(cx.cast(room, wide), cx.cast(cx.size(&last), wide));
            let j = cx.iota(to);
            let whole = |v| cx.cast(cx.floor(v), DType::I64);
            let start = cx.sub(whole(cx.mul(cx.add(cx.cast(j, wide), u), a)), whole(cx.mul(u, a)));
            cx.select(cx.equal(j, cx.size(&last)), room, start)
        };
        let offsets = cx.iota(&Expr::int(kernel[i]));
        positions.push(cx.add(cx.unsqueeze(start, &[lead + 1]), offsets));
    }
    Ok(largest(cx, x, &spatial, &positions, lead))
}
