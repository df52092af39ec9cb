//! Folds batch normalization into the weights of the convolution or linear layer before it.

use super::lazy_scale::{Real, scaled};
use crate::{
    fusion::{Because, Fusion, Fusions, NoFusion},
    measure::Measure,
    pass::{Level, Pass, Phase, Run},
    pattern::{Match, PatternError},
};
use pt2onnx_ir::{Builder, Node, Value, attrs};
use pt2onnx_tensor::{DType, Tensor};

pub(crate) static BATCH_NORM: Pass = Pass {
    name: "batch-norm",
    level: Level::Fuse,
    since: 7,
    description: "Folds BatchNormalization into the weights of the Conv, ConvTranspose, \
                  Gemm or MatMul before it.",
    precondition: "All parameters are float32 or float64 constants, and nothing else uses \
                  the weight.",
    lowers: Measure::Nodes,
    phase: Phase::Early,
    target: None,
    run: Run::Fusions(Fusions::new(fusions)),
};

/// All parameters must be constants, and the weight must have no other use, since the new one
/// replaces it in the file. The new weight has another name, so that nobody gives it the old values
/// by name.
fn fusions() -> Result<Vec<Fusion>, PatternError> {
    Ok(vec![
        Fusion::new(
            "n:BatchNormalization(w:Conv(x, weight), scale, bias, mean, variance)",
            |cx, found| folded(cx, found, "Conv"),
        )?,
        Fusion::new(
            "n:BatchNormalization(w:ConvTranspose(x, weight), scale, bias, mean, variance)",
            |cx, found| folded(cx, found, "ConvTranspose"),
        )?,
        Fusion::new(
            "n:BatchNormalization(w:Gemm(x, weight), scale, bias, mean, variance)",
            |cx, found| folded(cx, found, "Gemm"),
        )?,
        Fusion::new(
            "n:BatchNormalization(w:MatMul(x, weight), scale, bias, mean, variance)",
            |cx, found| folded(cx, found, "Gemm"),
        )?,
    ])
}

fn folded(cx: &Builder, found: &Match, op: &'static str) -> Result<Value, NoFusion> {
    let (norm, linear) = (found.get_node(cx, "n")?, found.get_node(cx, "w")?);
    let norms = attrs::BatchNormalization::read(&norm).ok();
    norms.is_some_and(|n| !n.training_mode).because("the normalization is in training mode")?;
    (linear.input(1) != linear.input(2)).because("the weight is the bias, too")?;
    let is_matrix = |&i: &usize| {
        let shape = linear.input(i).and_then(|v| cx.known_shape(v));
        shape.is_some_and(|s| s.len() == 2)
    };
    (op != "Gemm" || [0, 1].iter().all(is_matrix)).because("the operands are not matrices")?;
    match cx.known_dtype(found.output()) {
        Some(DType::F32) => fold_as::<f32>(cx, found, &norm, &linear, op),
        Some(DType::F64) => fold_as::<f64>(cx, found, &norm, &linear, op),
        _ => Err(NoFusion::Because(NOT_FLOAT)),
    }
}

/// A reason of folds into weights.
pub(super) const NOT_FLOAT: &str = "the type is not float32 or float64";

/// A reason of folds into weights.
pub(super) const SHARED: &str = "the weight is not a constant, or it is shared";

/// A reason of folds into weights.
pub(super) const MISFIT: &str =
    "a constant has other sizes than the channels, or a product is not finite";

/// Emits the folded node. Its channels are scaled by `scale / sqrt(variance + epsilon)` and
/// shifted.
fn fold_as<T: Real>(
    cx: &Builder,
    found: &Match,
    norm: &Node,
    linear: &Node,
    op: &'static str,
) -> Result<Value, NoFusion> {
    let doubles =
        |name: &str| as_doubles::<T>(cx, found.get(name)?).because("a parameter is not a constant");
    let [scale, bias, mean, variance] = ["scale", "bias", "mean", "variance"].map(doubles);
    let (scale, bias, mean, variance) = (scale?, bias?, mean?, variance?);
    let channels = scale.len();
    ([bias.len(), mean.len(), variance.len()] == [channels; 3]).because(MISFIT)?;
    let norm = attrs::BatchNormalization::read(norm).map_err(|_| NoFusion::NoMatch)?;
    let epsilon = f64::from(norm.epsilon);
    let deviations = variance.iter().map(|variance| (variance + epsilon).sqrt());
    let factors: Vec<f64> = scale.iter().zip(deviations).map(|(scale, d)| scale / d).collect();
    let weight = found.get("weight")?;
    let tensor = cx.constant_of(weight).filter(|t| t.has_data() && found.is_unshared(cx, weight));
    let scaled = scaled::<T>(&tensor.because(SHARED)?, linear, op, &factors).because(MISFIT)?;
    let before = match linear.input(2) {
        None => vec![0.0; channels],
        Some(given) => match as_doubles::<T>(cx, given).because("the bias is not a constant")? {
            one if one.len() == 1 => vec![one[0]; channels],
            all if all.len() == channels => all,
            _ => return Err(NoFusion::Because(MISFIT)),
        },
    };
    let beta = f64::from(attrs::Gemm::read(linear).map_err(|_| NoFusion::NoMatch)?.beta);
    let shifted: Vec<T> = (0..channels)
        .map(|c| T::rounded((before[c] * beta - mean[c]) * factors[c] + bias[c]))
        .collect();
    shifted.iter().all(|&v| v.into().is_finite()).because(MISFIT)?;
    let new_weight = found.add_folded(cx, scaled, Some(weight));
    let old_bias = linear.input(2).or(found.value("bias"));
    let new_bias = found.add_folded(cx, Tensor::vector(&shifted), old_bias);
    let attributes = linear.attributes.iter().filter(|(n, _)| n != "beta");
    let inputs = [linear.input(0), Some(new_weight), Some(new_bias)];
    Ok(cx.emit1(op, &inputs, attributes.cloned().collect()))
}

/// The elements of a constant.
pub(super) fn as_doubles<T: Real>(cx: &Builder, value: Value) -> Option<Vec<f64>> {
    let elements = cx.constant_of(value).filter(Tensor::has_data)?.to_vec::<T>()?;
    Some(elements.into_iter().map(Into::into).collect())
}
