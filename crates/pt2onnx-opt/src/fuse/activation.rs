//! Fuses formulas of activation functions, and bounds into `Clip`.

use crate::{
    fusion::Fusion,
    pattern::{Match, PatternError},
};
use pt2onnx_ir::{Builder, Value, attrs};
use pt2onnx_tensor::{DType, Scalar};

/// `0.5 x (1 + erf(x / sqrt(2)))` and its approximation by `tanh`. Nodes of float64 are kept, because `Gelu` computes with
/// float32 constants.
pub(crate) fn gelu_fusions() -> Result<Vec<Fusion>, PatternError> {
    let patterns = [
        (
            "Mul({Mul(x, 0.5) | Div(x, 2)}, Add(Erf({Div(x, 1.4142135623730951) | Mul(x, 0.7071067811865476)}), 1))",
            "none",
        ),
        (
            "Mul(x, Mul(Add(Erf({Div(x, 1.4142135623730951) | Mul(x, 0.7071067811865476)}), 1), 0.5))",
            "none",
        ),
        (
            "Mul(Mul(x, Add(Erf({Div(x, 1.4142135623730951) | Mul(x, 0.7071067811865476)}), 1)), 0.5)",
            "none",
        ),
        (
            "Mul(Mul(x, 0.5), Add(Tanh(Mul(Add(x, Mul({Pow(x, 3) | Mul(Mul(x, x), x)}, 0.044715)), 0.7978845608028654)), 1))",
            "tanh",
        ),
        (
            "Mul(x, Mul(Add(Tanh(Mul(Add(x, Mul({Pow(x, 3) | Mul(Mul(x, x), x)}, 0.044715)), 0.7978845608028654)), 1), 0.5))",
            "tanh",
        ),
    ];
    let gelu = |(pattern, approximate)| {
        let rewrite = Fusion::new(pattern, move |cx, found| {
            Some(cx.gelu(found.value("x")?, attrs::Gelu { approximate }))
        });
        Ok(rewrite?.when(at_most_float32))
    };
    patterns.into_iter().map(gelu).collect()
}

/// `x relu6(x + 3) / 6`, and `relu6(x + 3) / 6`.
pub(crate) fn hard_swish_fusions() -> Result<Vec<Fusion>, PatternError> {
    let swish = |pattern| {
        let rewrite = Fusion::new(pattern, |cx, found| {
            if let Some(node) = found.node(cx, "h") {
                let curve = attrs::HardSigmoid::read(&node).ok()?;
                if (curve.alpha, curve.beta) != (1.0 / 6.0, 0.5) {
                    return None;
                }
            }
            Some(cx.hard_swish(found.value("x")?))
        });
        Ok(rewrite?.when(at_most_float32))
    };
    let sigmoid = Fusion::new(
        "{Div(Clip(Add(x, 3), 0, 6), 6) | Mul(Clip(Add(x, 3), 0, 6), 0.16666666666666666)}",
        |cx, found| {
            let options = attrs::HardSigmoid { alpha: 1.0 / 6.0, beta: 0.5 };
            Some(cx.hard_sigmoid(found.value("x")?, options))
        },
    );
    Ok(vec![
        swish("{Mul(x, Div(Clip(Add(x, 3), 0, 6), 6)) | Div(Mul(x, Clip(Add(x, 3), 0, 6)), 6)}")?,
        swish(
            "{Mul(x, h:HardSigmoid(x)) | Mul(x, Mul(Clip(Add(x, 3), 0, 6), 0.16666666666666666))}",
        )?,
        sigmoid?.when(at_most_float32),
    ])
}

/// Whether `x` is float16, bfloat16 or float32, and no constant broadcasts it.
fn at_most_float32(cx: &Builder<'_>, found: &Match<'_>) -> bool {
    found.value("x").is_some_and(|x| {
        let dtype = cx.known_dtype(x);
        matches!(dtype, Some(DType::F32 | DType::F16 | DType::BF16)) && found.keeps_shape(cx, x)
    })
}

/// Both bounds by one `Clip`. A single `Min` or `Max` is kept, because runtimes differ in what `Clip` gives for NaN and infinity.
pub(crate) fn clip_fusions() -> Result<Vec<Fusion>, PatternError> {
    let positive = |cx: &Builder<'_>, found: &Match<'_>| {
        let low = either(found.number(cx, "low")?, 0.0, f64::max);
        clip(cx, found, low, found.number(cx, "high")?)
    };
    let above = |cx: &Builder<'_>, found: &Match<'_>| {
        let low = either(found.number(cx, "low")?, found.number(cx, "least")?, f64::max);
        clip(cx, found, low, found.number(cx, "high")?)
    };
    let below = |cx: &Builder<'_>, found: &Match<'_>| {
        let high = either(found.number(cx, "high")?, found.number(cx, "most")?, f64::min);
        clip(cx, found, found.number(cx, "low")?, high)
    };
    Ok(vec![
        Fusion::new("{Min(Max(x, low), high) | Max(Min(x, high), low)}", |cx, found| {
            clip(cx, found, found.number(cx, "low")?, found.number(cx, "high")?)
        })?,
        Fusion::new("Clip(Relu(x), low, high)", positive)?,
        Fusion::new("Relu(Clip(x, low, high))", positive)?,
        Fusion::new("{Clip(Max(x, least), low, high) | Max(Clip(x, low, high), least)}", above)?,
        Fusion::new("{Clip(Min(x, most), low, high) | Min(Clip(x, low, high), most)}", below)?,
        Fusion::new("{Min(Relu(x), high) | Relu(Min(x, high))}", |cx, found| {
            clip(cx, found, 0.0, found.number(cx, "high")?)
        })?,
    ])
}

/// One of two bounds, or NaN if either is.
fn either(a: f64, b: f64, pick: fn(f64, f64) -> f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { pick(a, b) }
}

/// If the lower bound is above the upper one, `Min` and `Max` give the upper one in either order; `Clip` is not sure to.
fn clip(cx: &Builder<'_>, found: &Match<'_>, low: f64, high: f64) -> Option<Value> {
    let x = found.value("x")?;
    if low.is_nan() || high.is_nan() || low > high || !found.keeps_shape(cx, x) {
        return None;
    }
    Some(cx.clamp(x, Some(Scalar::Float(low)), Some(Scalar::Float(high))))
}
