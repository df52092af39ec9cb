//! Losses of numbers: squared and absolute errors, cross entropies of probabilities, margins
//! between inputs.
//!
//! All take a reduction: 0 for none, 1 for the mean, 2 for the sum.

use crate::math::arcs::softplus_of;
use crate::math::distance::{pairwise_distance, pairwise_distance_complex};
use crate::math::elementary::{exact_sigmoid, log_of, log1p_of};
use crate::math::reduce::reduced;
use crate::meta::{self, typed, unknown};
use crate::{AtenOp, Complex, Cx, Lowered, TensorOrScalar, arguments, checks, op};
use pt2onnx_ir::{Reduction, Value};

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::binary_cross_entropy, binary_cross_entropy, meta = meta_loss),
    op!(
        aten::binary_cross_entropy_with_logits,
        binary_cross_entropy_with_logits,
        meta = meta_loss_of_logits
    ),
    op!(aten::cosine_embedding_loss, cosine_embedding_loss),
    op!(aten::hinge_embedding_loss, hinge_embedding_loss, meta = meta_loss),
    op!(aten::huber_loss, huber_loss),
    op!(aten::kl_div, kl_div),
    op!(aten::l1_loss, l1_loss, meta = meta_loss_of_distances),
    op!(aten::margin_ranking_loss, margin_ranking_loss, meta = meta_ranking_loss),
    op!(aten::mse_loss, mse_loss),
    op!(aten::poisson_nll_loss, poisson_nll_loss, meta = meta_poisson_loss),
    op!(aten::smooth_l1_loss, smooth_l1_loss),
    op!(aten::soft_margin_loss, soft_margin_loss),
    op!(aten::triplet_margin_loss, triplet_margin_loss),
];

arguments! {
    /// Arguments of [`triplet_margin_loss`].
    struct TripletMarginArgs {
        anchor: Complex,
        positive: Complex,
        negative: Complex,
        margin: f64,
        p: f64,
        eps: f64,
        swap: bool,
        reduction: i64,
    }
}

/// `|x - y|`
fn l1_loss(cx: &Cx, x: Complex, y: Complex, reduction: i64) -> Lowered {
    let dtype = cx.result_type(&[x.re.into(), y.re.into()]);
    reduced(cx, x.cast(cx, dtype).sub(cx, y.cast(cx, dtype)).abs(cx), reduction)
}

/// `(x - y)^2`
fn mse_loss(cx: &Cx, x: Value, y: Value, reduction: i64) -> Lowered {
    let (x, y) = cx.promote(x, y);
    let error = cx.sub(x, y);
    reduced(cx, cx.mul(error, error), reduction)
}

/// `log(1 + exp(-x y))`
fn soft_margin_loss(cx: &Cx, x: Value, y: Value, reduction: i64) -> Lowered {
    let (x, y) = cx.promote(x, y);
    reduced(cx, log1p_of(cx, cx.exp(cx.neg(cx.mul(x, y)))), reduction)
}

/// `-(y log x + (1 - y) log(1 - x))`, where logarithms are at least -100. A sigmoid is computed
/// again, as PyTorch computes it: near 1, the last digit of `x` is the first of `1 - x`.
fn binary_cross_entropy(
    cx: &Cx,
    x: Value,
    y: Value,
    weight: Option<Value>,
    reduction: i64,
) -> Lowered {
    let dtype = cx.dtype(x);
    let (x, y) = cx.promote(exact_sigmoid(cx, x).unwrap_or(x), y);
    let log = |v| cx.maximum(log_of(cx, v), -100.0);
    let one = cx.scalar(1, cx.dtype(x));
    let loss = cx.sub(cx.mul(cx.sub(y, one), log(cx.sub(one, x))), cx.mul(y, log(x)));
    reduced(cx, weighted(cx, cx.cast(loss, dtype), weight)?, reduction)
}

/// `loss * weight`, which may be of another type, in the type of the result.
fn weighted(cx: &Cx, loss: Value, weight: Option<Value>) -> Lowered {
    let Some(weight) = weight else {
        return Ok(loss);
    };
    let (loss, weight) = cx.promote(loss, weight);
    Ok(cx.cast(cx.mul(loss, weight), cx.out_dtype()?))
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
    let tail = softplus_of(cx, cx.neg(x));
    let tail = pos_weight.map_or(tail, |w| {
        let (w, y) = cx.promote(w, y);
        let factor = cx.add(cx.mul(cx.sub(w, 1), y), 1);
        let (tail, factor) = cx.promote(tail, factor);
        cx.mul(tail, factor)
    });
    let (near, tail) = cx.promote(cx.mul(cx.sub(one, y), x), tail);
    let loss = cx.cast(cx.add(near, tail), cx.out_dtype()?);
    reduced(cx, weighted(cx, loss, weight)?, reduction)
}

