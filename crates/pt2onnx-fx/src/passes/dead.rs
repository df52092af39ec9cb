//! Removes nodes whose results nobody reads.

use crate::graph::{Argument, ExportedProgram, Graph, Name};
use rustc_hash::FxHashSet;

/// Removes the nodes that neither outputs nor [`ExportedProgram::mutations`] need, in bodies too: views that were only
/// written through, sizes that were only asserted. Who does not want the mutations clears them and calls this again.
///
/// For functionalised programs: every node is taken to do nothing but compute its results.
pub fn remove_dead(program: &mut ExportedProgram) {
    let values = program.mutations.iter().map(|m| m.value.clone());
    remove(&mut program.graph, &values.collect::<Vec<_>>());
}

fn remove(graph: &mut Graph, wanted: &[Name]) {
    let mut read: FxHashSet<&str> = wanted.iter().map(|name| &**name).collect();
    read.reserve(graph.values.len());
    let outputs = graph.outputs.iter();
    outputs.for_each(|o| o.for_each_name(&mut |name| _ = read.insert(name)));
    let mut is_read = vec![false; graph.nodes.len()];
    for (node, is_read) in graph.nodes.iter().zip(&mut is_read).rev() {
        let outputs = node.outputs.iter();
        outputs.for_each(|o| o.for_each_name(&mut |name| *is_read |= read.contains(&**name)));
        if *is_read {
            let args = node.args.iter();
            args.for_each(|a| a.value.for_each_name(&mut |name| _ = read.insert(name)));
        }
    }
    let mut is_read = is_read.into_iter();
    graph.nodes.retain(|_| is_read.next().unwrap_or(true));
    for arg in graph.nodes.iter_mut().flat_map(|node| &mut node.args) {
        if let Argument::Graph { graph: body, .. } = &mut arg.value {
            remove(body, &[]);
        }
    }
}
