//! Losses that compare numbers: squared and absolute errors, cross entropies of probabilities, margins between inputs.

use super::common_reduce::{difference, magnitude, reduced};
use super::norms::{pairwise_distance, pairwise_distance_complex};
use crate::{AtenOp, Complex, Cx, Lowered, registry::aten};
use pt2onnx_ir::{Reduction, Value};

pub(super) static OPS: &[AtenOp] = &[
    aten!(
        "aten::binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor",
        binary_cross_entropy
    ),
    aten!(
        "aten::binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, int reduction=1) -> Tensor",
        binary_cross_entropy_with_logits
    ),
    aten!(
        "aten::cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=1) -> Tensor",
        cosine_embedding_loss
    ),
    aten!(
        "aten::hinge_embedding_loss(Tensor self, Tensor target, float margin=1., int reduction=1) -> Tensor",
        hinge_embedding_loss
    ),
    aten!(
        "aten::huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.) -> Tensor",
        huber_loss
    ),
    aten!(
        "aten::kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False) -> Tensor",
        kl_div
    ),
    aten!(
    "aten::l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
    |cx: &Cx, x: Value, y: Value, reduction: i64| {
        let (x, y) = cx.promote(x, y);
        reduced(cx, cx.abs(cx.sub(x, y)), reduction)
    }, complex: |cx: &Cx, x: Complex, y: Complex, reduction: i64| {
        reduced(cx, magnitude(cx, difference(cx, x, y)), reduction)
    }),
    aten!(
        "aten::margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=1) -> Tensor",
        margin_ranking_loss
    ),
    aten!(
        "aten::mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
        |cx: &Cx, x: Value, y: Value, reduction: i64| {
            let (x, y) = cx.promote(x, y);
            let error = cx.sub(x, y);
            reduced(cx, cx.mul(error, error), reduction)
        }
    ),
    aten!(
        "aten::poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction) -> Tensor",
        poisson_nll_loss
    ),
    aten!(
        "aten::smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.) -> Tensor",
        smooth_l1_loss
    ),
    aten!(
        "aten::soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
        |cx: &Cx, x: Value, y: Value, reduction: i64| {
            let (x, y) = cx.promote(x, y);
            reduced(cx, cx.log(cx.add(cx.exp(cx.neg(cx.mul(x, y))), 1.0)), reduction)
        }
    ),
    aten!(
        "aten::triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1., float p=2., float eps=9.9999999999999995e-07, bool swap=False, int reduction=1) -> Tensor",
        triplet_margin_loss, complex: triplet_margin_loss_complex),
];

/// `-(y log x + (1 - y) log(1 - x))`, logarithms not below -100.
fn binary_cross_entropy(
    cx: &Cx,
    x: Value,
    y: Value,
    weight: Option<Value>,
    reduction: i64,
) -> Lowered {
    let log = |v| cx.maximum(cx.log(v), -100.0);
    let one = cx.scalar(1, cx.dtype(x));
    let loss = cx.sub(cx.mul(cx.sub(y, one), log(cx.sub(one, x))), cx.mul(y, log(x)));
    let loss = weight.map_or(loss, |w| cx.mul(loss, w));
    reduced(cx, loss, reduction)
}

/// `(1 - y) x + (1 + (w - 1) y) softplus(-x)`, `w` the weight of positives.
fn binary_cross_entropy_with_logits(
    cx: &Cx,
    x: Value,
    y: Value,
    weight: Option<Value>,
    pos_weight: Option<Value>,
    reduction: i64,
) -> Lowered {
    let (x, y) = cx.promote(x, y);
    let one = cx.scalar(1, cx.dtype(x));
    let tail = softplus(cx, cx.neg(x));
    let tail = match pos_weight {
        Some(w) => cx.mul(tail, cx.add(cx.mul(cx.sub(w, one), y), one)),
        None => tail,
    };
    let loss = cx.add(cx.mul(cx.sub(one, y), x), tail);
    let loss = weight.map_or(loss, |w| cx.mul(loss, w));
    reduced(cx, loss, reduction)
}

/// `log(1 + exp(x))`, which does not overflow.
fn softplus(cx: &Cx, x: Value) -> Value {
    cx.softplus(x)
}

/// The positive part.
fn hinge(cx: &Cx, x: Value) -> Value {
    cx.maximum(x, 0)
}

fn cosine_embedding_loss(
    cx: &Cx,
    a: Value,
    b: Value,
    y: Value,
    margin: f64,
    reduction: i64,
) -> Lowered {
    let (a, b) = (cx.to_float(a), cx.to_float(b));
    let (a, b) = cx.promote(a, b);
    // PyTorch adds 1e-12 to the squares here.
    let axis = cx.rank(y);
    let product = |p, q| cx.reduce(Reduction::Sum, cx.mul(p, q), &[axis], false);
    let square = |p| cx.add(product(p, p), 1e-12);
    let cosine = cx.div(product(a, b), cx.sqrt(cx.mul(square(a), square(b))));
    let zero = cx.scalar(0, cx.dtype(cosine));
    let alike = cx.select(cx.equal(y, 1), cx.sub(cx.scalar(1, cx.dtype(cosine)), cosine), zero);
    let unlike = cx.select(cx.equal(y, -1), hinge(cx, cx.sub(cosine, margin)), zero);
    reduced(cx, cx.add(alike, unlike), reduction)
}

