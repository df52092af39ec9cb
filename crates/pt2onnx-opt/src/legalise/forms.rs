//! Attributes and constant inputs of nodes, and moving one to the other.

use super::{
    error::Reason,
    replace::{Outcome, Rewritten, replace},
};
use pt2onnx_ir::{Attribute, Attributes, Builder, Model, Node, NodeId, Value, attrs};
use pt2onnx_tensor::{DType, Tensor};

/// The longest constant that replaces numbers in the model; longer ones need a newer opset.
pub(super) const LONGEST: i64 = 1 << 20;

/// Attributes for a node that is emitted.
pub(super) fn attributes<const N: usize>(given: [(&'static str, Attribute); N]) -> Attributes {
    given.into_iter().map(|(n, a)| (n.into(), a)).collect()
}

/// The input, which must be given.
pub(super) fn input(node: &Node, index: usize) -> Result<Value, Reason> {
    let missing = || Reason(format!("input {index} is missing"));
    node.input(index).ok_or_else(missing)
}

pub(super) fn rank_of(model: &Model, id: NodeId, index: usize) -> Result<usize, Reason> {
    let rank = model.rank(input(&model[id], index)?);
    rank.ok_or_else(|| "the rank of its input is not known".into())
}

/// Gives a node an attribute, which becomes the last one.
pub(super) fn set(model: &mut Model, id: NodeId, name: &'static str, value: impl Into<Attribute>) {
    model[id].remove_attribute(name);
    model[id].set_attribute(name, value);
}

pub(super) fn without(model: &mut Model, id: NodeId, name: &str) -> Outcome {
    model[id].remove_attribute(name);
    Ok(Rewritten::InPlace)
}

/// An error if the attribute has that value, which the older form does not know.
pub(super) fn unless(model: &mut Model, id: NodeId, name: &'static str, refused: &str) -> Outcome {
    if model[id].read::<&str>(name)? == Some(refused) {
        Err(format!("{name} `{refused}` needs a newer opset").into())
    } else {
        Ok(Rewritten::InPlace)
    }
}

pub(super) fn front(axis: i64, rank: usize) -> Result<usize, Reason> {
    pt2onnx_symbolic::axis(axis, rank).ok_or_else(|| "its axis is out of range".into())
}

/// A float64 or float32 constant of these sizes; a diagnostic if the count does not match.
pub(super) fn floats(cx: &Builder, kind: DType, numbers: &[f64], sizes: &[usize]) -> Value {
    let flat = match kind {
        DType::F64 => Tensor::vector(numbers),
        _ => Tensor::vector(&numbers.iter().map(|&x| x as f32).collect::<Vec<_>>()),
    };
    cx.constant(flat.reshaped(sizes.to_vec()).unwrap_or_else(|| {
        cx.report(format!("{} numbers for a constant of sizes {sizes:?}", numbers.len()));
        flat
    }))
}

/// The elements of a constant, if float64 holds them exactly.
pub(super) fn constant_numbers(model: &Model, value: Value) -> Option<Vec<f64>> {
    let tensor = model[value].constant()?;
    match tensor.dtype() {
        DType::F64 | DType::F32 | DType::F16 | DType::I32 => tensor.to_doubles(),
        DType::I64 => {
            let known = tensor.to_vec::<i64>()?.into_iter();
            let exact = |i: i64| (i.unsigned_abs() <= 1 << 53).then_some(i as f64);
            known.map(exact).collect()
        }
        _ => None,
    }
}

/// The constant integers of an input that older forms have as an attribute, if it is given.
pub(super) fn known_ints(
    model: &Model,
    id: NodeId,
    index: usize,
    what: &str,
) -> Result<Option<Vec<i64>>, Reason> {
    let Some(value) = model[id].input(index) else {
        return Ok(None);
    };
    let known = model.const_ints(value);
    known.map(Some).ok_or_else(|| Reason(format!("computed {what} need a newer opset")))
}

pub(super) fn keep_inputs(model: &mut Model, id: NodeId, count: usize) {
    let given = &model[id].inputs()[..model[id].inputs().len().min(count)];
    let last = given.iter().rposition(Option::is_some);
    let kept = given[..last.map_or(0, |i| i + 1)].to_vec();
    model.set_inputs(id, &kept);
}

/// The last input, constant integers, becomes an attribute.
pub(super) fn ints_as_attribute(
    model: &mut Model,
    id: NodeId,
    index: usize,
    name: &'static str,
) -> Outcome {
    let known = known_ints(model, id, index, name)?;
    keep_inputs(model, id, index);
    if let Some(known) = known {
        set(model, id, name, known);
    }
    Ok(Rewritten::InPlace)
}

pub(super) fn reduced_axes(model: &mut Model, id: NodeId) -> Outcome {
    let axes = known_ints(model, id, 1, "axes")?.filter(|a| !a.is_empty());
    if axes.is_none() && attrs::ReduceSum::read(&model[id])?.noop_with_empty_axes {
        // The node still maps each element.
        return replace(model, id, |cx, node| {
            let x = input(node, 0)?;
            Ok(vec![match node.op() {
                "ReduceL1" | "ReduceL2" => cx.abs(x),
                "ReduceLogSum" => cx.log(x),
                "ReduceSumSquare" => cx.mul(x, x),
                _ => cx.identity(x),
            }])
        });
    }
    keep_inputs(model, id, 1);
    if let Some(axes) = axes {
        set(model, id, "axes", axes);
    }
    without(model, id, "noop_with_empty_axes")
}
