//! Replacing values and nodes.

use crate::graph::Changed;
use pt2onnx_ir::{Attributes, FOLDED_FROM, Model, Name, NodeId, ORIGINAL_NAME, Type, Value};
use pt2onnx_tensor::Tensor;
use std::sync::Arc;

/// Makes everything that uses `old` use `new`, a new value that takes its place: if a node computes
/// `new` and it has no name, it gets the name and type of `old`, or keeps its own type if only that
/// has sizes. `new` must dominate the users. Region outputs keep their names and types in any case.
///
/// To use an existing value instead, [`Model::replace_all_uses`] is enough. The node of `old` is
/// not erased.
pub fn substitute(model: &mut Model, old: Value, new: Value) {
    // First, because region outputs take their names from `old`.
    model.replace_all_uses(old, new);
    if model[new].name.is_none() && model.producer(new).is_some() {
        model[new].name = model[old].name.take();
        model[new].ty = Type::fuller(model[old].ty.clone(), model[new].ty.take());
    }
}

/// Makes all users of a node's only output use the existing value `new` instead, and erases the
/// node. `new` must dominate the users. Returns whether anything changed; a node with another
/// number of outputs is left as it is.
pub fn bypass(model: &mut Model, node: NodeId, new: Value) -> Changed {
    let [old] = *model[node].outputs() else {
        return false;
    };
    model.replace_all_uses(old, new);
    model.erase(node)
}

/// Makes a node another operator of ONNX's own domain, with these inputs and attributes. Its
/// outputs stay, its bodies go.
pub fn become_node(
    model: &mut Model,
    node: NodeId,
    op: &'static str,
    inputs: &[Option<Value>],
    attributes: Attributes,
) {
    model.set_inputs(node, inputs);
    model.set_op(node, op);
    model[node].domain = "".into();
    model.set_attributes(node, attributes);
}

/// A constant named after the one that it is computed from, `NAME_folded`: someone might load the
/// old contents under the old name.
pub(crate) fn replacement(model: &mut Model, tensor: Tensor, of: Option<Value>) -> Value {
    let old = of.and_then(|v| model[v].name.clone());
    let free = |name: &Name| model.values().all(|(_, data)| data.name.as_ref() != Some(name));
    let name = old.as_ref().and_then(|old| {
        let old = old.strip_suffix("_folded").unwrap_or(old);
        // A module that is called twice has its constants folded twice.
        let numbered = (1..).map(|i| Name::from(format!("{old}_folded_{i}")));
        std::iter::once(Name::from(format!("{old}_folded"))).chain(numbered).find(free)
    });
    let value = model.add_constant(tensor);
    model[value].name = name;
    if let Some(old) = old {
        let old = Arc::<str>::from(&*old);
        let entries = [ORIGINAL_NAME, FOLDED_FROM].map(|key| (key.into(), Arc::clone(&old)));
        model[value].metadata.extend(entries);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_becomes_another_loses_its_bodies() {
        let text = "g (bool c, float[2] x) => (float[2] y) {
            y = If (c) <
                then_branch = t () => (float[2] a) { a = Relu (x) },
                else_branch = e () => (float[2] b) { b = Exp (x) }
            >
        }";
        let mut model: Model = text.parse().unwrap();
        let (node, x) = (model.nodes(Model::MAIN).next().unwrap(), model.inputs()[1]);
        become_node(&mut model, node, "Neg", &[Some(x)], vec![]);
        assert_eq!(model[x].uses().len(), 1);
        assert!(model.to_string().contains("y = Neg (x)"), "{model}");
    }
}
