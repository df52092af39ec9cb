//! How much each element of a sum counts: a weight of 4 bits may lose more where it multiplies
//! small numbers.

use crate::{
    Options, Weight,
    weight_selection::{self, product},
};
use pt2onnx_ir::{Model, Value};
use pt2onnx_tensor::DType;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The mean squares of what each weight multiplies, by the place in its sums.
pub(crate) type Importance = FxHashMap<Value, Arc<[f32]>>;

/// The values of the main graph that products with weights take.
pub(crate) fn inputs(model: &Model, options: &Options) -> Vec<Value> {
    let weights = weight_selection::weights(model, options);
    let inputs = weights.iter().flat_map(|weight| inputs_of(model, weight));
    inputs.filter(|value| is_main(model, *value)).collect()
}

/// The importance for weights whose products were seen.
pub(crate) fn of_weights(model: &Model, weights: &[Weight], options: &Options) -> Importance {
    let squares = &options.calibrated.squares;
    let mut found = Importance::default();
    for weight in weights {
        let Some(axes) = weight.axes(model) else { continue };
        let Some(&size) = weight.tensor.shape().get(axes.sum) else { continue };
        let mut sums = vec![0.0; size];
        let seen = inputs_of(model, weight).into_iter().filter_map(|value| squares.get(&value));
        for means in seen.filter(|means| means.len() == size) {
            sums.iter_mut().zip(means).for_each(|(sum, mean)| *sum += mean);
        }
        let largest = sums.iter().copied().fold(0.0, f32::max);
        // Without any number but zeros, all count alike.
        if largest > 0.0 && largest.is_finite() {
            found.insert(weight.value, sums.iter().map(|sum| sum / largest).collect());
        }
    }
    found
}

/// The values that products with a matrix take.
fn inputs_of(model: &Model, weight: &Weight) -> Vec<Value> {
    let products = weight.products(model).into_iter();
    let inputs = products.filter_map(|(node, index)| Some(product(model, node, index)?.0));
    inputs.filter(|value| model.dtype(*value) == Some(DType::F32)).collect()
}

/// Whether a value can be an output of the main graph.
fn is_main(model: &Model, value: Value) -> bool {
    match model.producer(value) {
        Some(node) => model[node].region() == Model::MAIN,
        None => model.inputs().contains(&value),
    }
}
