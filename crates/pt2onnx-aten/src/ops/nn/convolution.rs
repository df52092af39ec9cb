//! Translates convolutions and transposed convolutions.

use crate::math::window::{batched, per_dim};
use crate::meta::{nth, sized, unknown};
use crate::{AtenOp, Complex, Cx, LowerError, Lowered, args::Ignored, arguments, checks, op};

use pt2onnx_ir::{Value, attrs};
use pt2onnx_symbolic::Expr;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_convolution, convolution, meta = meta_convolution),
    op!(aten::_convolution_deprecated, convolution, meta = meta_convolution),
    op!(aten::_convolution_mode, convolution_mode),
    op!(aten::_slow_conv2d_forward, unfolded_convolution),
    op!(aten::conv1d, convolution),
    op!(aten::conv1d_padding, convolution_mode),
    op!(aten::conv2d, convolution),
    op!(aten::conv2d_padding, convolution_mode),
    op!(aten::conv3d, convolution),
    op!(aten::conv3d_padding, convolution_mode),
    op!(aten::conv_tbc, conv_tbc),
    op!(aten::conv_transpose1d, convolution, meta = meta_convolution, transposed = true),
    op!(aten::conv_transpose2d_input, convolution, meta = meta_convolution, transposed = true),
    op!(aten::conv_transpose3d_input, convolution, meta = meta_convolution, transposed = true),
    op!(aten::convolution, convolution, meta = meta_convolution),
    op!(aten::slow_conv3d, unfolded_convolution),
    op!(aten::slow_conv3d_forward, unfolded_convolution),
    op!(aten::slow_conv_dilated2d, convolution),
    op!(aten::slow_conv_dilated3d, convolution),
    op!(aten::slow_conv_transpose2d, convolution, meta = meta_convolution, transposed = true),
    op!(aten::slow_conv_transpose3d, convolution, meta = meta_convolution, transposed = true),
    op!(aten::thnn_conv2d, unfolded_convolution),
];

arguments! {
    /// Arguments of convolutions: an input `(batch, in, ..)` or `(in, ..)`, a weight `(out, in /
    /// groups, ..)` (transposed: `(in, out / groups, ..)`), and one number, or one for each spatial
    /// dimension, of everything else.
    struct ConvArgs {
        input: Complex,
        weight: Complex,
        kernel_size: Ignored,
        bias: Option<Complex>,
        stride: Vec<i64>,
        padding: Vec<i64>,
        dilation: Option<Vec<i64>>,
        transposed: Option<bool>,
        output_padding: Option<Vec<i64>>,
        groups: Option<Expr>,
        benchmark: Ignored,
        deterministic: Ignored,
        allow_tf32: Ignored,
    }

    /// Arguments of convolutions whose padding has a name.
    struct ConvModeArgs {
        input: Complex,
        weight: Complex,
        bias: Option<Complex>,
        stride: Vec<i64>,
        padding: String,
        dilation: Vec<i64>,
        groups: Expr,
    }
}

/// The tensors of a convolution.
#[derive(Clone, Copy)]
struct Tensors<T> {
    input: T,
    weight: T,
    bias: Option<T>,
}

/// The parameters of a convolution, with one number for each spatial dimension.
struct Options {
    stride: Vec<i64>,
    dilation: Vec<i64>,
    groups: Expr,
    padding: Padding,
    /// For a transposed convolution: the number of elements that its result gets at the end.
    output_padding: Option<Vec<i64>>,
}

/// Zeros around the input.
enum Padding {
    /// Begin and end.
    Known(Vec<(i64, i64)>),
    /// As much as keeps the size, the odd element at the end. The kernel's size is not known.
    Same,
}

/// The sizes of the kernel.
fn kernel(cx: &Cx, weight: Value) -> Vec<Expr> {
    cx.shape(weight).into_iter().skip(2).collect()
}

/// A convolution, or a transposed one.
fn convolution(cx: &Cx, args: ConvArgs) -> Lowered {
    let ConvArgs { input, weight, bias, .. } = args;
    let n = kernel(cx, weight.re).len();
    let each = |given: Option<Vec<i64>>, default| per_dim(&given.unwrap_or(vec![default]), n);
    let transposed = args.transposed.unwrap_or(false);
    let options = Options {
        stride: per_dim(&args.stride, n),
        dilation: each(args.dilation, 1),
        groups: args.groups.unwrap_or(Expr::int(1)),
        padding: Padding::Known(per_dim(&args.padding, n).iter().map(|&p| (p, p)).collect()),
        output_padding: transposed.then(|| each(args.output_padding, 0)),
    };
    convolve(cx, Tensors { input, weight, bias }, &options)
}

