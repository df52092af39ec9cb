//! Replacing values. What makes it more than [`Model::replace_all_uses`]: an output of a region must be made in that
//! region, must be no other output as well, and keeps its name and type.

use crate::Changed;
use pt2onnx_ir::{Def, InsertPoint, Model, NodeId, RegionId, Use, Value};

/// Lets everything that uses `old`, an output of a node, use `new`, which must dominate it. Where `old` is an output of
/// a region, `new` takes its name and type, or, if it cannot be that output, an `Identity` in front of `old`'s node does.
pub(crate) fn substitute(model: &mut Model, old: Value, new: Value) {
    let slots = output_slots(model, old);
    if let [(region, _)] = slots.as_slice()
        && can_be_output(model, new, *region)
    {
        hand_over(model, old, new);
        return model.replace_all_uses(old, new);
    }
    model.replace_all_uses(old, new);
    let Some(node) = model.producer(old) else {
        return;
    };
    for (region, index) in slots {
        let at = InsertPoint::Before(node);
        let identity = model.add_node(at, "Identity", &[Some(new)], Default::default(), 1);
        model[identity].origins = model[node].origins.clone();
        let value = model[identity].outputs()[0];
        hand_over(model, old, value);
        let mut outputs = model[region].outputs().to_vec();
        outputs[index] = value;
        model.set_outputs(region, &outputs);
    }
}

/// Lets the users of node `node`'s only output use `new`, and erases the node. A node that must stay because a region's
/// output needs it becomes an `Identity`. Returns whether anything changed.
pub(crate) fn bypass(model: &mut Model, node: NodeId, new: Value) -> Changed {
    let old = model[node].outputs()[0];
    let slots = output_slots(model, old);
    let free = match slots.as_slice() {
        [] => true,
        [(region, _)] => can_be_output(model, new, *region),
        _ => false,
    };
    if free {
        substitute(model, old, new);
        return model.erase(node);
    }
    let inputs = model[old].uses().filter_map(|u| match u {
        Use::Input(node, i) => Some((node, i)),
        Use::Output(..) => None,
    });
    let inputs: Vec<(NodeId, u32)> = inputs.collect();
    for &(user, i) in &inputs {
        model.replace_input(user, i as usize, Some(new));
    }
    let is_identity = model[node].is("Identity");
    if !is_identity {
        become_node(model, node, "Identity", &[Some(new)], Default::default());
    }
    !is_identity || !inputs.is_empty()
}

/// Makes `node` another operator of ONNX's own domain; its outputs stay.
pub(crate) fn become_node(
    model: &mut Model,
    node: NodeId,
    op: &'static str,
    inputs: &[Option<Value>],
    attributes: pt2onnx_ir::Attributes,
) {
    model.set_inputs(node, inputs);
    model.set_op(node, op);
    model[node].domain = "".into();
    model[node].attributes = attributes;
}

fn output_slots(model: &Model, value: Value) -> Vec<(RegionId, usize)> {
    let slots = model[value].uses().filter_map(|u| match u {
        Use::Output(region, i) => Some((region, i as usize)),
        Use::Input(..) => None,
    });
    slots.collect()
}

/// A constant may be an output of the main graph under that output's name; one that has a name keeps it.
fn can_be_output(model: &Model, value: Value, region: RegionId) -> bool {
    let here = match model[value].def() {
        Def::Node(node, _) => model[*node].region() == region,
        Def::Constant(_) => region == Model::MAIN && model[value].name.is_none(),
        Def::Input(..) => false,
    };
    here && model[value].uses().all(|u| matches!(u, Use::Input(..)))
}

/// Gives `new` the name, type and metadata of `old`, which is about to lose its last use.
fn hand_over(model: &mut Model, old: Value, new: Value) {
    if let Some(name) = model[old].name.take() {
        model[new].name = Some(name);
    }
    if model[old].ty.is_some() {
        model[new].ty = model[old].ty.clone();
    }
    let metadata = std::mem::take(&mut model[old].metadata);
    model[new].metadata.extend(metadata);
}
