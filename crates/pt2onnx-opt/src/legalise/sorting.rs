//! `TopK` with what it was told later.

use super::{
    error::Reason,
    forms::{attributes, input, ints_as_attribute, known_ints, set, without},
    replace::{Done, replace},
};
use crate::facts::dtype;
use pt2onnx_ir::{Model, NodeId, attrs};

/// The smallest are the largest of the negated.
pub(super) fn top_k_order(model: &mut Model, id: NodeId) -> Result<Done, Reason> {
    let largest = attrs::TopK::read(&model[id])?.largest;
    without(model, id, "sorted")?;
    without(model, id, "largest")?;
    if largest {
        return Ok(Done::Kept);
    }
    let x = input(&model[id], 0)?;
    let float = dtype(model, x).is_some_and(|t| t.is_float());
    if !float {
        return Err("the smallest of integers are newer".into());
    }
    replace(model, id, |cx, node| {
        let axis = attrs::TopK::read(node)?.axis;
        let found = cx.emit(
            "TopK",
            &[Some(cx.neg(input(node, 0)?)), node.input(1)],
            attributes([("axis", axis.into())]),
            2,
        );
        Ok(vec![cx.neg(found[0]), found[1]])
    })
}

/// Their number as an attribute.
pub(super) fn top_k_number(model: &mut Model, id: NodeId) -> Result<Done, Reason> {
    let known = known_ints(model, id, 1, "numbers")?.unwrap_or_default();
    let &[k] = known.as_slice() else {
        return Err("it has no number".into());
    };
    ints_as_attribute(model, id, 1, "k")?;
    set(model, id, "k", k);
    Ok(Done::Kept)
}
