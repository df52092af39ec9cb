//! Makes functions of bodies: one for all bodies of a class that have the same nodes.

use super::{
    names::{Names, below, of_class},
    structural_hash::{Skeleton, Slot},
};
use crate::{cse::same_attribute, grouped::grouped};
use pt2onnx_ir::{
    Attribute, Function, InsertPoint, Model, ModuleId, Name, NodeId, Outlined, RegionId, Type, Use,
    Value, schema,
};
use std::collections::{BTreeMap, BTreeSet};

/// An attribute is compared with at most this many of the same name, so that the time is linear.
const MAX_ALIKE: usize = 8;

pub(super) struct Body {
    /// The call of a module.
    pub(super) module: ModuleId,
    /// The call of a module around it that has a function, too.
    pub(super) around: Option<ModuleId>,
    pub(super) made: Outlined,
}

struct Alike {
    body: Body,
    slots: Vec<Slot>,
    typed: Vec<Value>,
}

/// An attribute of a function, and its values for all calls.
struct Parameter {
    name: String,
    values: Vec<Attribute>,
    slots: Vec<Slot>,
}

pub(super) fn share(model: &mut Model, bodies: Vec<Body>, names: &mut Names) {
    let alike = bodies.into_iter().map(|body| {
        let class = of_class(&model[body.module].class);
        let Skeleton { key, slots, typed, .. } = Skeleton::of(model, body.made.body);
        ((class, key), Alike { body, slots, typed })
    });
    for (((domain, name), _), alike) in grouped(alike) {
        let name = names.take(&domain, &name);
        let parameters = parameters(model, &alike);
        generalise(model, &alike);
        for (i, Alike { body, .. }) in alike.iter().enumerate() {
            let given = parameters.iter().map(|p| (p.name.clone().into(), p.values[i].clone()));
            let own = model[body.module].attributes.clone().unwrap_or_default();
            let given = given.chain(own).collect();
            let name_of_call = call_name(model, body);
            model.set_op(body.made.call, name.clone());
            let call = &mut model[body.made.call];
            (call.domain, call.attributes) = (domain.clone().into(), given);
            call.name = name_of_call;
        }
        let own: BTreeSet<String> = alike
            .iter()
            .flat_map(|alike| model[alike.body.module].attributes.iter().flatten())
            .map(|(name, _)| name.to_string())
            .collect();
        let mut bodies = alike.into_iter().map(|alike| alike.body);
        if let Some(first) = bodies.next() {
            let function = Function::new(domain, name, first.made.body);
            let mut function = complete(model, &first, function, &parameters);
            function.attributes.extend(own);
            model.imports.entry(function.domain.clone()).or_insert(1);
            model.functions.push(function);
        }
        bodies.for_each(|body| model.discard(body.made.body));
    }
}

/// The name of the node that calls a function: its module's path from the module around.
fn call_name(model: &Model, body: &Body) -> Option<Name> {
    let path = model[body.module].path.as_str();
    let around = body.around.map_or("", |around| model[around].path.as_str());
    Some(below(path, around).unwrap_or(path).into()).filter(|name: &Name| !name.is_empty())
}

fn parameters(model: &Model, bodies: &[Alike]) -> Vec<Parameter> {
    let mut parameters: Vec<Parameter> = Vec::new();
    // The parameters that are called alike, and how many names were taken.
    let mut called: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut taken: BTreeSet<String> = BTreeSet::new();
    let Some((first, others)) = bodies.split_first() else {
        return parameters;
    };
    let inferred = model[first.body.module].attributes.is_some();
    for (i, &slot) in first.slots.iter().enumerate() {
        let value = slot.get(model);
        let differs = |other: &Alike| match (&value, other.slots[i].get(model)) {
            (Some(value), Some(other)) => !same_attribute(value, &other),
            _ => true,
        };
        if !others.iter().any(differs) {
            continue;
        }
        let values = bodies.iter().filter_map(|body| body.slots[i].get(model));
        let values: Vec<Attribute> = values.collect();
        let base = if inferred { inferred_name(model, slot) } else { name_of(model, slot) };
        let alike = called.entry(base.clone()).or_default();
        let equal = |p: &&usize| {
            let known = &parameters[**p].values;
            known.iter().zip(&values).all(|(a, b)| same_attribute(a, b))
        };
        if let Some(&equal) = alike.iter().take(MAX_ALIKE).find(equal) {
            parameters[equal].slots.push(slot);
            continue;
        }
        let separator = if inferred { '.' } else { '_' };
        let numbered = (alike.len().max(1)..).map(|n| format!("{base}{separator}{n}"));
        let mut free = std::iter::once(base.clone()).chain(numbered);
        let name = free.find(|name| taken.insert(name.clone())).unwrap_or_default();
        alike.push(parameters.len());
        parameters.push(Parameter { name, values, slots: vec![slot] });
    }
    parameters
}

