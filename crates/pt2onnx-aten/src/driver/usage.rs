//! Which ops a program uses, and which operators they became.

use super::kinds::needs_no_translation;
use crate::{Emitted, Registry};
use pt2onnx_fx::{
    graph::{Graph, Node, OpName},
    passes::is_opaque,
};
use pt2onnx_ir::Model;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The name of a node's operator: `Gemm`, `com.microsoft::Gelu`.
fn qualified(node: &pt2onnx_ir::Node) -> String {
    match &*node.domain {
        "" => node.op().to_string(),
        domain => format!("{domain}::{}", node.op()),
    }
}

/// The operators that the nodes of each op became in a model.
pub fn emitted(model: &Model) -> Emitted {
    // Thousands of nodes have the same texts, mostly at the same addresses, and those are compared.
    let mut pairs: FxHashMap<_, (&str, &pt2onnx_ir::Node)> = FxHashMap::default();
    for node in model.all_nodes().into_iter().map(|n| &model[n]) {
        for origin in &node.origins {
            let op = &*model[*origin].op;
            let addresses = [op, &*node.domain, node.op()].map(|text| (text.as_ptr(), text.len()));
            pairs.entry(addresses).or_insert((op, node));
        }
    }
    let mut emitted = Emitted::new();
    for (op, node) in pairs.into_values() {
        let operators = emitted.entry(op.to_owned()).or_default();
        operators.insert(qualified(node));
    }
    emitted
}

/// How often a program uses an op, and whether the op can be translated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpUse {
    /// The op's schema name: `aten::add.Tensor`.
    pub op: String,
    /// The op as FX prints it: `aten.add.Tensor`.
    pub target: String,
    /// How many nodes it has, including those in subgraphs.
    pub count: usize,
    /// Whether a translation is registered, or none is needed.
    pub supported: bool,
    /// Whether its nodes are opaque: they stand for nodes that a pass could not handle
    /// ([`is_opaque`]).
    pub opaque: bool,
}

/// The ops that a program uses, sorted by name.
pub fn ops_used(graph: &Graph, registry: &Registry) -> Vec<OpUse> {
    let mut uses: FxHashMap<&OpName, OpUse> = FxHashMap::default();
    visit(graph, &mut |node| {
        let first = || {
            let op = node.target.schema_name();
            OpUse {
                target: node.target.to_string(),
                count: 0,
                supported: needs_no_translation(node) || registry.is_registered(op),
                opaque: is_opaque(node),
                op: op.to_owned(),
            }
        };
        uses.entry(&node.target).or_insert_with(first).count += 1;
    });
    // `aten.relu` and `aten.relu.default` have the same schema.
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
