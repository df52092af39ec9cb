//! Slices that are the parts of one tensor along one dimension become one `Split`.

use super::{Pass, Phase, Run};
use crate::{
    Changed, GraphMut, Options, Walk, cse, eval, grouped::grouped, opsets::SIZES_AS_INPUTS, pool,
    rewrite::add_split, slices, substitute,
};
use pt2onnx_ir::{Model, NodeId, Value};

pub(crate) static SPLIT: Pass = Pass {
    name: "split",
    description: "Replaces slices of one tensor along one dimension by Split.",
    precondition: "The size of the dimension is known, and the slices do not overlap and take at \
                   least half of it: what no slice takes is copied, too.",
    phase: Phase::Last,
    run: Run::Graph(run),
    ..Pass::FUSION
};

/// A slice with constant bounds along one dimension.
struct Part {
    node: NodeId,
    from: i64,
    to: i64,
}

fn run(graph: &mut GraphMut<'_>, _: &Options) -> Changed {
    if graph.opset < SIZES_AS_INPUTS {
        return false;
    }
    let nodes = graph.nodes();
    let model = &mut *graph.model;
    let found = pool::find(&nodes, |id| {
        let (x, axis, part) = part(model, id)?;
        Some(((x, model[id].region(), axis), part))
    });
    let groups = grouped(found.into_iter().map(|(_, part)| part));
    let mut walk = Walk::new(groups.into_iter().collect(), graph.budget);
    let mut changed = false;
    while let Some(((_, _, axis), parts)) = walk.next(model) {
        changed |= split(model, axis, parts).is_some();
    }
    // No pass runs after this one: sizes that the model has already are merged here.
    if changed {
        cse::constants(graph, false);
    }
    changed
}

fn part(model: &Model, id: NodeId) -> Option<(Value, usize, Part)> {
    let node = &model[id];
    if !node.is("Slice") || model.is_unused(id) {
        return None;
    }
    let (start, end, axis) = slices::single(model, node)?;
    let x = node.input(0)?;
    let shape = model.shape(x)?;
    let axis = eval::axis(axis, shape.len())?;
    let size = shape.get(axis)?.as_int()?;
    let held = |i: i64| (if i < 0 { i.saturating_add(size) } else { i }).clamp(0, size);
    let (from, to) = (held(start), held(end));
    (from < to && (from, to) != (0, size)).then_some((x, axis, Part { node: id, from, to }))
}

/// Replaces these parts of a tensor.
fn split(model: &mut Model, axis: usize, mut parts: Vec<Part>) -> Option<()> {
    let first = parts.first()?.node;
    // Another split may have replaced the operand.
    let x = model[first].input(0)?;
    parts.sort_by_key(|p| p.from);
    let apart = parts.windows(2).all(|w| w[0].to <= w[1].from);
    if parts.len() < 2 || !apart {
        return None;
    }
    let size = model.shape(x)?.get(axis)?.as_int()?;
    if parts.iter().map(|p| p.to - p.from).sum::<i64>() < size - size / 2 {
        return None;
    }
    // A part that no slice takes is an output without uses.
    let (mut sizes, mut users, mut at) = (Vec::new(), Vec::new(), 0);
    for part in &parts {
        if part.from > at {
            sizes.push(part.from - at);
            users.push(None);
        }
        sizes.push(part.to - part.from);
        users.push(Some(part.node));
        at = part.to;
    }
    if at < size {
        sizes.push(size - at);
        users.push(None);
    }
    let (node, outputs) = add_split(model, first, x, axis, &sizes)?;
    for (output, user) in outputs.into_iter().zip(users) {
        let Some(user) = user else { continue };
        model.merge_origins(node, user);
        let old = model[user].outputs()[0];
        substitute(model, old, output);
        model.erase(user);
    }
    Some(())
}
