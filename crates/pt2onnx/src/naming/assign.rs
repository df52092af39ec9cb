//! Assigns the names that the user asks for.

use super::{
    NameError,
    find::{TARGET, called, find, original, target},
    tree::{self, Leaf},
};
use crate::options::{IoNames, Options};
use pt2onnx_aten::Provenance;
use pt2onnx_fx::{ExportedProgram, InputSpec};
use pt2onnx_ir::{Attributes, Def, InsertPoint, Model, ORIGINAL_NAME, Value, ValueData};
use rustc_hash::FxHashSet;
use std::collections::HashMap;

/// Names inputs and outputs, and renames values that have names already. A model that was read from
/// a file has no program. Returns the old names of what was renamed, for [`finish`].
pub(crate) fn name(
    model: &mut Model,
    program: Option<&ExportedProgram>,
    options: &Options,
) -> Result<FxHashSet<String>, NameError> {
    let mut plan = Vec::new();
    set_apart(model, options.output_names.listed());
    let user = model.inputs().len();
    let mut inputs = model.inputs().to_vec();
    // `input_names` may also name parameters and buffers, as in PyTorch's TorchScript exporter.
    let given = &options.input_names;
    if given.listed().len() > user
        && let Some(program) = program
    {
        inputs.extend(parameters(model, program).filter(|value| !model.inputs().contains(value)));
    }
    let outputs: Vec<Value> = model.output_values().collect();
    let count = outputs.len();
    plan.extend(listed(model, "input", user, &inputs, given.listed())?);
    plan.extend(listed(model, "output", count, &outputs, options.output_names.listed())?);
    from_trees(model, program, options, &mut plan)?;
    let mut renamed = FxHashSet::default();
    for (old, new) in &options.rename {
        if let Some(value) = find(model, old.trim()) {
            plan.push((value, new.trim().to_owned()));
            renamed.insert(old.trim().to_owned());
        }
    }
    assign(model, plan, program.is_some())?;
    Ok(renamed)
}

/// Copies inputs that are outputs too, where these are given other names.
fn set_apart(model: &mut Model, names: &[String]) {
    let passed = |model: &Model, (output, name): (Value, &String)| {
        let called = model[output].name.as_deref() == Some(name.trim());
        !called && matches!(model[output].def(), Def::Input(..))
    };
    if !model.output_values().zip(names).any(|end| passed(model, end)) {
        return;
    }
    model.finish_outputs(Model::MAIN);
    let mut outputs: Vec<Value> = model.output_values().collect();
    for (output, name) in outputs.iter_mut().zip(names) {
        if passed(model, (*output, name)) {
            let at = InsertPoint::End(Model::MAIN);
            let node = model.add_node(at, "Identity", &[Some(*output)], Attributes::new(), 1);
            let ty = model[*output].ty.clone();
            *output = model[node].outputs().first().copied().unwrap_or(*output);
            model[*output].ty = ty;
        }
    }
    model.set_outputs_as_written(Model::MAIN, &outputs);
}

/// The values to which names are given in order. The first `count` of them are what the program
/// has.
fn listed(
    model: &Model,
    what: &'static str,
    count: usize,
    values: &[Value],
    names: &[String],
) -> Result<Vec<(Value, String)>, NameError> {
    if names.len() > values.len() {
        let ends = values.iter().take(count);
        let has: Vec<String> = ends.map(|v| called(&model[*v])).collect();
        return Err(NameError::Surplus {
            what,
            given: names.len(),
            has: values.len(),
            weights: values.len() - count,
            names: has.join(", "),
        });
    }
    let names = names.iter().map(|name| name.trim().to_owned());
    Ok(values.iter().copied().zip(names).collect())
}

