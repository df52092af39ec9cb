//! Attention: scaled dot products, multi-head attention, encoder layers.

use crate::meta::{sized, typed};
use crate::{
    AtenOp, Cx, LowerError, Lowered,
    args::Ignored,
    arguments, checks,
    cx::Outputs,
    math::{dropout::dropout, reduce::all_hidden},
    op,
};
use pt2onnx_ir::{Reduction, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_native_multi_head_attention, native_multi_head_attention, meta = meta_multi_head),
    op!(aten::_scaled_dot_product_attention_math, attention),
    op!(aten::_scaled_dot_product_attention_math_for_mps, attention),
    op!(aten::_scaled_dot_product_cudnn_attention, fused_attention),
    op!(aten::_scaled_dot_product_efficient_attention, fused_attention),
    op!(aten::_scaled_dot_product_flash_attention, fused_attention),
    op!(
        aten::_scaled_dot_product_flash_attention_for_cpu,
        fused_attention,
        meta = meta_flash_attention
    ),
    op!(aten::_scaled_dot_product_fused_attention_overrideable, fused_attention),
    op!(aten::_transformer_encoder_layer_fwd, encoder_layer),
    op!(aten::scaled_dot_product_attention, attention),
];

arguments! {
    /// Arguments of scaled dot product attention: queries, keys and values `(.., heads, time,
    /// width)`. A mask of floats is added to the scores; a mask of bools is true for those that
    /// count.
    struct AttentionArgs {
        query: Value,
        key: Value,
        value: Value,
        attn_mask: Option<Value>,
        attn_bias: Option<Value>,
        compute_log_sumexp: Ignored,
        dropout_p: f64,
        is_causal: bool,
        dropout_mask: Ignored,
        return_debug_mask: Ignored,
        scale: Option<f64>,
        enable_gqa: Option<bool>,
    }

    /// Arguments of [`native_multi_head_attention`].
    struct MultiHeadArgs {
        query: Value,
        key: Value,
        value: Value,
        embed_dim: Ignored,
        num_head: i64,
        qkv_weight: Value,
        qkv_bias: Value,
        proj_weight: Value,
        proj_bias: Value,
        mask: Option<Value>,
        need_weights: bool,
        average_attn_weights: bool,
        mask_type: Option<i64>,
    }

    /// Arguments of [`encoder_layer`].
    struct EncoderLayerArgs {
        src: Value,
        embed_dim: Ignored,
        num_heads: i64,
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
    }
}

/// The result of [`attend`] and what it was computed from.
struct Attention {
    result: Value,
    /// The factors of the values.
    weights: Value,
    /// The scaled and masked products, before the softmax.
    scores: Value,
}

/// How [`attend`] computes.
#[derive(Clone, Copy, Default)]
struct Settings {
    mask: Option<Value>,
    dropout_p: f64,
    /// Whether query i attends only to keys up to i.
    is_causal: bool,
    /// The factor of the products; `1 / sqrt(width)` if not given.
    scale: Option<f64>,
    /// Whether several heads of the query share one head of key and value.
    enable_gqa: bool,
    /// Whether it is `scaled_dot_product_attention`, which PyTorch's CPU kernel computes if the
    /// operands suit it, and a formula that adds `-inf` to the scores of hidden keys otherwise.
    fused: bool,
}

impl AttentionArgs {
    /// [`attend`] with these arguments.
    fn attend(&self, cx: &Cx) -> Lowered<Attention> {
        let settings = Settings {
            mask: self.attn_mask.or(self.attn_bias),
            dropout_p: self.dropout_p,
            is_causal: self.is_causal,
            scale: self.scale,
            enable_gqa: self.enable_gqa.unwrap_or(false),
            fused: true,
        };
        attend(cx, [self.query, self.key, self.value], settings)
    }
}

/// `softmax(scale * q @ k.T + mask) @ v` and the weights, which are the softmax.
fn attention(cx: &Cx, args: AttentionArgs) -> Lowered<[Value; 2]> {
    let a = args.attend(cx)?;
    Ok([a.result, a.weights])
}

/// [`attention`] without the weights; the logarithm of each row's sum of exponentials, if used. The
/// other outputs of these kernels are only for gradients.
fn fused_attention(cx: &Cx, args: AttentionArgs) -> Lowered<Outputs> {
    let a = args.attend(cx)?;
    let sums = cx.recorded(1).filter(|_| cx.is_used(1)).map(|meta| {
        let last = cx.rank(a.scores) - 1;
        cx.cast(cx.reduce(Reduction::LogSumExp, a.scores, &[last], false), meta.dtype)
    });
    Ok([Some(a.result), sums].into())
}

