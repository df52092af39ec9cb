//! RMS normalization fusion: the formula becomes `RMSNormalization`.

use super::{
    Because, Fusion, Match, NoFusion, Pass, Patterns, Run,
    normalization::{fits, normalised},
};
use crate::Target;
use pt2onnx_ir::{Builder, Value, attrs};
use pt2onnx_tensor::Tensor;

pub(crate) static RMS_NORM: Pass = Pass {
    name: "rms-norm",
    since: 23,
    description: "Replaces the formula of RMS normalization by RMSNormalization (opset 23).",
    precondition: "As for layer-norm.",
    any_opset: Target::CONTRIB,
    run: Run::fusions(fusions),
    ..Pass::FUSION
};

/// `x / sqrt(mean(x²) + epsilon)` in float32, with a scale or without, and also with a cast before
/// the scale.
fn fusions() -> Patterns {
    let formulas = [
        "n:Mul(x, Reciprocal(Sqrt(Add(m:ReduceMean({Mul(x, x) | Pow(x, 2)}), epsilon))))",
        "n:Div(x, Sqrt(Add(m:ReduceMean({Mul(x, x) | Pow(x, 2)}), epsilon)))",
    ];
    let [product, quotient] = formulas;
    let all =
        format!("Mul({{{product} | {quotient} | c:Cast({product}) | c:Cast({quotient})}}, scale)");
    let mut fusions = vec![Fusion::new(&all, |cx, found| {
        let (x, axis, epsilon) = normalised(cx, found)?;
        let scale = found.get("scale")?;
        fits(cx, scale, x, axis)?;
        let options = attrs::RMSNormalization { axis, epsilon, ..Default::default() };
        Ok(cx.rms_normalization(x, scale, options))
    })?];
    for formula in formulas {
        fusions.push(Fusion::new(formula, without_scale)?);
    }
    Ok(fusions)
}

fn without_scale(cx: &Builder, found: &Match) -> Result<Value, NoFusion> {
    let (x, axis, epsilon) = normalised(cx, found)?;
    (!is_scaled(cx, found.get("n")?, x, axis)).then_some(()).ok_or(NoFusion::NoMatch)?;
    let ones = || {
        let sizes = cx.known_shape(x)?;
        let last = &sizes[sizes.len().checked_sub(usize::try_from(-axis).ok()?)?..];
        let sizes: Vec<usize> =
            last.iter().map(|d| usize::try_from(d.as_int()?).ok()).collect::<Option<_>>()?;
        Tensor::vector(&vec![1.0f32; sizes.iter().product()]).reshaped(sizes)
    };
    let ones = cx.constant(ones().because("the normalized sizes are not numbers")?);
    let options = attrs::RMSNormalization { axis, epsilon, ..Default::default() };
    Ok(cx.rms_normalization(x, ones, options))
}

/// Whether a scale follows, which the other fusion takes.
fn is_scaled(cx: &Builder, n: Value, x: Value, axis: i64) -> bool {
    let Some((user, at)) = cx.model()[n].only_use() else { return false };
    let node = cx.model()[user].clone();
    match node.op() {
        "Mul" => node.input(1 - at).is_some_and(|scale| fits(cx, scale, x, axis).is_ok()),
        "Cast" => true,
        _ => false,
    }
}
