//! Quantises the weights of a graph: which form each gets.

use crate::{
    Compressed, Cx, Edit, Error, Options, Quantize, block_ops, channel_moments, dequantize,
    dynamic, mixed, product_inputs, recurrent, weight_selection,
};
use pt2onnx_ir::{Model, Value};
use pt2onnx_tensor::Tensor;
use rustc_hash::{FxHashMap, FxHashSet};

/// Quantises all weights that products and tables use. `originals` are what weights were before the
/// graph was in float16, `least` the smallest scales that channels of weights may have.
pub(crate) fn quantise(
    model: &mut Model,
    options: &Options,
    quantize: Quantize,
    originals: &FxHashMap<Value, Tensor>,
    least: FxHashMap<Value, Vec<f32>>,
    done: &mut Compressed,
) -> Result<(), Error> {
    let weights = weight_selection::weights(model, options);
    let mut at_8_bits = FxHashSet::default();
    if options.mixed {
        at_8_bits = mixed::kept_at_8_bits(model, &weights, options);
    }
    let feedback = product_inputs::of_weights(model, &weights, options);
    let channels = channel_moments::of_weights(model, &weights, options);
    let edit = Edit::new(model);
    let mut cx = Cx { edit, options, quantize, feedback, channels, at_8_bits, least, done };
    if options.ort && quantize == Quantize::DynamicInt8 {
        recurrent::replace(&mut cx, &weights);
    }
    for weight in weights {
        pt2onnx_cancel::check();
        if weight.tensor.rank() < 2 {
            continue;
        }
        let weight = weight.again(cx.edit.model, originals);
        if let Some(axes) = recurrent::axes(cx.edit.model, &weight) {
            if matches!(quantize, Quantize::Int8 | Quantize::DynamicInt8) {
                weight.has_values()?;
                dequantize::replace(&mut cx, &weight, axes)?;
            }
            continue;
        }
        let Some(axes) = weight.axes(cx.edit.model) else { continue };
        weight.has_values()?;
        let replaced = match quantize {
            // Weights that neither ONNX Runtime's operators nor the standard's can take stay
            // unchanged.
            Quantize::Int4 if options.ort => {
                block_ops::replace(&mut cx, &weight, axes) || cx.edit.model.opset < 21
            }
            Quantize::DynamicInt8 => {
                dynamic::replace(&mut cx, &weight, axes)?;
                true
            }
            _ => false,
        };
        if !replaced {
            dequantize::replace(&mut cx, &weight, axes)?;
        }
    }
    Ok(())
}
