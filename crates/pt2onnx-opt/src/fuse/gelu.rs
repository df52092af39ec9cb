//! `GELU` fusion: formulas with `Erf` or `Tanh` become `Gelu`.

use super::{Because, Fusion, Match, NoFusion, Pass, Patterns, Run};
use crate::ort_reserved::{GELU_BY_ERF, GELU_BY_TANH};
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

/// `0.5 x (1 + erf(x / sqrt(2)))` and its approximation by `tanh`. Nodes of float64 are kept,
/// because `Gelu` computes with float32 constants.
fn fusions() -> Patterns {
    let by_erf = GELU_BY_ERF.map(|pattern| (pattern, "none"));
    let patterns = by_erf.into_iter().chain(GELU_BY_TANH.map(|pattern| (pattern, "tanh")));
    let gelu = |(pattern, approximate)| {
        Fusion::new(pattern, move |cx, found| {
            let x = at_most_float32(cx, found)?;
            Ok(cx.gelu(x, attrs::Gelu { approximate }))
        })
    };
    patterns.map(gelu).collect()
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
