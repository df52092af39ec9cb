//! Folds `If` and `Loop` whose course is known, and moves what bodies share before them.

use crate::{
    Changed, GraphMut, Measure, Options, Pass, analysis, cse, licm, loop_append_to_scan,
    opsets::SIZES_AS_INPUTS, pass::Run,
};
use pt2onnx_ir::{Attributes, InsertPoint, Model, NodeId, RegionId, Type, Use, Value};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{Scalar, Tensor};
use rustc_hash::FxHashMap;

pub(crate) static FOLD_CONTROL_FLOW: Pass = Pass {
    name: "fold-control-flow",
    description: "Replaces If by the branch that it takes, and Loop that runs never or once by its \
                  body. Takes states that a body does not change from before the Loop or Scan, \
                  which passes on a number instead of one that nothing reads. \
                  Moves nodes that both branches have, and nodes that are the same in each \
                  iteration, before the If or Loop. A Loop that appends a row to a state gives \
                  back the rows instead.",
    precondition: "The condition or the number of iterations is a constant. Nodes of loops are \
                   moved only if they cannot fail.",
    lowers: Measure::Runs,
    run: Run::Graph(run),
    ..Pass::SIMPLIFICATION
};

fn run(graph: &mut GraphMut<'_>, _: &Options) -> Changed {
    let mut changed = false;
    let (mut walk, opset) = (graph.walk(), graph.opset);
    let model = &mut *graph.model;
    while let Some(id) = walk.next(model) {
        let controls = model.contains(id) && model[id].regions().next().is_some();
        if !controls || !model[id].domain.is_empty() || model.is_unused(id) {
            continue;
        }
        changed |= match model[id].op() {
            "If" => branch(model, id).is_some() || share_heads(model, id),
            "Loop" => {
                course(model, id, opset).is_some()
                    || stacked_rows(model, id, opset)
                        | unchanged(model, id)
                        | licm::hoist(model, id)
            }
            // Before, sequence lengths came first.
            "Scan" if opset >= 9 => unchanged(model, id) | licm::hoist(model, id),
            "Scan" => licm::hoist(model, id),
            _ => false,
        };
    }
    changed
}

fn truth(model: &Model, value: Value) -> Option<bool> {
    match model[value].constant()?.to_vec::<bool>()?.as_slice() {
        [one] => Some(*one),
        _ => None,
    }
}

fn branch(model: &mut Model, id: NodeId) -> Option<()> {
    let taken = truth(model, model[id].input(0)?)?;
    let region = licm::body(model, id, if taken { "then_branch" } else { "else_branch" })?;
    let results = unfold(model, id, region);
    let outputs = model[id].outputs().to_vec();
    outputs.into_iter().zip(results).for_each(|(old, new)| take_place(model, old, new));
    model.erase(id).then_some(())
}

/// Moves the nodes of a body before its node; returns the body's outputs.
fn unfold(model: &mut Model, id: NodeId, region: RegionId) -> Vec<Value> {
    let results = model[region].output_values().collect();
    let nodes: Vec<NodeId> = model.nodes(region).collect();
    model.set_outputs(region, &[]);
    for node in nodes {
        model.move_before(node, id);
    }
    results
}

/// Makes all users of `old` use `new`, which keeps its own type if that says more.
fn take_place(model: &mut Model, old: Value, new: Value) {
    let ty = model[new].ty.clone();
    crate::rewrite::substitute(model, old, new);
    if ty.as_ref().is_some_and(Type::has_shape) {
        model[new].ty = ty;
    }
}

