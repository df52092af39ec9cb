//! Dropout: the input itself in evaluation, a random mask in training. `p` is the probability that an element is dropped.

use crate::{AtenOp, Cx, LowerError, Lowered, checks, math, op};
use pt2onnx_ir::{Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::alpha_dropout, alpha_dropout, complex = of_complex),
    op!(aten::dropout, dropout, complex = of_complex),
    op!(aten::feature_alpha_dropout, feature_alpha_dropout, complex = of_complex),
    op!(aten::feature_dropout, feature_dropout, complex = of_complex),
    op!(aten::native_dropout, native_dropout),
];

/// A mask of that shape, true with probability `1 - p`: `RandomUniformLike`.
fn keep(cx: &Cx, shape: &[Expr], p: f64) -> Value {
    let like = cx.full(shape, 0, DType::F32);
    let uniform = cx.random_uniform_like(like, attrs::RandomUniformLike::default());
    cx.greater_or_equal(uniform, p)
}

/// The shape of a mask with one element for each channel: sizes from dimension 2 on are 1.
fn per_channel(cx: &Cx, x: Value) -> Vec<Expr> {
    let sizes = cx.shape(x).into_iter().enumerate();
    sizes.map(|(i, d)| if i < 2 { d } else { Expr::int(1) }).collect()
}

/// `x / (1 - p)` where the mask is true, else 0.
fn scaled(cx: &Cx, x: Value, mask: Value, p: f64) -> Value {
    let scale = if p < 1.0 { 1.0 / (1.0 - p) } else { 0.0 };
    cx.select(mask, cx.mul(x, scale), 0)
}

/// Each element dropped with probability `p`, the others divided by `1 - p`.
fn dropout(cx: &Cx, x: Value, p: f64, train: bool) -> Lowered {
    Ok(match train && p > 0.0 {
        true => math::dropout::dropout(cx, x, p)[0],
        false => x,
    })
}

/// [`dropout`] of whole channels.
fn feature_dropout(cx: &Cx, x: Value, p: f64, train: bool) -> Lowered {
    Ok(match train && p > 0.0 {
        true => scaled(cx, x, keep(cx, &per_channel(cx, x), p), p),
        false => x,
    })
}

/// [`dropout`] and its mask. If `train` is not given, it is true.
fn native_dropout(cx: &Cx, x: Value, p: f64, train: Option<bool>) -> Lowered<[Value; 2]> {
    let shape = cx.shape(x);
    if train == Some(false) || p == 0.0 {
        return Ok([x, cx.full(&shape, true, DType::Bool)]);
    }
    Ok(math::dropout::dropout(cx, x, p))
}

/// `a * y + a * p * alpha'` where `y` is `x`, or `-alpha'` (the limit of SELU) where dropped. `a = 1 / sqrt((alpha'^2 p + 1) (1 - p))`
/// keeps mean 0 and variance 1 (Klambauer et al., Self-Normalizing Neural Networks, 2017). A mask has the given shape.
fn alpha_dropout_of(cx: &Cx, x: Value, shape: &[Expr], p: f64) -> Value {
    const ALPHA: f64 = 1.7580993408473766;
    if p >= 1.0 {
        return cx.mul(x, 0.0);
    }
    let a = 1.0 / ((ALPHA * ALPHA * p + 1.0) * (1.0 - p)).sqrt();
    let kept = cx.select(keep(cx, shape, p), x, -ALPHA);
    cx.add(cx.mul(kept, a), a * ALPHA * p)
}

/// [`alpha_dropout_of`] with a mask for each element.
fn alpha_dropout(cx: &Cx, x: Value, p: f64, train: bool) -> Lowered {
    Ok(match train && p > 0.0 {
        true => alpha_dropout_of(cx, x, &cx.shape(x), p),
        false => x,
    })
}

/// [`alpha_dropout_of`] with a mask for each channel.
fn feature_alpha_dropout(cx: &Cx, x: Value, p: f64, train: bool) -> Lowered {
    Ok(match train && p > 0.0 {
        true => alpha_dropout_of(cx, x, &per_channel(cx, x), p),
        false => x,
    })
}

/// Dropout of complex tensors in evaluation. In training it is an error: both parts would need one mask.
fn of_complex(_: &Cx, pairs: Value, p: f64, train: bool) -> Lowered {
    match train && p > 0.0 {
        true => Err(LowerError::unsupported(
            "dropout of complex tensors in training mode is not supported",
        )),
        false => Ok(pairs),
    }
}

checks! {
    evaluation_keeps_the_input {
        "aten.native_dropout(x: f32[4], 0.5, False) -> (f32[4], b8[4])" => "
        (float[4] x) => (float[4] native_dropout_0, bool[4] native_dropout_1)
        <
          bool val_0 = {1},
          int64[1] val_1 = {4}
        >
        {
          native_dropout_1 = Expand (val_0, val_1)
          native_dropout_0 = Identity (x)
        }
        ";
    }

    one_choice_for_each_channel {
        "aten.feature_dropout(x: f32[s0, 3, 4], 0.25, True) -> f32[s0, 3, 4]" => "
        (float[s0,3,4] x) => (float[s0,3,4] feature_dropout)
        <
          float val_0 = {0.0},
          int64[2] val_1 = {3, 1},
          float val_2 = {0.25},
          float val_3 = {1.3333334}
        >
        {
          val_4 = Shape <start: int = 0, end: int = 1> (x)
          val_5 = Concat <axis: int = 0> (val_4, val_1)
          val_6 = Expand (val_0, val_5)
          val_7 = RandomUniformLike (val_6)
          val_8 = GreaterOrEqual (val_7, val_2)
          val_9 = Mul (x, val_3)
          feature_dropout = Where (val_8, val_9, val_0)
        }
        ";
    }
}
