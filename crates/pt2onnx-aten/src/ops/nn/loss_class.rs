//! Losses over classes: negative log likelihoods, cross entropies, multi-class and multi-label
//! margins.

use crate::math::precision::widened;
use crate::math::reduce::{as_axis, log_softmax_of, reduce, reduced, total};
use crate::math::sort::gather_elements;
use crate::{AtenOp, Cx, LowerError, Lowered, args::Ignored, arguments, checks, op};
use pt2onnx_ir::{Reduction, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Scalar};

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::cross_entropy_loss, cross_entropy_loss),
    op!(aten::multi_margin_loss, multi_margin_loss),
    op!(aten::multilabel_margin_loss, multilabel_margin),
    op!(aten::multilabel_margin_loss_forward, multilabel_margin),
    op!(aten::nll_loss, nll_loss),
    op!(aten::nll_loss2d, nll_loss),
    op!(aten::nll_loss2d_forward, nll_loss_forward),
    op!(aten::nll_loss_forward, nll_loss_forward),
    op!(aten::nll_loss_nd, nll_loss),
    op!(
        "torch_nn::_linear_cross_entropy_batch_chunked(Tensor input, Tensor linear_weight, Tensor target, Tensor? linear_bias, Tensor? weight, str reduction, SymInt ignore_index, float label_smoothing, SymInt batch_chunk_size, str acc_policy, ScalarType acc_dtype, bool allow_retain_graph, bool compute_input_grad, bool compute_linear_weight_grad, bool compute_linear_bias_grad) -> (Tensor, Tensor, Tensor, Tensor)",
        linear_cross_entropy
    ),
    op!(
        "torch_nn::_linear_cross_entropy_batch_chunked_no_reduction(Tensor input, Tensor linear_weight, Tensor target, Tensor? linear_bias, Tensor? weight, SymInt ignore_index, SymInt batch_chunk_size, str acc_policy, ScalarType acc_dtype) -> Tensor",
        linear_cross_entropy
    ),
];

arguments! {
    /// Arguments of [`linear_cross_entropy`]. How PyTorch splits the batch does not change the
    /// result.
    struct LinearCrossEntropyArgs {
        input: Value,
        linear_weight: Value,
        target: Value,
        linear_bias: Option<Value>,
        weight: Option<Value>,
        reduction: Option<String>,
        ignore_index: i64,
        label_smoothing: Option<f64>,
        batch_chunk_size: Ignored,
        acc_policy: Ignored,
        acc_dtype: Ignored,
        allow_retain_graph: Ignored,
        compute_input_grad: Ignored,
        compute_linear_weight_grad: Ignored,
        compute_linear_bias_grad: Ignored,
    }
}

/// The name that ONNX gives a reduction.
fn reduction_name(reduction: i64) -> Lowered<&'static str> {
    match reduction {
        0 => Ok("none"),
        1 => Ok("mean"),
        2 => Ok("sum"),
        _ => Err(LowerError::unsupported("the reduction must be `none`, `mean` or `sum`")),
    }
}

/// `-weight[target] * logs[target]`: `NegativeLogLikelihoodLoss`. Input of one dimension has no
/// batch.
fn nll_loss(
    cx: &Cx,
    logs: Value,
    target: Value,
    weight: Option<Value>,
    reduction: i64,
    ignore_index: i64,
) -> Lowered {
    let unbatched = cx.rank(logs) == 1;
    let (logs, target) = if unbatched {
        (cx.unsqueeze(logs, &[0]), cx.reshape(target, &[Expr::int(1)]))
    } else {
        (logs, target)
    };
    let options = attrs::NegativeLogLikelihoodLoss {
        ignore_index: Some(ignore_index),
        reduction: reduction_name(reduction)?,
    };
    let target = cx.cast(target, DType::I64);
    let loss = cx.negative_log_likelihood_loss(logs, target, weight, options);
    let dims = if reduction == 0 { cx.shape(target) } else { Vec::new() };
    cx.set_type(loss, pt2onnx_ir::Type::tensor(cx.dtype(logs), dims));
    Ok(if reduction == 0 && unbatched { cx.reshape(loss, &[]) } else { loss })
}

/// `weight[target]` (1 without weights); 0 for the class to ignore.
fn target_weights(
    cx: &Cx,
    target: Value,
    weight: Option<Value>,
    ignore_index: i64,
    dtype: DType,
) -> Value {
    let counts = cx.not(cx.equal(target, ignore_index));
    match weight {
        None => cx.cast(counts, dtype),
        Some(w) => {
            let known = cx.select(counts, target, 0);
            cx.mul(cx.gather(w, known, 0), cx.cast(counts, dtype))
        }
    }
}