/// `softmax(scale * q @ k.T + mask) @ v`. The result is 0 for a query whose keys are all masked, as
/// in PyTorch's `_safe_softmax`. The softmax of float16 and bfloat16 is computed in float32.
fn attend(cx: &Cx, [q, k, v]: [Value; 3], settings: Settings) -> Lowered<Attention> {
    let Settings { mask, dropout_p, is_causal, scale, enable_gqa, fused } = settings;
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
        return Err(LowerError::unsupported(
            "queries, keys and values must have at least two dimensions",
        ));
    }
    let mut scores = cx.matmul(scaled, cx.swap_axes(k, rank - 2, rank - 1));
    if matches!(given, DType::F16 | DType::BF16) {
        scores = cx.cast(scores, DType::F32);
    }
    let mut allowed = is_causal.then(|| {
        let rows = cx.unsqueeze(cx.iota(&cx.dim(q, -2)), &[1]);
        cx.greater_or_equal(rows, cx.iota(&cx.dim(k, -2)))
    });
    match mask {
        Some(mask) if cx.dtype(mask) == DType::Bool => {
            allowed = Some(allowed.map_or(mask, |a| cx.and(a, mask)))
        }
        Some(bias) => scores = cx.add(scores, cx.cast(bias, cx.dtype(scores))),
        None => {}
    }
    let softmax = |scores| cx.softmax(scores, attrs::Softmax { axis: -1 });
    // PyTorch's CPU kernel replaces the scores of later keys, and adds to those that a mask hides.
    let replaced = mask.is_none() && cx.dim(q, -1) == cx.dim(v, -1) && dropout_p == 0.0;
    let added =
        allowed.filter(|_| fused && !replaced && !cx.is_used(1) && cx.propagates_nan(scores));
    if let Some(allowed) = allowed {
        scores = match added {
            Some(_) => cx.add(
                scores,
                cx.select(allowed, cx.scalar(0.0, cx.dtype(scores)), hidden(cx, scores)),
            ),
            None => cx.select(allowed, scores, f64::NEG_INFINITY),
        };
    }
    let weights = match (allowed, mask) {
        _ if let Some(allowed) = added => {
            cx.mul(softmax(scores), cx.cast(allowed, cx.dtype(scores)))
        }
        // Masked keys get weight 0, also in rows whose keys are all masked, which have NaN.
        (Some(allowed), Some(_)) => cx.select(allowed, softmax(scores), 0.0),
        (_, None) if fused && dropout_p == 0.0 && ignores_nan(cx, q, scores, v) => {
            let seen = cx.greater(scores, f64::NEG_INFINITY);
            let any = cx.reduce(Reduction::Max, seen, &[cx.rank(scores) - 1], true);
            cx.select(any, softmax(scores), 0.0)
        }
        // Each query sees at least the first key.
        (_, None) => softmax(scores),
        (None, Some(_)) => {
            // Rows of -inf get weights of 0. If only the product is used, no reduction is needed: a
            // score of -inf has weight 0 in any row, except in one with NaN or infinity, whose
            // product is NaN in any case.
            let hidden = if cx.is_used(1) {
                all_hidden(cx, scores, cx.rank(scores) - 1)
            } else {
                cx.equal(scores, f64::NEG_INFINITY)
            };
            cx.select(hidden, 0.0, softmax(scores))
        }
    };
    let mut weights = cx.cast(weights, given);
    // PyTorch applies this dropout in evaluation, too.
    if dropout_p > 0.0 {
        [weights, _] = dropout(cx, weights, dropout_p);
    }
    Ok(Attention { result: cx.matmul(weights, v), weights, scores })
}

/// The number added to the score of a hidden key. It is finite, so that the softmax of a row
/// without keys is finite, too: times 0 it is 0, but NaN if a score is NaN.
fn hidden(cx: &Cx, scores: Value) -> Value {
    let lowest = match cx.dtype(scores) {
        DType::F64 => f64::MIN,
        _ => f64::from(f32::MIN),
    };
    cx.scalar(lowest / 2.0, cx.dtype(scores))
}

/// Whether PyTorch's CPU kernel gives 0 for a query whose scores are all NaN: without a mask, its
/// maximum ignores NaN if there are fewer scores than a vector register holds.
fn ignores_nan(cx: &Cx, q: Value, scores: Value, v: Value) -> bool {
    let lanes = 64 * 8 / cx.dtype(scores).bits() as i64;
    let few = cx.dim(scores, -1).as_int().is_some_and(|keys| keys < lanes);
    few && cx.propagates_nan(scores) && cx.dim(q, -1) == cx.dim(v, -1)
}