/// `x` where the target is 1, `max(0, margin - x)` where it is -1.
fn hinge_embedding_loss(cx: &Cx, x: Value, y: Value, margin: f64, reduction: i64) -> Lowered {
    let dtype = cx.out_dtype()?;
    let zero = cx.scalar(0, cx.dtype(x));
    let near = cx.select(cx.equal(y, 1), x, zero);
    let zero_margin = hinge(cx, cx.sub(cx.scalar(margin, cx.dtype(x)), x));
    let far = cx.select(cx.equal(y, -1), zero_margin, zero);
    Ok(cx.cast(reduced(cx, cx.add(near, far), reduction)?, dtype))
}

/// Squares within `delta`, lines beyond.
fn huber_loss(cx: &Cx, x: Value, y: Value, reduction: i64, delta: f64) -> Lowered {
    let (x, y) = cx.promote(x, y);
    let z = cx.abs(cx.sub(x, y));
    let square = cx.mul(cx.mul(z, z), 0.5);
    let line = cx.mul(cx.sub(z, 0.5 * delta), delta);
    reduced(cx, cx.select(cx.less_or_equal(z, delta), square, line), reduction)
}

/// [`huber_loss`] divided by `beta`; without `beta`, absolute errors.
fn smooth_l1_loss(cx: &Cx, x: Value, y: Value, reduction: i64, beta: f64) -> Lowered {
    let (x, y) = cx.promote(x, y);
    let z = cx.abs(cx.sub(x, y));
    if beta == 0.0 {
        return reduced(cx, z, reduction);
    }
    let square = cx.mul(cx.mul(z, z), 0.5 / beta);
    let line = cx.sub(z, 0.5 * beta);
    reduced(cx, cx.select(cx.less(z, beta), square, line), reduction)
}

/// `y (log y - x)`, 0 where `y` is 0; with `log_target`, `exp(y) (y - x)`.
fn kl_div(cx: &Cx, x: Value, y: Value, reduction: i64, log_target: bool) -> Lowered {
    let (x, y) = cx.promote(x, y);
    let loss = if log_target {
        cx.mul(cx.exp(y), cx.sub(y, x))
    } else {
        let entropy = cx.mul(y, cx.log(y));
        let entropy = cx.select(cx.equal(y, 0), 0, entropy);
        cx.sub(entropy, cx.mul(y, x))
    };
    reduced(cx, loss, reduction)
}

fn margin_ranking_loss(
    cx: &Cx,
    a: Value,
    b: Value,
    y: Value,
    margin: f64,
    reduction: i64,
) -> Lowered {
    let dtype = cx.out_dtype()?;
    let (a, b) = cx.promote(a, b);
    let (order, y) = cx.promote(cx.neg(cx.sub(a, b)), y);
    let loss = cx.mul(order, y);
    let loss = cx.add(cx.cast(loss, dtype), margin);
    Ok(cx.cast(reduced(cx, hinge(cx, loss), reduction)?, dtype))
}

/// `exp(x) - y x`, or `x - y log(x + eps)`; `full` adds Stirling's approximation of `log(y!)` where `y > 1`.
fn poisson_nll_loss(
    cx: &Cx,
    x: Value,
    y: Value,
    log_input: bool,
    full: bool,
    eps: f64,
    reduction: i64,
) -> Lowered {
    let dtype = cx.out_dtype()?;
    let (x, y) = (cx.cast(x, dtype), cx.cast(y, dtype));
    let loss = if log_input {
        cx.sub(cx.exp(x), cx.mul(y, x))
    } else {
        cx.sub(x, cx.mul(y, cx.log(cx.add(x, eps))))
    };
    let loss = if full {
        let stirling = cx.add(
            cx.sub(cx.mul(y, cx.log(y)), y),
            cx.mul(cx.log(cx.mul(y, 2.0 * std::f64::consts::PI)), 0.5),
        );
        cx.add(loss, cx.select(cx.less_or_equal(y, 1.0), 0.0, stirling))
    } else {
        loss
    };
    reduced(cx, loss, reduction)
}

#[expect(clippy::too_many_arguments, reason = "ATen's signature")]
fn triplet_margin_loss(
    cx: &Cx,
    anchor: Value,
    positive: Value,
    negative: Value,
    margin: f64,
    p: f64,
    eps: f64,
    swap: bool,
    reduction: i64,
) -> Lowered {
    let distance = |a, b| pairwise_distance(cx, a, b, p, eps, false);
    triplet(cx, [anchor, positive, negative], margin, swap, reduction, distance)
}

#[expect(clippy::too_many_arguments, reason = "ATen's signature")]
fn triplet_margin_loss_complex(
    cx: &Cx,
    anchor: Complex,
    positive: Complex,
    negative: Complex,
    margin: f64,
    p: f64,
    eps: f64,
    swap: bool,
    reduction: i64,
) -> Lowered {
    let distance = |a, b| pairwise_distance_complex(cx, a, b, p, eps, false);
    triplet(cx, [anchor, positive, negative], margin, swap, reduction, distance)
}

/// How much nearer than `margin` the negative is; with `swap`, to the anchor or to the positive.
fn triplet<T: Copy>(
    cx: &Cx,
    [anchor, positive, negative]: [T; 3],
    margin: f64,
    swap: bool,
    reduction: i64,
    distance: impl Fn(T, T) -> Lowered,
) -> Lowered {
    let near = distance(anchor, positive)?;
    let mut far = distance(anchor, negative)?;
    if swap {
        far = cx.minimum(far, distance(positive, negative)?);
    }
    reduced(cx, hinge(cx, cx.sub(cx.add(near, margin), far)), reduction)
}
