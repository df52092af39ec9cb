//! Origins of a program's nodes, made on another thread while the nodes before are translated.

use super::metadata::Annotator;
use pt2onnx_fx::graph::{Graph, Node};
use pt2onnx_ir::Origin;
use std::{sync::mpsc, thread};

/// The origins of so many nodes are handed over at once. A graph with fewer nodes needs no other thread.
const BATCH: usize = 512;

/// Size of the thread's stack in bytes: that of the main thread, as arguments nest.
const STACK: usize = 8 << 20;

/// Calls `each` with every node of a graph and its origin, in order. Where no thread can be started, one is enough.
pub(super) fn each<'a>(
    graph: &'a Graph,
    annotator: impl Fn() -> Annotator<'a> + Copy + Send,
    mut each: impl FnMut(&'a Node, Origin),
) {
    let batches = graph.nodes.chunks(BATCH);
    let (sender, receiver) = mpsc::channel();
    let started = thread::scope(|scope| {
        let ahead = batches.clone();
        let make = move || {
            let mut annotator = annotator();
            for nodes in ahead {
                let origins: Vec<Origin> = nodes.iter().map(|n| annotator.origin(n)).collect();
                if sender.send(origins).is_err() {
                    return;
                }
            }
        };
        let thread = || thread::Builder::new().stack_size(STACK).spawn_scoped(scope, make);
        if batches.len() < 2 || thread().is_err() {
            return false;
        }
        for (nodes, origins) in batches.zip(receiver) {
            nodes.iter().zip(origins).for_each(|(node, origin)| each(node, origin));
        }
        true
    });
    if !started {
        let mut annotator = annotator();
        graph.nodes.iter().for_each(|node| each(node, annotator.origin(node)));
    }
}
