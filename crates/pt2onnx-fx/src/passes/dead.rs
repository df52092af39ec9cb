//! Removes nodes whose results are not used.

use crate::graph::{ExportedProgram, Graph, Name, Node, ValueMap, ValueMeta};
use pt2onnx_symbolic::{Expr, Symbol};
use std::collections::BTreeSet;

/// Removes the nodes that neither outputs nor [`ExportedProgram::mutations`] need, in bodies too. A
/// node is also needed if an argument is computed from a size that its result is the first to have.
/// If you don't need the mutations, clear them and call this again.
///
/// The program must be functional: every node is assumed to have no effect but its results.
pub fn remove_dead(program: &mut ExportedProgram) {
    let values = program.mutations.iter().map(|m| m.value.clone());
    remove(&mut program.graph, &values.collect::<Vec<_>>());
}

fn remove(graph: &mut Graph, wanted: &[Name]) {
    let mut read = ValueMap::new(graph);
    wanted.iter().for_each(|name| _ = read.insert(name, ()));
    let outputs = graph.outputs.iter();
    outputs.for_each(|o| o.for_each_name(&mut |name| _ = read.insert(name, ())));
    let mut is_read = vec![false; graph.nodes.len()];
    loop {
        for (node, is_read) in graph.nodes.iter().zip(&mut is_read).rev() {
            let outputs = node.outputs.iter();
            outputs.for_each(|o| o.for_each_name(&mut |name| *is_read |= read.get(name).is_some()));
            if *is_read {
                let args = node.args.iter();
                args.for_each(|a| a.value.for_each_name(&mut |name| _ = read.insert(name, ())));
            }
        }
        if is_read.iter().all(|&is_read| is_read) {
            break;
        }
        let unread = sources(graph, &is_read);
        if unread.is_empty() {
            break;
        }
        unread.iter().for_each(|name| _ = read.insert(name, ()));
    }
    let mut is_read = is_read.into_iter();
    graph.nodes.retain(|_| is_read.next().unwrap_or(true));
    graph.bodies_mut().for_each(|body| remove(body, &[]));
}

/// The results of nodes that are not read, but are the first to have a size that an argument of one
/// which is read is computed from.
fn sources(graph: &Graph, is_read: &[bool]) -> Vec<Name> {
    let mut wanted = BTreeSet::new();
    for (node, _) in graph.nodes.iter().zip(is_read).filter(|(_, is_read)| **is_read) {
        symbols(node, &mut wanted);
    }
    let outputs = graph.outputs.iter();
    outputs.for_each(|o| o.for_each_expr(&mut |e| wanted.extend(e.symbols())));
    let mut names = Vec::new();
    let inputs = graph.inputs.iter();
    inputs.for_each(|input| input.for_each_name(&mut |name| names.push(name)));
    for name in names {
        has(graph, name, &mut wanted);
    }
    let mut found = Vec::new();
    for (node, is_read) in graph.nodes.iter().zip(is_read) {
        if wanted.is_empty() {
            break;
        }
        for name in node.output_names() {
            if has(graph, &name, &mut wanted) && !is_read {
                found.push(name);
            }
        }
    }
    found
}

/// The symbols in the arguments of a node, and in those of its bodies.
fn symbols(node: &Node, found: &mut BTreeSet<Symbol>) {
    let args = node.args.iter();
    args.for_each(|arg| arg.value.for_each_expr(&mut |e| found.extend(e.symbols())));
    for body in node.bodies() {
        body.nodes.iter().for_each(|node| symbols(node, found));
        let outputs = body.outputs.iter();
        outputs.for_each(|o| o.for_each_expr(&mut |e| found.extend(e.symbols())));
    }
}

/// Removes the symbols that the type of a value has. Returns whether there are any.
fn has(graph: &Graph, name: &Name, wanted: &mut BTreeSet<Symbol>) -> bool {
    let before = wanted.len();
    let mut remove = |e: &Expr| wanted.retain(|symbol| !e.contains_symbol(symbol));
    match graph.values.get(name) {
        Some(ValueMeta::Tensor(meta)) => meta.sizes.iter().for_each(&mut remove),
        other => other.and_then(ValueMeta::expr).into_iter().for_each(remove),
    }
    wanted.len() < before
}
