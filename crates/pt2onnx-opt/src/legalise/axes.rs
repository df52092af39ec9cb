//! Axes and indices that count from the end.

use super::{
    Done,
    forms::{constant_ints, ints, rank, rank_of, set},
};
use pt2onnx_ir::{Builder, Def, InsertPoint, Model, NodeId, Value};
use pt2onnx_symbolic::{Constraints, Expr};
use pt2onnx_tensor::DType;

/// The attribute `axis` counted from the front.
pub(super) fn axis(model: &mut Model, id: NodeId) -> Result<Done, String> {
    let Some(given) = model[id].int("axis").filter(|a| *a < 0) else {
        return Ok(Done::Kept);
    };
    let rank = rank_of(model, id, 0)?;
    set(model, id, "axis", (given + rank as i64).into());
    Ok(Done::Kept)
}

/// The attribute `axes` counted from the front, in order.
pub(super) fn axes(model: &mut Model, id: NodeId) -> Result<Done, String> {
    let rank = || rank_of(model, id, 0);
    let counted = counted(model, id, "axes", rank)?;
    if let Some(counted) = counted {
        set(model, id, "axes", counted.into());
    }
    Ok(Done::Kept)
}

/// The attribute `axes` counted from the front of the output, in order.
pub(super) fn axes_of_output(model: &mut Model, id: NodeId) -> Result<Done, String> {
    let rank = || {
        let new = ints(&model[id], "axes").map_or(0, <[i64]>::len);
        Ok(rank_of(model, id, 0)? + new)
    };
    let counted = counted(model, id, "axes", rank)?;
    if let Some(counted) = counted {
        set(model, id, "axes", counted.into());
    }
    Ok(Done::Kept)
}

fn counted(
    model: &Model,
    id: NodeId,
    name: &str,
    rank: impl FnOnce() -> Result<usize, String>,
) -> Result<Option<Vec<i64>>, String> {
    let plain = |a: &[i64]| a.iter().all(|&a| a >= 0) && a.is_sorted();
    let Some(given) = ints(&model[id], name).filter(|a| !plain(a)) else {
        return Ok(None);
    };
    let rank = rank()? as i64;
    let front = |&a: &i64| if a < 0 { a + rank } else { a };
    let mut counted: Vec<i64> = given.iter().map(front).collect();
    counted.sort_unstable();
    Ok(Some(counted))
}

/// An axis of an explicit default, and counted from the front: where the default was another one.
pub(super) fn explicit_axis(model: &mut Model, id: NodeId) -> Result<usize, String> {
    let rank = rank_of(model, id, 0)? as i64;
    let given = model[id].int("axis").unwrap_or(-1);
    let front = if given < 0 { given + rank } else { given };
    set(model, id, "axis", front.into());
    usize::try_from(front).map_err(|_| "its axis is out of range".to_owned())
}

/// Scan's axes. The inputs that are scanned are the last ones.
pub(super) fn scan_axes(model: &mut Model, id: NodeId) -> Result<Done, String> {
    for name in ["scan_input_axes", "scan_output_axes"] {
        let negative = |a: &[i64]| a.iter().any(|&a| a < 0);
        if ints(&model[id], name).is_some_and(negative) {
            return Err(format!("{name} that count from the end are newer"));
        }
    }
    Ok(Done::Kept)
}

/// Indices along `axis` that count from the front.
pub(super) fn indices(model: &mut Model, id: NodeId) -> Result<Done, String> {
    axis(model, id)?;
    let axis = usize::try_from(model[id].int("axis").unwrap_or(0));
    let axis = axis.map_err(|_| "its axis is out of range")?;
    let (Some(data), Some(index)) = (model[id].input(0), model[id].input(1)) else {
        return Ok(Done::Kept);
    };
    if nonnegative(model, index, 8) {
        return Ok(Done::Kept);
    }
    if rank(model, data).is_none() {
        return Err("the rank of its input is not known".to_owned());
    }
    let origins = model[id].origins.clone();
    let cx = Builder::new(model, InsertPoint::Before(id), Constraints::default());
    cx.set_origins(&origins);
    cx.bind_dims(data);
    let counted = from_front(&cx, index, &cx.dim(data, axis as i64));
    if let Some(fault) = cx.take_diagnostics().first() {
        return Err(fault.to_string());
    }
    drop(cx);
    model.replace_input(id, 1, Some(counted));
    Ok(Done::Fed)
}

/// Indices into a dimension of that size, negative ones counted from the front.
pub(super) fn from_front(cx: &Builder, index: Value, size: &Expr) -> Value {
    if nonnegative(&cx.model(), index, 8) {
        return index;
    }
    let known = constant_ints(&cx.model(), index).zip(size.as_int());
    if let Some((known, size)) = known
        && let Some(tensor) = cx.constant_of(index)
        && cx.dtype(index) == DType::I64
    {
        let front = |&i: &i64| if i < 0 { i + size } else { i };
        let front: Vec<i64> = known.iter().map(front).collect();
        let vector = pt2onnx_tensor::Tensor::vector(&front);
        if let Some(shaped) = vector.reshaped(tensor.shape().to_vec()) {
            return cx.constant(shaped);
        }
    }
    let size = cx.cast(cx.size(size), cx.dtype(index));
    cx.select(cx.less(index, 0), cx.add(index, size), index)
}

/// Whether no element is negative, as far as the last few nodes tell.
pub(super) fn nonnegative(model: &Model, value: Value, depth: usize) -> bool {
    if let Some(known) = constant_ints(model, value) {
        return known.iter().all(|&i| i >= 0);
    }
    let unsigned = super::forms::dtype(model, value).is_some_and(|d| d.is_unsigned());
    let (Def::Node(node, _), Some(depth)) = (model[value].def(), depth.checked_sub(1)) else {
        return unsigned;
    };
    let node = &model[*node];
    let input = |i: usize| node.input(i).is_some_and(|v| nonnegative(model, v, depth));
    unsigned
        || match node.op() {
            "Abs" | "ArgMax" | "ArgMin" | "NonZero" | "Shape" | "Size" => true,
            "TopK" => {
                super::forms::dtype(model, value) == Some(DType::I64) && {
                    model.producer(value).map(|n| model[n].outputs()[1]) == Some(value)
                }
            }
            "Cast" | "Expand" | "Flatten" | "Gather" | "Identity" | "Reshape" | "Slice"
            | "Squeeze" | "Tile" | "Transpose" | "Unsqueeze" | "Relu" => input(0),
            "Add" | "Mul" | "Min" | "Div" => (0..node.inputs().len()).all(input),
            "Max" => (0..node.inputs().len()).any(input),
            "Concat" => (0..node.inputs().len()).all(input),
            "Range" => input(0) && input(2),
            "Mod" => node.int("fmod") != Some(1) && input(1),
            "Where" => wraps(model, node) || (input(1) && input(2)),
            "Clip" => input(1),
            _ => false,
        }
}

/// Whether a `Where` is what [`from_front`] makes.
fn wraps(model: &Model, node: &pt2onnx_ir::Node) -> bool {
    let producer = |i: usize| node.input(i).and_then(|v| model.producer(v)).map(|n| &model[n]);
    let (Some(test), Some(sum)) = (producer(0), producer(1)) else {
        return false;
    };
    let zero = test.input(1).and_then(|v| constant_ints(model, v));
    test.is("Less")
        && sum.is("Add")
        && test.input(0) == node.input(2)
        && sum.input(0) == node.input(2)
        && zero.is_some_and(|z| z == [0])
}
