//! Which ops a program uses.

use crate::Registry;
use pt2onnx_fx::graph::{Argument, Graph, Node};

/// How often a program uses an op, and whether it can be lowered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpUse {
    /// `aten::add.Tensor`.
    pub op: String,
    /// Nodes, in subgraphs too.
    pub count: usize,
    /// Whether a lowering is registered (or none is needed).
    pub supported: bool,
}

/// The ops that a program uses, by name.
pub fn ops_used(graph: &Graph, registry: &Registry) -> Vec<OpUse> {
    let mut counts: std::collections::BTreeMap<String, (usize, bool)> = Default::default();
    visit(graph, &mut |node| {
        let name = node.target.schema_name();
        let supported = super::control::needs_no_lowering(node) || registry.is_registered(&name);
        counts.entry(name).or_insert((0, supported)).0 += 1;
    });
    counts
        .into_iter()
        .map(|(op, (count, supported))| OpUse {
            op,
            count,
            supported,
        })
        .collect()
}

fn visit(graph: &Graph, f: &mut impl FnMut(&Node)) {
    for node in &graph.nodes {
        f(node);
        for arg in &node.args {
            if let Argument::Graph { graph, .. } = &arg.value {
                visit(graph, f);
            }
        }
    }
}

/// Whether a node only computes sizes: its results are expressions that the program spells out, so that there is nothing
/// to lower. They are computed where they are needed.
pub(super) fn is_symbolic(node: &Node) -> bool {
    let symbol = |a: &Argument| {
        matches!(
            a,
            Argument::SymInt(_) | Argument::SymFloat(_) | Argument::SymBool(_)
        )
    };
    let sizes = matches!(
        &*node.target.namespace,
        "_operator" | "math" | "torch" | "builtins"
    ) || node.target.name.starts_with("sym_");
    sizes && !node.outputs.is_empty() && node.outputs.iter().all(symbol)
}