/// [`convolution`] of kernels that unfold the input into columns. Their weight may come as a matrix
/// `(out, in * kernel)`, which is an error here.
fn unfolded_convolution(cx: &Cx, args: ConvArgs) -> Lowered {
    if cx.rank(args.weight.re) < 4 {
        return Err(LowerError::unsupported("the weight has no spatial dimensions"));
    }
    convolution(cx, args)
}

/// [`convolution`] with a padding of that name: `same` keeps the size, and pads the odd element at
/// the end; `valid` does not pad.
fn convolution_mode(cx: &Cx, args: ConvModeArgs) -> Lowered {
    let ConvModeArgs { input, weight, bias, stride, groups, .. } = args;
    let kernel = kernel(cx, weight.re);
    let dilation = per_dim(&args.dilation, kernel.len());
    let total: Option<Vec<i64>> =
        kernel.iter().zip(&dilation).map(|(k, d)| Some((k.as_int()? - 1) * d)).collect();
    let padding = match (args.padding.as_str(), total) {
        ("valid", _) => Padding::Known(vec![(0, 0); kernel.len()]),
        ("same", Some(total)) => Padding::Known(total.iter().map(|t| (t / 2, t - t / 2)).collect()),
        ("same", None) => Padding::Same,
        (other, _) => return Err(LowerError::unknown("padding mode", other)),
    };
    let stride = per_dim(&stride, kernel.len());
    let options = Options { stride, dilation, groups, padding, output_padding: None };
    convolve(cx, Tensors { input, weight, bias }, &options)
}

/// A convolution of real or complex tensors: `(a + bi) * (c + di) = (a*c - b*d) + (a*d + b*c) i`.
fn convolve(cx: &Cx, tensors: Tensors<Complex>, options: &Options) -> Lowered {
    let Tensors { input: x, weight, bias } = tensors;
    let part = |input, weight, bias| emit(cx, Tensors { input, weight, bias }, options);
    let (re, im) = (bias.map(|b| b.re), bias.and_then(|b| b.im));
    if x.im.or(weight.im).is_none() {
        return part(x.re, weight.re, re);
    }
    let (x_im, weight_im) = (x.imag(cx), weight.imag(cx));
    let result = Complex::new(
        cx.sub(part(x.re, weight.re, re)?, part(x_im, weight_im, None)?),
        cx.add(part(x.re, weight_im, im)?, part(x_im, weight.re, None)?),
    );
    Ok(result.value(cx))
}

/// `Conv` or `ConvTranspose`.
fn emit(cx: &Cx, tensors: Tensors<Value>, options: &Options) -> Lowered {
    let Tensors { input: x, weight, bias } = tensors;
    let n = kernel(cx, weight).len();
    let known = match &options.padding {
        Padding::Known(pads) => pads.clone(),
        Padding::Same => vec![(0, 0); n],
    };
    let Some(group) = group_count(cx, x, weight, options) else {
        return grouped(cx, tensors, options, &known);
    };
    let sizes: Option<Vec<i64>> = kernel(cx, weight).iter().map(Expr::as_int).collect();
    let Some(output_padding) = &options.output_padding else {
        let given = attrs::Conv {
            group,
            kernel_shape: sizes,
            strides: Some(options.stride.clone()),
            dilations: Some(options.dilation.clone()),
            pads: Some(pads_attribute(&known)),
            ..Default::default()
        };
        let x = match options.padding {
            Padding::Same => pad_same(cx, x, &kernel(cx, weight), &options.dilation),
            Padding::Known(_) => x,
        };
        return Ok(batched(cx, x, n, |x| cx.conv(x, weight, bias, given.clone())));
    };
    // Output padding reduces the padding at the end; only the rest needs the attribute. ONNX
    // Runtime refuses an attribute of a stride or more. Only the bias reaches the positions beyond.
    let (pads, beyond): (Vec<_>, Vec<i64>) = { known.iter().zip(output_padding) }
        .map(|(&(begin, end), &longer)| ((begin, (end - longer).max(0)), (longer - end).max(0)))
        .unzip();
    let far = beyond.iter().zip(&options.stride).any(|(beyond, stride)| beyond >= stride);
    let near = (!far && beyond.iter().any(|&b| b != 0)).then(|| beyond.clone());
    let given = attrs::ConvTranspose {
        group,
        kernel_shape: sizes,
        strides: Some(options.stride.clone()),
        dilations: Some(options.dilation.clone()),
        pads: Some(pads_attribute(&pads)),
        output_padding: near,
        ..Default::default()
    };
    Ok(batched(cx, x, n, |x| {
        if !far {
            return cx.conv_transpose(x, weight, bias, given.clone());
        }
        let result = cx.conv_transpose(x, weight, None, given.clone());
        let ends: Vec<(i64, i64)> = beyond.iter().map(|&b| (0, b)).collect();
        with_bias(cx, padded(cx, result, &ends), bias, n)
    }))
}

