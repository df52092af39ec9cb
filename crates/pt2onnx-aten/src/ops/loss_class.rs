//! Losses over classes: negative log likelihoods, cross entropies, multi-class and multi-label margins.

use super::common_reduce::{along, gather_elements, reduce, reduced, total};
use crate::{AtenOp, Cx, LowerError, Lowered, registry::aten};
use pt2onnx_ir::{Reduction, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Scalar};

pub(super) static OPS: &[AtenOp] = &[
    aten!(
        "aten::cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100, float label_smoothing=0.) -> Tensor",
        cross_entropy_loss
    ),
    aten!(
        "aten::multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, int reduction=1) -> Tensor",
        multi_margin_loss
    ),
    aten!(
        "aten::multilabel_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
        |cx: &Cx, x: Value, target: Value, reduction: i64| -> Lowered {
            Ok(multilabel_margin(cx, x, target, reduction)?[0])
        }
    ),
    aten!(
        "aten::multilabel_margin_loss_forward(Tensor self, Tensor target, int reduction) -> (Tensor output, Tensor is_target)",
        multilabel_margin
    ),
    aten!(
        "aten::nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) -> Tensor",
        nll_loss
    ),
    aten!(
        "aten::nll_loss2d(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) -> Tensor",
        nll_loss
    ),
    aten!(
        "aten::nll_loss2d_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> (Tensor output, Tensor total_weight)",
        nll_loss_forward
    ),
    aten!(
        "aten::nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> (Tensor output, Tensor total_weight)",
        nll_loss_forward
    ),
    aten!(
        "aten::nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) -> Tensor",
        nll_loss
    ),
    aten!(
        "torch_nn::_linear_cross_entropy_batch_chunked(Tensor input, Tensor linear_weight, Tensor target, Tensor? linear_bias, Tensor? weight, str reduction, SymInt ignore_index, float label_smoothing, SymInt batch_chunk_size, str acc_policy, ScalarType acc_dtype, bool allow_retain_graph, bool compute_input_grad, bool compute_linear_weight_grad, bool compute_linear_bias_grad) -> (Tensor, Tensor, Tensor, Tensor)",
        linear_cross_entropy
    ),
    aten!(
        "torch_nn::_linear_cross_entropy_batch_chunked_no_reduction(Tensor input, Tensor linear_weight, Tensor target, Tensor? linear_bias, Tensor? weight, SymInt ignore_index, SymInt batch_chunk_size, str acc_policy, ScalarType acc_dtype) -> Tensor",
        |cx: &Cx,
         x: Value,
         linear: Value,
         target: Value,
         bias: Option<Value>,
         weight: Option<Value>,
         ignore: i64,
         _chunk: i64,
         _policy: String,
         _acc: DType| {
            let dtype = cx.dtype(x);
            let logits = logits(cx, x, linear, bias);
            let target = like_logits(cx, target, logits);
            let widened = weight.map(|w| cx.cast(w, cx.dtype(logits)));
            Ok::<Value, LowerError>(
                cx.cast(cross_entropy_loss(cx, logits, target, widened, 0, ignore, 0.0)?, dtype),
            )
        }
    ),
];

fn reduction_name(reduction: i64) -> Lowered<&'static str> {
    match reduction {
        0 => Ok("none"),
        1 => Ok("mean"),
        2 => Ok("sum"),
        _ => Err(LowerError::unsupported("a reduction that is none of none, mean and sum")),
    }
}

/// `NegativeLogLikelihoodLoss`; the classes of unbatched input are its only dimension.
fn nll_loss(
    cx: &Cx,
    logs: Value,
    target: Value,
    weight: Option<Value>,
    reduction: i64,
    ignore_index: i64,
) -> Lowered {
    let unbatched = cx.rank(logs) == 1;
    let (logs, target) = match unbatched {
        true => (cx.unsqueeze(logs, &[0]), cx.reshape(target, &[Expr::int(1)])),
        false => (logs, target),
    };
    let options = attrs::NegativeLogLikelihoodLoss {
        ignore_index: Some(ignore_index),
        reduction: reduction_name(reduction)?,
    };
    let target = cx.cast(target, DType::I64);
    let loss = cx.negative_log_likelihood_loss(logs, target, weight, options);
    let dims = match (reduction, unbatched) {
        (0, false) => cx.shape(target),
        _ => vec![],
    };
    if reduction == 0 && unbatched {
        cx.set_type(loss, pt2onnx_ir::Type::tensor(cx.dtype(logs), [Expr::int(1)]));
        return Ok(cx.reshape(loss, &[]));
    }
    cx.set_type(loss, pt2onnx_ir::Type::tensor(cx.dtype(logs), dims));
    Ok(loss)
}

/// The weights of the targets; 0 for those ignored.
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

/// The classes' dimension of input and the log-probabilities over it.
fn log_probabilities(cx: &Cx, x: Value) -> (Value, usize) {
    let axis = usize::from(cx.rank(x) > 1);
    (cx.log_softmax(x, attrs::LogSoftmax { axis: axis as i64 }), axis)
}

