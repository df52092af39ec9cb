//! Replacing values by others. In addition to [`Model::replace_all_uses`], this keeps region outputs legal: an output must be
//! computed in its region, must not be two outputs, and keeps its name and type.

use crate::graph::Changed;
use pt2onnx_ir::{Attributes, Def, InsertPoint, Model, NodeId, RegionId, Use, Value};

/// Makes all users of `old`, an output of a node, use `new` instead. `new` must dominate them.
///
/// Where `old` is an output of a region, `new` takes its name and type. If `new` cannot be that output, an `Identity` of it is
/// inserted before the node of `old`.
pub fn substitute(model: &mut Model, old: Value, new: Value) {
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

/// Makes all users of a node's only output use `new` instead, and erases the node. If a region output needs the node, it becomes
/// an `Identity` of `new`. Returns whether anything changed; a node with another number of outputs is left as it is.
pub fn bypass(model: &mut Model, node: NodeId, new: Value) -> Changed {
    let [old] = *model[node].outputs() else {
        return false;
    };
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
        become_node(model, node, "Identity", &[Some(new)], Attributes::new());
    }
    !is_identity || !inputs.is_empty()
}

/// Makes a node another operator of ONNX's own domain, with these inputs and attributes. Its outputs stay.
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
    model[node].attributes = attributes;
}

fn output_slots(model: &Model, value: Value) -> Vec<(RegionId, usize)> {
    let slots = model[value].uses().filter_map(|u| match u {
        Use::Output(region, i) => Some((region, i as usize)),
        Use::Input(..) => None,
    });
    slots.collect()
}

/// An unnamed constant may be an output of the main graph; it takes the output's name.
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