/// [`nll_loss`], and the sum of the weights.
fn nll_loss_forward(
    cx: &Cx,
    logs: Value,
    target: Value,
    weight: Option<Value>,
    reduction: i64,
    ignore_index: i64,
) -> Lowered<[Option<Value>; 2]> {
    let loss = nll_loss(cx, logs, target, weight, reduction, ignore_index)?;
    let sum = cx.is_used(1).then(|| match reduction {
        0 => cx.scalar(0, cx.dtype(logs)),
        _ => total(cx, target_weights(cx, target, weight, ignore_index, cx.dtype(logs))),
    });
    Ok([Some(loss), sum])
}

/// The cross entropy of classes `target` (or of their probabilities) under `softmax(input)`. With
/// label smoothing `s`, the target is `(1 - s) target + s / classes`.
fn cross_entropy_loss(
    cx: &Cx,
    x: Value,
    target: Value,
    weight: Option<Value>,
    reduction: i64,
    ignore_index: i64,
    smoothing: f64,
) -> Lowered {
    // A vector has no batch.
    let axis = usize::from(cx.rank(x) > 1);
    let logs = log_softmax_of(cx, x, axis);
    let rank = cx.rank(x);
    let classes = cx.dim(x, axis as i64);
    let dtype = cx.dtype(x);
    let weighted = |v: Value| weight.map_or(v, |w| cx.mul(v, as_axis(cx, w, axis, rank)));
    let count = || cx.cast(cx.size(&classes), dtype);
    if cx.rank(target) == rank && cx.dtype(target).is_float() {
        let target = match smoothing {
            0.0 => target,
            s => cx.add(cx.mul(target, 1.0 - s), cx.div(cx.scalar(s, dtype), count())),
        };
        let loss =
            cx.neg(reduce(cx, Reduction::Sum, weighted(cx.mul(logs, target)), &[axis], false));
        if reduction != 1 {
            return reduced(cx, loss, reduction);
        }
        // The mean is over all samples, independent of their weights.
        let samples = Expr::product(cx.shape(loss));
        return Ok(cx.div(total(cx, loss), cx.cast(cx.size(&samples), dtype)));
    }
    let nll = nll_loss(cx, logs, target, weight, reduction, ignore_index)?;
    if smoothing == 0.0 {
        return Ok(nll);
    }
    // Smoothing mixes in the losses of all classes.
    let all = cx.neg(reduce(cx, Reduction::Sum, weighted(logs), &[axis], false));
    let counts = cx.not(cx.equal(target, ignore_index));
    let all = cx.select(counts, all, 0.0);
    let all = match reduction {
        0 => all,
        2 => total(cx, all),
        _ => cx.div(
            total(cx, all),
            total(cx, target_weights(cx, target, weight, ignore_index, dtype)),
        ),
    };
    let share = cx.div(cx.scalar(smoothing, dtype), count());
    Ok(cx.add(cx.mul(nll, 1.0 - smoothing), cx.mul(all, share)))
}

/// The sum of `max(0, margin - x[target] + x[i])^p` over all other classes `i`, divided by the
/// number of classes.
fn multi_margin_loss(
    cx: &Cx,
    x: Value,
    target: Value,
    p: Scalar,
    margin: Scalar,
    weight: Option<Value>,
    reduction: i64,
) -> Lowered {
    let unbatched = cx.rank(x) < 2;
    let x = match cx.rank(x) {
        0 => cx.reshape(x, &[Expr::int(1), Expr::int(1)]),
        1 => cx.unsqueeze(x, &[0]),
        _ => x,
    };
    let flat = cx.reshape(target, &[cx.numel(target)]);
    let own = cx.unsqueeze(flat, &[1]);
    let off = cx.add(cx.sub(x, gather_elements(cx, x, own, 1)), margin.to_f64());
    let hinge = positive(cx, off);
    let power = if p.to_f64() == 2.0 { cx.mul(hinge, hinge) } else { hinge };
    let of_classes = |w| cx.unsqueeze(cx.gather(w, flat, 0), &[1]);
    let power = weight.map_or(power, |w| cx.mul(power, of_classes(w)));
    let class = cx.cast(cx.iota(&cx.dim(x, 1)), DType::I64);
    let others = cx.select(cx.equal(class, own), 0, power);
    let loss = reduce(cx, Reduction::Mean, others, &[1], false);
    let loss = if unbatched && cx.rank(target) == 0 { cx.reshape(loss, &[]) } else { loss };
    reduced(cx, loss, reduction)
}

/// `max(0, x)`; 0 of NaN.
fn positive(cx: &Cx, x: Value) -> Value {
    if cx.propagates_nan(x) { cx.select(cx.greater(x, 0), x, 0) } else { cx.maximum(x, 0) }
}

