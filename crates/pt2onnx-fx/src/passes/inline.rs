//! Inlines bodies that run exactly once.

use super::{
    autocast,
    names::{Substitution, Taken, substitute},
    problem::problem,
};
use crate::{
    error::{PassProblem, Result},
    graph::{ArgKind, Argument, ExportedProgram, Graph, NamedArg, Node, SymArg},
};
use std::sync::Arc;

/// Higher-order ops that run a body once: the number of arguments before the body, and between it
/// and the operands.
const INLINED: &[(&str, usize, usize)] = &[
    // (enabled, body, *operands)
    ("wrap_with_set_grad_enabled", 1, 0),
    // (device, dtype, enabled, cache_enabled, body, *operands)
    ("wrap_with_autocast", 4, 0),
    // (body, *operands)
    ("wrap", 0, 0),
    ("wrap_activation_checkpoint", 0, 0),
    ("tag_activation_checkpoint", 0, 0),
    // (body, operands)
    ("strict_mode", 0, 0),
    // (body, operands, kwargs, hints)
    ("hints_wrapper", 0, 0),
    // (body, identifier, *operands)
    ("invoke_subgraph", 0, 1),
];

/// Inlines `wrap_with_set_grad_enabled`, `wrap_with_autocast`, checkpoints, `strict_mode`,
/// `hints_wrapper` and `invoke_subgraph`, in bodies too. The casts of autocast become nodes. Values
/// of a body keep their names if those are free. The results of the op are replaced by those of the
/// body.
pub fn inline(program: &mut ExportedProgram) -> Result<()> {
    autocast::write_casts(program)?;
    let replaced = inline_graph(&mut program.graph)?;
    for output in &mut program.signature.outputs {
        // A constant may stand for an output of any kind.
        let _ = substitute(&mut output.value, &replaced);
    }
    let calls = program.module_call_graph.iter_mut();
    for signature in calls.filter_map(|entry| entry.signature.as_mut()) {
        let args = signature.inputs.iter_mut().chain(&mut signature.outputs);
        args.for_each(|arg| {
            let _ = substitute(arg, &replaced);
        });
    }
    Ok(())
}

/// Inlines in one graph. Returns what replaces the results of the inlined ops.
fn inline_graph(graph: &mut Graph) -> Result<Substitution> {
    let mut replaced = Substitution::default();
    if !graph.nodes.iter().any(|node| layout(node).is_some()) {
        let mut bodies = graph.bodies_mut();
        return bodies.try_for_each(|body| inline_graph(body).map(drop)).map(|()| replaced);
    }
    let mut taken = Taken::by(graph);
    let mut nodes = Vec::with_capacity(graph.nodes.len());
    for node in std::mem::take(&mut graph.nodes) {
        let mut node = Arc::unwrap_or_clone(node);
        for arg in &mut node.args {
            if !substitute(&mut arg.value, &replaced) {
                return Err(problem(&node, PassProblem::Body));
            }
        }
        for body in node.bodies_mut() {
            inline_graph(body)?;
        }
        let Some(layout) = layout(&node) else {
            nodes.push(node.into());
            continue;
        };
        let (mut body, operands) =
            take_apart(&mut node, layout).ok_or_else(|| problem(&node, PassProblem::Body))?;
        let bound = bind(&body, operands);
        let mut inside = bound.ok_or_else(|| problem(&node, PassProblem::Body))?;
        // The op is removed, so its names become free.
        taken.release(&node.name);
        for name in node.output_names() {
            graph.values_mut().swap_remove(&name);
            taken.release(&name);
        }
        let fits = rename(&mut body, &mut inside, graph, &mut taken);
        if !fits || body.outputs.len() != node.outputs.len() {
            return Err(problem(&node, PassProblem::Body));
        }
        for (result, value) in node.outputs.iter().zip(body.outputs) {
            if let Some(name) = result.name() {
                replaced.insert(name.clone(), value);
            }
        }
        nodes.append(&mut body.nodes);
    }
    graph.nodes = nodes;
    for output in &mut graph.outputs {
        let _ = substitute(output, &replaced);
    }
    Ok(replaced)
}

/// Gives the values of a body names that are free in `graph`, and moves their types there. `inside`
/// is what replaces the names of the body. Returns `false` if a constant cannot stand for one of
/// them.
fn rename(
    body: &mut Graph,
    inside: &mut Substitution,
    graph: &mut Graph,
    taken: &mut Taken,
) -> bool {
    for inner in body.nodes.iter_mut().map(Arc::make_mut) {
        for name in inner.output_names() {
            let new = taken.unique(&name);
            if let Some(meta) = Arc::make_mut(&mut body.values).swap_remove(&name) {
                graph.values_mut().insert(new.clone(), meta);
            }
            if new != name {
                inside.insert(name, Argument::Tensor(new));
            }
        }
        let args = inner.args.iter_mut().map(|a| &mut a.value);
        let fits = args.chain(&mut inner.outputs).all(|arg| substitute(arg, inside));
        if !fits {
            return false;
        }
        inner.name = match inner.outputs.as_slice() {
            [only] if only.name().is_some() => only.name().cloned().unwrap_or_default(),
            _ => taken.unique(&inner.name),
        };
    }
    body.outputs.iter_mut().all(|out| substitute(out, inside))
}

fn layout(node: &Node) -> Option<(usize, usize)> {
    let inlined = INLINED
        .iter()
        .find(|(name, ..)| node.target.is_higher_order() && &*node.target.name == *name);
    inlined.map(|&(_, before, between)| (before, between))
}

/// The body and its operands, lists among them flattened.
fn take_apart(
    node: &mut Node,
    (before, between): (usize, usize),
) -> Option<(Graph, Vec<Argument>)> {
    let rest = node.args.get(before + 1 + between..)?;
    let mut operands = Vec::with_capacity(rest.len());
    // Options of checkpoints go by keyword.
    let option =
        |arg: &NamedArg| arg.kind == ArgKind::Keyword && !matches!(arg.value, Argument::Dict(_));
    let operand = |arg: &&NamedArg| arg.name.is_empty() || !option(arg);
    for arg in rest.iter().filter(operand) {
        match &arg.value {
            Argument::Tensors(names) => {
                operands.extend(names.iter().cloned().map(Argument::Tensor));
            }
            Argument::SymInts(args) => operands.extend(args.iter().cloned().map(|a| match a {
                SymArg::Value(v) => Argument::Int(v),
                other => Argument::SymInt(other),
            })),
            Argument::Ints(values) => operands.extend(values.iter().copied().map(Argument::Int)),
            // `kwargs` and `hints` of `hints_wrapper`.
            Argument::Dict(entries) if entries.is_empty() || &*arg.name == "hints" => {}
            Argument::Dict(_) => return None,
            other => operands.push(other.clone()),
        }
    }
    match std::mem::replace(&mut node.args.get_mut(before)?.value, Argument::None) {
        Argument::Graph { graph, .. } => Some((*graph, operands)),
        _ => None,
    }
}

/// Which operand each input of the body is.
fn bind(body: &Graph, operands: Vec<Argument>) -> Option<Substitution> {
    if body.inputs.len() != operands.len() {
        return None;
    }
    let pairs = body.inputs.iter().zip(operands);
    let named = pairs.filter_map(|(input, operand)| Some((input.name()?.clone(), operand)));
    Some(named.collect())
}
