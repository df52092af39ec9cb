//! Activation functions written out.

use super::{Fusion, Rule, Seen};
use pt2onnx_ir::{Builder, Value, attrs};
use pt2onnx_tensor::{DType, Scalar};

/// `0.5 x (1 + erf(x / sqrt(2)))` and its approximation by `tanh`.
pub(crate) static GELU: Fusion = Fusion {
    since: 20,
    rules: &[
        Rule {
            pattern: "Mul({Mul(x, 0.5) | Div(x, 2)}, Add(Erf({Div(x, 1.4142135623730951) | Mul(x, 0.7071067811865476)}), 1))",
            rewrite: |cx, seen| gelu(cx, seen, "none"),
        },
        Rule {
            pattern: "Mul(x, Mul(Add(Erf({Div(x, 1.4142135623730951) | Mul(x, 0.7071067811865476)}), 1), 0.5))",
            rewrite: |cx, seen| gelu(cx, seen, "none"),
        },
        Rule {
            pattern: "Mul(Mul(x, Add(Erf({Div(x, 1.4142135623730951) | Mul(x, 0.7071067811865476)}), 1)), 0.5)",
            rewrite: |cx, seen| gelu(cx, seen, "none"),
        },
        Rule {
            pattern: "Mul(Mul(x, 0.5), Add(Tanh(Mul(Add(x, Mul({Pow(x, 3) | Mul(Mul(x, x), x)}, 0.044715)), 0.7978845608028654)), 1))",
            rewrite: |cx, seen| gelu(cx, seen, "tanh"),
        },
        Rule {
            pattern: "Mul(x, Mul(Add(Tanh(Mul(Add(x, Mul({Pow(x, 3) | Mul(Mul(x, x), x)}, 0.044715)), 0.7978845608028654)), 1), 0.5))",
            rewrite: |cx, seen| gelu(cx, seen, "tanh"),
        },
    ],
};

/// `x relu6(x + 3) / 6`, and the curve of it alone.
pub(crate) static HARD_SWISH: Fusion = Fusion {
    since: 14,
    rules: &[
        Rule {
            pattern: "{Mul(x, Div(Clip(Add(x, 3), 0, 6), 6)) | Div(Mul(x, Clip(Add(x, 3), 0, 6)), 6)}",
            rewrite: |cx, seen| Some(cx.hard_swish(wide_enough(cx, seen)?)),
        },
        Rule {
            pattern: "{Mul(x, h:HardSigmoid(x)) | Mul(x, Mul(Clip(Add(x, 3), 0, 6), 0.16666666666666666))}",
            rewrite: |cx, seen| {
                if let Some(node) = seen.node(cx, "h")
                    && (super::float(&node, "alpha", 0.2) != 1.0 / 6.0
                        || super::float(&node, "beta", 0.5) != 0.5)
                {
                    return None;
                }
                Some(cx.hard_swish(wide_enough(cx, seen)?))
            },
        },
        Rule {
            pattern: "{Div(Clip(Add(x, 3), 0, 6), 6) | Mul(Clip(Add(x, 3), 0, 6), 0.16666666666666666)}",
            rewrite: |cx, seen| {
                let (alpha, beta) = (1.0 / 6.0, 0.5);
                Some(cx.hard_sigmoid(wide_enough(cx, seen)?, attrs::HardSigmoid { alpha, beta }))
            },
        },
    ],
};

/// Both bounds held by one `Clip`. With one bound alone it stays `Min` or `Max`: of those NaN and infinity are sure.
pub(crate) static CLIP: Fusion = Fusion {
    since: 12,
    rules: &[
        Rule {
            pattern: "{Min(Max(x, low), high) | Max(Min(x, high), low)}",
            rewrite: |cx, seen| clip(cx, seen, seen.number(cx, "low")?, seen.number(cx, "high")?),
        },
        Rule {
            pattern: "Clip(Relu(x), low, high)",
            rewrite: |cx, seen| {
                let low = seen.number(cx, "low")?.max(0.0);
                clip(cx, seen, low, seen.number(cx, "high")?)
            },
        },
        Rule {
            pattern: "Relu(Clip(x, low, high))",
            rewrite: |cx, seen| {
                let low = seen.number(cx, "low")?.max(0.0);
                clip(cx, seen, low, seen.number(cx, "high")?)
            },
        },
        Rule {
            pattern: "{Min(Relu(x), high) | Relu(Min(x, high))}",
            rewrite: |cx, seen| clip(cx, seen, 0.0, seen.number(cx, "high")?),
        },
    ],
};

/// The value, if it is of one of these types.
fn float(cx: &Builder, x: Value, types: &[DType]) -> Option<Value> {
    cx.known_dtype(x).filter(|d| types.contains(d)).map(|_| x)
}

/// Of the type that the steps were computed in: what one operator rounds once is not less exact. Its constants are
/// float32, so that float64 stays as it is.
fn gelu(cx: &Builder, seen: &Seen, approximate: &'static str) -> Option<Value> {
    let x = wide_enough(cx, seen)?;
    Some(cx.gelu(x, attrs::Gelu { approximate }))
}

/// `x`, where no constant broadcasts it, of float32 or a half.
fn wide_enough(cx: &Builder, seen: &Seen) -> Option<Value> {
    let x = float(cx, seen.value("x")?, &[DType::F32, DType::F16, DType::BF16])?;
    seen.keeps_shape(cx, x).then_some(x)
}

/// Where the bounds cross, the upper one wins in either order of `Min` and `Max`, but not by `Clip` alone.
fn clip(cx: &Builder, seen: &Seen, low: f64, high: f64) -> Option<Value> {
    let x = seen.value("x")?;
    if low.is_nan() || high.is_nan() || low > high || !seen.keeps_shape(cx, x) {
        return None;
    }
    Some(cx.clamp(x, Some(Scalar::Float(low)), Some(Scalar::Float(high))))
}
