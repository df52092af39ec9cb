//! `GELU` fusion: formulas with `Erf` or `Tanh` become `Gelu`.

use super::{Because, Fusion, Match, NoFusion, Pass, Patterns, Run};
use pt2onnx_ir::{Builder, Value, attrs};
use pt2onnx_tensor::DType;

pub(crate) static GELU: Pass = Pass {
    name: "gelu",
    since: 20,
    description: "Replaces the formulas of GELU, with Erf or Tanh, by Gelu (opset 20).",
    precondition: "The type is not float64.",
    run: Run::fusions(fusions),
    ..Pass::FUSION
};

/// The formula of GELU as PyTorch's older exporter writes it: the half comes last.
pub(super) const HALVED_GELU: &str =
    "Mul(Mul(x, Add(Erf({Div(x, 1.4142135623730951) | Mul(x, 0.7071067811865476)}), 1)), 0.5)";

/// `0.5 x (1 + erf(x / sqrt(2)))` and its approximation by `tanh`. Nodes of float64 are kept,
/// because `Gelu` computes with float32 constants.
fn fusions() -> Patterns {
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
        Fusion::new(pattern, move |cx, found| {
            let x = at_most_float32(cx, found)?;
            Ok(cx.gelu(x, attrs::Gelu { approximate }))
        })
    };
    patterns.into_iter().map(gelu).collect()
}

/// `x`, if it is float16, bfloat16 or float32, and no constant broadcasts it.
pub(super) fn at_most_float32(cx: &Builder<'_>, found: &Match<'_>) -> Result<Value, NoFusion> {
    let x = found.get("x")?;
    let dtype = cx.known_dtype(x);
    matches!(dtype, Some(DType::F32 | DType::F16 | DType::BF16))
        .because("the type is not float16, bfloat16 or float32")?;
    found
        .keeps_shape(cx, x)
        .because("a constant broadcasts the operand, or sizes are not known")?;
    Ok(x)
}
