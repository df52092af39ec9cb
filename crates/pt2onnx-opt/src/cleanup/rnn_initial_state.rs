//! First states of recurrent networks that are zeros, which is also the default.

use crate::{Changed, analysis};
use pt2onnx_ir::{Model, Node, NodeId, Traits, Value, attrs};
use pt2onnx_tensor::Tensor;

/// Constants of up to this many bytes are read.
const READ: usize = 1 << 20;

/// At most this many nodes are between a state and its zeros.
const FAR: usize = 16;

/// The inputs of a recurrent node that are its first states.
fn states(node: &Node) -> &'static [usize] {
    match (&*node.domain, node.op()) {
        ("", "GRU" | "RNN") => &[5],
        ("", "LSTM") | ("com.microsoft", "DynamicQuantizeLSTM") => &[5, 6],
        _ => &[],
    }
}

pub(super) fn concern(node: &Node) -> bool {
    !states(node).is_empty()
}

/// Removes the inputs of a recurrent node that are zeros.
pub(super) fn run(model: &mut Model, id: NodeId) -> Changed {
    let mut changed = false;
    for &i in states(&model[id]) {
        if model[id].input(i).is_some_and(|v| zeros(model, v, FAR)) {
            model.replace_input(id, i, None);
            changed = true;
        }
    }
    if changed {
        let given = Node::given(model[id].inputs()).to_vec();
        model.set_inputs(id, &given);
    }
    changed
}

fn zeros(model: &Model, value: Value, left: usize) -> bool {
    if let Some(t) = model[value].constant() {
        return is_zero(t);
    }
    let Some(node) = model.producer(value).map(|n| &model[n]).filter(|n| n.domain.is_empty())
    else {
        return false;
    };
    let Some(left) = left.checked_sub(1) else { return false };
    match node.op() {
        "ConstantOfShape" => {
            attrs::ConstantOfShape::read(node).is_ok_and(|o| o.value.is_none_or(|t| is_zero(&t)))
        }
        "Concat" if node.inputs().len() <= 4 => {
            node.inputs().iter().all(|v| v.is_some_and(|v| zeros(model, v, left)))
        }
        op if op == "Cast" || node.traits().contains(Traits::DATA_MOVEMENT) => {
            node.input(0).is_some_and(|v| zeros(model, v, left))
        }
        _ => false,
    }
}

fn is_zero(t: &Tensor) -> bool {
    t.nbytes() <= READ && t.dtype().is_float() && analysis::is_zero(t)
}
