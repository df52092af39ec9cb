//! Activations, pointwise and over one dimension.

use crate::{AtenOp, Cx, LowerError, Lowered, registry::aten};
use pt2onnx_ir::{Value, attrs};
use pt2onnx_tensor::{DType, Scalar};

pub(super) static OPS: &[AtenOp] = &[
    aten!(
        "aten::_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
        half_to_float_log_softmax
    ),
    aten!(
        "aten::_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
        half_to_float_softmax
    ),
    aten!(
        "aten::gelu(Tensor self, *, str approximate=\"none\") -> Tensor",
        gelu
    ),
    aten!("aten::hardsigmoid(Tensor self) -> Tensor", hardsigmoid),
    aten!("aten::hardswish(Tensor self) -> Tensor", |cx: &Cx,
                                                     x: Value|
     -> Lowered {
        Ok(cx.hard_swish(x))
    }),
    aten!(
        "aten::hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor",
        hardtanh
    ),
    aten!(
        "aten::log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
        log_softmax
    ),
    aten!("aten::relu(Tensor self) -> Tensor", |cx: &Cx,
                                                x: Value|
     -> Lowered {
        Ok(cx.relu(x))
    }),
    aten!("aten::relu6(Tensor self) -> Tensor", |cx: &Cx, x: Value| {
        hardtanh(cx, x, Scalar::Int(0), Scalar::Int(6))
    }),
    aten!("aten::sigmoid(Tensor self) -> Tensor", |cx: &Cx,
                                                   x: Value|
     -> Lowered {
        Ok(cx.sigmoid(cx.to_float(x)))
    }),
    aten!("aten::silu(Tensor self) -> Tensor", silu),
    aten!(
        "aten::softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
        softmax
    ),
    aten!("aten::tanh(Tensor self) -> Tensor", |cx: &Cx,
                                                x: Value|
     -> Lowered {
        Ok(cx.tanh(cx.to_float(x)))
    }),
];

/// `Gelu`, exact or by tanh.
fn gelu(cx: &Cx, x: Value, approximate: String) -> Lowered {
    let approximate = match approximate.as_str() {
        "none" => "none",
        "tanh" => "tanh",
        other => {
            return Err(LowerError::unsupported(format!(
                "there is no gelu approximation {other}"
            )));
        }
    };
    Ok(cx.gelu(x, attrs::Gelu { approximate }))
}

/// `relu6(x + 3) / 6`.
fn hardsigmoid(cx: &Cx, x: Value) -> Lowered {
    Ok(cx.hard_sigmoid(
        x,
        attrs::HardSigmoid {
            alpha: 1.0 / 6.0,
            beta: 0.5,
        },
    ))
}

fn hardtanh(cx: &Cx, x: Value, min: Scalar, max: Scalar) -> Lowered {
    Ok(cx.clamp(x, Some(min), Some(max)))
}

/// `x * sigmoid(x)`.
fn silu(cx: &Cx, x: Value) -> Lowered {
    Ok(cx.mul(x, cx.sigmoid(x)))
}

/// `Softmax` along `dim`, computed in `dtype` where one is given. ONNX has none for 0-d: there it is 1.
fn softmax(cx: &Cx, x: Value, dim: i64, dtype: Option<DType>) -> Lowered {
    let x = cx.cast(x, dtype.unwrap_or_else(|| cx.dtype(x)));
    let axis = cx.axis(x, dim)? as i64;
    let over = |x| cx.softmax(x, attrs::Softmax { axis });
    Ok(at_least_1d(cx, x, over))
}

fn log_softmax(cx: &Cx, x: Value, dim: i64, dtype: Option<DType>) -> Lowered {
    let x = cx.cast(x, dtype.unwrap_or_else(|| cx.dtype(x)));
    let axis = cx.axis(x, dim)? as i64;
    let over = |x| cx.log_softmax(x, attrs::LogSoftmax { axis });
    Ok(at_least_1d(cx, x, over))
}

/// The decomposed forms name their type by a flag: whether float16 becomes float32.
fn half_to_float_softmax(cx: &Cx, x: Value, dim: i64, half_to_float: bool) -> Lowered {
    softmax(cx, x, dim, half_to_float.then_some(DType::F32))
}

fn half_to_float_log_softmax(cx: &Cx, x: Value, dim: i64, half_to_float: bool) -> Lowered {
    log_softmax(cx, x, dim, half_to_float.then_some(DType::F32))
}

/// `op` on `x`, a 0-d `x` taken as a vector of one element.
fn at_least_1d(cx: &Cx, x: Value, op: impl Fn(Value) -> Value) -> Value {
    match cx.rank(x) {
        0 => cx.squeeze(op(cx.unsqueeze(x, &[0])), &[0]),
        _ => op(x),
    }
}
