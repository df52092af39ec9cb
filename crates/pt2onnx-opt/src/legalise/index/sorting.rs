//! `TopK`: options that older forms do not have.

use crate::legalise::{
    Outcome, Rewritten, attributes, input, ints_as_attribute, known_ints, replace, set, without,
};
use pt2onnx_ir::{Model, NodeId, attrs};

/// The smallest elements are the largest of the negated ones.
pub(crate) fn top_k_order(model: &mut Model, id: NodeId) -> Outcome {
    let largest = attrs::TopK::read(&model[id])?.largest;
    without(model, id, "sorted")?;
    without(model, id, "largest")?;
    if largest {
        return Ok(Rewritten::InPlace);
    }
    let x = input(&model[id], 0)?;
    let float = model.dtype(x).is_some_and(|t| t.is_float());
    if !float {
        return Err("the smallest integers need a newer opset".into());
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

/// The number of elements becomes an attribute.
pub(crate) fn top_k_number(model: &mut Model, id: NodeId) -> Outcome {
    let known = known_ints(model, id, 1, "numbers")?.unwrap_or_default();
    let &[k] = known.as_slice() else {
        return Err("its number of elements is missing".into());
    };
    ints_as_attribute(model, id, 1, "k")?;
    set(model, id, "k", k);
    Ok(Rewritten::InPlace)
}
