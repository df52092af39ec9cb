//! Convolutions, forth and transposed.

use crate::{AtenOp, Complex, Cx, LowerError, Lowered, op::op};
use pt2onnx_ir::{Value, attrs};
use pt2onnx_symbolic::Expr;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_convolution, legacy_convolution::<Value>, complex = legacy_convolution::<Complex>),
    op!(aten::_convolution_deprecated, |cx: &Cx,
                                        x: Value,
                                        w: Value,
                                        b: Option<Value>,
                                        stride: Vec<i64>,
                                        padding: Vec<i64>,
                                        dilation: Vec<i64>,
                                        transposed: bool,
                                        output_padding: Vec<i64>,
                                        groups: i64,
                                        _: bool,
                                        _: bool| {
        convolution(cx, x, w, b, stride, padding, dilation, transposed, output_padding, groups)
    }),
    op!(
        aten::_convolution_mode,
        conv_named_padding::<Value>,
        complex = conv_named_padding::<Complex>
    ),
    op!(aten::_slow_conv2d_forward, sized_conv),
    op!(aten::conv1d, conv::<Value>, complex = conv::<Complex>),
    op!(aten::conv1d_padding, conv_named_padding::<Value>, complex = conv_named_padding::<Complex>),
    op!(aten::conv2d, conv::<Value>, complex = conv::<Complex>),
    op!(aten::conv2d_padding, conv_named_padding::<Value>, complex = conv_named_padding::<Complex>),
    op!(aten::conv3d, conv::<Value>, complex = conv::<Complex>),
    op!(aten::conv3d_padding, conv_named_padding::<Value>, complex = conv_named_padding::<Complex>),
    op!(aten::conv_tbc, conv_tbc),
    op!(aten::conv_transpose1d, conv_transpose::<Value>, complex = conv_transpose::<Complex>),
    op!(aten::conv_transpose2d_input, conv_transpose::<Value>, complex = conv_transpose::<Complex>),
    op!(aten::conv_transpose3d_input, conv_transpose::<Value>, complex = conv_transpose::<Complex>),
    op!(aten::convolution, convolution::<Value>, complex = convolution::<Complex>),
    op!(aten::slow_conv3d, sized_conv),
    op!(aten::slow_conv3d_forward, sized_conv),
    op!(aten::slow_conv_dilated2d, dilated_conv),
    op!(aten::slow_conv_dilated3d, dilated_conv),
    op!(aten::slow_conv_transpose2d, sized_conv_transpose),
    op!(aten::slow_conv_transpose3d, sized_conv_transpose),
    op!(aten::thnn_conv2d, |cx: &Cx,
                            x: Value,
                            w: Value,
                            kernel: Vec<Expr>,
                            b: Option<Value>,
                            stride: Vec<i64>,
                            padding: Vec<i64>| sized_conv(
        cx, x, w, kernel, b, stride, padding
    )),
];

/// What a convolution has besides its tensors, numbers for each spatial dimension.
struct Options {
    stride: Vec<i64>,
    dilation: Vec<i64>,
    groups: i64,
    padding: Padding,
    /// Of a transposed convolution, how much its result is longer at the end.
    output_padding: Option<Vec<i64>>,
}

enum Padding {
    /// Begin and end.
    Known(Vec<(i64, i64)>),
    /// So much that the size stays, the odd one at the end; the kernel's size is not known.
    Same,
}

/// The tensors of a convolution: real ones, or complex ones, whose parts are convolved each with each.
trait Tensors: Copy {
    /// Sizes of the kernel.
    fn kernel(self, cx: &Cx) -> Vec<Expr>;
    fn convolve(cx: &Cx, x: Self, weight: Self, bias: Option<Self>, options: &Options) -> Lowered;
}

impl Tensors for Value {
    fn kernel(self, cx: &Cx) -> Vec<Expr> {
        cx.shape(self).into_iter().skip(2).collect()
    }

    fn convolve(
        cx: &Cx,
        x: Value,
        weight: Value,
        bias: Option<Value>,
        options: &Options,
    ) -> Lowered {
        emit(cx, x, weight, bias, options)
    }
}

impl Tensors for Complex {
    fn kernel(self, cx: &Cx) -> Vec<Expr> {
        self.re.kernel(cx)
    }

    /// `(a + bi) * (c + di) = (a*c - b*d) + (a*d + b*c) i`
    fn convolve(cx: &Cx, x: Self, weight: Self, bias: Option<Self>, options: &Options) -> Lowered {
        let (re, im) = (bias.map(|b| b.re), bias.map(|b| b.im));
        let c = Complex {
            re: cx.sub(
                emit(cx, x.re, weight.re, re, options)?,
                emit(cx, x.im, weight.im, None, options)?,
            ),
            im: cx.add(
                emit(cx, x.re, weight.im, im, options)?,
                emit(cx, x.im, weight.re, None, options)?,
            ),
        };
        Ok(cx.pairs(c))
    }
}

