//! Convolutions.

use crate::{AtenOp, Cx, LowerError, Lowered, registry::aten};
use pt2onnx_ir::{Value, attrs};

pub(super) static OPS: &[AtenOp] = &[
    aten!(
        "aten::conv1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], SymInt[1] padding=[0], SymInt[1] dilation=[1], SymInt groups=1) -> Tensor",
        conv
    ),
    aten!(
        "aten::conv1d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], str padding=\"valid\", SymInt[1] dilation=[1], SymInt groups=1) -> Tensor",
        conv_named_padding
    ),
    aten!(
        "aten::conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] padding=[0, 0], SymInt[2] dilation=[1, 1], SymInt groups=1) -> Tensor",
        conv
    ),
    aten!(
        "aten::conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], str padding=\"valid\", SymInt[2] dilation=[1, 1], SymInt groups=1) -> Tensor",
        conv_named_padding
    ),
    aten!(
        "aten::conv3d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], SymInt[3] padding=[0, 0, 0], SymInt[3] dilation=[1, 1, 1], SymInt groups=1) -> Tensor",
        conv
    ),
    aten!(
        "aten::conv3d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], str padding=\"valid\", SymInt[3] dilation=[1, 1, 1], SymInt groups=1) -> Tensor",
        conv_named_padding
    ),
];

#[expect(clippy::too_many_arguments, reason = "ATen's signature")]
fn conv(
    cx: &Cx,
    x: Value,
    weight: Value,
    bias: Option<Value>,
    stride: Vec<i64>,
    padding: Vec<i64>,
    dilation: Vec<i64>,
    groups: i64,
) -> Lowered {
    let padding: Vec<(i64, i64)> = per_dim(&padding, spatial(cx, weight))
        .iter()
        .map(|&p| (p, p))
        .collect();
    emit(cx, x, weight, bias, stride, &padding, dilation, groups)
}

/// `same` pads so that the size stays, the odd one at the end; `valid` does not pad.
#[expect(clippy::too_many_arguments, reason = "ATen's signature")]
fn conv_named_padding(
    cx: &Cx,
    x: Value,
    weight: Value,
    bias: Option<Value>,
    stride: Vec<i64>,
    padding: String,
    dilation: Vec<i64>,
    groups: i64,
) -> Lowered {
    let dilations = per_dim(&dilation, spatial(cx, weight));
    let kernel = cx.shape(weight).into_iter().skip(2);
    let padding: Vec<(i64, i64)> = match padding.as_str() {
        "valid" => kernel.map(|_| (0, 0)).collect(),
        "same" => {
            let total = kernel
                .zip(&dilations)
                .map(|(k, d)| Some((k.as_int()? - 1) * d));
            let total = total.collect::<Option<Vec<_>>>();
            let total = total.ok_or_else(|| {
                LowerError::unsupported("`same` padding with a dynamic kernel size")
            })?;
            total.into_iter().map(|t| (t / 2, t - t / 2)).collect()
        }
        other => {
            return Err(LowerError::unsupported(format!(
                "there is no padding `{other}`"
            )));
        }
    };
    emit(cx, x, weight, bias, stride, &padding, dilation, groups)
}

#[expect(clippy::too_many_arguments, reason = "all that a convolution has")]
fn emit(
    cx: &Cx,
    x: Value,
    weight: Value,
    bias: Option<Value>,
    stride: Vec<i64>,
    padding: &[(i64, i64)],
    dilation: Vec<i64>,
    groups: i64,
) -> Lowered {
    let n = spatial(cx, weight);
    let options = attrs::Conv {
        group: groups,
        strides: Some(per_dim(&stride, n)),
        dilations: Some(per_dim(&dilation, n)),
        pads: Some(
            padding
                .iter()
                .map(|p| p.0)
                .chain(padding.iter().map(|p| p.1))
                .collect(),
        ),
        ..Default::default()
    };
    Ok(batched(cx, x, n, |x| {
        cx.conv(x, weight, bias, options.clone())
    }))
}

/// Spatial dimensions of a kernel.
fn spatial(cx: &Cx, weight: Value) -> usize {
    cx.rank(weight).saturating_sub(2)
}

/// One number for all dimensions, or one for each.
pub(super) fn per_dim(given: &[i64], n: usize) -> Vec<i64> {
    match given {
        [one] => vec![*one; n],
        all => all.to_vec(),
    }
}

/// `op` on `x` with `n` spatial dimensions, given a batch dimension if it has none.
pub(super) fn batched(cx: &Cx, x: Value, n: usize, op: impl Fn(Value) -> Value) -> Value {
    match cx.rank(x) == n + 1 {
        true => cx.squeeze(op(cx.unsqueeze(x, &[0])), &[0]),
        false => op(x),
    }
}