/// Adds the names of inputs and outputs that come from the trees of the program.
fn from_trees(
    model: &Model,
    program: Option<&ExportedProgram>,
    options: &Options,
    plan: &mut Vec<(Value, String)>,
) -> Result<(), NameError> {
    let inputs = options.input_names == IoNames::FromTree;
    let outputs = options.output_names == IoNames::FromTree;
    if !inputs && !outputs && options.kv_names.is_none() {
        return Ok(());
    }
    let what = if outputs || !inputs { "outputs" } else { "inputs" };
    let trees = program.and_then(tree::trees).ok_or(NameError::NoTree(what))?;
    let kv_names = options.kv_names.clone().unwrap_or_default();
    let several = |leaves: &mut dyn Iterator<Item = &Leaf>| {
        let holders: FxHashSet<&[String]> =
            leaves.filter(|l| l.cache.is_some()).map(|l| l.steps.as_slice()).collect();
        holders.len() > 1 && options.kv_names.is_none()
    };
    let named: FxHashSet<Value> = plan.iter().map(|(value, _)| *value).collect();
    let given = plan.iter().map(|(_, name)| name.clone());
    let mut taken: FxHashSet<String> = given.collect();
    let mut leaves: Vec<(Value, String, bool)> = Vec::new();
    let paths = several(&mut trees.inputs.iter().map(|(_, leaf)| leaf));
    for (name, leaf) in &trees.inputs {
        let mut values = model.inputs().iter().copied();
        let value = values.find(|v| model[*v].name.as_deref() == Some(name));
        let Some(value) = value.filter(|v| !named.contains(v)) else { continue };
        let wanted = leaf.wanted(inputs, (!paths).then_some(&*kv_names.input), "");
        leaves.extend(wanted.map(|name| (value, name, false)));
    }
    let paths = several(&mut trees.outputs.iter());
    for (value, leaf) in model.output_values().zip(&trees.outputs) {
        if named.contains(&value) {
            continue;
        }
        let template = (!paths).then_some(&*kv_names.output);
        let wanted = leaf.wanted(outputs, template, "present");
        leaves.extend(wanted.map(|name| (value, name, true)));
    }
    let renamed: FxHashSet<Value> = leaves.iter().map(|(value, ..)| *value).collect();
    // Names that stay.
    let ends = model.inputs().iter().copied().chain(model.output_values());
    let stay = ends.filter(|v| !named.contains(v) && !renamed.contains(v));
    taken.extend(stay.map(|v| called(&model[v])));
    for (value, name, output) in leaves {
        plan.push((value, tree::free(name, &mut taken, output)));
    }
    Ok(())
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

/// Names all values, then renames values that only now have the old name. `renamed` are the names
/// that [`name`] found. Inputs and outputs keep the names that they have in the program only if the
/// whole provenance is recorded.
pub(crate) fn finish(
    model: &mut Model,
    options: &Options,
    renamed: &FxHashSet<String>,
) -> Result<(), NameError> {
    model.assign_names();
    let (mut plan, mut scoped) = (Vec::new(), Vec::new());
    for (old, new) in &options.rename {
        let (old, new) = (&old.trim().to_owned(), &new.trim().to_owned());
        // The original name of a weight is that of its placeholder.
        let gone = renamed.contains(old) && find(model, old).is_none();
        let done = find(model, new).is_some_and(|v| gone || original(&model[v]) == Some(old));
        match find(model, old) {
            _ if done => {}
            Some(value) => plan.push((value, new.clone())),
            None if options.scoped_names => scoped.push((old.clone(), new.clone())),
            None => return Err(NameError::Unknown(old.clone())),
        }
    }
    if options.scoped_names {
        model.name_by_modules();
        model.assign_names();
    }
    for (old, new) in scoped {
        let value = find(model, &old).ok_or(NameError::Unknown(old))?;
        plan.push((value, new));
    }
    if !plan.is_empty() {
        assign(model, plan, false)?;
        // Values that had one of these names get others.
        model.assign_names();
    }
    if options.provenance != Provenance::Full {
        forget_origins(model);
    }
    Ok(())
}

/// Removes the metadata of inputs and outputs: tools that merge models compare these. Weights keep
/// theirs.
fn forget_origins(model: &mut Model) {
    let ends: Vec<Value> = model.inputs().iter().copied().chain(model.output_values()).collect();
    for value in ends {
        if model[value].constant().is_none() {
            model[value].metadata.clear();
        }
    }
}

/// Assigns all names at once, so that two values can swap theirs. Outputs with names of the
/// conversion get others where the user gives these away (`free_outputs`); those of a model that
/// was read are its interface.
fn assign(
    model: &mut Model,
    plan: Vec<(Value, String)>,
    free_outputs: bool,
) -> Result<(), NameError> {
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
            Def::Input(region, _) if *region == Model::MAIN => "another input",
            _ if !free_outputs && model.output_values().any(|v| v == other) => "another output",
            // Weights and intermediate values get other names.
            _ => continue,
        };
        if let Some(value) = data.name.as_deref().and_then(|n| values.get(n)) {
            // The value has the name already: the other one gets a new name.
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
    let mut taken_names: FxHashSet<String> = model.values().map(|(_, data)| called(data)).collect();
    taken_names.extend(values.into_keys());
    let outputs: FxHashSet<Value> = model.output_values().collect();
    for value in aside {
        let data = &mut model[value];
        match data.constant() {
            None if !outputs.contains(&value) => data.name = None,
            _ => rename(data, tree::free(called(data), &mut taken_names, false)),
        }
    }
    for (value, new) in new_names {
        rename(&mut model[value], new);
    }
    Ok(())
}

/// Gives a value another name, and keeps the names that it has in the program and in the state
/// dict.
fn rename(data: &mut ValueData, new: String) {
    if data.name.as_deref() == Some(&*new) {
        return;
    }
    let Some(old) = data.name.replace(new.into()) else { return };
    if data.constant().is_some() && target(data).is_none() {
        data.metadata.push((TARGET.into(), old.as_str().into()));
    }
    if original(data).is_none() {
        data.metadata.push((ORIGINAL_NAME.into(), old.as_str().into()));
    }
}
