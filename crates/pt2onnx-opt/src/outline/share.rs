//! Makes functions of bodies: one for all bodies of a class that have the same nodes.

use super::{
    names::{Names, below, of_class},
    skeleton::{Skeleton, Slot},
};
use crate::cse::same_attribute;
use indexmap::IndexMap;
use pt2onnx_ir::{
    Attribute, Function, InsertPoint, Model, ModuleId, NodeId, Outlined, RegionId, Use, Value,
    schema,
};
use rustc_hash::FxBuildHasher;
use std::collections::BTreeSet;

/// An attribute is compared with at most this many of the same name, so that the time is linear.
const MAX_ALIKE: usize = 8;

/// The body of a call.
pub(super) struct Body {
    /// The call of a module.
    pub(super) module: ModuleId,
    /// The call of a module around it that has a function, too.
    pub(super) around: Option<ModuleId>,
    pub(super) made: Outlined,
}

/// An attribute of a function, and its values for all calls.
struct Parameter {
    name: String,
    values: Vec<Attribute>,
    slots: Vec<Slot>,
}

/// Makes functions of the bodies.
pub(super) fn share(model: &mut Model, bodies: Vec<Body>, names: &mut Names) {
    let mut alike: IndexMap<_, Vec<(Body, Vec<Slot>)>, FxBuildHasher> = IndexMap::default();
    for body in bodies {
        let class = of_class(&model[body.module].class);
        let skeleton = Skeleton::of(model, body.made.body);
        alike.entry((class, skeleton.key)).or_default().push((body, skeleton.slots));
    }
    for (((domain, name), _), bodies) in alike {
        let name = names.take(&domain, &name);
        let parameters = parameters(model, &bodies);
        for (i, (Body { module, around, made }, _)) in bodies.iter().enumerate() {
            let given = parameters.iter().map(|p| (p.name.clone().into(), p.values[i].clone()));
            let given = given.collect();
            let around = around.map(|around| model[around].path.clone()).unwrap_or_default();
            let path = below(&model[*module].path, &around);
            model.set_op(made.call, name.clone());
            let call = &mut model[made.call];
            (call.domain, call.attributes) = (domain.clone().into(), given);
            call.name = Some(path).filter(|path| !path.is_empty());
        }
        let mut bodies = bodies.into_iter();
        if let Some((first, _)) = bodies.next() {
            let function = function(model, &first, Function::new(domain, name, first.made.body), &parameters);
            model.imports.entry(function.domain.clone()).or_insert(1);
            model.functions.push(function);
        }
        bodies.for_each(|(body, _)| model.discard(body.made.body));
    }
}

/// Attributes for what differs between bodies.
fn parameters(model: &Model, bodies: &[(Body, Vec<Slot>)]) -> Vec<Parameter> {
    let mut parameters: Vec<(String, Parameter)> = Vec::new();
    let Some(((_, slots), others)) = bodies.split_first() else {
        return Vec::new();
    };
    let same = |a: &Option<Attribute>, b: &Option<Attribute>| match (a, b) {
        (Some(a), Some(b)) => same_attribute(a, b),
        _ => false,
    };
    for (i, &slot) in slots.iter().enumerate() {
        let first = slot.get(model);
        if others.iter().all(|(_, slots)| same(&first, &slots[i].get(model))) {
            continue;
        }
        let values = bodies.iter().filter_map(|(_, slots)| slots[i].get(model));
        let values: Vec<Attribute> = values.collect();
        let base = called(model, slot);
        let of_that_name = parameters.iter_mut().filter(|(b, _)| *b == base);
        let equal = |p: &&mut (String, Parameter)| {
            p.1.values.iter().zip(&values).all(|(a, b)| same_attribute(a, b))
        };
        if let Some((_, equal)) = of_that_name.take(MAX_ALIKE).find(equal) {
            equal.slots.push(slot);
            continue;
        }
        let taken: BTreeSet<&str> = parameters.iter().map(|(_, p)| p.name.as_str()).collect();
        let numbered = (1..).map(|n| format!("{base}_{n}"));
        let mut free = std::iter::once(base.clone()).chain(numbered);
        let name = free.find(|name| !taken.contains(name.as_str())).unwrap_or_default();
        parameters.push((base, Parameter { name, values, slots: vec![slot] }));
    }
    parameters.into_iter().map(|(_, parameter)| parameter).collect()
}

/// A name for what is there: that of the attribute, or of the input that takes the constant.
fn called(model: &Model, slot: Slot) -> String {
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
    name.unwrap_or_else(|| "value".to_owned())
}

/// Completes a function: its attributes, the names of its inputs, and what it imports.
fn function(
    model: &mut Model,
    body: &Body,
    mut function: Function,
    parameters: &[Parameter],
) -> Function {
    let Outlined { call, body: region } = body.made;
    for parameter in parameters {
        function.attributes.push(parameter.name.clone());
        let kinds = parameter.values.iter().map(Attribute::kind);
        for (slot, kind) in parameter.slots.iter().zip(kinds.cycle()) {
            let reference = Attribute::Reference { name: parameter.name.clone(), kind };
            refer(model, region, *slot, reference);
        }
    }
    let path = model[body.module].path.clone();
    for (i, input) in model[region].inputs().to_vec().into_iter().enumerate() {
        let given = model[call].input(i);
        let weight = given.filter(|v| model[*v].constant().is_some());
        let name = weight.and_then(|v| model[v].name.as_deref()).map(|name| below(name, &path));
        model[input].name = Some(name.unwrap_or_else(|| "input".into()));
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

/// Puts a reference to an attribute of the function in the place of a value.
fn refer(model: &mut Model, body: RegionId, slot: Slot, reference: Attribute) {
    match slot {
        Slot::Attribute(node, i) => {
            if let Some((_, value)) = model[node].attributes.get_mut(i) {
                *value = reference;
            }
        }
        Slot::Constant(value) => {
            let at = match model.nodes(body).next() {
                Some(first) => InsertPoint::Before(first),
                None => InsertPoint::End(body),
            };
            let attributes = vec![("value".into(), reference)];
            let node = model.add_node(at, "Constant", &[], attributes, 1);
            let result = model[node].outputs()[0];
            model[result].ty = None;
            replace_within(model, body, value, result);
        }
    }
}

/// Replaces a constant in one body only: others use it, too.
fn replace_within(model: &mut Model, body: RegionId, old: Value, new: Value) {
    for node in model.nodes_in(&[body]) {
        replace_inputs(model, node, old, new);
    }
}

fn replace_inputs(model: &mut Model, node: NodeId, old: Value, new: Value) {
    for i in 0..model[node].inputs().len() {
        if model[node].input(i) == Some(old) {
            model.replace_input(node, i, Some(new));
        }
    }
}