/// `max(0, x)`
fn hinge(cx: &Cx, x: Value) -> Value {
    cx.maximum(x, 0)
}

/// `1 - cos(a, b)` where the target is 1, `max(0, cos(a, b) - margin)` where it is -1.
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

/// `x` where the target is not -1, and `max(0, margin - x)` where it is not 1: the sum of both
/// where it is neither.
fn hinge_embedding_loss(cx: &Cx, x: Value, y: Value, margin: f64, reduction: i64) -> Lowered {
    let dtype = cx.out_dtype()?;
    let zero = cx.scalar(0, cx.dtype(x));
    let near = cx.select(cx.equal(y, -1), zero, x);
    let zero_margin = hinge(cx, cx.sub(cx.scalar(margin, cx.dtype(x)), x));
    let far = cx.select(cx.equal(y, 1), zero, zero_margin);
    Ok(cx.cast(reduced(cx, cx.add(near, far), reduction)?, dtype))
}

/// With `z = |x - y|`: `z^2 / 2` where `z <= delta`, else `delta (z - delta / 2)`.
fn huber_loss(cx: &Cx, x: Value, y: Value, reduction: i64, delta: f64) -> Lowered {
    let (x, y) = cx.promote(x, y);
    let z = cx.abs(cx.sub(x, y));
    let square = cx.mul(cx.mul(z, z), 0.5);
    let line = cx.mul(cx.sub(z, 0.5 * delta), delta);
    reduced(cx, cx.select(cx.less_or_equal(z, delta), square, line), reduction)
}

/// With `z = |x - y|`: `z^2 / (2 beta)` where `z < beta`, else `z - beta / 2`.
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

/// `max(0, margin - y (a - b))`
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

/// `exp(x) - y x` with `log_input`, else `x - y log(x + eps)`. With `full`, also Stirling's
/// approximation of `log(y!)` where `y > 1`: `y log(y) - y + log(2 pi y) / 2`.
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
    let mut loss = if log_input {
        cx.sub(cx.exp(x), cx.mul(y, x))
    } else {
        cx.sub(x, cx.mul(y, cx.log(cx.add(x, eps))))
    };
    if full {
        let stirling = cx.sub(cx.mul(y, cx.log(y)), y);
        let root = cx.log(cx.mul(y, 2.0 * std::f64::consts::PI));
        let stirling = cx.add(stirling, cx.mul(root, 0.5));
        loss = cx.add(loss, cx.select(cx.less_or_equal(y, 1.0), 0.0, stirling));
    }
    reduced(cx, loss, reduction)
}

/// `max(0, |anchor - positive| + margin - |anchor - negative|)`, distances in the `p`-norm. With
/// `swap`, the last distance is that of anchor or positive to the negative, whichever is smaller.
fn triplet_margin_loss(cx: &Cx, args: TripletMarginArgs) -> Lowered {
    let TripletMarginArgs { anchor, positive, negative, p, eps, .. } = args;
    let is_complex = [anchor, positive, negative].iter().any(|x| x.im.is_some());
    let distance = |a: Complex, b: Complex| {
        if is_complex {
            pairwise_distance_complex(cx, a, b, p, eps, false)
        } else {
            pairwise_distance(cx, a.re, b.re, p, eps, false)
        }
    };
    let near = distance(anchor, positive)?;
    let mut far = distance(anchor, negative)?;
    if args.swap {
        far = cx.minimum(far, distance(positive, negative)?);
    }
    reduced(cx, hinge(cx, cx.sub(cx.add(near, args.margin), far)), args.reduction)
}

arguments! {
    struct Loss { input: Value, target: Value, reduction: i64 }
    struct LogitLoss { input: Value, target: Value, weight: Option<Value>, pos_weight: Option<Value>, reduction: i64 }
    struct RankingLoss { input1: Value, input2: Value, target: Value, reduction: i64 }
}

/// Reduction 0 leaves all elements.
fn meta_reduced(cx: &Cx, operands: &[TensorOrScalar], reduction: i64) -> Lowered {
    let size = if reduction == 0 { meta::operand_sizes(cx, operands) } else { Vec::new() };
    Ok(typed(cx, cx.result_type(operands), &size))
}