/// A result with `n` spatial dimensions plus the bias of each channel.
fn with_bias(cx: &Cx, result: Value, bias: Option<Value>, n: usize) -> Value {
    let spatial: Vec<usize> = (1..=n).collect();
    bias.map_or(result, |bias| cx.add(result, cx.unsqueeze(bias, &spatial)))
}

/// The number of groups, if it is known, or follows from the numbers of channels.
fn group_count(cx: &Cx, x: Value, weight: Value, options: &Options) -> Option<i64> {
    let behind = kernel(cx, weight).len() as i64;
    let channels = match options.output_padding {
        None => cx.dim(x, -1 - behind),
        Some(_) => {
            let shape = cx.out_shape().ok()?;
            shape.into_iter().rev().nth(behind as usize)?
        }
    };
    let counted = || channels.as_int()?.checked_div(cx.dim(weight, 1).as_int()?);
    options.groups.as_int().or_else(counted)
}

/// A convolution with a number of groups that only the runtime knows: the windows as columns, and
/// for each group a product with its rows of the weight.
fn grouped(cx: &Cx, tensors: Tensors<Value>, options: &Options, pads: &[(i64, i64)]) -> Lowered {
    let Tensors { input: x, weight, bias } = tensors;
    let sizes = kernel(cx, weight);
    let known: Option<Vec<i64>> = sizes.iter().map(Expr::as_int).collect();
    let Some(known) = known else {
        return Err(LowerError::unsupported(
            "the number of groups is known only at run time: that is supported if the kernel's sizes are known",
        ));
    };
    let n = sizes.len();
    if let Some(output_padding) = &options.output_padding {
        let options = (options, output_padding.as_slice());
        let result =
            batched(cx, x, n, |x| grouped_transposed(cx, x, weight, &known, options, pads));
        return Ok(with_bias(cx, result, bias, n));
    }
    let shape = cx.out_shape()?;
    let lengths = shape[shape.len() - n..].to_vec();
    let result = batched(cx, x, n, |x| {
        let columns = columns(cx, padded(cx, x, pads), &known, &lengths, options);
        let (batch, groups) = (cx.dim(x, 0), &options.groups);
        let (out, depth) = (cx.dim(weight, 0), Expr::product(cx.shape(weight)[1..].to_vec()));
        let positions = Expr::product(lengths.clone());
        let columns =
            cx.reshape(columns, &[batch.clone(), groups.clone(), depth.clone(), positions]);
        let rows = cx.reshape(weight, &[groups.clone(), out.floor_div(groups), depth]);
        let whole = [&[batch, out], &lengths[..]].concat();
        cx.reshape(cx.matmul(rows, columns), &whole)
    });
    Ok(with_bias(cx, result, bias, n))
}

/// A transposed convolution with a number of groups that only the runtime knows: for each group a
/// product with its rows of the weight, whose results are columns of windows, which `Col2Im` adds
/// up.
fn grouped_transposed(
    cx: &Cx,
    x: Value,
    weight: Value,
    kernel: &[i64],
    (options, output_padding): (&Options, &[i64]),
    pads: &[(i64, i64)],
) -> Value {
    let groups = &options.groups;
    let shape = cx.shape(x);
    let (batch, channels, lengths) = (&shape[0], &shape[1], &shape[2..]);
    let positions = Expr::product(lengths.to_vec());
    let depth = Expr::product(cx.shape(weight)[1..].to_vec());
    let each = channels.floor_div(groups);
    let rows = cx.reshape(weight, &[groups.clone(), each.clone(), depth.clone()]);
    let parts = cx.reshape(x, &[batch.clone(), groups.clone(), each, positions.clone()]);
    let windows = cx.matmul(cx.swap_axes(rows, 1, 2), parts);
    let windows = cx.reshape(windows, &[batch.clone(), groups * &depth, positions]);
    let whole = (0..kernel.len()).map(|i| {
        (&lengths[i] - 1) * options.stride[i] + ((kernel[i] - 1) * options.dilation[i] + 1)
    });
    let steps = attrs::Col2Im {
        dilations: Some(options.dilation.clone()),
        pads: None,
        strides: Some(options.stride.clone()),
    };
    let whole = cx.sizes(&whole.collect::<Vec<_>>());
    let result = cx.col2im(windows, whole, cx.ints(kernel), steps);
    let ends = { pads.iter().zip(output_padding) }
        .map(|(&(begin, end), more)| (-begin, more - end))
        .collect::<Vec<_>>();
    padded(cx, result, &ends)
}