/// A name for what is there: that of the attribute, or of the input that takes the constant.
fn name_of(model: &Model, slot: Slot) -> String {
    let name = match slot {
        Slot::Attribute(node, i) => model[node].attributes.get(i).map(|(name, _)| name.to_string()),
        Slot::Constant(value) => model[value].uses().find_map(|at| match at {
            Use::Input(node, i) if model[node].domain.is_empty() => {
                let schema = schema::lookup(model[node].op(), model.opset)?;
                schema.input(i as usize).map(|input| input.name.to_owned())
            }
            _ => None,
        }),
    };
    // Many inputs are just called A, B or X.
    name.filter(|name| name.len() > 1).unwrap_or_else(|| "value".to_owned())
}

/// The name that torch.onnx.export gives to it: operator and attribute. There, constants are nodes.
fn inferred_name(model: &Model, slot: Slot) -> String {
    let attribute = match slot {
        Slot::Attribute(node, i) => {
            let name = model[node].attributes.get(i).map(|(name, _)| name.as_ref());
            name.map(|name| (model[node].op(), name))
        }
        Slot::Constant(_) => None,
    };
    let (op, name) = attribute.unwrap_or(("Constant", "value"));
    format!("inferred::{op}_{name}")
}

/// Forgets sizes of values in the first body that are others in another body.
fn generalise(model: &mut Model, bodies: &[Alike]) {
    let Some((first, others)) = bodies.split_first() else { return };
    for (i, &value) in first.typed.iter().enumerate() {
        for other in others {
            let Some(Type::Tensor(other)) = model[other.typed[i]].ty.clone() else { continue };
            let Some(Type::Tensor(mut own)) = model[value].ty.clone() else { continue };
            match (&mut own.shape, other.shape) {
                (Some(sizes), Some(others)) if sizes.len() == others.len() => {
                    for (size, _) in sizes.iter_mut().zip(others).filter(|(a, b)| **a != *b) {
                        *size = model.unknown_dim();
                    }
                }
                (shape, _) => *shape = None,
            }
            model[value].ty = Some(Type::Tensor(own));
        }
    }
}

/// Completes a function: its attributes, the names of its inputs, and what it imports.
fn complete(
    model: &mut Model,
    body: &Body,
    mut function: Function,
    parameters: &[Parameter],
) -> Function {
    let Outlined { call, body: region } = body.made;
    let first = model.nodes(region).next();
    let at = first.map_or(InsertPoint::End(region), InsertPoint::Before);
    for parameter in parameters {
        function.attributes.push(parameter.name.clone());
        let Some(kind) = parameter.values.first().map(Attribute::kind) else { continue };
        for &slot in &parameter.slots {
            let reference = Attribute::Reference { name: parameter.name.clone(), kind };
            refer(model, (region, at), slot, reference);
        }
    }
    let path = model[body.module].path.clone();
    for (i, input) in model[region].inputs().to_vec().into_iter().enumerate() {
        let given = model[call].input(i);
        let weight = given.filter(|v| model[*v].constant().is_some());
        let name: Name = match weight.map(|v| model.weight_name(v)) {
            // A weight of another module has the last part of its path.
            Some(Some(name)) => {
                let last = name.rsplit('.').next().unwrap_or(&name);
                below(&name, &path).unwrap_or(last).into()
            }
            Some(None) => "weight".into(),
            None => "input".into(),
        };
        model[input].name = Some(name);
    }
    function.imports.insert(String::new(), model.opset);
    let domains: BTreeSet<String> =
        model.nodes_in(&[region]).iter().map(|n| model[*n].domain.to_string()).collect();
    for domain in domains.into_iter().filter(|domain| !domain.is_empty()) {
        let version = model.imports.get(&domain).copied().unwrap_or(1);
        function.imports.insert(domain, version);
    }
    function
}

/// Puts a reference to an attribute of the function in the place of a value of its body.
fn refer(model: &mut Model, body: (RegionId, InsertPoint), slot: Slot, reference: Attribute) {
    match slot {
        Slot::Attribute(node, i) => {
            if let Some((_, value)) = model[node].attributes.get_mut(i) {
                *value = reference;
            }
        }
        Slot::Constant(value) => {
            let (region, at) = body;
            let node = model.add_node(at, "Constant", &[], vec![("value".into(), reference)], 1);
            let result = model[node].outputs()[0];
            for node in model.nodes_in(&[region]) {
                replace_inputs(model, node, value, result);
            }
        }
    }
}

fn replace_inputs(model: &mut Model, node: NodeId, old: Value, new: Value) {
    for i in 0..model[node].inputs().len() {
        if model[node].input(i) == Some(old) {
            model.replace_input(node, i, Some(new));
        }
    }
}
