//! Attention.

use crate::{AtenOp, Cx, LowerError, Lowered, cx::Outputs, registry::aten};
use pt2onnx_ir::{Reduction, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(super) static OPS: &[AtenOp] = &[
    aten!(
        "aten::_native_multi_head_attention(Tensor query, Tensor key, Tensor value, int embed_dim, int num_head, Tensor qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, Tensor? mask=None, bool need_weights=True, bool average_attn_weights=True, int? mask_type=None) -> (Tensor, Tensor)",
        native_multi_head_attention
    ),
    aten!(
        "aten::_scaled_dot_product_attention_math(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0., bool is_causal=False, Tensor? dropout_mask=None, *, float? scale=None, bool enable_gqa=False) -> (Tensor, Tensor)",
        |cx: &Cx,
         q: Value,
         k: Value,
         v: Value,
         mask: Option<Value>,
         p: f64,
         causal: bool,
         _: Option<Value>,
         scale: Option<f64>,
         gqa: bool|
         -> Lowered<Outputs> {
            let a = attend(cx, [q, k, v], mask, p, causal, scale, gqa)?;
            Ok([a.result, a.weights].into())
        }
    ),
    aten!(
        "aten::_scaled_dot_product_attention_math_for_mps(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0., bool is_causal=False, Tensor? dropout_mask=None, *, float? scale=None, bool enable_gqa=False) -> (Tensor, Tensor)",
        |cx: &Cx,
         q: Value,
         k: Value,
         v: Value,
         mask: Option<Value>,
         p: f64,
         causal: bool,
         _: Option<Value>,
         scale: Option<f64>,
         gqa: bool|
         -> Lowered<Outputs> {
            let a = attend(cx, [q, k, v], mask, p, causal, scale, gqa)?;
            Ok([a.result, a.weights].into())
        }
    ),
    aten!(
        "aten::_scaled_dot_product_cudnn_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_bias, bool compute_log_sumexp, float dropout_p=0., bool is_causal=False, bool return_debug_mask=False, *, float? scale=None) -> (Tensor output, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, Tensor philox_seed, Tensor philox_offset, Tensor debug_attn_mask)",
        |cx: &Cx,
         q: Value,
         k: Value,
         v: Value,
         mask: Option<Value>,
         _: bool,
         p: f64,
         causal: bool,
         _: bool,
         scale: Option<f64>| { fused(cx, q, k, v, mask, p, causal, scale) }
    ),
    aten!(
        "aten::_scaled_dot_product_efficient_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_bias, bool compute_log_sumexp, float dropout_p=0., bool is_causal=False, *, float? scale=None) -> (Tensor output, Tensor log_sumexp, Tensor philox_seed, Tensor philox_offset)",
        |cx: &Cx,
         q: Value,
         k: Value,
         v: Value,
         mask: Option<Value>,
         _: bool,
         p: f64,
         causal: bool,
         scale: Option<f64>| { fused(cx, q, k, v, mask, p, causal, scale) }
    ),
    aten!(
        "aten::_scaled_dot_product_flash_attention(Tensor query, Tensor key, Tensor value, float dropout_p=0., bool is_causal=False, bool return_debug_mask=False, *, float? scale=None) -> (Tensor output, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, Tensor rng_state, Tensor unused, Tensor debug_attn_mask)",
        |cx: &Cx,
         q: Value,
         k: Value,
         v: Value,
         p: f64,
         causal: bool,
         _: bool,
         scale: Option<f64>| { fused(cx, q, k, v, None, p, causal, scale) }
    ),
    aten!(
        "aten::_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float dropout_p=0., bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor output, Tensor logsumexp)",
        |cx: &Cx,
         q: Value,
         k: Value,
         v: Value,
         p: f64,
         causal: bool,
         mask: Option<Value>,
         scale: Option<f64>| { fused(cx, q, k, v, mask, p, causal, scale) }
    ),
    aten!(
        "aten::_scaled_dot_product_fused_attention_overrideable(Tensor query, Tensor key, Tensor value, Tensor? attn_bias=None, float dropout_p=0., bool is_causal=False, bool return_debug_mask=False, *, float? scale=None) -> (Tensor output, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, Tensor philox_seed, Tensor philox_offset, Tensor debug_attn_mask)",
        |cx: &Cx,
         q: Value,
         k: Value,
         v: Value,
         mask: Option<Value>,
         p: f64,
         causal: bool,
         _: bool,
         scale: Option<f64>| { fused(cx, q, k, v, mask, p, causal, scale) }
    ),
    aten!(
        "aten::_transformer_encoder_layer_fwd(Tensor src, int embed_dim, int num_heads, Tensor qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, bool use_gelu, bool norm_first, float eps, Tensor norm_weight_1, Tensor norm_bias_1, Tensor norm_weight_2, Tensor norm_bias_2, Tensor ffn_weight_1, Tensor ffn_bias_1, Tensor ffn_weight_2, Tensor ffn_bias_2, Tensor? mask=None, int? mask_type=None) -> Tensor",
        encoder_layer
    ),
    aten!(
        "aten::scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0., bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
        |cx: &Cx,
         q: Value,
         k: Value,
         v: Value,
         mask: Option<Value>,
         p: f64,
         causal: bool,
         scale: Option<f64>,
         gqa: bool|
         -> Lowered { Ok(attend(cx, [q, k, v], mask, p, causal, scale, gqa)?.result) }
    ),
];

/// What [`attend`] worked out.
struct Attention {
    result: Value,
    weights: Value,
    /// Scaled products with the mask, before the softmax.
    scores: Value,
}

/// `softmax(scale * q @ k.T + mask) @ v`. A row whose every key is masked gives zeros, as PyTorch's `_safe_softmax` does.
/// The softmax of halves is taken in float32.
fn attend(
    cx: &Cx,
    [q, k, v]: [Value; 3],
    mask: Option<Value>,
    dropout_p: f64,
    is_causal: bool,
    scale: Option<f64>,
    enable_gqa: bool,
) -> Lowered<Attention> {
    let (k, v) =
        if enable_gqa { (repeat_heads(cx, q, k)?, repeat_heads(cx, q, v)?) } else { (k, v) };
    let given = cx.dtype(q);
    let scaled = match (scale, cx.dim(q, -1).as_int()) {
        (Some(scale), _) => cx.mul(q, scale),
        (None, Some(width)) => cx.mul(q, 1.0 / (width as f64).sqrt()),
        (None, None) => cx.div(q, cx.sqrt(cx.cast(cx.size(&cx.dim(q, -1)), given))),
    };
    let rank = cx.rank(k);
    if rank < 2 {
        return Err(LowerError::unsupported("attention of vectors"));
    }
    let mut scores = cx.matmul(scaled, cx.swap_axes(k, rank - 2, rank - 1));
    if matches!(given, DType::F16 | DType::BF16) {
        scores = cx.cast(scores, DType::F32);
    }
    let mut allowed = is_causal.then(|| causal_mask(cx, &cx.dim(q, -2), &cx.dim(k, -2)));
    match mask {
        Some(mask) if cx.dtype(mask) == DType::Bool => {
            allowed = Some(allowed.map_or(mask, |a| cx.and(a, mask)))
        }
        Some(bias) => scores = cx.add(scores, cx.cast(bias, cx.dtype(scores))),
        None => {}
    }
    let softmax = |scores| cx.softmax(scores, attrs::Softmax { axis: -1 });
    if let Some(allowed) = allowed {
        scores = cx.select(allowed, scores, f64::NEG_INFINITY);
    }
    let weights = match (allowed, mask) {
        // Masked keys get no weight; in a row that is all masked, what softmax makes of it (NaN) goes with them.
        (Some(allowed), Some(_)) => cx.select(allowed, softmax(scores), 0.0),
        // Each query sees at least the first key.
        (Some(_), None) | (None, None) => softmax(scores),
        (None, Some(_)) => {
            let largest = cx.reduce(Reduction::Max, scores, &[cx.rank(scores) - 1], true);
            cx.select(cx.equal(largest, f64::NEG_INFINITY), 0.0, softmax(scores))
        }
    };
    let mut weights = cx.cast(weights, given);
    // PyTorch drops whatever the model's mode is.
    if dropout_p > 0.0 {
        let (ratio, training) = (cx.scalar(dropout_p, DType::F32), cx.scalar(true, DType::Bool));
        weights = cx.dropout(weights, ratio, training, attrs::Dropout::default());
    }
    Ok(Attention { result: cx.matmul(weights, v), weights, scores })
}

/// With the logarithm of the rows' sums; what else such kernels give is for their gradients.
#[expect(clippy::too_many_arguments, reason = "ATen's signature")]
fn fused(
    cx: &Cx,
    q: Value,
    k: Value,
    v: Value,
    mask: Option<Value>,
    dropout_p: f64,
    is_causal: bool,
    scale: Option<f64>,
) -> Lowered<Outputs> {
    let a = attend(cx, [q, k, v], mask, dropout_p, is_causal, scale, false)?;
    let sums = cx.recorded(1).filter(|_| cx.is_used(1)).map(|meta| {
        let last = cx.rank(a.scores) - 1;
        cx.cast(cx.reduce(Reduction::LogSumExp, a.scores, &[last], false), meta.dtype)
    });
    Ok([Some(a.result), sums].into())
}

/// Each head as often as `q` has heads for it, copies side by side.
fn repeat_heads(cx: &Cx, q: Value, x: Value) -> Lowered {
    let mut shape = cx.shape(x);
    let Some(axis) = shape.len().checked_sub(3) else {
        return Err(LowerError::unsupported("grouped heads without a dimension of heads"));
    };
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
    cx.greater_or_equal(cx.unsqueeze(cx.iota(rows), &[1]), cx.iota(columns))
}

/// `x @ w.T + b`
fn linear(cx: &Cx, x: Value, w: Value, b: Value) -> Value {
    cx.add(cx.matmul(x, cx.transpose(w, &[1, 0])), b)
}

/// A mask of `_native_multi_head_attention`, true where nothing is to be seen: over queries and keys (0), over the keys of
/// each sequence (1), or over all (2).
fn blocking_mask(cx: &Cx, mask: Value, kind: Option<i64>) -> Value {
    let allowed = match cx.dtype(mask) {
        DType::Bool => cx.not(mask),
        // Added to the scores.
        _ => mask,
    };
    match kind {
        Some(1) if cx.rank(mask) == 2 => cx.unsqueeze(allowed, &[1, 2]),
        _ => allowed,
    }
}

/// Projections of `(batch, time, width)`, attention of each head, and a projection of their results; with the weights.
fn multi_head(
    cx: &Cx,
    [q, k, v]: [Value; 3],
    heads: i64,
    [qkv_weight, qkv_bias]: [Value; 2],
    [proj_weight, proj_bias]: [Value; 2],
    mask: Option<Value>,
) -> Lowered<[Value; 2]> {
    let shape = cx.shape(q);
    let [batch, time, width] = shape.as_slice() else {
        return Err(LowerError::unsupported("multi-head attention of a rank other than 3"));
    };
    let thirds = vec![width.clone(); 3];
    let [q, k, v] = if q == k && k == v {
        let all = cx.split(linear(cx, q, qkv_weight, qkv_bias), 2, &thirds);
        [all[0], all[1], all[2]]
    } else {
        let (w, b) = (cx.split(qkv_weight, 0, &thirds), cx.split(qkv_bias, 0, &thirds));
        [linear(cx, q, w[0], b[0]), linear(cx, k, w[1], b[1]), linear(cx, v, w[2], b[2])]
    };
    let each = width.floor_div(&Expr::int(heads));
    let apart = |x: Value| {
        let dims = [batch.clone(), cx.dim(x, 1), Expr::int(heads), each.clone()];
        cx.transpose(cx.reshape(x, &dims), &[0, 2, 1, 3])
    };
    let a = attend(cx, [apart(q), apart(k), apart(v)], mask, 0.0, false, None, false)?;
    let joined = cx.transpose(a.result, &[0, 2, 1, 3]);
    let joined = cx.reshape(joined, &[batch.clone(), time.clone(), width.clone()]);
    Ok([linear(cx, joined, proj_weight, proj_bias), a.weights])
}

#[expect(clippy::too_many_arguments, reason = "ATen's signature")]
fn native_multi_head_attention(
    cx: &Cx,
    q: Value,
    k: Value,
    v: Value,
    _width: i64,
    heads: i64,
    qkv_weight: Value,
    qkv_bias: Value,
    proj_weight: Value,
    proj_bias: Value,
    mask: Option<Value>,
    need_weights: bool,
    average_weights: bool,
    mask_type: Option<i64>,
) -> Lowered<Outputs> {
    let mask = mask.map(|m| blocking_mask(cx, m, mask_type));
    let (qkv, proj) = ([qkv_weight, qkv_bias], [proj_weight, proj_bias]);
    let [result, weights] = multi_head(cx, [q, k, v], heads, qkv, proj, mask)?;
    let weights = (need_weights && cx.is_used(1)).then(|| match average_weights {
        true => cx.reduce(Reduction::Mean, weights, &[1], false),
        false => weights,
    });
    Ok([Some(result), weights].into())
}

/// A layer of a transformer's encoder: attention, then a network of two linear layers, each with a shortcut and a layer norm
/// behind that (or in front).
#[expect(clippy::too_many_arguments, reason = "ATen's signature")]
fn encoder_layer(
    cx: &Cx,
    x: Value,
    _width: i64,
    heads: i64,
    qkv_weight: Value,
    qkv_bias: Value,
    proj_weight: Value,
    proj_bias: Value,
    use_gelu: bool,
    norm_first: bool,
    eps: f64,
    norm_weight_1: Value,
    norm_bias_1: Value,
    norm_weight_2: Value,
    norm_bias_2: Value,
    ffn_weight_1: Value,
    ffn_bias_1: Value,
    ffn_weight_2: Value,
    ffn_bias_2: Value,
    mask: Option<Value>,
    mask_type: Option<i64>,
) -> Lowered {
    let options = attrs::LayerNormalization { axis: -1, epsilon: eps as f32, ..Default::default() };
    let norm = |x, w, b| cx.layer_normalization(x, w, b, options.clone());
    let mask = mask.map(|m| blocking_mask(cx, m, mask_type));
    let attention = |x: Value| {
        let (qkv, proj) = ([qkv_weight, qkv_bias], [proj_weight, proj_bias]);
        multi_head(cx, [x; 3], heads, qkv, proj, mask).map(|[result, _]| result)
    };
    let network = |x: Value| {
        let hidden = linear(cx, x, ffn_weight_1, ffn_bias_1);
        let hidden = match use_gelu {
            true => cx.gelu(hidden, Default::default()),
            false => cx.relu(hidden),
        };
        linear(cx, hidden, ffn_weight_2, ffn_bias_2)
    };
    if norm_first {
        let x = cx.add(x, attention(norm(x, norm_weight_1, norm_bias_1))?);
        return Ok(cx.add(x, network(norm(x, norm_weight_2, norm_bias_2))));
    }
    let x = norm(cx.add(x, attention(x)?), norm_weight_1, norm_bias_1);
    Ok(norm(cx.add(x, network(x)), norm_weight_2, norm_bias_2))
}
