//! RMS normalization fusion: the formula becomes `RMSNormalization`.

use super::{
    Fusion, Pass, Patterns, Run,
    normalization::{fits, normalised},
};
use crate::Target;
use pt2onnx_ir::attrs;

pub(crate) static RMS_NORM: Pass = Pass {
    name: "rms-norm",
    since: 23,
    description: "Replaces the formula of RMS normalization by RMSNormalization (opset 23).",
    precondition: "As for layer-norm.",
    any_opset: Target::CONTRIB,
    run: Run::fusions(fusions),
    ..Pass::FUSION
};

/// `x / sqrt(mean(x²) + epsilon) * scale` in float32, also with a cast before the scale.
fn fusions() -> Patterns {
    Ok(vec![Fusion::new(
        "Mul({n:Mul(x, Reciprocal(Sqrt(Add(m:ReduceMean({Mul(x, x) | Pow(x, 2)}), epsilon)))) \
                  | n:Div(x, Sqrt(Add(m:ReduceMean({Mul(x, x) | Pow(x, 2)}), epsilon))) \
                  | c:Cast(n:Mul(x, Reciprocal(Sqrt(Add(m:ReduceMean({Mul(x, x) | Pow(x, 2)}), epsilon))))) \
                  | c:Cast(n:Div(x, Sqrt(Add(m:ReduceMean({Mul(x, x) | Pow(x, 2)}), epsilon))))}, scale)",
        |cx, found| {
            let (x, axis, epsilon) = normalised(cx, found)?;
            let scale = found.get("scale")?;
            fits(cx, scale, x, axis)?;
            let options = attrs::RMSNormalization { axis, epsilon, ..Default::default() };
            Ok(cx.rms_normalization(x, scale, options))
        },
    )?])
}