#[expect(clippy::too_many_arguments, reason = "ATen's signature")]
fn conv<T: Tensors>(
    cx: &Cx,
    x: T,
    weight: T,
    bias: Option<T>,
    stride: Vec<i64>,
    padding: Vec<i64>,
    dilation: Vec<i64>,
    groups: i64,
) -> Lowered {
    convolution(cx, x, weight, bias, stride, padding, dilation, false, vec![0], groups)
}

#[expect(clippy::too_many_arguments, reason = "ATen's signature")]
fn conv_transpose<T: Tensors>(
    cx: &Cx,
    x: T,
    weight: T,
    bias: Option<T>,
    stride: Vec<i64>,
    padding: Vec<i64>,
    output_padding: Vec<i64>,
    groups: i64,
    dilation: Vec<i64>,
) -> Lowered {
    convolution(cx, x, weight, bias, stride, padding, dilation, true, output_padding, groups)
}

#[expect(clippy::too_many_arguments, reason = "ATen's signature")]
fn convolution<T: Tensors>(
    cx: &Cx,
    x: T,
    weight: T,
    bias: Option<T>,
    stride: Vec<i64>,
    padding: Vec<i64>,
    dilation: Vec<i64>,
    transposed: bool,
    output_padding: Vec<i64>,
    groups: i64,
) -> Lowered {
    let n = weight.kernel(cx).len();
    let options = Options {
        stride: per_dim(&stride, n),
        dilation: per_dim(&dilation, n),
        groups,
        padding: Padding::Known(per_dim(&padding, n).iter().map(|&p| (p, p)).collect()),
        output_padding: transposed.then(|| per_dim(&output_padding, n)),
    };
    T::convolve(cx, x, weight, bias, &options)
}

