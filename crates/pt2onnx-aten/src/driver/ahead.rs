//! What is made of a program's nodes on another thread while the nodes before are translated.

use super::{known::Known, metadata::Annotator};
use pt2onnx_fx::graph::{Graph, Node};
use pt2onnx_ir::Origin;
use std::{sync::mpsc, thread};

/// What is made of so many nodes is handed over at once. A graph with fewer nodes needs no other
/// thread.
const BATCH: usize = 512;

/// Size of the thread's stack in bytes: that of the main thread, as arguments nest.
const STACK: usize = 8 << 20;

/// The origin of a node, and what the program says of it.
pub(super) type Made<'a> = (Origin, Known<'a>);

/// Calls `take` with what is made of each node of a graph, in order. Where no thread can be
/// started, one is enough.
pub(super) fn with<'a, R>(
    graph: &'a Graph,
    annotator: impl Fn() -> Annotator<'a> + Copy + Send,
    take: impl FnOnce(&mut dyn Iterator<Item = Made<'a>>) -> R,
) -> R {
    let has_complex = graph.has_complex();
    let made = move |annotator: &mut Annotator<'a>, node: &'a Node| -> Made<'a> {
        (annotator.origin(node), Known::of(graph, has_complex, node))
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
