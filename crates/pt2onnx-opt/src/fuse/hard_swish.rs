//! Hard swish fusion: formulas with `Clip` become `HardSwish` and `HardSigmoid`.

use super::{Because, Fusion, Pass, Patterns, Run, gelu::at_most_float32};
use pt2onnx_ir::attrs;

pub(crate) static HARD_SWISH: Pass = Pass {
    name: "hard-swish",
    description: "Replaces the formulas of hard swish and hard sigmoid by HardSwish and \
                  HardSigmoid. Before opset 14, HardSwish is a product with HardSigmoid.",
    precondition: "The type is not float64.",
    run: Run::fusions(fusions),
    ..Pass::FUSION
};

/// The slope of `relu6(x + 3) / 6`.
const ALPHA: f32 = 1.0 / 6.0;

/// Its value at 0.
const BETA: f32 = 0.5;

/// `x relu6(x + 3) / 6`, and `relu6(x + 3) / 6`.
fn fusions() -> Patterns {
    let swish = |pattern| {
        Fusion::new(pattern, |cx, found| {
            let x = at_most_float32(cx, found)?;
            if let Some(node) = found.node(cx, "h") {
                let own = attrs::HardSigmoid::read(&node).ok();
                own.is_some_and(|own| (own.alpha, own.beta) == (ALPHA, BETA))
                    .because("the sigmoid has another slope")?;
            }
            Ok(cx.hard_swish(x))
        })
    };
    Ok(vec![
        swish("{Mul(x, Div(Clip(Add(x, 3), 0, 6), 6)) | Div(Mul(x, Clip(Add(x, 3), 0, 6)), 6)}")?,
        swish(
            "{Mul(x, h:HardSigmoid(x)) | Mul(x, Mul(Clip(Add(x, 3), 0, 6), 0.16666666666666666))}",
        )?,
        Fusion::new(
            "{Div(Clip(Add(x, 3), 0, 6), 6) | Mul(Clip(Add(x, 3), 0, 6), 0.16666666666666666)}",
            |cx, found| {
                let curve = attrs::HardSigmoid { alpha: ALPHA, beta: BETA };
                Ok(cx.hard_sigmoid(at_most_float32(cx, found)?, curve))
            },
        )?,
    ])
}