/// A `Loop` that runs never or once.
fn course(model: &mut Model, id: NodeId, opset: u32) -> Option<()> {
    let node = &model[id];
    let region = licm::body(model, id, "body")?;
    let count = node.input(0).map(|v| model.const_int(v));
    let going = node.input(1).map(|v| truth(model, v));
    let once_more = model[region].output_values().next()?;
    let (carried, outputs) = (node.inputs().len().checked_sub(2)?, node.outputs().to_vec());
    let initial: Vec<Value> = node.inputs()[2..].iter().copied().collect::<Option<_>>()?;
    if count == Some(Some(0)) || going == Some(Some(false)) {
        if outputs.iter().skip(carried).any(|v| model[*v].uses().len() > 0) {
            return None;
        }
        outputs.into_iter().zip(initial).for_each(|(old, new)| model.replace_all_uses(old, new));
        return model.erase(id).then_some(());
    }
    let starts = matches!(going, None | Some(Some(true)));
    let ends = count == Some(Some(1))
        || matches!(count, None | Some(Some(1..))) && truth(model, once_more) == Some(false);
    let stacks = outputs.len() > carried && opset < SIZES_AS_INPUTS;
    if !starts || !ends || stacks {
        return None;
    }
    let inputs = model[region].inputs().to_vec();
    // The body may have them as vectors of one element.
    let vector = |at: usize| model.rank(*inputs.get(at)?).map(|rank| rank == 1);
    let [number, truth] = [vector(0), vector(1)].map(|v| v.unwrap_or_default());
    let first = if number { Tensor::vector(&[0i64]) } else { Tensor::scalar(0i64) };
    let going = if truth { Tensor::vector(&[true]) } else { Tensor::scalar(true) };
    let given = [first, going].map(|t| model.add_constant(t)).into_iter().chain(initial);
    for (input, value) in inputs.into_iter().zip(given) {
        model.replace_all_uses(input, value);
    }
    let results = unfold(model, id, region).into_iter().skip(1);
    for (i, (old, mut new)) in outputs.into_iter().zip(results).enumerate() {
        if i >= carried {
            new = stacked(model, id, new);
        }
        take_place(model, old, new);
    }
    model.erase(id).then_some(())
}

/// Rows that a `Loop` appends to states, as outputs that it stacks.
fn stacked_rows(model: &mut Model, id: NodeId, opset: u32) -> Changed {
    let body = licm::body(model, id, "body").filter(|_| opset >= loop_append_to_scan::SINCE);
    body.is_some_and(|body| loop_append_to_scan::run(model, id, body))
}

/// A value with a new first dimension.
fn stacked(model: &mut Model, before: NodeId, value: Value) -> Value {
    let axes = model.add_constant(Tensor::vector(&[0i64]));
    let inputs = [Some(value), Some(axes)];
    let at = InsertPoint::Before(before);
    let node = model.add_node(at, "Unsqueeze", &inputs, Attributes::new(), 1);
    let output = model[node].outputs()[0];
    let mut ty = model[value].ty.clone();
    if let Some(Type::Tensor(t)) = &mut ty
        && let Some(shape) = &mut t.shape
    {
        shape.insert(0, Expr::int(1));
    }
    model[output].ty = ty;
    output
}

/// Results and nodes that both branches of an `If` have.
pub(crate) fn share_heads(model: &mut Model, id: NodeId) -> Changed {
    let branches = licm::body(model, id, "then_branch").zip(licm::body(model, id, "else_branch"));
    let Some((yes, no)) = branches else { return false };
    let mut changed = false;
    let outputs = model[id].outputs().to_vec();
    let pairs: Vec<(Value, Value)> =
        model[yes].output_values().zip(model[no].output_values()).collect();
    for (output, (a, b)) in outputs.into_iter().zip(pairs) {
        if a == b && model[output].uses().len() > 0 {
            model.replace_all_uses(output, a);
            changed = true;
        }
    }
    changed | merged(model, id, yes, no)
}

