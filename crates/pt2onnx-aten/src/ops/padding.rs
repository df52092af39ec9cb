//! Padding.

use crate::{AtenOp, Cx, LowerError, Lowered, registry::aten};
use pt2onnx_ir::{Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::Scalar;

pub(super) static OPS: &[AtenOp] = &[
    aten!(
        "aten::constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor",
        |cx: &Cx, x: Value, pad: Vec<Expr>, value: Scalar| emit(
            cx,
            x,
            &pad,
            "constant",
            Some(value)
        ),
        parts
    ),
    aten!(
        "aten::pad(Tensor self, SymInt[] pad, str mode=\"constant\", float? value=None) -> Tensor",
        pad,
        parts
    ),
];

fn pad(cx: &Cx, x: Value, pad: Vec<Expr>, mode: String, value: Option<f64>) -> Lowered {
    let mode = match mode.as_str() {
        "constant" => "constant",
        "reflect" => "reflect",
        "replicate" => "edge",
        "circular" => "wrap",
        other => {
            return Err(LowerError::unsupported(format!(
                "there is no padding mode `{other}`"
            )));
        }
    };
    emit(cx, x, &pad, mode, value.map(Scalar::Float))
}

/// `Pad`. PyTorch lists the pads from the last dimension on, begin and end side by side.
fn emit(cx: &Cx, x: Value, pad: &[Expr], mode: &'static str, value: Option<Scalar>) -> Lowered {
    if pad.iter().all(|p| p.as_int() == Some(0)) {
        return Ok(x);
    }
    let rank = cx.rank(x);
    let padded = pad.len() / 2;
    if padded > rank {
        return Err(LowerError::unsupported(format!(
            "pads for {padded} dimensions of a tensor of rank {rank}"
        )));
    }
    let axes: Vec<i64> = (rank - padded..rank).map(|a| a as i64).collect();
    let side = |end: usize| (0..padded).rev().map(move |i| pad[2 * i + end].clone());
    let pads: Vec<Expr> = side(0).chain(side(1)).collect();
    let value = value
        .filter(|v| v.to_f64() != 0.0)
        .map(|v| cx.scalar(v, cx.dtype(x)));
    Ok(cx.pad_op(
        x,
        cx.sizes(&pads),
        value,
        cx.ints(&axes),
        attrs::Pad { mode },
    ))
}