fn meta_loss(cx: &Cx, args: Loss) -> Lowered {
    meta_reduced(cx, &[args.input.into(), args.target.into()], args.reduction)
}

/// As [`meta_loss`]. Distances of complex numbers are real.
fn meta_loss_of_distances(cx: &Cx, args: Loss) -> Lowered {
    let found = meta_loss(cx, args)?;
    Ok(typed(cx, cx.dtype(found).to_real(), &cx.shape(found)))
}

/// As [`meta_loss`], and integers become floats.
fn meta_poisson_loss(cx: &Cx, args: Loss) -> Lowered {
    let found = meta_loss(cx, args)?;
    Ok(typed(cx, cx.float_type(cx.dtype(found)), &cx.shape(found)))
}

fn meta_loss_of_logits(cx: &Cx, args: LogitLoss) -> Lowered {
    if cx.dtype(args.input) != cx.dtype(args.target) {
        return unknown("its operands have several types");
    }
    let weights = [args.weight, args.pos_weight].into_iter().flatten();
    let operands = [args.input, args.target].into_iter().chain(weights).map(Into::into);
    let found = meta_reduced(cx, &operands.collect::<Vec<_>>(), args.reduction)?;
    Ok(typed(cx, cx.dtype(args.input), &cx.shape(found)))
}

fn meta_ranking_loss(cx: &Cx, args: RankingLoss) -> Lowered {
    let operands = [args.input1, args.input2, args.target].map(Into::into);
    let found = meta_reduced(cx, &operands, args.reduction)?;
    Ok(typed(cx, cx.float_type(cx.dtype(found)), &cx.shape(found)))
}

checks! {
    // Far from the margin the loss is tiny, but not 0.
    "aten.soft_margin_loss(x: f32[3], y: f32[3], 0) -> f32[3]" => "
    val_0 = Mul (x, y)
    val_1 = Neg (val_0)
    val_2 = Exp (val_1)
    val_3 = Cast <to: int = 11> (val_2)
    val_4 = Add (val_3, double {1.0})
    val_5 = Log (val_4)
    val_6 = Cast <to: int = 1> (val_5)
    val_7 = Abs (val_2)
    val_8 = GreaterOrEqual (val_7, 1e-8)
    soft_margin_loss = Where (val_8, val_6, val_2)
    ";

    // Types are promoted.
    "aten.mse_loss(x: f32[s0], y: i64[s0]) -> f32[]" => "
    val_0 = Cast <to: int = 1> (y)
    val_1 = Sub (x, val_0)
    val_2 = Mul (val_1, val_1)
    val_3 = ReduceSum <keepdims: int = 0> (val_2)
    val_4 = Shape <start: int = 0, end: int = 1> (x)
    val_5 = Reshape (val_4, [])
    val_6 = Cast <to: int = 1> (val_5)
    mse_loss = Div (val_3, val_6)
    ";

    // Logarithms are bounded.
    "aten.binary_cross_entropy(x: f32[4], y: f32[4], None, 2) -> f32[]" => "
    val_0 = Sub (y, 1.0)
    val_1 = Sub (1.0, x)
    val_2 = Log (val_1)
    val_3 = Max (val_2, -100.0)
    val_4 = Mul (val_0, val_3)
    val_5 = Log (x)
    val_6 = Max (val_5, -100.0)
    val_7 = Mul (y, val_6)
    val_8 = Sub (val_4, val_7)
    binary_cross_entropy = ReduceSum <keepdims: int = 0> (val_8)
    ";

    // Weights of another type.
    "aten.binary_cross_entropy_with_logits(x: f32[3], y: f32[3], w: f64[3], None, 0) -> f32[3]" => "
    val_0 = Neg (x)
    val_1 = Softplus (val_0)
    val_2 = Sub (1.0, y)
    val_3 = Mul (val_2, x)
    val_4 = Add (val_3, val_1)
    val_5 = Cast <to: int = 11> (val_4)
    val_6 = Mul (val_5, w)
    binary_cross_entropy_with_logits = Cast <to: int = 1> (val_6)
    ";

    // Targets of a hinge need not be 1.
    "aten.hinge_embedding_loss(x: f32[4], y: f32[4], 1.0, 0) -> f32[4]" => "
    val_0 = Equal (y, -1.0)
    val_1 = Where (val_0, 0.0, x)
    val_2 = Sub (1.0, x)
    val_3 = Max (val_2, 0.0)
    val_4 = Equal (y, 1.0)
    val_5 = Where (val_4, 0.0, val_3)
    hinge_embedding_loss = Add (val_1, val_5)
    ";
}
