//! Emitting the replacement of a rule.

use super::{find::Found, rule::Rule};
use pt2onnx_ir::{
    Attribute, Attributes, Builder, Def, Type, Value,
    schema::{self, CANONICAL_OPSET},
};
use pt2onnx_tensor::Tensor;
use rustc_hash::FxHashMap;

/// Emits the replacement. Returns its output, if it can be of the same type as what it replaces.
pub(super) fn emit(cx: &Builder<'_>, rule: &Rule, found: &Found) -> Option<Value> {
    let library = &*rule.library;
    let (pattern, body) = (&library[rule.pattern.body], &library[rule.replacement.body]);
    let mut values: FxHashMap<Value, Option<Value>> = FxHashMap::default();
    for input in body.inputs() {
        let name = &library[*input].name;
        let same = pattern.inputs().iter().find(|v| library[**v].name == *name)?;
        values.insert(*input, found.values.get(same).copied());
    }
    for node in library.nodes(rule.replacement.body) {
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
        let outputs = if node.is("Constant") {
            vec![cx.constant(tensor(&attributes)?)]
        } else if node.domain.is_empty() {
            let op = schema::lookup(node.op(), CANONICAL_OPSET)?.name;
            cx.emit(op, &inputs, attributes, node.outputs().len()).to_vec()
        } else {
            // The operator is the user's: if it computes the result, it has its type.
            let ty = |v: &Value| -> Option<Type> {
                let is_result = body.output_values().next() == Some(*v);
                is_result.then(|| cx.model()[found.output].ty.clone()).flatten()
            };
            let types: Vec<Option<Type>> = node.outputs().iter().map(ty).collect();
            let made = cx.emit_custom(&node.domain, node.op(), &inputs, attributes, &types);
            if let Some(version) = rule.replacement.imports.get(&*node.domain) {
                cx.edit(|model| model.imports.insert(node.domain.to_string(), *version));
            }
            made.to_vec()
        };
        values.extend(node.outputs().iter().copied().zip(outputs.into_iter().map(Some)));
    }
    let result = body.output_values().next()?;
    let result = values.get(&result).copied().flatten()?;
    fits(cx, result, found.output).then_some(result)
}

/// An attribute with the value that was found for `@name`, or else its default; `None` if there is
/// none.
fn resolved(value: &Attribute, rule: &Rule, found: &Found) -> Option<Attribute> {
    let Attribute::Reference { name, .. } = value else {
        return Some(value.clone());
    };
    let bound = found.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value);
    let default = || rule.replacement.defaults.iter().find(|(n, _)| n == name).map(|(_, v)| v);
    bound.or_else(default).cloned()
}

/// The value of a `Constant`.
fn tensor(attributes: &Attributes) -> Option<Tensor> {
    let [(_, value)] = attributes.as_slice() else {
        return None;
    };
    Some(match value {
        Attribute::Tensor(tensor) => tensor.clone(),
        Attribute::Float(x) => Tensor::scalar(*x),
        Attribute::Int(x) => Tensor::scalar(*x),
        Attribute::Floats(xs) => Tensor::vector(xs),
        Attribute::Ints(xs) => Tensor::vector(xs),
        _ => return None,
    })
}

/// Whether a value can take the place of another one: as far as is known, both have the same
/// element type and sizes.
fn fits(cx: &Builder<'_>, new: Value, old: Value) -> bool {
    let model = cx.model();
    let types = |v: Value| model[v].ty.as_ref().and_then(Type::as_tensor).cloned();
    let (Some(new), Some(old)) = (types(new), types(old)) else {
        return true;
    };
    let sizes = match (&new.shape, &old.shape) {
        (Some(new), Some(old)) => {
            let differ = |(a, b): (&pt2onnx_symbolic::Expr, _)| {
                let known = |e: &pt2onnx_symbolic::Expr| e.as_int();
                known(a).zip(known(b)).is_some_and(|(a, b)| a != b)
            };
            new.len() == old.len() && !new.iter().zip(old).any(differ)
        }
        _ => true,
    };
    new.dtype == old.dtype && sizes
}
