//! Keeps zeros that a `Pad` adds before a pool from being merged with the pool.
//!
//! ONNX Runtime's optimiser merges the two, although what a `MaxPool` itself adds is less than all numbers, and a pool with
//! `ceil_mode` drops windows that start in what it adds. It does not merge a `Pad` with axes, or one that adds -0.

use crate::facts::{dtype, is_zero};
use pt2onnx_ir::{Model, NodeId, Use, Value, attrs};
use pt2onnx_tensor::Tensor;

/// The first opset in which `Pad` has axes.
const WITH_AXES: u32 = 18;

/// Changes these nodes so that they stay.
pub(super) fn keep_zeros(model: &mut Model) {
    for id in model.nodes_in(&[Model::MAIN]) {
        if merges(model, id)
            && let Some(inputs) = kept(model, id)
        {
            model.set_inputs(id, &inputs);
        }
    }
}

/// Whether a node pads the input of such a pool with zeros.
fn merges(model: &Model, id: NodeId) -> bool {
    let node = &model[id];
    let zeros = || match node.input(2) {
        Some(value) => model[value].constant().is_some_and(is_zero),
        None => true,
    };
    let constant = || attrs::Pad::read(node).is_ok_and(|pad| pad.mode == "constant");
    let plain = node.is("Pad") && node.input(3).is_none() && zeros() && constant();
    plain && node.outputs().first().is_some_and(|&padded| is_pooled(model, padded))
}

/// Whether such a pool takes a value, if nodes that ONNX Runtime leaves out are not counted.
fn is_pooled(model: &Model, value: Value) -> bool {
    let ceils = |id: NodeId| model[id].int("ceil_mode").is_some_and(|mode| mode != 0);
    model[value].uses().any(|at| match at {
        Use::Input(user, 0) if model[user].is("MaxPool") => true,
        Use::Input(user, 0) if model[user].is("AveragePool") => ceils(user),
        Use::Input(user, 0) if ["Cast", "Identity"].iter().any(|op| model[user].is(op)) => {
            model[user].outputs().iter().any(|&same| is_pooled(model, same))
        }
        _ => false,
    })
}

/// The inputs of a `Pad` that does the same and stays.
fn kept(model: &mut Model, id: NodeId) -> Option<Vec<Option<Value>>> {
    let (x, pads) = (model[id].input(0)?, model[id].input(1)?);
    if model.opset >= WITH_AXES {
        let rank = model[pads].constant()?.numel() as i64 / 2;
        let axes = model.add_constant(Tensor::vector(&Vec::from_iter(0..rank)));
        return Some(vec![Some(x), Some(pads), model[id].input(2), Some(axes)]);
    }
    let dtype = dtype(model, x).filter(|d| d.is_float())?;
    let mut zero = vec![0u8; dtype.bits() / 8];
    *zero.last_mut()? = 0x80;
    let zero = model.add_constant(Tensor::new(dtype, [], zero).ok()?);
    Some(vec![Some(x), Some(pads), Some(zero)])
}