/// `x` with as many heads as `q`: each head is repeated, with its copies side by side.
fn repeat_heads(cx: &Cx, q: Value, x: Value) -> Lowered {
    let mut shape = cx.shape(x);
    let Some(axis) = shape.len().checked_sub(3) else {
        return Err(LowerError::unsupported("grouped heads need a dimension of heads"));
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

/// `x @ w.T + b`
fn linear(cx: &Cx, x: Value, w: Value, b: Value) -> Value {
    cx.add(cx.matmul(x, cx.transpose(w, &[1, 0])), b)
}

/// Converts a mask of `_native_multi_head_attention`, which is true for hidden keys, to one of
/// [`attend`], which is true for keys that count. Its kind is 0 for `(queries, keys)`, 1 for
/// `(batch, keys)`, 2 for all dimensions.
fn blocking_mask(cx: &Cx, mask: Value, kind: Option<i64>) -> Value {
    let allowed = match cx.dtype(mask) {
        DType::Bool => cx.not(mask),
        // A mask of floats is added to the scores.
        _ => mask,
    };
    match kind {
        Some(1) if cx.rank(mask) == 2 => cx.unsqueeze(allowed, &[1, 2]),
        _ => allowed,
    }
}

/// Multi-head attention of `(batch, time, width)`: inputs are projected and split into heads, each
/// head attends, and the joined results are projected. Returns the result and the weights.
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
        return Err(LowerError::unsupported(
            "multi-head attention needs a tensor of three dimensions",
        ));
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
    let settings = Settings { mask, ..Settings::default() };
    let a = attend(cx, [apart(q), apart(k), apart(v)], settings)?;
    let joined = cx.transpose(a.result, &[0, 2, 1, 3]);
    let joined = cx.reshape(joined, &[batch.clone(), time.clone(), width.clone()]);
    Ok([linear(cx, joined, proj_weight, proj_bias), a.weights])
}

/// [`multi_head`], and the weights if they are used: their mean over the heads, if
/// `average_attn_weights` is set.
fn native_multi_head_attention(cx: &Cx, args: MultiHeadArgs) -> Lowered<Outputs> {
    let mask = args.mask.map(|m| blocking_mask(cx, m, args.mask_type));
    let qkv = [args.qkv_weight, args.qkv_bias];
    let proj = [args.proj_weight, args.proj_bias];
    let inputs = [args.query, args.key, args.value];
    let [result, weights] = multi_head(cx, inputs, args.num_head, qkv, proj, mask)?;
    let weights = (args.need_weights && cx.is_used(1)).then(|| {
        if args.average_attn_weights {
            cx.reduce(Reduction::Mean, weights, &[1], false)
        } else {
            weights
        }
    });
    Ok([Some(result), weights].into())
}

/// A layer of a transformer's encoder: attention, then two linear layers with an activation between
/// them. Each of the two parts is added to its input. A layer norm follows, or with `norm_first`
/// precedes, each part.
fn encoder_layer(cx: &Cx, args: EncoderLayerArgs) -> Lowered {
    let (x, eps) = (args.src, args.eps);
    let options = attrs::LayerNormalization { axis: -1, epsilon: eps as f32, ..Default::default() };
    let norm = |x, w, b| cx.layer_normalization(x, w, b, options.clone());
    let mask = args.mask.map(|m| blocking_mask(cx, m, args.mask_type));
    let attention = |x: Value| {
        let qkv = [args.qkv_weight, args.qkv_bias];
        let proj = [args.proj_weight, args.proj_bias];
        multi_head(cx, [x; 3], args.num_heads, qkv, proj, mask).map(|[result, _]| result)
    };
    let network = |x: Value| {
        let hidden = linear(cx, x, args.ffn_weight_1, args.ffn_bias_1);
        let hidden =
            if args.use_gelu { cx.gelu(hidden, Default::default()) } else { cx.relu(hidden) };
        linear(cx, hidden, args.ffn_weight_2, args.ffn_bias_2)
    };
    if args.norm_first {
        let x = cx.add(x, attention(norm(x, args.norm_weight_1, args.norm_bias_1))?);
        return Ok(cx.add(x, network(norm(x, args.norm_weight_2, args.norm_bias_2))));
    }
    let x = norm(cx.add(x, attention(x)?), args.norm_weight_1, args.norm_bias_1);
    Ok(norm(cx.add(x, network(x)), args.norm_weight_2, args.norm_bias_2))
}

arguments! {
    struct MultiHead {
        query: Value, key: Value, num_head: i64, need_weights: bool, average_attn_weights: bool,
    }
}

/// The result, and the weights of all heads or their mean, if wanted.
fn meta_multi_head(cx: &Cx, args: MultiHead) -> Lowered<Outputs> {
    let [batch, from, to] =
        [(args.query, 0), (args.query, 1), (args.key, 1)].map(|(x, i)| cx.dim(x, i));
    let heads = (!args.average_attn_weights).then(|| Expr::int(args.num_head));
    let size: Vec<Expr> = [batch].into_iter().chain(heads).chain([from, to]).collect();
    let weights = args.need_weights.then(|| sized(cx, args.query, &size));
    Ok([Some(sized(cx, args.query, &cx.shape(args.query))), weights].into())
}

/// The result, and the logarithm of the sum of each row.
fn meta_flash_attention(cx: &Cx, q: Value) -> Lowered<[Value; 2]> {
    let mut size = cx.shape(q);
    let dtype = if cx.dtype(q) == DType::F64 { DType::F64 } else { DType::F32 };
    size.pop();
    Ok([sized(cx, q, &cx.shape(q)), typed(cx, dtype, &size)])
}

checks! {
    // Causal attention of grouped heads.
    "aten.scaled_dot_product_attention(q: f32[1, 4, s0, 8], k: f32[1, 2, s0, 8], v: f32[1, 2, s0, 8], is_causal = True, enable_gqa = True) -> f32[1, 4, s0, 8]" => "
    val_0 = Unsqueeze (k, [2])
    val_1 = Expand (val_0, [1, 1, 2, 1, 1])
    val_2 = Reshape (val_1, [1, 4, -1, 8])
    val_3 = Unsqueeze (v, [2])
    val_4 = Expand (val_3, [1, 1, 2, 1, 1])
    val_5 = Reshape (val_4, [1, 4, -1, 8])
    val_6 = Mul (q, 0.35355338)
    val_7 = Transpose <perm: ints = [0, 1, 3, 2]> (val_2)
    val_8 = MatMul (val_6, val_7)
    val_9 = Shape <start: int = 2, end: int = 3> (q)
    val_10 = Reshape (val_9, [])
    val_11 = Range (0, val_10, 1)
    val_12 = Unsqueeze (val_11, [1])
    val_13 = Range (0, val_10, 1)
    val_14 = GreaterOrEqual (val_12, val_13)
    val_15 = Where (val_14, val_8, -inf)
    val_16 = Softmax (val_15)
    scaled_dot_product_attention = MatMul (val_16, val_5)
    ";

    // Few keys of NaN.
    "aten.scaled_dot_product_attention(q: f32[1, 1, 4, 8], k: f32[1, 1, 15, 8], v: f32[1, 1, 15, 8]) -> f32[1, 1, 4, 8]" => "
    val_0 = Mul (q, 0.35355338)
    val_1 = Transpose <perm: ints = [0, 1, 3, 2]> (k)
    val_2 = MatMul (val_0, val_1)
    val_3 = Greater (val_2, -inf)
    val_4 = ReduceMax <keepdims: int = 1> (val_3, [3])
    val_5 = Softmax (val_2)
    val_6 = Where (val_4, val_5, 0.0)
    scaled_dot_product_attention = MatMul (val_6, v)
    ";
    "aten.scaled_dot_product_attention(q: f32[1, 1, 4, 8], k: f32[1, 1, 15, 8], v: f32[1, 1, 15, 8]) -> f32[1, 1, 4, 8]", assume_finite => "
    val_0 = Mul (q, 0.35355338)
    val_1 = Transpose <perm: ints = [0, 1, 3, 2]> (k)
    val_2 = MatMul (val_0, val_1)
    val_3 = Softmax (val_2)
    scaled_dot_product_attention = MatMul (val_3, v)
    ";

    // Masked rows are zero.
    "aten.scaled_dot_product_attention(q: f16[1, 1, 4, 8], k: f16[1, 1, 4, 8], v: f16[1, 1, 4, 8], mask: b8[4, 4]) -> f16[1, 1, 4, 8]" => "
    val_0 = Mul (q, float16 {0.35351563})
    val_1 = Transpose <perm: ints = [0, 1, 3, 2]> (k)
    val_2 = MatMul (val_0, val_1)
    val_3 = Cast <to: int = 1> (val_2)
    val_4 = Where (mask, 0.0, -1.7014117e38)
    val_5 = Add (val_3, val_4)
    val_6 = Softmax (val_5)
    val_7 = Cast <to: int = 1> (mask)
    val_8 = Mul (val_6, val_7)
    val_9 = Cast <to: int = 10> (val_8)
    scaled_dot_product_attention = MatMul (val_9, v)
    ";

    // A query that sees no key.
    "aten.scaled_dot_product_attention(q: f32[1, 1, 4, 8], k: f32[1, 1, 4, 8], v: f32[1, 1, 4, 8], mask: f32[4, 4]) -> f32[1, 1, 4, 8]" => "
    val_0 = Mul (q, 0.35355338)
    val_1 = Transpose <perm: ints = [0, 1, 3, 2]> (k)
    val_2 = MatMul (val_0, val_1)
    val_3 = Add (val_2, mask)
    val_4 = Equal (val_3, -inf)
    val_5 = Softmax (val_3)
    val_6 = Where (val_4, 0.0, val_5)
    scaled_dot_product_attention = MatMul (val_6, v)
    ";
}
