//! Fourier transforms.

use super::{
    Done,
    forms::{keep_inputs, rank, set},
};
use pt2onnx_ir::{Model, NodeId};

/// The axis was an attribute, 1 by default; it is an input, -2 by default.
pub(super) fn axis(model: &mut Model, id: NodeId) -> Result<Done, String> {
    let node = &model[id];
    if node.int("onesided") == Some(1) && node.int("inverse") == Some(1) {
        return Err("the one-sided inverse is newer".to_owned());
    }
    let x = node.input(0).ok_or("it has no input")?;
    let axis = match node.input(2) {
        Some(axis) => {
            let known = model[axis]
                .constant()
                .and_then(|t| t.to_vec::<i64>().filter(|v| v.len() == 1));
            known.ok_or("an axis that is no constant is newer")?[0]
        }
        None => -2,
    };
    // Negative axes were not always understood.
    let axis = match (axis, rank(model, x)) {
        (0.., _) => axis,
        (_, Some(rank)) => axis + rank as i64,
        (_, None) => return Err("the rank of the input is not known".to_owned()),
    };
    keep_inputs(model, id, 2);
    set(model, id, "axis", axis.into());
    Ok(Done::Kept)
}
