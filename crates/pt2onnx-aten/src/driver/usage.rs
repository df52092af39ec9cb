//! Which ops a program uses.

use crate::Registry;
use pt2onnx_fx::{
    graph::{Argument, Graph, Node},
    passes::is_aside,
};
use pt2onnx_ir::Model;
use std::collections::{BTreeMap, BTreeSet};

/// The operators that nodes of each op became, by op as FX prints it: `aten.linear.default`, `Gemm`.
pub type Emitted = BTreeMap<String, BTreeSet<String>>;

/// `Gemm`, `com.microsoft::Gelu`.
fn qualified(node: &pt2onnx_ir::Node) -> String {
    match &*node.domain {
        "" => node.op.to_string(),
        domain => format!("{domain}::{}", node.op),
    }
}

/// What a program's nodes are in the model.
pub fn emitted(model: &Model) -> Emitted {
    let mut emitted = Emitted::new();
    for node in model.all_nodes() {
        for origin in &model[node].origins {
            let operators = emitted.entry(model[*origin].op.to_string()).or_default();
            operators.insert(qualified(&model[node]));
        }
    }
    emitted
}

/// How often a program uses an op, and whether it can be lowered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpUse {
    /// `aten::add.Tensor`.
    pub op: String,
    /// As FX prints it: `aten.add.Tensor`.
    pub target: String,
    /// Nodes, in subgraphs too.
    pub count: usize,
    /// Whether a lowering is registered (or none is needed).
    pub supported: bool,
    /// Whether it only stands for what a pass could not treat ([`is_aside`]).
    pub aside: bool,
}

/// The ops that a program uses, by name.
pub fn ops_used(graph: &Graph, registry: &Registry) -> Vec<OpUse> {
    let mut uses: BTreeMap<String, OpUse> = BTreeMap::new();
    visit(graph, &mut |node| {
        let op = node.target.schema_name();
        let supported = super::control::needs_no_lowering(node) || registry.is_registered(&op);
        let target = node.target.to_string();
        let used = uses.entry(op.clone()).or_insert(OpUse {
            op,
            target,
            count: 0,
            supported,
            aside: is_aside(node),
        });
        used.count += 1;
    });
    uses.into_values().collect()
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
