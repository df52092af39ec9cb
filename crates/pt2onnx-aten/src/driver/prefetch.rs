//! Computes origins and recorded types of nodes on another thread, ahead of their translation.

use super::{metadata::Annotator, node_facts::NodeFacts};
use pt2onnx_fx::graph::{Graph, Node};
use pt2onnx_ir::Origin;
use std::{sync::mpsc, thread};

/// Nodes handed over at once. A graph with fewer nodes needs no other thread.
const BATCH: usize = 512;

/// Stack of the thread in bytes, as large as that of the main thread because arguments nest.
const STACK: usize = 8 << 20;

/// The origin of a node, and its facts.
pub(super) type Prefetched<'a> = (Origin, NodeFacts<'a>);

/// Calls `take` with origin and facts of each node of a graph, in order. If no thread can be
/// started, the calling one computes them.
pub(super) fn with<'a, R>(
    graph: &'a Graph,
    annotator: impl Fn() -> Annotator<'a> + Copy + Send,
    take: impl FnOnce(&mut dyn Iterator<Item = Prefetched<'a>>) -> R,
) -> R {
    let has_complex = graph.has_complex();
    let made = move |annotator: &mut Annotator<'a>, node: &'a Node| -> Prefetched<'a> {
        (annotator.origin(node), NodeFacts::of(graph, has_complex, node))
    };
    let batches = graph.nodes.chunks(BATCH);
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        let several = batches.len() > 1;
        let make = move || {
            let mut annotator = annotator();
            for nodes in batches {
                let batch: Vec<_> = nodes.iter().map(|node| made(&mut annotator, node)).collect();
                if sender.send(batch).is_err() {
                    return;
                }
            }
        };
        let thread = || thread::Builder::new().stack_size(STACK).spawn_scoped(scope, make);
        if several && thread().is_ok() {
            return take(&mut receiver.into_iter().flatten());
        }
        let mut annotator = annotator();
        take(&mut graph.nodes.iter().map(|node| made(&mut annotator, node)))
    })
}
