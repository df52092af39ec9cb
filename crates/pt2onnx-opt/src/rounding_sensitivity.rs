//! Where the last digits of a float decide: what becomes another number if they change must keep
//! PyTorch's order of steps.

use pt2onnx_ir::{Model, Traits, Use, Value};
use pt2onnx_tensor::DType;

/// Values are followed through this many nodes.
const FAR: usize = 8;

/// Whether a value is rounded, compared or made an integer, perhaps after arithmetic.
pub(crate) fn is_sensitive(model: &Model, value: Value) -> bool {
    let mut todo = vec![value];
    let mut next = 0;
    let keeps = Traits::LIPSCHITZ | Traits::DATA_MOVEMENT;
    while let Some(&value) = todo.get(next) {
        next += 1;
        for user in model[value].uses() {
            let Use::Input(node, _) = user else { continue };
            let node = &model[node];
            let results = node.outputs().iter().copied();
            let floats = results.clone().all(|v| model.dtype(v).is_none_or(DType::is_float));
            match node.op() {
                _ if !node.domain.is_empty() => {}
                "Cast" if !floats => return true,
                _ if node.traits().contains(Traits::DISCONTINUOUS) => return true,
                op if todo.len() < FAR && (op == "Cast" || node.traits().intersects(keeps)) => {
                    todo.extend(results);
                }
                _ => {}
            }
        }
    }
    false
}