/// `x` with zeros around its last dimensions. Negative numbers remove elements.
fn padded(cx: &Cx, x: Value, pads: &[(i64, i64)]) -> Value {
    if pads.iter().all(|&pad| pad == (0, 0)) {
        return x;
    }
    let axes: Vec<i64> = (2..2 + pads.len() as i64).collect();
    cx.pad(x, cx.ints(&pads_attribute(pads)), None, cx.ints(&axes), attrs::Pad::default())
}

/// For each element of the kernel, the elements of `x` that it meets, along a new dimension 2.
fn columns(cx: &Cx, x: Value, kernel: &[i64], lengths: &[Expr], options: &Options) -> Value {
    let mut met = vec![x];
    for (i, (&size, length)) in kernel.iter().zip(lengths).enumerate() {
        let (stride, dilation) = (options.stride[i], options.dilation[i]);
        let along = |x: Value, at: i64| {
            let start = Expr::int(at * dilation);
            let end = &start + (length - 1) * stride + 1;
            cx.slice(x, i + 2, &start, &end, stride)
        };
        met = met
            .iter()
            .flat_map(|&x| (0..size).map(move |at| (x, at)))
            .map(|(x, at)| along(x, at))
            .collect();
    }
    let met: Vec<Value> = met.iter().map(|&x| cx.unsqueeze(x, &[2])).collect();
    cx.concat(&met, 2)
}

/// Pads as ONNX lists them: all begins, then all ends.
fn pads_attribute(pads: &[(i64, i64)]) -> Vec<i64> {
    let (begins, ends) = (pads.iter().map(|p| p.0), pads.iter().map(|p| p.1));
    begins.chain(ends).collect()
}

/// `x` with `(kernel - 1) * dilation` zeros along each of the last dimensions, half of them
/// (rounded down) at the begin.
fn pad_same(cx: &Cx, x: Value, kernel: &[Expr], dilation: &[i64]) -> Value {
    let total: Vec<Expr> = kernel.iter().zip(dilation).map(|(k, &d)| (k - 1) * d).collect();
    let begins: Vec<Expr> = total.iter().map(|t| t.floor_div(&Expr::int(2))).collect();
    let ends = total.iter().zip(&begins).map(|(t, b)| t - b);
    let pads: Vec<Expr> = begins.iter().cloned().chain(ends).collect();
    let rank = cx.rank(x);
    let axes: Vec<i64> = (rank - kernel.len().min(rank)..rank).map(|a| a as i64).collect();
    cx.pad(x, cx.sizes(&pads), None, cx.ints(&axes), attrs::Pad::default())
}

/// A convolution over time of `(time, batch, channels)` with a weight `(kernel, in, out)`.
fn conv_tbc(cx: &Cx, x: Value, weight: Value, bias: Value, pad: i64) -> Lowered {
    let options = attrs::Conv { pads: Some(vec![pad, pad]), ..Default::default() };
    let result =
        cx.conv(cx.transpose(x, &[1, 2, 0]), cx.transpose(weight, &[2, 1, 0]), bias, options);
    Ok(cx.transpose(result, &[2, 0, 1]))
}

arguments! {
    struct MetaConvArgs {
        input: Value,
        weight: Value,
        stride: Vec<i64>,
        padding: Vec<i64>,
        output_padding: Vec<i64>,
        groups: Option<i64>,
        dilation: Vec<i64>,
        transposed: bool,
    }
}

