//! Folds batch normalization into the weights of the convolution or linear layer before it.

use super::lazy_scale::{Real, scaled};
use crate::{
    fusion::Fusion,
    pattern::{Match, PatternError},
    rewrite::replacement,
};
use pt2onnx_ir::{Builder, Node, Value, attrs};
use pt2onnx_tensor::{DType, Tensor};

/// All parameters must be constants, and the weight must have no other use, since the new one
/// replaces it in the file. The new weight has another name: whoever replaces weights by name must
/// not give it the old values.
pub(crate) fn batch_norm_fusions() -> Result<Vec<Fusion>, PatternError> {
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

fn folded(cx: &Builder, found: &Match, op: &'static str) -> Option<Value> {
    let (norm, linear) = (found.node(cx, "n")?, found.node(cx, "w")?);
    if attrs::BatchNormalization::read(&norm).ok()?.training_mode
        || linear.input(1) == linear.input(2)
    {
        return None;
    }
    if op == "Gemm"
        && [0, 1].iter().any(|&i| {
            let shape = linear.input(i).and_then(|v| cx.known_shape(v));
            shape.is_none_or(|s| s.len() != 2)
        })
    {
        return None;
    }
    match cx.known_dtype(found.output())? {
        DType::F32 => fold_as::<f32>(cx, found, &norm, &linear, op),
        DType::F64 => fold_as::<f64>(cx, found, &norm, &linear, op),
        _ => None,
    }
}

/// Emits the folded node. Its channels are scaled by `scale / sqrt(variance + epsilon)` and
/// shifted.
fn fold_as<T: Real>(
    cx: &Builder,
    found: &Match,
    norm: &Node,
    linear: &Node,
    op: &'static str,
) -> Option<Value> {
    let doubles = |name: &str| as_doubles::<T>(cx, found.value(name)?);
    let [scale, bias, mean, variance] = ["scale", "bias", "mean", "variance"].map(doubles);
    let (scale, bias, mean, variance) = (scale?, bias?, mean?, variance?);
    let channels = scale.len();
    if [bias.len(), mean.len(), variance.len()] != [channels; 3] {
        return None;
    }
    let epsilon = f64::from(attrs::BatchNormalization::read(norm).ok()?.epsilon);
    let deviations = variance.iter().map(|variance| (variance + epsilon).sqrt());
    let factors: Vec<f64> = scale.iter().zip(deviations).map(|(scale, d)| scale / d).collect();
    let weight = found.value("weight")?;
    let tensor = cx.constant_of(weight).filter(|t| t.has_data() && alone(cx, weight))?;
    let scaled = scaled::<T>(&tensor, linear, op, &factors)?;
    let before = match linear.input(2) {
        None => vec![0.0; channels],
        Some(given) => match as_doubles::<T>(cx, given)?.as_slice() {
            [one] => vec![*one; channels],
            all if all.len() == channels => all.to_vec(),
            _ => return None,
        },
    };
    let beta = f64::from(attrs::Gemm::read(linear).ok()?.beta);
    let shifted: Vec<T> = (0..channels)
        .map(|c| T::rounded((before[c] * beta - mean[c]) * factors[c] + bias[c]))
        .collect();
    if !shifted.iter().all(|&v| v.into().is_finite()) {
        return None;
    }
    let new_weight = named(cx, scaled, Some(weight));
    let old_bias = linear.input(2).or(found.value("bias"));
    let new_bias = named(cx, Tensor::vector(&shifted), old_bias);
    let attributes = linear.attributes.iter().filter(|(n, _)| n != "beta");
    let inputs = [linear.input(0), Some(new_weight), Some(new_bias)];
    Some(cx.emit1(op, &inputs, attributes.cloned().collect()))
}

/// The elements of a constant.
pub(super) fn as_doubles<T: Real>(cx: &Builder, value: Value) -> Option<Vec<f64>> {
    let elements = cx.constant_of(value).filter(Tensor::has_data)?.to_vec::<T>()?;
    Some(elements.into_iter().map(Into::into).collect())
}

/// Whether the constant has one use and shares memory with no other used constant. One number that
/// fills a weight may be shared.
pub(super) fn alone(cx: &Builder, value: Value) -> bool {
    let model = cx.model();
    let filled = |t: &Tensor| t.rank() > 0 && t.strides().iter().all(|&s| s == 0);
    if model[value].constant().is_some_and(filled) {
        return true;
    }
    let storage = |v: Value| model[v].constant().and_then(Tensor::storage);
    let shares = |other: Value| {
        let pair = storage(value).zip(storage(other));
        other != value && pair.is_some_and(|(a, b)| a.same(b))
    };
    model[value].uses().len() == 1 && !model.values().any(|(v, d)| d.uses().len() > 0 && shares(v))
}

/// A constant named after the one it replaces.
pub(super) fn named(cx: &Builder, tensor: Tensor, after: Option<Value>) -> Value {
    cx.edit(|model| replacement(model, tensor, after))
}