fn cross_entropy_loss(
    cx: &Cx,
    x: Value,
    target: Value,
    weight: Option<Value>,
    reduction: i64,
    ignore_index: i64,
    smoothing: f64,
) -> Lowered {
    let (logs, axis) = log_probabilities(cx, x);
    let rank = cx.rank(x);
    let classes = cx.dim(x, axis as i64);
    let dtype = cx.dtype(x);
    let weighted = |v: Value| match weight {
        Some(w) => cx.mul(v, along(cx, w, rank, axis)),
        None => v,
    };
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
        // The mean is over samples, whatever their weights.
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

/// `max(0, margin - x[target] + x[i])^p` of all other classes `i`, their mean over all classes.
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
    let hinge = cx.maximum(off, 0);
    let power = if p.to_f64() == 2.0 { cx.mul(hinge, hinge) } else { hinge };
    let power = match weight {
        Some(w) => cx.mul(power, cx.unsqueeze(cx.gather(w, flat, 0), &[1])),
        None => power,
    };
    let class = cx.cast(cx.iota(&cx.dim(x, 1)), DType::I64);
    let others = cx.select(cx.equal(class, own), 0, power);
    let loss = reduce(cx, Reduction::Mean, others, &[1], false);
    let loss = if unbatched && cx.rank(target) == 0 { cx.reshape(loss, &[]) } else { loss };
    reduced(cx, loss, reduction)
}

/// Labels are the targets up to the first -1: `max(0, 1 - x[label] + x[i])` of each with each other class `i`.
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
    // Which classes are labels: any valid place that names them.
    let class = cx.cast(cx.iota(&classes), DType::I64);
    let named = cx.and(cx.equal(cx.unsqueeze(target, &[2]), class), cx.unsqueeze(valid, &[2]));
    let is_label = reduce(cx, Reduction::Max, named, &[1], false);
    let own = cx.unsqueeze(gather_elements(cx, x, labels, 1), &[2]);
    let off = cx.add(cx.sub(cx.unsqueeze(x, &[1]), own), 1.0);
    let counts = cx.and(cx.unsqueeze(valid, &[2]), cx.not(cx.unsqueeze(is_label, &[1])));
    let hinge = cx.select(counts, cx.maximum(off, 0), 0);
    let sum = reduce(cx, Reduction::Sum, hinge, &[1, 2], false);
    let loss = cx.div(sum, cx.cast(cx.size(&classes), dtype));
    let loss = if rank < 2 { cx.reshape(loss, &[]) } else { loss };
    let is_label = cx.reshape(cx.cast(is_label, dtype), &shape);
    Ok([reduced(cx, loss, reduction)?, is_label])
}

/// Targets that are probabilities, in the type of the logits.
fn like_logits(cx: &Cx, target: Value, logits: Value) -> Value {
    if cx.dtype(target).is_float() { cx.cast(target, cx.dtype(logits)) } else { target }
}

/// `x` through the linear layer, float32 at least.
fn logits(cx: &Cx, x: Value, linear: Value, bias: Option<Value>) -> Value {
    let dtype = match cx.dtype(x) {
        DType::F16 | DType::BF16 => DType::F32,
        dtype => dtype,
    };
    let wide = |v| cx.cast(v, dtype);
    let options = attrs::Gemm { trans_b: true, ..Default::default() };
    cx.gemm(wide(x), wide(linear), bias.map(wide), options)
}

#[expect(clippy::too_many_arguments, reason = "the op's signature")]
fn linear_cross_entropy(
    cx: &Cx,
    x: Value,
    linear: Value,
    target: Value,
    bias: Option<Value>,
    weight: Option<Value>,
    reduction: String,
    ignore_index: i64,
    smoothing: f64,
    _chunk: i64,
    _policy: String,
    _accumulator: DType,
    _retain: bool,
    _input_grad: bool,
    _weight_grad: bool,
    _bias_grad: bool,
) -> Lowered<[Option<Value>; 4]> {
    let dtype = cx.dtype(x);
    let logits = logits(cx, x, linear, bias);
    let reduction = match reduction.as_str() {
        "mean" => 1,
        "sum" => 2,
        _ => 0,
    };
    let weight = weight.map(|w| cx.cast(w, cx.dtype(logits)));
    let target = like_logits(cx, target, logits);
    let loss = cross_entropy_loss(cx, logits, target, weight, reduction, ignore_index, smoothing)?;
    // Gradients are no outputs of an exported program; without them PyTorch returns empty tensors.
    let empty = |i: usize| {
        let meta = cx.recorded(i).filter(|m| m.sizes.contains(&Expr::int(0)))?;
        Some(cx.full(&meta.sizes, 0, meta.dtype))
    };
    Ok([Some(cx.cast(loss, dtype)), empty(1), empty(2), empty(3)])
}
