//! Loop states to which each iteration only appends a row become scan outputs: the loop stacks the
//! rows instead of copying all of them each time.

use crate::{Changed, substitute};
use pt2onnx_ir::{Attribute, InsertPoint, Model, NodeId, RegionId, Type, Value};
use pt2onnx_symbolic::Expr;

/// The first opset with `start` of `Shape`, and after that with `allowzero` of `Reshape`.
pub(crate) const SINCE: u32 = 15;

/// Makes scan outputs of such states of a loop with this body.
pub(crate) fn run(model: &mut Model, id: NodeId, region: RegionId) -> Changed {
    let states = model[id].inputs().len().saturating_sub(2);
    let mut changed = false;
    for at in 0..states {
        changed |= stack(model, id, region, at).is_some();
    }
    changed
}

/// The node with which an iteration only appends a row to a state, and the row.
fn appending(model: &Model, region: RegionId, at: usize) -> Option<(NodeId, Value)> {
    let state = model[region].inputs().get(at + 2).copied()?;
    let grown = model[region].output_values().nth(at + 1)?;
    let concat = model.producer(grown)?;
    let (node, [Some(first), Some(row)]) = (&model[concat], model[concat].inputs()) else {
        return None;
    };
    let alone = |value: Value| model[value].uses().len() == 1;
    let appends = node.is("Concat") && node.region() == region && *first == state && *row != state;
    let along = matches!(node.attribute("axis"), Some(Attribute::Int(0)));
    let given = model[grown].uses().all(|u| u.input().is_none());
    let one = model.shape(*row)?.first()?.as_int() == Some(1);
    (appends && along && given && one && alone(state) && alone(grown)).then_some((concat, *row))
}

fn stack(model: &mut Model, id: NodeId, region: RegionId, at: usize) -> Option<()> {
    let (concat, row) = appending(model, region, at)?;
    let initial = model[id].input(at + 2)?;
    let old = *model[id].outputs().get(at)?;
    let (dtype, first) = model.tensor_type(initial)?;
    let (count, sizes) = first.split_first()?;
    let (none, sizes) = (count.as_int() == Some(0), sizes.to_vec());

    // The state stays what it is at the beginning.
    let state = *model[region].inputs().get(at + 2)?;
    let mut results: Vec<Value> = model[region].output_values().collect();
    *results.get_mut(at + 1)? = state;
    results.push(row);
    model.set_outputs(region, &results);
    model.erase(concat);

    let end = model[id].outputs().len();
    let rows = model.insert_output(id, end);
    let length = model.shape(old).and_then(|shape| shape.first().cloned());
    let length = length.filter(|_| none).unwrap_or_else(|| model.unknown_dim());
    let stacked = [vec![length.clone(), Expr::ONE], sizes.clone()].concat();
    model[rows].ty = Some(Type::tensor(dtype, stacked));
    let behind = model.after(id);
    // If there is no iteration, not all runtimes know the sizes of a row: the first state has them.
    let many = add(model, behind, "Shape", &[rows], &[("start", 0), ("end", 1)]);
    let others = add(model, behind, "Shape", &[initial], &[("start", 1)]);
    let shape = add(model, behind, "Concat", &[many, others], &[("axis", 0)]);
    let mut all = add(model, behind, "Reshape", &[rows, shape], &[("allowzero", 1)]);
    model[all].ty = Some(Type::tensor(dtype, [vec![length], sizes].concat()));
    if !none {
        all = add(model, behind, "Concat", &[initial, all], &[("axis", 0)]);
    }
    substitute(model, old, all);
    for value in [state, old] {
        model[value].ty = model[initial].ty.clone();
    }
    Some(())
}

fn add(
    model: &mut Model,
    at: InsertPoint,
    op: &'static str,
    inputs: &[Value],
    attributes: &[(&'static str, i64)],
) -> Value {
    let inputs: Vec<Option<Value>> = inputs.iter().copied().map(Some).collect();
    let attributes = attributes.iter().map(|&(name, i)| (name.into(), Attribute::Int(i))).collect();
    let node = model.add_node(at, op, &inputs, attributes, 1);
    model[node].outputs()[0]
}
