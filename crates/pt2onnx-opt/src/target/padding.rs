//! Keeps zeros that a `Pad` adds before a pool from being merged with the pool.
//!
//! ONNX Runtime's optimiser merges the two, although what a `MaxPool` itself adds is less than all
//! numbers, a pool with `ceil_mode` drops windows that start in what it adds, and no pool can add
//! as much as its window. It does not merge a `Pad` whose third input is there but left out, or one
//! that something other than the pool follows.

use crate::{analysis::is_zero, rewrite};
use pt2onnx_ir::{Attribute, Builder, InsertPoint, Model, NodeId, Use, Value, attrs};
use pt2onnx_symbolic::Constraints;

/// The first opset in which `Pad` has inputs for pads and value.
const WITH_INPUTS: u32 = 11;

pub(crate) fn keep_zeros(model: &mut Model) {
    for id in model.nodes_in(&[Model::MAIN]) {
        if merges(model, id) {
            keep(model, id);
        }
    }
}

/// Whether a node pads the input of a pool with zeros.
fn merges(model: &Model, id: NodeId) -> bool {
    let node = &model[id];
    let constant = || attrs::Pad::read(node).is_ok_and(|pad| pad.mode == "constant");
    let zeros = || match (node.attribute("value"), node.input(2)) {
        (Some(value), _) => matches!(value, Attribute::Float(v) if *v == 0.0),
        (None, Some(value)) => model[value].constant().is_some_and(is_zero),
        (None, None) => true,
    };
    let plain = node.is("Pad") && node.input(3).is_none() && constant() && zeros();
    plain && node.outputs().first().is_some_and(|&padded| is_pooled(model, padded))
}

/// Whether a pool takes a value, if nodes that ONNX Runtime leaves out or moves are not counted.
fn is_pooled(model: &Model, value: Value) -> bool {
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        for at in model[value].uses() {
            let Use::Input(user, 0) = at else { continue };
            match model[user].op() {
                "AveragePool" | "MaxPool" => return true,
                "Cast" | "Identity" | "Transpose" => left.extend(model[user].outputs()),
                _ => {}
            }
        }
    }
    false
}

/// Makes a `Pad` stay: leaves its value out, or puts a `Max` of one value after it.
fn keep(model: &mut Model, id: NodeId) {
    let node = model[id].clone();
    if model.opset >= WITH_INPUTS {
        return model.set_inputs(id, &[node.input(0), node.input(1), None]);
    }
    let Some(&padded) = node.outputs().first() else { return };
    let cx = Builder::new(model, InsertPoint::Before(id), Constraints::default());
    cx.set_origins(&node.origins);
    let same = cx.emit1("Pad", node.inputs(), node.attributes.clone());
    let kept = cx.emit1("Max", &[Some(same)], Vec::new());
    drop(cx);
    rewrite::substitute(model, padded, kept);
    model.erase(id);
}
