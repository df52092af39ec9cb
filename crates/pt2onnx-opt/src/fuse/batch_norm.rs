//! Folds batch normalization into the weights of the convolution or linear layer before it.

use super::{
    Because, Fusion, Match, NoFusion, Pass, Patterns, Run,
    per_channel::{MISFIT, doubles, float_type, scaled_weight, vector},
};
use pt2onnx_ir::{Builder, Traits, Value, attrs};

pub(crate) static BATCH_NORM: Pass = Pass {
    name: "batch-norm",
    description: "Folds BatchNormalization into the weights of the Conv, ConvTranspose, Gemm or \
                  MatMul before it.",
    precondition: "All parameters are float32 or float64 constants, and nothing else uses the \
                   weight.",
    run: Run::fusions(fusions),
    ..Pass::FUSION
};

/// The weight must have no other use, since the new one replaces it in the file. The new weight has
/// another name, so that nobody gives it the old values by name.
fn fusions() -> Patterns {
    let fold = |layer| {
        let norm =
            format!("n:BatchNormalization(w:{layer}(x, weight), scale, bias, mean, variance)");
        let op = if layer == "MatMul" { "Gemm" } else { layer };
        Fusion::new(&norm, move |cx, found| folded(cx, found, op))
    };
    Traits::LAYER.operators().map(fold).collect()
}

/// Emits the folded node. Its channels are scaled by `scale / sqrt(variance + epsilon)` and
/// shifted.
fn folded(cx: &Builder, found: &Match, op: &'static str) -> Result<Value, NoFusion> {
    let (norm, linear) = (found.get_node(cx, "n")?, found.get_node(cx, "w")?);
    let norm = attrs::BatchNormalization::read(&norm).ok().filter(|n| !n.training_mode);
    let norm = norm.because("the normalization is in training mode")?;
    (linear.input(1) != linear.input(2)).because("the weight is the bias, too")?;
    let is_matrix = |&i: &usize| {
        let shape = linear.input(i).and_then(|v| cx.known_shape(v));
        shape.is_some_and(|s| s.len() == 2)
    };
    (op != "Gemm" || [0, 1].iter().all(is_matrix)).because("the operands are not matrices")?;
    let dtype = float_type(cx, found)?;
    let parameter =
        |name| doubles(cx, found.get(name)?, dtype).because("a parameter is not a constant");
    let [scale, bias, mean, variance] = ["scale", "bias", "mean", "variance"].map(parameter);
    let (scale, bias, mean, variance) = (scale?, bias?, mean?, variance?);
    let channels = scale.len();
    ([bias.len(), mean.len(), variance.len()] == [channels; 3]).because(MISFIT)?;
    let epsilon = f64::from(norm.epsilon);
    let deviations = variance.iter().map(|variance| (variance + epsilon).sqrt());
    let factors: Vec<f64> = scale.iter().zip(deviations).map(|(scale, d)| scale / d).collect();
    let weight = scaled_weight(cx, found, &linear, op, dtype, &factors)?;
    let before = match linear.input(2) {
        None => vec![0.0; channels],
        Some(given) => match doubles(cx, given, dtype).because("the bias is not a constant")? {
            one if one.len() == 1 => vec![one[0]; channels],
            all if all.len() == channels => all,
            _ => return Err(NoFusion::Because(MISFIT)),
        },
    };
    let beta = f64::from(attrs::Gemm::read(&linear).map_err(|_| NoFusion::NoMatch)?.beta);
    let shift = |c: usize| (before[c] * beta - mean[c]) * factors[c] + bias[c];
    let shifted = vector(dtype, (0..channels).map(shift))?;
    let new_weight = found.add_folded(cx, weight, linear.input(1));
    let old_bias = linear.input(2).or(found.value("bias"));
    let new_bias = found.add_folded(cx, shifted, old_bias);
    let attributes = linear.attributes.iter().filter(|(n, _)| n != "beta");
    let inputs = [linear.input(0), Some(new_weight), Some(new_bias)];
    Ok(cx.emit1(op, &inputs, attributes.cloned().collect()))
}
