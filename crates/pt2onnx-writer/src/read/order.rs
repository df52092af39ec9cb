//! Brings nodes into an order in which each stands behind those that it uses. The standard demands
//! it, converters to float16 do not keep it, and ONNX Runtime reads such models.

use pt2onnx_proto::NodeProto;
use rustc_hash::{FxHashMap, FxHashSet};
use std::{cmp::Reverse, collections::BinaryHeap};

/// The nodes in order, those that need not move in the order given. Nodes of a circle come last:
/// they are reported when they are read.
pub(super) fn sorted(nodes: Vec<NodeProto>) -> Vec<NodeProto> {
    let mut makers: FxHashMap<&str, usize> = FxHashMap::default();
    for (i, node) in nodes.iter().enumerate() {
        for output in node.output.iter().filter(|name| !name.is_empty()) {
            makers.entry(output).or_insert(i);
        }
    }
    let mut used: Vec<Vec<usize>> = Vec::with_capacity(nodes.len());
    for (i, node) in nodes.iter().enumerate() {
        let mut from = Vec::new();
        each_use(node, &mut |name| from.extend(makers.get(name).filter(|&&maker| maker != i)));
        from.sort_unstable();
        from.dedup();
        used.push(from);
    }
    if used.iter().enumerate().all(|(i, from)| from.iter().all(|&maker| maker < i)) {
        return nodes;
    }
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    for (i, from) in used.iter().enumerate() {
        from.iter().for_each(|&maker| users[maker].push(i));
    }
    let mut missing: Vec<usize> = used.iter().map(Vec::len).collect();
    let mut ready: BinaryHeap<_> =
        (0..nodes.len()).filter(|&i| missing[i] == 0).map(Reverse).collect();
    let mut nodes: Vec<Option<NodeProto>> = nodes.into_iter().map(Some).collect();
    let mut order = Vec::with_capacity(nodes.len());
    while let Some(Reverse(i)) = ready.pop() {
        order.extend(nodes[i].take());
        for &user in &users[i] {
            missing[user] -= 1;
            if missing[user] == 0 {
                ready.push(Reverse(user));
            }
        }
    }
    order.extend(nodes.into_iter().flatten());
    order
}

/// The names that a node uses, and those that its bodies use from around them.
fn each_use<'a>(node: &'a NodeProto, f: &mut dyn FnMut(&'a str)) {
    node.input.iter().for_each(|name| f(name));
    for attribute in &node.attribute {
        for graph in attribute.g.as_deref().into_iter().chain(&attribute.graphs) {
            let made = graph.node.iter().flat_map(|inner| &inner.output).map(String::as_str);
            let given = graph.input.iter().map(|input| input.name());
            let constants = graph.initializer.iter().map(|constant| constant.name());
            let own: FxHashSet<&str> = made.chain(given).chain(constants).collect();
            let mut outer = |name: &'a str| {
                if !own.contains(name) {
                    f(name);
                }
            };
            graph.node.iter().for_each(|inner| each_use(inner, &mut outer));
            graph.output.iter().for_each(|output| outer(output.name()));
        }
    }
}
