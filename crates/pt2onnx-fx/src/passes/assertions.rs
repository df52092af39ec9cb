//! Removes run-time assertions: what they say of sizes is in the range constraints already.

use crate::graph::{Argument, ExportedProgram, Graph, Node};

const ASSERTIONS: &[&str] = &[
    "_assert_async",
    "_assert_scalar",
    "_assert_tensor_metadata",
    "sym_constrain_range",
    "sym_constrain_range_for_size",
];

/// Removes the operators that only check: `_assert_scalar`, `_assert_tensor_metadata`, `_assert_async`,
/// `sym_constrain_range`, `sym_constrain_range_for_size`, in bodies too. What computed their arguments stays, dead.
pub fn remove_assertions(program: &mut ExportedProgram) {
    clean(&mut program.graph);
}

fn clean(graph: &mut Graph) {
    graph.nodes.retain(|node| !is_assertion(node));
    for arg in graph.nodes.iter_mut().flat_map(|n| &mut n.args) {
        if let Argument::Graph { graph, .. } = &mut arg.value {
            clean(graph);
        }
    }
}

fn is_assertion(node: &Node) -> bool {
    let no_results = node.outputs.iter().all(|o| *o == Argument::None);
    no_results && ASSERTIONS.iter().any(|name| node.target.is_aten(name))
}
