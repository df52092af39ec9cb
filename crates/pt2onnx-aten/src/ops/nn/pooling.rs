//! Pooling: means and largest elements of spatial windows.

use crate::math::pool::{
    Padding, Windows, largest, largest_of_windows, last_of, merge_last, without_unread,
};
use crate::math::precision::widened;
use crate::math::window::{batched, per_dim};
use crate::meta::{self, sized, typed};
use crate::{AtenOp, Cx, Lowered, args::Ignored, arguments, checks, cx::Outputs, op};
use pt2onnx_ir::{Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::avg_pool1d, avg_pool::<1>, meta = meta_pool),
    op!(aten::avg_pool2d, avg_pool::<2>, meta = meta_pool),
    op!(aten::avg_pool3d, avg_pool::<3>, meta = meta_pool),
    op!(aten::fractional_max_pool2d, fractional_max_pool),
    op!(aten::fractional_max_pool3d, fractional_max_pool),
    op!(aten::max_pool1d, max_pool::<1>, meta = meta_pool),
    op!(aten::max_pool1d_with_indices, max_pool::<1>, meta = meta_pool),
    op!(aten::max_pool2d, max_pool::<2>, meta = meta_pool),
    op!(aten::max_pool2d_with_indices, max_pool::<2>, meta = meta_pool),
    op!(aten::max_pool2d_with_indices_backward, max_pool_backward::<2>),
    op!(aten::max_pool3d, max_pool::<3>, meta = meta_pool),
    op!(aten::max_pool3d_with_indices, max_pool::<3>, meta = meta_pool),
    op!(aten::max_pool3d_with_indices_backward, max_pool_backward::<3>),
    op!(aten::max_unpool2d, max_unpool),
    op!(aten::max_unpool3d, max_unpool),
];

arguments! {
    /// Arguments of [`max_pool`] and [`avg_pool`].
    struct PoolArgs {
        input: Value,
        kernel_size: Vec<i64>,
        stride: Vec<i64>,
        padding: Vec<i64>,
        dilation: Option<Vec<i64>>,
        ceil_mode: bool,
        count_include_pad: Option<bool>,
        divisor_override: Option<i64>,
    }

    /// Arguments of [`max_unpool`]. The indices determine the windows.
    struct UnpoolArgs {
        input: Value,
        indices: Value,
        output_size: Vec<Expr>,
        stride: Ignored,
        padding: Ignored,
    }

    /// Arguments of [`max_pool_backward`]. The indices determine the windows.
    struct MaxPoolBackwardArgs {
        grad_output: Value,
        input: Value,
        kernel_size: Ignored,
        stride: Ignored,
        padding: Ignored,
        dilation: Ignored,
        ceil_mode: Ignored,
        indices: Value,
    }
}

/// The windows over `n` dimensions. Without a stride, it is the kernel's size.
fn windows_of(n: usize, args: &PoolArgs) -> Windows {
    let kernel = per_dim(&args.kernel_size, n);
    let stride = match args.stride.as_slice() {
        [] => kernel.clone(),
        given => per_dim(given, n),
    };
    let padding = per_dim(&args.padding, n);
    let dilation = per_dim(args.dilation.as_deref().unwrap_or(&[1]), n);
    Windows { kernel, stride, padding, dilation, ceil_mode: args.ceil_mode }
}

/// The largest elements of windows over `N` dimensions and, if used, their indices in the channel.
fn max_pool<const N: usize>(cx: &Cx, args: PoolArgs) -> Lowered<Outputs> {
    Ok(largest_of_windows(cx, args.input, &windows_of(N, &args)))
}

/// Zeros of the given size with each element of `x` at its index.
fn max_unpool(cx: &Cx, args: UnpoolArgs) -> Lowered {
    let UnpoolArgs { input: x, indices, output_size: size, .. } = args;
    let mut shape = cx.shape(x);
    let n = size.len();
    shape.truncate(shape.len().saturating_sub(n));
    let options = attrs::ScatterElements { axis: shape.len() as i64, ..Default::default() };
    let area = Expr::product(size.clone());
    let zeros = cx.full(&[&shape[..], &[area]].concat(), 0, cx.dtype(x));
    let filled =
        cx.scatter_elements(zeros, merge_last(cx, indices, n), merge_last(cx, x, n), options);
    shape.extend(size);
    Ok(cx.reshape(filled, &shape))
}

/// The gradient of [`max_pool`]: zeros, with the gradient of each window added at the index of its
/// largest element. float16 and bfloat16 are added up in float32.
fn max_pool_backward<const N: usize>(cx: &Cx, args: MaxPoolBackwardArgs) -> Lowered {
    let (x, indices) = (args.input, args.indices);
    let wide = widened(cx.dtype(x));
    let zeros = cx.full(&cx.shape(merge_last(cx, x, N)), 0, wide);
    let options = attrs::ScatterElements { axis: -1, reduction: "add" };
    let grad = cx.cast(merge_last(cx, args.grad_output, N), wide);
    let sums = cx.scatter_elements(zeros, merge_last(cx, indices, N), grad, options);
    Ok(cx.cast(cx.reshape(sums, &cx.shape(x)), cx.dtype(x)))
}

