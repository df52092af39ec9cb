//! Which ops a program uses.

use super::kinds::needs_no_translation;
use crate::{Emitted, Registry};
use pt2onnx_fx::{
    graph::{Graph, Node, OpName},
    passes::is_opaque,
};
use pt2onnx_ir::Model;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// `Gemm`, `com.microsoft::Gelu`.
fn qualified(node: &pt2onnx_ir::Node) -> String {
    match &*node.domain {
        "" => node.op().to_string(),
        domain => format!("{domain}::{}", node.op()),
    }
}

/// What a program's nodes are in the model.
pub fn emitted(model: &Model) -> Emitted {
    // What is the same for thousands of nodes is made a text once.
    let mut pairs: FxHashMap<(&str, &str, &str), &pt2onnx_ir::Node> = FxHashMap::default();
    for node in model.all_nodes().into_iter().map(|n| &model[n]) {
        for origin in &node.origins {
            let pair = (&*model[*origin].op, &*node.domain, node.op());
            pairs.entry(pair).or_insert(node);
        }
    }
    let mut emitted = Emitted::new();
    for ((op, ..), node) in pairs {
        let operators = emitted.entry(op.to_owned()).or_default();
        operators.insert(qualified(node));
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
    /// Whether it only stands for what a pass could not treat ([`is_opaque`]).
    pub aside: bool,
}

/// The ops that a program uses, by name.
pub fn ops_used(graph: &Graph, registry: &Registry) -> Vec<OpUse> {
    let mut uses: FxHashMap<&OpName, OpUse> = FxHashMap::default();
    visit(graph, &mut |node| {
        let first = || {
            let op = node.target.schema_name();
            OpUse {
                target: node.target.to_string(),
                count: 0,
                supported: needs_no_translation(node) || registry.is_registered(&op),
                aside: is_opaque(node),
                op,
            }
        };
        uses.entry(&node.target).or_insert_with(first).count += 1;
    });
    // `aten.relu` and `aten.relu.default` have one schema.
    let mut by_schema: BTreeMap<String, OpUse> = BTreeMap::new();
    for used in uses.into_values() {
        let known = by_schema.entry(used.op.clone());
        known.and_modify(|known| known.count += used.count).or_insert(used);
    }
    by_schema.into_values().collect()
}

fn visit<'a>(graph: &'a Graph, f: &mut impl FnMut(&'a Node)) {
    for node in &graph.nodes {
        f(node);
        node.bodies().for_each(|body| visit(body, f));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pt2onnx_fx::graph::{Argument, NodeMeta};

    #[test]
    fn names_of_one_schema_are_one_op() {
        let node = |overload| Node {
            name: "relu".into(),
            target: OpName::new("aten", "relu", overload),
            args: Vec::new(),
            outputs: vec![Argument::None],
            single_return: None,
            meta: NodeMeta::default().into(),
        };
        let graph =
            Graph { nodes: vec![node("default"), node(""), node("default")], ..Graph::default() };
        let uses = ops_used(&graph, &Registry::default());
        let found: Vec<_> = uses.iter().map(|u| (u.op.as_str(), u.count)).collect();
        assert_eq!(found, [("aten::relu", 3)]);
    }
}