/// `(batch, out, ..)`, or without the batch.
fn meta_convolution(cx: &Cx, args: MetaConvArgs) -> Lowered {
    let (x, weight) = (args.input, args.weight);
    let n = cx.rank(weight).saturating_sub(2);
    let mut size = cx.shape(x);
    let Some(first) = size.len().checked_sub(n).filter(|&f| f > 0) else {
        return unknown("it has too few dimensions");
    };
    size[first - 1] = if args.transposed {
        cx.dim(weight, 1) * args.groups.unwrap_or(1)
    } else {
        cx.dim(weight, 0)
    };
    for (i, d) in size[first..].iter_mut().enumerate() {
        let [stride, dilation] = [&args.stride, &args.dilation].map(|list| nth(list, i, 1));
        let [padding, more] = [&args.padding, &args.output_padding].map(|list| nth(list, i, 0));
        let reach = (cx.dim(weight, 2 + i as i64) - 1) * dilation + 1;
        *d = if args.transposed {
            (&*d - 1) * stride + reach + (more - 2 * padding)
        } else {
            (&*d + 2 * padding - reach).floor_div(&Expr::int(stride)) + 1
        };
    }
    Ok(sized(cx, x, &size))
}

checks! {
    // Same padding of a kernel of unknown size.
    "aten.conv1d.padding(x: f32[2, 3, 16], w: f32[4, 3, s0], None, [1], 'same') -> f32[2, 4, 16]" => "
    val_0 = Shape <start: int = 2, end: int = 3> (w)
    val_1 = Sub (val_0, [1])
    val_2 = Mod (val_1, [2])
    val_3 = Sub (val_1, val_2)
    val_4 = Div (val_3, [2])
    val_5 = Sub (val_0, val_4)
    val_6 = Sub (val_5, [1])
    val_7 = Concat <axis: int = 0> (val_4, val_6)
    val_8 = Concat <axis: int = 0> ([0, 0], val_4, [0, 0], val_6)
    val_9 = Pad (x, val_8)
    conv1d = Conv <dilations: ints = [1], pads: ints = [0, 0], strides: ints = [1]> (val_9, w)
    ";

    // Output padding is less padding.
    "aten.conv_transpose1d(x: f32[3, 16], w: f32[3, 4, 3], None, [2], [1], [1]) -> f32[4, 32]" => "
    val_0 = Unsqueeze (x, [0])
    val_1 = ConvTranspose <dilations: ints = [1], kernel_shape: ints = [3], pads: ints = [1, 0], strides: ints = [2]> (val_0, w)
    conv_transpose1d = Squeeze (val_1, [0])
    ";

    // A transposed convolution of groups that the runtime counts.
    "aten.conv_transpose1d(x: f32[2, 2*s0, s1], w: f32[2*s0, 3, 4], None, [2], [1], [1], n: Sym(s0)) -> f32[2, 3*s0, 2*s1 + 1]" => "
    val_0 = Reshape (w, [-1, 2, 12])
    val_1 = Reshape (n, [1])
    val_2 = Shape <start: int = 2, end: int = 3> (x)
    val_3 = Concat <axis: int = 0> ([2], val_1, [2], val_2)
    val_4 = Reshape <allowzero: int = 1> (x, val_3)
    val_5 = Transpose <perm: ints = [0, 2, 1]> (val_0)
    val_6 = MatMul (val_5, val_4)
    val_7 = Mul ([12], val_1)
    val_8 = Concat <axis: int = 0> ([2], val_7, val_2)
    val_9 = Reshape <allowzero: int = 1> (val_6, val_8)
    val_10 = Mul ([2], val_2)
    val_11 = Add (val_10, [2])
    val_12 = Col2Im <dilations: ints = [1], strides: ints = [2]> (val_9, val_11, [4])
    conv_transpose1d = Pad (val_12, [0, 0, -1, 0, 0, 0])
    ";

    // As many groups as channels.
    "aten.conv1d(x: f32[2, s0, 16], w: f32[s0, 1, 2], None, [1], [0], [1], n: Sym(s0)) -> f32[2, s0, 15]" => "
    val_0 = Slice (x, [0], [15], [2])
    val_1 = Slice (x, [1], [16], [2])
    val_2 = Unsqueeze (val_0, [2])
    val_3 = Unsqueeze (val_1, [2])
    val_4 = Concat <axis: int = 2> (val_2, val_3)
    val_5 = MatMul (w, val_4)
    conv1d = Reshape (val_5, [2, 0, 15])
    ";

    // Output padding of a stride is zeros.
    "aten.conv_transpose1d(x: f32[1, 3, 6], w: f32[3, 4, 3], b: f32[4], [1], [0], [1], 1, [2]) -> f32[1, 4, 11]" => "
    val_0 = ConvTranspose <dilations: ints = [2], kernel_shape: ints = [3], pads: ints = [0, 0], strides: ints = [1]> (x, w)
    val_1 = Pad (val_0, [0, 0, 0, 0, 0, 1])
    val_2 = Unsqueeze (b, [1])
    conv_transpose1d = Add (val_1, val_2)
    ";
}