/// The means of windows over `N` dimensions: `AveragePool`. If the divisor is given,
/// [`window_sums`] divided by it.
fn avg_pool<const N: usize>(cx: &Cx, args: PoolArgs) -> Lowered {
    let (x, windows) = (args.input, windows_of(N, &args));
    let shape = cx.out_shape()?;
    let sizes = last_of(&shape, N);
    if let Some(divisor) = args.divisor_override {
        return Ok(window_sums(cx, x, &windows, sizes, divisor));
    }
    let padded = windows.padding.iter().any(|&p| p != 0);
    let counted = padded && args.count_include_pad == Some(true);
    let from = cx.shape(x);
    let Padding { pads, ceil_mode, unread } = windows.padding(last_of(&from, N), sizes, counted);
    let x = without_unread(cx, x, &unread);
    let options = attrs::AveragePool {
        strides: Some(windows.stride.clone()),
        pads: Some(pads),
        ceil_mode,
        // Without padding, this decides the divisor of a window that reaches past the end: PyTorch
        // counts the elements in it.
        count_include_pad: counted,
        ..Default::default()
    };
    Ok(batched(cx, x, N, |x| cx.average_pool(x, &windows.kernel, options.clone())))
}

/// `x` with its last dimensions cropped to `sizes`.
fn cropped(cx: &Cx, x: Value, sizes: &[Expr]) -> Value {
    let first = cx.rank(x).saturating_sub(sizes.len());
    sizes.iter().enumerate().fold(x, |x, (i, size)| cx.slice(x, first + i, &Expr::int(0), size, 1))
}

/// The sums of windows divided by `divisor`: a convolution of each channel with a kernel of ones.
/// `sizes` are those of the result's spatial dimensions.
fn window_sums(cx: &Cx, x: Value, windows: &Windows, sizes: &[Expr], divisor: i64) -> Value {
    let Windows { kernel, stride, padding, ceil_mode, .. } = windows;
    let shape = cx.shape(x);
    let (outer, spatial) = shape.split_at(shape.len().saturating_sub(kernel.len()));
    let planes: Vec<Expr> = [Expr::product(outer.to_vec()), Expr::int(1)]
        .into_iter()
        .chain(spatial.iter().cloned())
        .collect();
    // More padding at the end makes room for a last window that reaches past it.
    let end = padding.iter().zip(stride);
    let end = end.map(|(&p, &s)| if *ceil_mode { p + s - 1 } else { p });
    let options = attrs::Conv {
        strides: Some(stride.clone()),
        pads: Some(padding.iter().copied().chain(end).collect()),
        ..Default::default()
    };
    let window: Vec<Expr> = [1, 1].iter().chain(kernel).map(|&k| Expr::int(k)).collect();
    let ones = cx.full(&window, 1, cx.dtype(x));
    let sums = cropped(cx, cx.conv(cx.reshape(x, &planes), ones, None, options), sizes);
    cx.reshape(cx.div(sums, divisor), &[outer, sizes].concat())
}

