//! `Attention` by matrix products and a softmax, as the standard's function body has it.

use crate::legalise::{Emitted, Reason, input};
use pt2onnx_ir::{Builder, Node, Value, attrs, schema};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Scalar};

pub(crate) fn attention(cx: &Builder, node: &Node) -> Emitted {
    let input = |i: usize| input(node, i);
    let options = attrs::Attention::read(node)?;
    let packed = cx.known_shape(input(0)?).ok_or("the rank of the query is not known")?.len() == 3;
    let heads = |i: usize, count: Option<i64>, name: &str| match (packed, count) {
        (false, _) => input(i),
        (true, Some(count)) => unpack(cx, input(i)?, count),
        (true, None) => Err(format!("{name} is missing").into()),
    };
    let q = heads(0, options.q_num_heads, "q_num_heads")?;
    let mut k = heads(1, options.kv_num_heads, "kv_num_heads")?;
    let mut v = heads(2, options.kv_num_heads, "kv_num_heads")?;
    let dtype = cx.dtype(q);
    let past = node.input(4).zip(node.input(5));
    if let Some((past_key, past_value)) = past {
        (k, v) = (cx.concat(&[past_key, k], 2), cx.concat(&[past_value, v], 2));
    }
    let (present_key, present_value) = (k, v);
    let (q_heads, kv_heads) = (cx.dim(q, 1), cx.dim(k, 1));
    if q_heads != kv_heads {
        let (Some(many), Some(few)) = (q_heads.as_int(), kv_heads.as_int()) else {
            return Err("the numbers of heads are not known".into());
        };
        let repeats =
            many.checked_div(few).filter(|r| r * few == many).ok_or("the heads do not divide")?;
        (k, v) = (repeat(cx, k, repeats)?, repeat(cx, v, repeats)?);
    }
    let scale = match options.scale {
        Some(scale) => f64::from(scale),
        None => 1.0 / (cx.dim(q, 3).as_int().ok_or("the head size is not known")? as f64).sqrt(),
    };
    // Both factors are scaled, so that half precision does not overflow.
    let root = scale.sqrt();
    let mut scores = cx.matmul(cx.mul(q, root), cx.mul(cx.swap_axes(k, 2, 3), root));
    // The fourth output is one of the steps.
    let (mode, mut inner) = (options.qk_matmul_output_mode, scores);
    if options.softcap > 0.0 {
        let most = f64::from(options.softcap);
        scores = cx.mul(cx.tanh(cx.div(scores, most)), most);
    }
    if mode == 1 {
        inner = scores;
    }
    let infinity = Scalar::Float(f64::NEG_INFINITY);
    let mask = node.input(3);
    if let Some(mask) = mask {
        let bias = match cx.dtype(mask) {
            DType::Bool => cx.select(mask, cx.scalar(0.0, dtype), infinity),
            _ => mask,
        };
        scores = cx.add(scores, bias);
    }
    if options.is_causal {
        scores = cx.select(causal(cx, q, k, past.map(|(key, _)| key)), scores, infinity);
    }
    if mode == 2 {
        inner = scores;
    }
    let precision = options.softmax_precision.and_then(schema::dtype).unwrap_or(dtype);
    let mut weights = cx.softmax(cx.cast(scores, precision), attrs::Softmax { axis: -1 });
    if mask.is_some() {
        // A row of -inf becomes NaN: such a query attends to nothing.
        weights = cx.select(cx.is_nan(weights), cx.scalar(0.0, precision), weights);
    }
    let weights = cx.cast(weights, dtype);
    if mode == 3 {
        inner = weights;
    }
    let mut y = cx.matmul(weights, v);
    if packed {
        let flat = cx.ints(&[0, 0, -1]);
        y = cx.reshape_op(cx.transpose(y, &[0, 2, 1, 3]), flat, attrs::Reshape::default());
    }
    Ok(vec![y, present_key, present_value, inner])
}

/// From `[batch, length, heads * size]` to `[batch, heads, length, size]`.
fn unpack(cx: &Builder, x: Value, heads: i64) -> Result<Value, Reason> {
    let split = cx.reshape_op(x, cx.ints(&[0, 0, heads, -1]), attrs::Reshape::default());
    Ok(cx.transpose(split, &[0, 2, 1, 3]))
}

/// Each head `repeats` times in a row.
fn repeat(cx: &Builder, x: Value, repeats: i64) -> Result<Value, Reason> {
    let known = |axis, what| cx.dim(x, axis).as_int().ok_or(format!("the {what} is not known"));
    if cx.rank(x) != 4 {
        return Err("its inputs do not have four dimensions".into());
    }
    let heads = known(1, "number of heads")?.checked_mul(repeats).ok_or("it has too many heads")?;
    let size = known(3, "head size")?;
    let one_each = cx.unsqueeze(x, &[2]);
    let expanded = cx.expand_op(one_each, cx.ints(&[1, 1, repeats, 1, 1]));
    let target = cx.ints(&[0, heads, -1, size]);
    let merged = cx.reshape_op(expanded, target, attrs::Reshape::default());
    let mut sizes = cx.shape(x);
    sizes[1] = Expr::int(heads);
    cx.set_type(merged, pt2onnx_ir::Type::tensor(cx.dtype(x), sizes));
    Ok(merged)
}

/// Whether a query sees a key: all past keys, and those up to its own position.
fn causal(cx: &Builder, q: Value, k: Value, past: Option<Value>) -> Value {
    let (zero, one) = (cx.scalar(0, DType::I64), cx.scalar(1, DType::I64));
    let mut rows = cx.range(zero, length(cx, q), one);
    if let Some(past) = past {
        rows = cx.add(rows, length(cx, past));
    }
    let columns = cx.range(zero, length(cx, k), one);
    cx.greater_or_equal(cx.unsqueeze(rows, &[1]), cx.unsqueeze(columns, &[0]))
}

fn length(cx: &Builder, x: Value) -> Value {
    match cx.dim(x, 2).as_int() {
        Some(known) => cx.scalar(known, DType::I64),
        None => {
            let size = cx.shape_op(x, attrs::Shape { start: 2, end: Some(3) });
            cx.squeeze(size, &[0])
        }
    }
}