/// Moves nodes that both branches have before the `If`.
fn merged(model: &mut Model, id: NodeId, yes: RegionId, no: RegionId) -> Changed {
    // The nodes of the other branch by hash. It changes with their inputs, which get new entries.
    let mut others: FxHashMap<u64, Vec<NodeId>> = FxHashMap::default();
    for node in model.nodes(no) {
        others.entry(cse::hash(model, node, false)).or_default().push(node);
    }
    let mut changed = false;
    for node in model.nodes(yes).collect::<Vec<_>>() {
        if !licm::is_movable(model, node, yes) {
            continue;
        }
        let same = |&&n: &&NodeId| {
            let inside = model.contains(n) && model[n].region() == no;
            inside && cse::equal(model, node, n) && licm::is_movable(model, n, no)
        };
        let alike = others.get(&cse::hash(model, node, false)).map(Vec::as_slice);
        let Some(&other) = alike.unwrap_or_default().iter().find(same) else { continue };
        model.move_before(node, id);
        model.share(node, other);
        let users: Vec<NodeId> = analysis::users(model, other).collect();
        let (old, new) = (model[other].outputs().to_vec(), model[node].outputs().to_vec());
        old.into_iter().zip(new).for_each(|(old, new)| model.replace_all_uses(old, new));
        changed |= model.erase(other);
        for user in users {
            others.entry(cse::hash(model, user, false)).or_default().push(user);
        }
    }
    changed
}

/// States that a body gives back as it gets them are the first state, in the body and behind it.
fn unchanged(model: &mut Model, id: NodeId) -> Changed {
    let Some(region) = licm::body(model, id, "body") else { return false };
    // The states come after the number of iterations and the condition, and after the condition.
    let (first, count) = match model[id].read::<i64>("num_scan_inputs") {
        Ok(Some(scanned)) => (0, model[id].inputs().len().saturating_sub(scanned as usize)),
        _ => (2, model[id].inputs().len()),
    };
    let results: Vec<Value> = model[region].output_values().skip(first / 2).collect();
    let mut changed = false;
    for i in first..count {
        let inside = model[region].inputs().get(i).copied();
        let after = model[id].outputs().get(i - first).copied();
        let (Some(initial), Some(inside), Some(after)) = (model[id].input(i), inside, after) else {
            continue;
        };
        if results.get(i - first) != Some(&inside) {
            continue;
        }
        changed |= feed(model, after, initial) | feed(model, inside, initial);
        changed |= emptied(model, id, i, [initial, inside, after]).is_some();
    }
    // An output of the graph would need a node, which the last of these outputs saves.
    let outputs = model[id].outputs().to_vec();
    let kept = |i: usize| {
        let inside = model[region].inputs().get(first + i);
        model[outputs[i]].uses().len() > 0 && (first + i >= count || results.get(i) != inside)
    };
    if (0..outputs.len()).any(kept) {
        return changed;
    }
    for (i, output) in outputs.into_iter().enumerate() {
        if let Some(initial) = model[id].input(first + i).filter(|_| first + i < count)
            && model[output].uses().len() > 0
        {
            take_place(model, output, initial);
            changed = true;
        }
    }
    changed
}

/// A state that nothing reads becomes a number: weights need not be passed from one iteration to
/// the next.
fn emptied(model: &mut Model, id: NodeId, at: usize, state: [Value; 3]) -> Option<()> {
    let [initial, inside, after] = state;
    let (dtype, shape) = model.tensor_type(initial)?;
    let read = model[after].uses().len() > 0 || model[inside].uses().len() > 1;
    if read || shape.is_empty() {
        return None;
    }
    let number = model.add_constant(Scalar::Int(0).to_tensor(dtype)?);
    model.replace_input(id, at, Some(number));
    for value in [inside, after] {
        model[value].ty = Some(Type::tensor(dtype, []));
    }
    Some(())
}

fn feed(model: &mut Model, old: Value, new: Value) -> Changed {
    let mut changed = false;
    for (user, at) in model[old].uses().filter_map(Use::input).collect::<Vec<_>>() {
        changed |= model.replace_input(user, at, Some(new));
    }
    changed
}
