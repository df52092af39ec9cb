//! Removes nodes whose results are not used.

use crate::graph::{ExportedProgram, Graph, Name, Node, ValueMap};

/// Removes the nodes that neither outputs nor [`ExportedProgram::mutations`] need, in bodies too. If you don't need the mutations, clear
/// them and call this again.
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
    for (node, is_read) in graph.nodes.iter().zip(&mut is_read).rev() {
        let outputs = node.outputs.iter();
        outputs.for_each(|o| o.for_each_name(&mut |name| *is_read |= read.get(name).is_some()));
        if *is_read {
            let args = node.args.iter();
            args.for_each(|a| a.value.for_each_name(&mut |name| _ = read.insert(name, ())));
        }
    }
    let mut is_read = is_read.into_iter();
    graph.nodes.retain(|_| is_read.next().unwrap_or(true));
    let nodes = graph.nodes.iter_mut();
    nodes.flat_map(Node::bodies_mut).for_each(|body| remove(body, &[]));
}