/// The largest elements of windows at random places, and their indices in the channel. With the
/// sample `u` of a dimension, window `i` starts at `floor((i + u) * a) - floor(u * a)`, where `a =
/// (size - kernel) / (windows - 1)`; the last one is at the end.
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
    // (batch, channels, dimensions), the batch left out where `x` has none. There may be more than
    // are needed.
    let samples = match lead {
        1 => cx.take(samples, 0, &Expr::int(0)),
        _ => cx.slice(samples, 0, &Expr::int(0), &shape[0], 1),
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

/// Values and indices.
fn meta_pool(cx: &Cx, args: PoolArgs) -> Lowered<[Value; 2]> {
    let mut size = cx.shape(args.input);
    let n = meta::spatial(cx, args.input, args.kernel_size.len())?;
    let windows = windows_of(n, &args);
    let first = size.len() - n;
    for (i, d) in size[first..].iter_mut().enumerate() {
        let Windows { kernel, stride, padding, dilation, .. } = &windows;
        let window = [kernel[i], stride[i], padding[i], dilation[i]];
        *d = meta::windows(d, window, args.ceil_mode)?;
    }
    Ok([sized(cx, args.input, &size), typed(cx, DType::I64, &size)])
}

checks! {
    // A last window in the padding beside a dynamic dimension.
    "aten.max_pool2d_with_indices(x: f32[1, s0, 2], [2, 1], [3, 3], [1, 0], [1, 2], True) -> (f32[1, (s0 + 2)//3 + 1, 1], i64[1, (s0 + 2)//3 + 1, 1])" => "
    val_0 = Slice (x, [0], [1], [2])
    val_1 = Unsqueeze (val_0, [0])
    val_2, val_3 = MaxPool <kernel_shape: ints = [2, 1], ceil_mode: int = 1, dilations: ints = [1, 2], pads: ints = [1, 0, 1, 0], strides: ints = [3, 3]> (val_1)
    val_4 = Mod (val_3, 1)
    val_5 = Mul (val_4, 1)
    val_6 = Div (val_3, 1)
    val_7 = Shape <start: int = 1, end: int = 2> (x)
    val_8 = Reshape (val_7, [])
    val_9 = Mod (val_6, val_8)
    val_10 = Mul (val_9, 2)
    val_11 = Add (val_5, val_10)
    val_12 = Div (val_6, val_8)
    max_pool2d_with_indices_0 = Squeeze (val_2, [0])
    max_pool2d_with_indices_1 = Squeeze (val_11, [0])
    ";
    "aten.max_pool2d(x: f32[1, s0, 2], [2, 1], [3, 3], [1, 0], [1, 2], True) -> f32[1, (s0 + 2)//3 + 1, 1]" => "
    val_0 = Slice (x, [0], [1], [2])
    val_1 = Unsqueeze (val_0, [0])
    val_2 = MaxPool <kernel_shape: ints = [2, 1], ceil_mode: int = 1, dilations: ints = [1, 2], pads: ints = [1, 0, 1, 0], strides: ints = [3, 3]> (val_1)
    max_pool2d = Squeeze (val_2, [0])
    ";

    // Padding as wide as the kernel, which indices do not count.
    "aten.max_pool2d_with_indices(x: f32[1, 4, 7, 6], [2, 2], [3, 3], [0, 0], [2, 1], True) -> (f32[1, 4, 3, 2], i64[1, 4, 3, 2])" => "
    val_0 = Pad (x, [0, 0, 0, 0, 0, 0, 2, 0], -inf)
    max_pool2d_with_indices_0, val_1 = MaxPool <kernel_shape: ints = [2, 2], dilations: ints = [2, 1], pads: ints = [0, 0, 0, 0], strides: ints = [3, 3]> (val_0)
    val_2 = Mod (val_1, 6)
    val_3 = Mul (val_2, 1)
    val_4 = Div (val_1, 6)
    val_5 = Mod (val_4, 9)
    val_6 = Mul (val_5, 6)
    max_pool2d_with_indices_1 = Add (val_3, val_6)
    val_7 = Div (val_4, 9)
    ";

    // Indices count through a channel.
    "aten.max_pool2d_with_indices(x: f32[3, s0, 8], [2]) -> (f32[3, s0//2, 4], i64[3, s0//2, 4])" => "
    val_0 = Unsqueeze (x, [0])
    val_1, val_2 = MaxPool <kernel_shape: ints = [2, 2], dilations: ints = [1, 1], pads: ints = [0, 0, 0, 0], strides: ints = [2, 2]> (val_0)
    val_3 = Shape <start: int = 2> (val_0)
    val_4 = ReduceProd <keepdims: int = 0> (val_3)
    val_5 = Mod (val_2, val_4)
    max_pool2d_with_indices_0 = Squeeze (val_1, [0])
    max_pool2d_with_indices_1 = Squeeze (val_5, [0])
    ";

    // Windows that start in the padding.
    "aten.avg_pool2d(x: f32[1, 2, 8, 8], [3, 2], [], [1, 0], True) -> f32[1, 2, 3, 4]" => "
    avg_pool2d = AveragePool <kernel_shape: ints = [3, 2], count_include_pad: int = 1, pads: ints = [1, 0, 0, 0], strides: ints = [3, 2]> (x)
    ";
    "aten.avg_pool2d(x: f32[1, 2, 3, 3], [3, 2], [3, 3], [1, 0], True) -> f32[1, 2, 2, 1]" => "
    val_0 = Slice (x, [0], [2], [3])
    avg_pool2d = AveragePool <kernel_shape: ints = [3, 2], ceil_mode: int = 1, count_include_pad: int = 1, pads: ints = [1, 0, 1, 0], strides: ints = [3, 3]> (val_0)
    ";
    "aten.max_pool2d(x: f32[1, 2, 4, 4], [3, 1], [2, 2], [0, 0], [1, 1], True) -> f32[1, 2, 2, 2]" => "
    max_pool2d = MaxPool <kernel_shape: ints = [3, 1], dilations: ints = [1, 1], pads: ints = [0, 0, 1, 0], strides: ints = [2, 2]> (x)
    ";
    "aten.max_pool2d(x: f32[1, 2, 8, 6], [3, 3], [3, 2], [1, 0], [1, 1], True) -> f32[1, 2, 3, 3]" => "
    max_pool2d = MaxPool <kernel_shape: ints = [3, 3], ceil_mode: int = 1, dilations: ints = [1, 1], pads: ints = [1, 0, 0, 0], strides: ints = [3, 2]> (x)
    ";

    // A given divisor.
    "aten.avg_pool2d(x: f32[1, 2, 4, 4], [2, 2], [], 0, False, True, 3) -> f32[1, 2, 2, 2]" => "
    val_0 = Expand (1.0, [1, 1, 2, 2])
    val_1 = Reshape (x, [2, 1, 4, 4])
    val_2 = Conv <pads: ints = [0, 0, 0, 0], strides: ints = [2, 2]> (val_1, val_0)
    val_3 = Div (val_2, 3.0)
    avg_pool2d = Reshape (val_3, [1, 2, 2, 2])
    ";
}
