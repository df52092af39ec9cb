//! Weights that are inputs as well, as IR version 3 demanded and some exporters still write.

use pt2onnx_ir::{Model, Use, Value};

/// Makes the inputs with values constants, if all weights of a model are such inputs, and a matrix
/// is among them. Returns their number.
pub(crate) fn make_constants(model: &mut Model) -> usize {
    let weights: Vec<Value> =
        model.inputs().iter().copied().filter(|v| model[*v].default.is_some()).collect();
    let is_matrix = |v: &Value| model[*v].default.as_ref().is_some_and(|t| t.rank() >= 2);
    let is_output =
        |v: &Value| model[*v].uses().any(|at| matches!(at, Use::Output(Model::MAIN, _)));
    let others =
        { model.values() }.any(|(_, data)| data.constant().is_some() && data.uses().len() > 0);
    if others || !weights.iter().any(is_matrix) || weights.iter().any(is_output) {
        return 0;
    }
    let inputs = model.inputs().iter().enumerate();
    let kept: Vec<usize> = inputs.filter(|(_, v)| !weights.contains(v)).map(|(i, _)| i).collect();
    for &input in &weights {
        let Some(tensor) = model[input].default.take() else { continue };
        let constant = model.add_constant(*tensor);
        model[constant].name = model[input].name.take();
        model[constant].doc_string = model[input].doc_string.take();
        model[constant].metadata = std::mem::take(&mut model[input].metadata);
        model.replace_all_uses(input, constant);
    }
    model.remove_unused_inputs(&kept);
    weights.len()
}
