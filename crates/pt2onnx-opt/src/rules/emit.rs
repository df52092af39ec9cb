//! Emitting the replacement of a rule.

use super::rule::Rule;
use crate::{Match, NoFusion};
use pt2onnx_ir::{
    Attribute, Attributes, Builder, Def, NodeId, Type, Value,
    schema::{self, CANONICAL_OPSET},
};
use rustc_hash::FxHashMap;

pub(super) fn emit(cx: &Builder<'_>, rule: &Rule, found: &Match) -> Result<Value, NoFusion> {
    let library = &*rule.library;
    let body = &library[rule.replacement.body];
    let mut values: FxHashMap<Value, Option<Value>> = FxHashMap::default();
    for input in body.inputs() {
        let name = library[*input].name.as_deref().unwrap_or_default();
        values.insert(*input, found.value(name));
    }
    for node in library.nodes(rule.replacement.body) {
        let outputs = emit_node(cx, rule, found, node, &values).ok_or(NoFusion::NoMatch)?;
        values.extend(library[node].outputs().iter().copied().zip(outputs.into_iter().map(Some)));
    }
    let result = body.output_values().next().and_then(|v| values.get(&v).copied().flatten());
    result.ok_or(NoFusion::NoMatch)
}

fn emit_node(
    cx: &Builder<'_>,
    rule: &Rule,
    found: &Match,
    node: NodeId,
    values: &FxHashMap<Value, Option<Value>>,
) -> Option<Vec<Value>> {
    let library = &*rule.library;
    let body = &library[rule.replacement.body];
    let node = &library[node];
    let inputs = node.inputs().iter().map(|input| match input {
        None => Some(None),
        Some(v) => match (values.get(v), library[*v].def()) {
            (Some(known), _) => Some(*known),
            (None, Def::Constant(tensor)) => Some(Some(cx.constant(tensor.clone()))),
            _ => None,
        },
    });
    let inputs: Vec<Option<Value>> = inputs.collect::<Option<_>>()?;
    let attributes: Attributes = { node.attributes.iter() }
        .filter_map(|(name, value)| Some((name.clone(), resolved(value, rule, found)?)))
        .collect();
    if node.is("Constant") {
        let mut constant = node.clone();
        constant.attributes = attributes;
        return Some(vec![cx.constant(constant.given_tensor()?)]);
    }
    if node.domain.is_empty() {
        let op = schema::lookup(node.op(), CANONICAL_OPSET)?.name;
        return Some(cx.emit(op, &inputs, attributes, node.outputs().len()).to_vec());
    }
    // The operator is the user's: if it computes the result, it has its type.
    let ty = |v: &Value| -> Option<Type> {
        let is_result = body.output_values().next() == Some(*v);
        is_result.then(|| cx.model()[found.output()].ty.clone()).flatten()
    };
    let types: Vec<Option<Type>> = node.outputs().iter().map(ty).collect();
    let made = cx.emit_custom(&node.domain, node.op(), &inputs, attributes, &types);
    if let Some(version) = rule.replacement.imports.get(&*node.domain) {
        cx.edit(|model| model.imports.insert(node.domain.to_string(), *version));
    }
    Some(made.to_vec())
}

/// An attribute with the value that was found for `@name`, or else its default.
fn resolved(value: &Attribute, rule: &Rule, found: &Match) -> Option<Attribute> {
    let Attribute::Reference { name, .. } = value else {
        return Some(value.clone());
    };
    let default = || rule.replacement.defaults.iter().find(|(n, _)| n == name).map(|(_, v)| v);
    found.attribute(name).or_else(default).cloned()
}