/// [`convolution`]; the last three say how cuDNN computes.
#[expect(clippy::too_many_arguments, reason = "ATen's signature")]
fn legacy_convolution<T: Tensors>(
    cx: &Cx,
    x: T,
    weight: T,
    bias: Option<T>,
    stride: Vec<i64>,
    padding: Vec<i64>,
    dilation: Vec<i64>,
    transposed: bool,
    output_padding: Vec<i64>,
    groups: i64,
    _benchmark: bool,
    _deterministic: bool,
    _allow_tf32: bool,
) -> Lowered {
    convolution(cx, x, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
}

/// `same` pads so that the size stays, the odd one at the end; `valid` does not pad.
#[expect(clippy::too_many_arguments, reason = "ATen's signature")]
fn conv_named_padding<T: Tensors>(
    cx: &Cx,
    x: T,
    weight: T,
    bias: Option<T>,
    stride: Vec<i64>,
    padding: String,
    dilation: Vec<i64>,
    groups: i64,
) -> Lowered {
    let kernel = weight.kernel(cx);
    let dilation = per_dim(&dilation, kernel.len());
    let total: Option<Vec<i64>> =
        kernel.iter().zip(&dilation).map(|(k, d)| Some((k.as_int()? - 1) * d)).collect();
    let padding = match (padding.as_str(), total) {
        ("valid", _) => Padding::Known(vec![(0, 0); kernel.len()]),
        ("same", Some(total)) => Padding::Known(total.iter().map(|t| (t / 2, t - t / 2)).collect()),
        ("same", None) => Padding::Same,
        (other, _) => {
            return Err(LowerError::unsupported(format!("there is no padding `{other}`")));
        }
    };
    let options = Options {
        stride: per_dim(&stride, kernel.len()),
        dilation,
        groups,
        padding,
        output_padding: None,
    };
    T::convolve(cx, x, weight, bias, &options)
}

/// `Conv` or `ConvTranspose`.
fn emit(cx: &Cx, x: Value, weight: Value, bias: Option<Value>, options: &Options) -> Lowered {
    let n = weight.kernel(cx).len();
    let known = match &options.padding {
        Padding::Known(pads) => pads.clone(),
        Padding::Same => vec![(0, 0); n],
    };
    let Some(output_padding) = &options.output_padding else {
        let given = attrs::Conv {
            group: options.groups,
            strides: Some(options.stride.clone()),
            dilations: Some(options.dilation.clone()),
            pads: Some(pads_attribute(&known)),
            ..Default::default()
        };
        let x = match options.padding {
            Padding::Same => pad_same(cx, x, &weight.kernel(cx), &options.dilation),
            Padding::Known(_) => x,
        };
        return Ok(batched(cx, x, n, |x| cx.conv(x, weight, bias, given.clone())));
    };
    // A longer end is less padding there; only what goes beyond the padding is a matter of its own.
    let pads: Vec<(i64, i64)> = known
        .iter()
        .zip(output_padding)
        .map(|(&(begin, end), &longer)| (begin, (end - longer).max(0)))
        .collect();
    let beyond: Vec<i64> = known
        .iter()
        .zip(output_padding)
        .map(|(&(_, end), &longer)| (longer - end).max(0))
        .collect();
    let given = attrs::ConvTranspose {
        group: options.groups,
        strides: Some(options.stride.clone()),
        dilations: Some(options.dilation.clone()),
        pads: Some(pads_attribute(&pads)),
        output_padding: beyond.iter().any(|&b| b != 0).then_some(beyond),
        ..Default::default()
    };
    Ok(batched(cx, x, n, |x| cx.conv_transpose(x, weight, bias, given.clone())))
}

/// All begins, then all ends.
fn pads_attribute(pads: &[(i64, i64)]) -> Vec<i64> {
    let (begins, ends) = (pads.iter().map(|p| p.0), pads.iter().map(|p| p.1));
    begins.chain(ends).collect()
}

/// Zeros around `x`, `(kernel - 1) * dilation` of them along each of the last dimensions.
fn pad_same(cx: &Cx, x: Value, kernel: &[Expr], dilation: &[i64]) -> Value {
    let total: Vec<Expr> = kernel.iter().zip(dilation).map(|(k, &d)| (k - 1) * d).collect();
    let begins: Vec<Expr> = total.iter().map(|t| t.floor_div(&Expr::int(2))).collect();
    let ends = total.iter().zip(&begins).map(|(t, b)| t - b);
    let pads: Vec<Expr> = begins.iter().cloned().chain(ends).collect();
    let rank = cx.rank(x);
    let axes: Vec<i64> = (rank - kernel.len().min(rank)..rank).map(|a| a as i64).collect();
    let mode = attrs::Pad { mode: "constant" };
    cx.pad(x, cx.sizes(&pads), None, cx.ints(&axes), mode)
}

/// A convolution over time of `(time, batch, channels)` with a `(kernel, in, out)` weight.
fn conv_tbc(cx: &Cx, x: Value, weight: Value, bias: Value, pad: i64) -> Lowered {
    let options = attrs::Conv { pads: Some(vec![pad, pad]), ..Default::default() };
    let result =
        cx.conv(cx.transpose(x, &[1, 2, 0]), cx.transpose(weight, &[2, 1, 0]), bias, options);
    Ok(cx.transpose(result, &[2, 0, 1]))
}

#[expect(clippy::too_many_arguments, reason = "ATen's signature")]
fn dilated_conv(
    cx: &Cx,
    x: Value,
    weight: Value,
    _kernel: Vec<Expr>,
    bias: Option<Value>,
    stride: Vec<i64>,
    padding: Vec<i64>,
    dilation: Vec<i64>,
) -> Lowered {
    conv(cx, x, weight, bias, stride, padding, dilation, 1)
}

fn sized_conv(
    cx: &Cx,
    x: Value,
    weight: Value,
    _kernel: Vec<Expr>,
    bias: Option<Value>,
    stride: Vec<i64>,
    padding: Vec<i64>,
) -> Lowered {
    // The weight may come as a matrix of `(out, in * kernel)`.
    if cx.rank(weight) < 4 {
        return Err(LowerError::unsupported("a weight without spatial dimensions"));
    }
    conv(cx, x, weight, bias, stride, padding, vec![1], 1)
}

#[expect(clippy::too_many_arguments, reason = "ATen's signature")]
fn sized_conv_transpose(
    cx: &Cx,
    x: Value,
    weight: Value,
    _kernel: Vec<Expr>,
    bias: Option<Value>,
    stride: Vec<i64>,
    padding: Vec<i64>,
    output_padding: Vec<i64>,
    dilation: Vec<i64>,
) -> Lowered {
    conv_transpose(cx, x, weight, bias, stride, padding, output_padding, 1, dilation)
}

/// One number for all dimensions, or one for each.
pub(crate) fn per_dim(given: &[i64], n: usize) -> Vec<i64> {
    match given {
        [one] => vec![*one; n],
        all => all.to_vec(),
    }
}

/// `op` on `x` with `n` spatial dimensions, given a batch dimension if it has none.
pub(crate) fn batched(cx: &Cx, x: Value, n: usize, op: impl Fn(Value) -> Value) -> Value {
    match cx.rank(x) == n + 1 {
        true => cx.squeeze(op(cx.unsqueeze(x, &[0])), &[0]),
        false => op(x),
    }
}
