//! Fuses formulas of activation functions, and bounds into `Clip`.

use crate::{
    analysis::number_of,
    fusion::Fusion,
    pattern::{Match, PatternError},
};
use pt2onnx_ir::{Builder, Node, Value, attrs};
use pt2onnx_tensor::DType;

/// The formula of GELU as PyTorch's older exporter writes it: the half comes last.
pub(super) const HALVED_GELU: &str =
    "Mul(Mul(x, Add(Erf({Div(x, 1.4142135623730951) | Mul(x, 0.7071067811865476)}), 1)), 0.5)";

/// `0.5 x (1 + erf(x / sqrt(2)))` and its approximation by `tanh`. Nodes of float64 are kept,
/// because `Gelu` computes with float32 constants.
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
        (HALVED_GELU, "none"),
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

/// Two nodes that bound `x` by numbers become one. A single `Min` or `Max` is kept, because
/// runtimes differ in what `Clip` gives for infinity if one bound is missing.
pub(crate) fn clip_fusions() -> Result<Vec<Fusion>, PatternError> {
    let inner = "{i:Clip(x) | i:Relu(x) | i:Min(x, d) | i:Max(x, d)}";
    let outer =
        format!("{{o:Clip({inner}) | o:Relu({inner}) | o:Min({inner}, c) | o:Max({inner}, c)}}");
    // Older forms of `Clip` and their runtimes are for float32.
    let single = |cx: &Builder<'_>, found: &Match<'_>| {
        found.value("x").and_then(|x| cx.known_dtype(x)) == Some(DType::F32)
    };
    Ok(vec![Fusion::new(&outer, clip)?.since(12), Fusion::new(&outer, clip)?.when(single)])
}

/// The lower and the upper bound of a node; `None` if they are not known. `number` has that of
/// `Min` and `Max`.
fn bounds(cx: &Builder<'_>, node: &Node, number: Option<Value>) -> Option<[Option<f64>; 2]> {
    let element = |v: Value| Some(number_of(&cx.model(), v)?.1).filter(|n| !n.is_nan());
    let bound = |i: usize| node.input(i).map_or(Some(None), |v| element(v).map(Some));
    let found = match node.op() {
        "Relu" => [Some(0.0), None],
        "Max" => [Some(element(number?)?), None],
        "Min" => [None, Some(element(number?)?)],
        _ => [bound(1)?, bound(2)?],
    };
    // If the lower bound is above the upper one, `Min` and `Max` give the upper one in either
    // order; `Clip` is not sure to.
    ordered(found).then_some(found)
}

fn ordered([low, high]: [Option<f64>; 2]) -> bool {
    low.zip(high).is_none_or(|(low, high)| low <= high)
}

/// One of two bounds.
fn either(a: Option<f64>, b: Option<f64>, pick: fn(f64, f64) -> f64) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(pick(a, b)),
        (a, b) => a.or(b),
    }
}

fn clip(cx: &Builder<'_>, found: &Match<'_>) -> Option<Value> {
    let (x, inner, outer) = (found.value("x")?, found.node(cx, "i")?, found.node(cx, "o")?);
    let [low, high] = bounds(cx, &inner, found.value("d"))?;
    let [least, most] = bounds(cx, &outer, found.value("c"))?;
    let both = [either(low, least, f64::max), either(high, most, f64::min)];
    if !ordered(both) || !found.keeps_shape(cx, x) {
        return None;
    }
    let scalar = |b: Option<f64>| b.map(|b| cx.scalar(b, cx.dtype(x)));
    let one = |op: &str| inner.op() == op || outer.op() == op;
    let [low, high] = both;
    Some(match (low, high) {
        (Some(_), Some(_)) => cx.emit1("Clip", &[Some(x), scalar(low), scalar(high)], Vec::new()),
        (Some(_), None) if one("Clip") => cx.emit1("Clip", &[Some(x), scalar(low)], Vec::new()),
        (None, Some(_)) if one("Clip") => {
            cx.emit1("Clip", &[Some(x), None, scalar(high)], Vec::new())
        }
        (Some(0.0), None) if one("Relu") => cx.emit1("Relu", &[Some(x)], Vec::new()),
        (Some(_), None) => cx.emit1("Max", &[Some(x), scalar(low)], Vec::new()),
        (None, Some(_)) => cx.emit1("Min", &[Some(x), scalar(high)], Vec::new()),
        (None, None) => x,
    })
}
