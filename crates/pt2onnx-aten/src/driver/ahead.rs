//! Origins of a program's nodes, made on another thread while the nodes before are translated.

use super::metadata::Annotator;
use pt2onnx_fx::graph::{Graph, Node};
use pt2onnx_ir::Origin;
use std::{sync::mpsc, thread};

/// The origins of so many nodes are handed over at once. A graph with fewer nodes needs no other thread.
const BATCH: usize = 512;

/// Calls `each` with every node of a graph and its origin, in order.
pub(super) fn each<'a>(
    graph: &'a Graph,
    mut annotator: Annotator<'a>,
    mut each: impl FnMut(&'a Node, Origin),
) {
    let batches = graph.nodes.chunks(BATCH);
    if batches.len() < 2 {
        return graph.nodes.iter().for_each(|node| each(node, annotator.origin(node)));
    }
    thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        let ahead = batches.clone();
        scope.spawn(move || {
            for nodes in ahead {
                let origins: Vec<Origin> = nodes.iter().map(|n| annotator.origin(n)).collect();
                if sender.send(origins).is_err() {
                    return;
                }
            }
        });
        for (nodes, origins) in batches.zip(receiver) {
            nodes.iter().zip(origins).for_each(|(node, origin)| each(node, origin));
        }
    });
}
