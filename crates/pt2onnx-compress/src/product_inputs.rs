//! The inputs of products with weights of 4 bits, and what their moments say of the weights.

use crate::{
    Moments, Options, Weight,
    feedback::Feedback,
    moments::{MEMORY, span},
    weight_selection::{self, product},
};
use pt2onnx_ir::{Model, Value};
use pt2onnx_tensor::DType;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// For each input of products with weights of 4 bits, its sums of products, which are zero.
pub fn moments(model: &Model, options: &Options) -> FxHashMap<Value, Moments> {
    let widths = inputs(model, options);
    let span = span(widths.values().copied(), MEMORY);
    widths.into_iter().map(|(value, width)| (value, Moments::new(width, span))).collect()
}

/// The values of the main graph that products with matrices take, and the sizes of their rows.
pub(crate) fn inputs(model: &Model, options: &Options) -> FxHashMap<Value, usize> {
    let weights = weight_selection::weights(model, options);
    let inputs = weights.iter().flat_map(|weight| {
        let width = width(model, weight);
        let values = width.map(|_| inputs_of(model, weight)).into_iter().flatten();
        values.filter_map(move |value| Some((value, width?)))
    });
    let is_seen = |value| is_main(model, value) && model.dtype(value) == Some(DType::F32);
    inputs.filter(|(value, _)| is_seen(*value)).collect()
}

/// The ways to make up for errors, of weights whose products were seen.
pub(crate) fn of_weights(
    model: &Model,
    weights: &[Weight],
    options: &Options,
) -> FxHashMap<Value, Arc<Feedback>> {
    let known = &options.calibrated.moments;
    // Many weights have the same input.
    let mut made: FxHashMap<Vec<Value>, Option<Arc<Feedback>>> = FxHashMap::default();
    let mut found = FxHashMap::default();
    for weight in weights.iter().filter(|_| !known.is_empty()) {
        let mut inputs = inputs_of(model, weight);
        inputs.retain(|value| known.get(value).map(Moments::width) == width(model, weight));
        inputs.sort_by_key(|value| value.index());
        inputs.dedup();
        pt2onnx_cancel::check();
        let own = made.entry(inputs).or_insert_with_key(|inputs| {
            let mut all = inputs.iter().filter_map(|value| known.get(value));
            let first = all.next()?;
            let Some(second) = all.next() else { return Feedback::new(first).map(Arc::new) };
            let mut sums = first.clone();
            [second].into_iter().chain(all).for_each(|more| sums.add(more));
            Feedback::new(&sums).map(Arc::new)
        });
        if let Some(own) = own {
            found.insert(weight.value, own.clone());
        }
    }
    found
}

/// The elements of a sum of a product with a matrix.
pub(crate) fn width(model: &Model, weight: &Weight) -> Option<usize> {
    let axes = weight.axes(model).filter(|_| weight.tensor.rank() == 2)?;
    weight.tensor.shape().get(axes.sum).copied()
}

/// The values that products with a matrix take.
pub(crate) fn inputs_of(model: &Model, weight: &Weight) -> Vec<Value> {
    let products = weight.products(model).into_iter();
    products.filter_map(|(node, index)| Some(product(model, node, index)?.0)).collect()
}

/// Whether a value can be an output of the main graph.
fn is_main(model: &Model, value: Value) -> bool {
    match model.producer(value) {
        Some(node) => model[node].region() == Model::MAIN,
        None => model.inputs().contains(&value),
    }
}
