//! Removes nodes whose results nobody reads.

use crate::graph::{Argument, ExportedProgram, Graph, Name};
use rustc_hash::FxHashSet;

/// Removes the nodes that neither outputs nor [`ExportedProgram::mutations`] need, in bodies too: views that were only
/// written through, sizes that were only asserted. Who does not want the mutations clears them and calls this again.
///
/// For functionalised programs: every node is taken to do nothing but compute its results.
pub fn remove_dead(program: &mut ExportedProgram) {
    let values = program.mutations.iter().map(|m| m.value.clone());
    remove(&mut program.graph, values.collect());
}

fn remove(graph: &mut Graph, mut read: FxHashSet<Name>) {
    read.reserve(graph.nodes.len());
    let mut reads = |arg: &Argument| {
        arg.for_each_name(&mut |name| {
            read.insert(name.clone());
        });
    };
    graph.outputs.iter().for_each(&mut reads);
    let mut kept = Vec::with_capacity(graph.nodes.len());
    while let Some(mut node) = graph.nodes.pop() {
        if !node.output_names().iter().any(|name| read.contains(name)) {
            continue;
        }
        for arg in &mut node.args {
            arg.value.for_each_name(&mut |name| {
                read.insert(name.clone());
            });
            if let Argument::Graph { graph: body, .. } = &mut arg.value {
                remove(body, FxHashSet::default());
            }
        }
        kept.push(node);
    }
    kept.reverse();
    graph.nodes = kept;
}
