//! Gives values the names that the user asks for.

use super::{
    NameError,
    find::{ORIGINAL, TARGET, called, find, original, target},
    tree::from_tree,
};
use crate::{Options, OutputNames};
use pt2onnx_fx::{ExportedProgram, InputSpec};
use pt2onnx_ir::{Def, Model, Value, ValueData};
use std::collections::HashMap;

/// Names inputs and outputs, and renames values that have names already. A model that was read from a file has no program.
pub(crate) fn name(
    model: &mut Model,
    program: Option<&ExportedProgram>,
    options: &Options,
) -> Result<(), NameError> {
    let outputs = match &options.output_names {
        OutputNames::List(names) => names.iter().cloned().map(Some).collect(),
        OutputNames::FromTree => program.and_then(from_tree).ok_or(NameError::NoTree)?,
    };
    let inputs: Vec<_> = options.input_names.iter().cloned().map(Some).collect();
    let mut plan = Vec::new();
    // Names go on over parameters and buffers, as in PyTorch's TorchScript exporter.
    let user = model.inputs().len();
    let mut named = model.inputs().to_vec();
    if inputs.len() > user
        && let Some(program) = program
    {
        named.extend(parameters(model, program).filter(|value| !model.inputs().contains(value)));
    }
    for (what, count, values, new) in [
        ("input", user, named, inputs),
        ("output", model.output_values().len(), model.output_values().collect(), outputs),
    ] {
        if new.len() > values.len() {
            let ends = values.iter().take(count);
            let names: Vec<String> = ends.map(|v| called(&model[*v])).collect();
            return Err(NameError::Surplus {
                what,
                given: new.len(),
                has: values.len(),
                weights: values.len() - count,
                names: names.join(", "),
            });
        }
        let given = values.iter().zip(new);
        plan.extend(given.filter_map(|(v, n)| Some((*v, n?))));
    }
    for (old, new) in &options.rename {
        plan.extend(find(model, old).map(|v| (v, new.clone())));
    }
    give(model, plan)
}

/// The parameters and persistent buffers that the model uses, in the order of the program.
fn parameters(model: &Model, program: &ExportedProgram) -> impl Iterator<Item = Value> {
    let targets = program.signature.inputs.iter().filter_map(|spec| match spec {
        InputSpec::Parameter { target, .. } => Some(target),
        InputSpec::Buffer { target, persistent: true, .. } => Some(target),
        _ => None,
    });
    targets.filter_map(|target| find(model, target))
}

/// Names all values, then renames values that only now have the old name.
pub(crate) fn finish(model: &mut Model, options: &Options) -> Result<(), NameError> {
    model.assign_names();
    let mut plan = Vec::new();
    for (old, new) in &options.rename {
        // Weights tell the name of their placeholder, whatever they are renamed from.
        let gone = find(model, old).is_none();
        let done = find(model, new).is_some_and(|v| gone || original(&model[v]) == Some(old));
        if !done {
            let value = find(model, old).ok_or_else(|| NameError::Unknown(old.clone()))?;
            plan.push((value, new.clone()));
        }
    }
    give(model, plan)?;
    // What had one of these names gets another.
    model.assign_names();
    Ok(())
}

/// Gives all names at once, so that two values can swap theirs.
fn give(model: &mut Model, plan: Vec<(Value, String)>) -> Result<(), NameError> {
    if plan.is_empty() {
        return Ok(());
    }
    let mut new_names: HashMap<Value, String> = HashMap::new();
    let mut values: HashMap<String, Value> = HashMap::new();
    for (value, new) in plan {
        let old = called(&model[value]);
        if new.is_empty() {
            return Err(NameError::Empty(old));
        }
        if let Some(first) = new_names.insert(value, new.clone()).filter(|n| *n != new) {
            let second = new;
            return Err(NameError::Twice { old, first, second });
        }
        if values.insert(new.clone(), value).is_some_and(|v| v != value) {
            return Err(NameError::Duplicate(new));
        }
    }
    for (other, data) in model.values().filter(|(v, _)| !new_names.contains_key(v)) {
        let holder = match data.def() {
            _ if model.output_values().any(|v| v == other) => "another output",
            Def::Input(region, _) if *region == Model::MAIN => "another input",
            Def::Constant(_) if data.uses().len() > 0 => "a weight",
            // Values in between are nobody's interface: they step aside and are named anew.
            _ => continue,
        };
        if let Some(value) = data.name.as_deref().and_then(|n| values.get(n)) {
            // A value that has the name already is not the one that takes it: the other gets a new one.
            if model[*value].name == data.name {
                continue;
            }
            let (old, new) = (called(&model[*value]), called(data));
            return Err(NameError::Clash { old, new, holder });
        }
    }
    let taken = |d: &ValueData| d.name.as_deref().is_some_and(|n| values.contains_key(n));
    let aside: Vec<Value> = model
        .values()
        .filter(|(v, d)| !new_names.contains_key(v) && taken(d))
        .map(|(v, _)| v)
        .collect();
    for value in aside {
        model[value].name = None;
    }
    for (value, new) in new_names {
        let data = &mut model[value];
        if data.name.as_deref() == Some(&*new) {
            continue;
        }
        let Some(old) = data.name.replace(new.into()) else {
            continue;
        };
        if data.constant().is_some() && target(data).is_none() {
            data.metadata.push((TARGET.into(), old.as_str().into()));
        }
        if original(data).is_none() {
            data.metadata.push((ORIGINAL.into(), old.as_str().into()));
        }
    }
    Ok(())
}