/// The sum of `max(0, 1 - x[label] + x[i])` over all labels and all classes `i` that are no label,
/// divided by the number of classes; and which classes are labels. Labels are the targets before
/// the first -1.
fn multilabel_margin(cx: &Cx, x: Value, target: Value, reduction: i64) -> Lowered<[Value; 2]> {
    let rank = cx.rank(x);
    let matrix = |v: Value| match rank {
        0 => cx.reshape(v, &[Expr::int(1), Expr::int(1)]),
        1 => cx.unsqueeze(v, &[0]),
        _ => v,
    };
    let shape = cx.shape(target);
    let (x, target) = (matrix(x), matrix(target));
    let dtype = cx.dtype(x);
    let classes = cx.dim(x, 1);
    let axis = cx.scalar(1, DType::I64);
    let ended = cx.cum_sum(cx.cast(cx.less(target, 0), DType::I32), axis, Default::default());
    let valid = cx.equal(ended, 0);
    let labels = cx.select(valid, target, 0);
    // A class is a label if any valid element of `target` names it.
    let class = cx.cast(cx.iota(&classes), DType::I64);
    let named = cx.and(cx.equal(cx.unsqueeze(target, &[2]), class), cx.unsqueeze(valid, &[2]));
    let is_label = reduce(cx, Reduction::Max, named, &[1], false);
    let own = cx.unsqueeze(gather_elements(cx, x, labels, 1), &[2]);
    let off = cx.add(cx.sub(cx.unsqueeze(x, &[1]), own), 1.0);
    let counts = cx.and(cx.unsqueeze(valid, &[2]), cx.not(cx.unsqueeze(is_label, &[1])));
    let hinge = cx.select(counts, positive(cx, off), 0);
    let sum = reduce(cx, Reduction::Sum, hinge, &[1, 2], false);
    let loss = cx.div(sum, cx.cast(cx.size(&classes), dtype));
    let loss = if rank < 2 { cx.reshape(loss, &[]) } else { loss };
    let is_label = cx.reshape(cx.cast(is_label, dtype), &shape);
    Ok([reduced(cx, loss, reduction)?, is_label])
}

/// `x @ linear.T + bias`. float16 and bfloat16 are computed in float32.
fn logits(cx: &Cx, x: Value, linear: Value, bias: Option<Value>) -> Value {
    let dtype = widened(cx.dtype(x));
    let wide = |v| cx.cast(v, dtype);
    let options = attrs::Gemm { trans_b: true, ..Default::default() };
    cx.gemm(wide(x), wide(linear), bias.map(wide), options)
}

/// [`cross_entropy_loss`] of a linear layer's results.
fn linear_cross_entropy(cx: &Cx, args: LinearCrossEntropyArgs) -> Lowered<[Option<Value>; 4]> {
    let dtype = cx.dtype(args.input);
    let logits = logits(cx, args.input, args.linear_weight, args.linear_bias);
    let weight = args.weight.map(|w| cx.cast(w, cx.dtype(logits)));
    let is_float = cx.dtype(args.target).is_float();
    let target = if is_float { cx.cast(args.target, cx.dtype(logits)) } else { args.target };
    let reduction = match args.reduction.as_deref() {
        Some("mean") => 1,
        Some("sum") => 2,
        _ => 0,
    };
    let smoothing = args.label_smoothing.unwrap_or(0.0);
    let ignored = args.ignore_index;
    let loss = cross_entropy_loss(cx, logits, target, weight, reduction, ignored, smoothing)?;
    // An exported program computes no gradients: PyTorch returns empty tensors for them.
    let empty = |i: usize| {
        let meta = cx.recorded(i).filter(|m| m.sizes.contains(&Expr::int(0)))?;
        Some(cx.full(&meta.sizes, 0, meta.dtype))
    };
    Ok([Some(cx.cast(loss, dtype)), empty(1), empty(2), empty(3)])
}

checks! {
    // A loss without a batch is a scalar.
    "aten.nll_loss_nd(x: f32[5], y: i64[], None, 0, -100) -> f32[]" => r#"
    val_0 = Unsqueeze (x, [0])
    val_1 = Reshape (y, [1])
    val_2 = NegativeLogLikelihoodLoss <ignore_index: int = -100, reduction: string = "none"> (val_0, val_1)
    nll_loss_nd = Reshape (val_2, [])
    "#;

    // Smoothing mixes in all classes.
    "aten.cross_entropy_loss(x: f32[s0, 5], y: i64[s0], None, 1, -100, 0.1) -> f32[]" => "
    val_0 = LogSoftmax <axis: int = 1> (x)
    val_1 = NegativeLogLikelihoodLoss <ignore_index: int = -100> (val_0, y)
    val_2 = ReduceSum <keepdims: int = 0> (val_0, [1])
    val_3 = Neg (val_2)
    val_4 = Equal (y, -100)
    val_5 = Not (val_4)
    val_6 = Where (val_5, val_3, 0.0)
    val_7 = ReduceSum <keepdims: int = 0> (val_6)
    val_8 = Equal (y, -100)
    val_9 = Not (val_8)
    val_10 = Cast <to: int = 1> (val_9)
    val_11 = ReduceSum <keepdims: int = 0> (val_10)
    val_12 = Div (val_7, val_11)
    val_13 = Cast <to: int = 1> (5)
    val_14 = Div (0.1, val_13)
    val_15 = Mul (val_1, 0.9)
    val_16 = Mul (val_12, val_14)
    cross_entropy_loss = Add (val_15, val_16)
    ";
}
