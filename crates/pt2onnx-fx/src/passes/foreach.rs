//! Splits operators on lists of tensors: `_foreach_add(xs, ys)` becomes one `add` for each `x`.

use super::{names::Taken, problem::problem};
use crate::{
    error::{PassProblem, Result},
    graph::{ArgKind, Argument, ExportedProgram, Graph, Name, NamedArg, Node, OpName},
};
use std::sync::Arc;

/// Replaces `_foreach_*` operators, in-place ones too, by one operator per tensor. Bodies are
/// included. Those whose functional variant is of another kind, such as `_foreach_powsum`, are left
/// alone.
pub fn expand_foreach(program: &mut ExportedProgram) -> Result<()> {
    expand(&mut program.graph)
}

fn is_foreach(node: &Node) -> bool {
    &*node.target.namespace == "aten" && node.target.name.starts_with("_foreach_")
}

fn expand(graph: &mut Graph) -> Result<()> {
    graph.bodies_mut().try_for_each(expand)?;
    if !graph.nodes.iter().any(|node| is_foreach(node)) {
        return Ok(());
    }
    let mut taken = Taken::by(graph);
    let mut nodes = Vec::with_capacity(graph.nodes.len());
    for node in std::mem::take(&mut graph.nodes) {
        match single(&node).filter(|_| is_foreach(&node)) {
            Some((name, overload)) => {
                let target = OpName::new("aten", &name, overload);
                nodes.extend(one_each(graph, &node, &target, &mut taken)?);
            }
            None => nodes.push(node),
        }
    }
    graph.nodes = nodes;
    Ok(())
}

/// A node of the operator `target` for each tensor of a list.
fn one_each(
    graph: &mut Graph,
    node: &Node,
    target: &OpName,
    taken: &mut Taken,
) -> Result<Vec<Arc<Node>>> {
    let refused = || problem(node, PassProblem::NoVariant);
    let Some(Argument::Tensors(tensors)) = node.args.first().map(|a| &a.value) else {
        return Err(refused());
    };
    let results = node.output_names();
    let mut nodes = Vec::with_capacity(tensors.len());
    for (i, x) in tensors.iter().enumerate() {
        let result = match results.get(i) {
            Some(result) => result.clone(),
            // An operator that writes has no results.
            None => {
                let new = taken.unique(&target.name);
                if let Some(meta) = graph.values.get(x).cloned() {
                    graph.values_mut().insert(new.clone(), meta);
                }
                new
            }
        };
        let args = node.args.iter().map(|arg| each(arg, i, &target.name));
        let args = args.collect::<Option<_>>().ok_or_else(refused)?;
        nodes.push(Node::call(result, target.clone(), args, node.meta.clone()).into());
    }
    Ok(nodes)
}

/// The name and overload of the operator on one tensor; `None` if there is none.
fn single(node: &Node) -> Option<(String, &'static str)> {
    let name = node.target.name.strip_prefix("_foreach_")?;
    let plain = name.trim_end_matches('_');
    let overload = match (plain, &*node.target.overload) {
        ("add" | "sub" | "mul" | "div", "List" | "Tensor") => "Tensor",
        ("add" | "sub" | "mul" | "div", "Scalar" | "ScalarList") => "Scalar",
        ("clamp_min" | "clamp_max", "List") => "Tensor",
        ("clamp_min" | "clamp_max", "Scalar" | "ScalarList") => "default",
        ("maximum" | "minimum", "List") => "default",
        ("pow", "List") => "Tensor_Tensor",
        ("pow", "Scalar" | "ScalarList") => "Tensor_Scalar",
        ("lerp", "List") => "Tensor",
        ("lerp", "Scalar" | "ScalarList") => "Scalar",
        ("addcmul" | "addcdiv", "Scalar" | "ScalarList") => "default",
        ("norm", "Scalar") => return Some(("linalg_vector_norm".to_owned(), "default")),
        ("maximum" | "minimum" | "norm" | "powsum", _) => return None,
        ("copy", _) => "default",
        (_, "default") => "default",
        _ => return None,
    };
    let overload = match (name, overload) {
        ("pow_", "Tensor_Tensor") => "Tensor",
        ("pow_", "Tensor_Scalar") => "Scalar",
        (_, overload) => overload,
    };
    Some((name.to_owned(), overload))
}

/// Member `i` of an argument, under the name that the operator on one tensor has for it.
fn each(arg: &NamedArg, i: usize, op: &str) -> Option<NamedArg> {
    let op = op.trim_end_matches('_');
    let name: Name = match (&*arg.name, op) {
        ("scalar" | "scalars" | "other", "clamp_min") => "min".into(),
        ("scalar" | "scalars" | "other", "clamp_max") => "max".into(),
        ("scalar" | "scalars", "addcmul" | "addcdiv") => "value".into(),
        ("scalar" | "scalars", "pow") => "exponent".into(),
        ("scalar" | "scalars", "lerp") | ("weights", _) => "weight".into(),
        ("scalar" | "scalars", _) => "other".into(),
        ("tensors1", "lerp") => "end".into(),
        _ => arg.name.clone(),
    };
    let value = match &arg.value {
        Argument::Tensors(list) => Argument::Tensor(list.get(i)?.clone()),
        Argument::Floats(list) => Argument::Float(*list.get(i)?),
        Argument::Ints(list) => Argument::Int(*list.get(i)?),
        Argument::Bools(list) => Argument::Bool(*list.get(i)?),
        other => other.clone(),
    };
    let kind = match &*name {
        "value" => ArgKind::Keyword,
        _ => arg.kind,
    };
    Some(NamedArg { name, kind, value })
}
