//! Attention.

use crate::{AtenOp, Cx, LowerError, Lowered, registry::aten};
use pt2onnx_ir::{Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(super) static OPS: &[AtenOp] = &[aten!(
    "aten::scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0., bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
    scaled_dot_product_attention
)];

/// `softmax(scale * q @ k.T + mask) @ v`. A row whose every key is masked gives zeros, as PyTorch's `_safe_softmax` does.
///
/// `q` is (..., heads, L, E), `k` (..., heads, S, E), `v` (..., heads, S, Ev); with `enable_gqa`, several heads of `q` share
/// one of `k` and `v`. `is_causal` lets query i see the keys up to i.
#[expect(clippy::too_many_arguments, reason = "ATen's signature")]
fn scaled_dot_product_attention(
    cx: &Cx,
    q: Value,
    k: Value,
    v: Value,
    mask: Option<Value>,
    dropout_p: f64,
    is_causal: bool,
    scale: Option<f64>,
    enable_gqa: bool,
) -> Lowered {
    if dropout_p > 0.0 {
        return Err(LowerError::unsupported(
            "attention with dropout: export the model after `model.eval()`",
        ));
    }
    let (k, v) = if enable_gqa {
        (repeat_heads(cx, q, k)?, repeat_heads(cx, q, v)?)
    } else {
        (k, v)
    };
    let scaled = match (scale, cx.dim(q, -1).as_int()) {
        (Some(scale), _) => cx.mul(q, scale),
        (None, Some(width)) => cx.mul(q, 1.0 / (width as f64).sqrt()),
        (None, None) => cx.div(q, cx.sqrt(cx.cast(cx.size(&cx.dim(q, -1)), cx.dtype(q)))),
    };
    let rank = cx.rank(k);
    let mut scores = cx.matmul(scaled, cx.swap_axes(k, rank - 2, rank - 1));
    let mut allowed = is_causal.then(|| causal_mask(cx, &cx.dim(q, -2), &cx.dim(k, -2)));
    match mask {
        Some(mask) if cx.dtype(mask) == DType::Bool => {
            allowed = Some(allowed.map_or(mask, |a| cx.and(a, mask)))
        }
        Some(bias) => scores = cx.add(scores, cx.cast(bias, cx.dtype(scores))),
        None => {}
    }
    let softmax = |scores| cx.softmax(scores, attrs::Softmax { axis: -1 });
    let weights = match (allowed, mask) {
        // Masked keys get no weight; in a row that is all masked, what softmax makes of it (NaN) goes with them.
        (Some(allowed), Some(_)) => cx.select(
            allowed,
            softmax(cx.select(allowed, scores, f64::NEG_INFINITY)),
            0.0,
        ),
        // Each query sees at least the first key.
        (Some(allowed), None) => softmax(cx.select(allowed, scores, f64::NEG_INFINITY)),
        (None, Some(_)) => {
            let largest = cx.reduce("ReduceMax", scores, &[cx.rank(scores) - 1], true);
            cx.select(cx.equal(largest, f64::NEG_INFINITY), 0.0, softmax(scores))
        }
        (None, None) => softmax(scores),
    };
    Ok(cx.matmul(weights, v))
}

/// Each head as often as `q` has heads for it, copies side by side.
fn repeat_heads(cx: &Cx, q: Value, x: Value) -> Lowered {
    let mut shape = cx.shape(x);
    let axis = shape.len() - 3;
    let (heads, shared) = (cx.dim(q, -3), shape[axis].clone());
    if heads == shared {
        return Ok(x);
    }
    let copies = heads.floor_div(&shared);
    let unsqueezed = cx.unsqueeze(x, &[axis + 1]);
    let mut wide = cx.shape(unsqueezed);
    wide[axis + 1] = copies;
    shape[axis] = heads;
    Ok(cx.reshape(cx.expand(unsqueezed, &wide), &shape))
}

/// True where the column is not behind the row.
fn causal_mask(cx: &Cx, rows: &Expr, columns: &Expr) -> Value {
    let numbers = |n: &Expr| {
        cx.range(
            cx.scalar(0, DType::I64),
            cx.size(n),
            cx.scalar(1, DType::I64),
        )
    };
    cx.greater_or_equal(cx.unsqueeze(numbers(rows), &[1]), numbers(columns))
}
