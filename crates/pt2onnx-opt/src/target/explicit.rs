//! Forms that runtimes read alike, where the standard has several: defaults that some of them take
//! for others are written, and so is a condition of loops that some take for false.

use pt2onnx_ir::{Attribute, Model, NodeId, attrs, schema};
use pt2onnx_tensor::Tensor;

/// Defaults that are written. Not all are: OpenCV refuses some attributes that are given.
const DEFAULTS: [(&str, &str); 2] = [("InstanceNormalization", "epsilon"), ("Resize", "mode")];

/// Writes these forms into the main graph and its bodies.
pub(super) fn write(model: &mut Model) {
    let mut condition = None;
    for id in model.nodes_in(&[Model::MAIN]) {
        if !model[id].domain.is_empty() {
            continue;
        }
        for (op, name) in DEFAULTS {
            if model[id].is(op) {
                default(model, id, name);
            }
        }
        if model[id].is("ConvTranspose") {
            symmetric(model, id);
        }
        if model[id].is("Loop") && model[id].input(1).is_none() {
            let mut inputs = model[id].inputs().to_vec();
            inputs.resize(inputs.len().max(2), None);
            let always = || model.add_constant(Tensor::scalar(true));
            inputs[1] = Some(*condition.get_or_insert_with(always));
            model.set_inputs(id, &inputs);
        }
    }
}

fn default(model: &mut Model, id: NodeId, name: &'static str) {
    let schema = schema::lookup(model[id].op(), model.opset);
    let default = schema.and_then(|s| s.attribute(name)?.default.as_ref());
    if let Some(default) = default.filter(|_| model[id].attribute(name).is_none()) {
        model[id].set_attribute(name, Attribute::from(default));
    }
}

/// Pads that are less at the end become those of the begin, and more of the output at the end.
/// Runtimes take less of it than a stride.
fn symmetric(model: &mut Model, id: NodeId) {
    let Ok(given) = attrs::ConvTranspose::read(&model[id]) else { return };
    let Some(pads) = given.pads.filter(|_| given.output_shape.is_none()) else { return };
    let (begins, ends) = pads.split_at(pads.len() / 2);
    let before = given.output_padding.unwrap_or_else(|| vec![0; begins.len()]);
    let strides = given.strides.unwrap_or_else(|| vec![1; begins.len()]);
    let each = begins.iter().zip(ends).zip(&before);
    let more: Vec<i64> = each.map(|((begin, end), more)| begin - end + more).collect();
    let fits = more.iter().zip(&strides).all(|(more, stride)| (0..*stride).contains(more));
    if begins != ends && fits && given.auto_pad == "NOTSET" {
        let both = [begins, begins].concat();
        model[id].set_attribute("pads", both);
        model[id].set_attribute("output_padding", more);
    }
}
