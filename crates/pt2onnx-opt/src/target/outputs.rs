//! Outputs that no node makes.

use pt2onnx_ir::{Def, InsertPoint, Model, Name, Value};

/// Makes outputs that are constants or inputs those of a node: some runtimes have no others.
pub(super) fn compute_outputs(model: &mut Model) {
    let outputs: Vec<_> = model.output_values().collect();
    let names: Vec<_> = {
        let slots = model[Model::MAIN].outputs().iter();
        slots.map(|slot| model.output_name(slot).cloned()).collect()
    };
    // An input that is an output of its name can be no other value.
    let is_made = |(value, name): (&Value, &Option<Name>)| match model[*value].def() {
        Def::Node(..) => true,
        Def::Input(..) => model[*value].name == *name,
        Def::Constant(_) => false,
    };
    let made: Vec<bool> = outputs.iter().zip(&names).map(is_made).collect();
    if made.iter().all(|made| *made) {
        return;
    }
    let mut new = outputs.clone();
    for (at, value) in outputs.iter().enumerate().filter(|(at, _)| !made[*at]) {
        let end = InsertPoint::End(Model::MAIN);
        let node = model.add_node(end, "Identity", &[Some(*value)], Vec::new(), 1);
        new[at] = model[node].outputs()[0];
        model[new[at]].ty = model[*value].ty.clone();
        if model[*value].name == names[at] && matches!(model[*value].def(), Def::Constant(_)) {
            model[*value].name = None;
        }
    }
    model.set_outputs_as_written(Model::MAIN, &new);
    for (at, name) in names.into_iter().enumerate().filter(|(at, _)| !made[*at]) {
        if let Some(name) = name {
            model.set_output_name(Model::MAIN, at, name);
        }
    }
}
