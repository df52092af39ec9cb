//! Dropout: the input itself in evaluation, a random mask in training. `p` is the probability that
//! an element is dropped.

use crate::meta;
use crate::{AtenOp, Complex, Cx, Lowered, checks, math, op};
use pt2onnx_ir::{Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::alpha_dropout, alpha_dropout, meta = meta::same, channels = false),
    op!(aten::dropout, dropout, meta = meta::same, channels = false),
    op!(aten::feature_alpha_dropout, alpha_dropout, meta = meta::same, channels = true),
    op!(aten::feature_dropout, dropout, meta = meta::same, channels = true),
    op!(aten::native_dropout, native_dropout),
];

/// A mask that is true with probability `1 - p`, by `RandomUniformLike`: an element for each one of
/// `x`, or for each channel.
fn keep(cx: &Cx, x: Value, p: f64, channels: bool) -> Value {
    let sizes = cx.shape(x).into_iter().enumerate();
    let sizes = sizes.map(|(i, d)| if channels && i >= 2 { Expr::ONE } else { d });
    let like = cx.full(&sizes.collect::<Vec<_>>(), 0, DType::F32);
    let uniform = cx.random_uniform_like(like, attrs::RandomUniformLike::default());
    cx.greater_or_equal(uniform, p)
}

/// Each element, or each channel, dropped with probability `p`, the others divided by `1 - p`.
/// `Dropout` drops elements, and takes no complex numbers.
fn dropout(cx: &Cx, x: Complex, p: f64, train: bool, channels: bool) -> Lowered {
    let dropped = match x.im {
        _ if !train || p <= 0.0 => x,
        None if !channels => math::dropout::dropout(cx, x.re, p)[0].into(),
        _ => {
            let mask = keep(cx, x.re, p, channels);
            let scale = if p < 1.0 { 1.0 / (1.0 - p) } else { 0.0 };
            x.map(|part| cx.select(mask, cx.mul(part, scale), 0))
        }
    };
    Ok(dropped.value(cx))
}

/// [`dropout`] and its mask. If `train` is not given, it is true.
fn native_dropout(cx: &Cx, x: Value, p: f64, train: Option<bool>) -> Lowered<[Value; 2]> {
    let shape = cx.shape(x);
    if train == Some(false) || p == 0.0 {
        return Ok([x, cx.full(&shape, true, DType::Bool)]);
    }
    Ok(math::dropout::dropout(cx, x, p))
}

/// `a * y + a * p * alpha'` where `y` is `x`, or `-alpha'` (the limit of SELU) where dropped. `a =
/// 1 / sqrt((alpha'^2 p + 1) (1 - p))` keeps mean 0 and variance 1 (Klambauer et al.,
/// Self-Normalizing Neural Networks, 2017).
fn alpha_dropout(cx: &Cx, x: Complex, p: f64, train: bool, channels: bool) -> Lowered {
    const ALPHA: f64 = 1.7580993408473766;
    if !train || p <= 0.0 {
        return Ok(x.value(cx));
    }
    if p >= 1.0 {
        return Ok(x.map(|part| cx.mul(part, 0.0)).value(cx));
    }
    let a = 1.0 / ((ALPHA * ALPHA * p + 1.0) * (1.0 - p)).sqrt();
    let mask = keep(cx, x.re, p, channels);
    let kept = |part: Value, dropped: f64| cx.mul(cx.select(mask, part, dropped), a);
    let re = cx.add(kept(x.re, -ALPHA), a * ALPHA * p);
    Ok(Complex::new(re, x.im.map(|im| kept(im, 0.0))).value(cx))
}

checks! {
    // Evaluation keeps the input.
    "aten.native_dropout(x: f32[4], 0.5, False) -> (f32[4], b8[4])" => "
    native_dropout_1 = Expand (true, [4])
    native_dropout_0 = Identity (x)
    ";

    // One choice for each channel.
    "aten.feature_dropout(x: f32[s0, 3, 4], 0.25, True) -> f32[s0, 3, 4]" => "
    val_0 = Shape <start: int = 0, end: int = 1> (x)
    val_1 = Concat <axis: int = 0> (val_0, [3, 1])
    val_2 = Expand (0.0, val_1)
    val_3 = RandomUniformLike (val_2)
    val_4 = GreaterOrEqual (val_3, 0.25)
    val_5 = Mul (x, 1.3333334)
    feature_dropout = Where (val_4, val_5, 0.0)
    ";

    // Parts of a complex number are dropped together.
    "aten.feature_alpha_dropout(x: c64[2, 3, 4], 0.5, True) -> c64[2, 3, 4]" => "
    val_0 = Gather <axis: int = 3> (x, 0)
    val_1 = Gather <axis: int = 3> (x, 1)
    val_2 = Expand (0.0, [2, 3, 1])
    val_3 = RandomUniformLike (val_2)
    val_4 = GreaterOrEqual (val_3, 0.5)
    val_5 = Where (val_4, val_0, -1.7580993)
    val_6 = Mul (val_5, 0.8864049)
    val_7 = Add (val_6, 0.77919394)
    val_8 = Where (val_4, val_1, 0.0)
    val_9 = Mul (val_8, 0.8864049)
    val_10 = Unsqueeze (val_7, [3])
    val_11 = Unsqueeze (val_9, [3])
    feature_alpha_dropout = Concat <axis: int = 3> (val_10, val_11)
    ";
}
