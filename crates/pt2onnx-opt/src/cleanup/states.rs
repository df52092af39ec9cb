//! Initial states of zeros: `LSTM`, `GRU` and `RNN` start with zeros if they are given none.

use crate::graph::Changed;
use pt2onnx_ir::{Model, NodeId, Value, attrs};
use pt2onnx_tensor::Tensor;

/// Constants of up to this many bytes are read.
const READ: usize = 1 << 20;

/// How many nodes are looked through for one state.
const NODES: usize = 32;

/// Leaves out the initial states of a node that are zeros.
pub(super) fn leave_out(model: &mut Model, id: NodeId) -> Changed {
    let states: &[usize] = match model[id].op() {
        "LSTM" => &[5, 6],
        "GRU" | "RNN" => &[5],
        _ => return false,
    };
    let mut inputs = model[id].inputs().to_vec();
    let given = inputs.iter().flatten().count();
    for &state in states {
        if let Some(slot) = inputs.get_mut(state)
            && slot.is_some_and(|value| zeros(model, value, &mut NODES.clone()))
        {
            *slot = None;
        }
    }
    if inputs.iter().flatten().count() == given {
        return false;
    }
    while inputs.last().is_some_and(Option::is_none) {
        inputs.pop();
    }
    model.set_inputs(id, &inputs);
    true
}

/// Whether all elements are +0. `left` counts the nodes that may still be looked at.
fn zeros(model: &Model, value: Value, left: &mut usize) -> bool {
    if let Some(tensor) = model[value].constant() {
        return is_zero(tensor);
    }
    let Some(node) = model.producer(value).map(|node| &model[node]).filter(|n| n.domain.is_empty())
    else {
        return false;
    };
    let Some(fewer) = left.checked_sub(1) else {
        return false;
    };
    *left = fewer;
    let mut all = |inputs: &[Option<Value>]| {
        let mut values = inputs.iter().flatten();
        !inputs.is_empty() && values.all(|&value| zeros(model, value, left))
    };
    match node.op() {
        "ConstantOfShape" => attrs::ConstantOfShape::read(node)
            .is_ok_and(|given| given.value.is_none_or(|tensor| is_zero(&tensor))),
        "Concat" => all(node.inputs()),
        // Whatever they do with elements, they take them from the first input.
        "Cast" | "Expand" | "Flatten" | "Gather" | "Identity" | "Reshape" | "Slice" | "Split"
        | "Squeeze" | "Tile" | "Transpose" | "Unsqueeze" => all(&node.inputs()[..1]),
        _ => false,
    }
}

/// By bits: -0.0 is not 0.0.
fn is_zero(tensor: &Tensor) -> bool {
    let read = tensor.has_data() && tensor.dtype().is_float();
    read && tensor.nbytes() <= READ && tensor.to_bytes().iter().all(|&byte| byte == 0)
}
