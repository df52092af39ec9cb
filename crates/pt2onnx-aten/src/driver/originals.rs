//! Nodes of the archive's graph that passes have rewritten.

use pt2onnx_fx::{
    graph::{Graph, Name, Node, NodeMeta, OpName},
    printer::Printer,
};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The nodes that passes have given other operators, as they were. Metadata shows them like that.
#[derive(Clone, Debug, Default)]
pub struct Originals(FxHashMap<Name, Original>);

/// A node as it was.
#[derive(Clone, Debug)]
pub(super) struct Original {
    pub target: OpName,
    pub meta: Arc<NodeMeta>,
    /// The node as FX prints it.
    pub text: Arc<str>,
}

impl Originals {
    /// Compares the nodes of a graph with those of the same names that the archive has.
    pub fn of(graph: &Graph, archived: &Graph) -> Self {
        let mut found = Self::default();
        let mut search = Search { nodes: &archived.nodes, next: 0, places: None };
        let mut printer = None;
        for node in &graph.nodes {
            let was = search.node(&node.name).filter(|was| was.target != node.target);
            if let Some(was) = was {
                let printer = printer.get_or_insert_with(|| Printer::of_body(archived));
                let (target, meta) = (was.target.clone(), Arc::clone(&was.meta));
                let text = printer.node(was).to_string().into();
                found.0.insert(was.name.clone(), Original { target, meta, text });
            }
        }
        found
    }

    pub(super) fn get(&self, name: &Name) -> Option<&Original> {
        self.0.get(name)
    }
}

/// Finds nodes by name.
struct Search<'a> {
    nodes: &'a [Arc<Node>],
    /// The place after the node that was found last. Passes mostly keep the order, so the search
    /// starts here.
    next: usize,
    /// The places of all nodes. Prefetched when a search from `next` fails.
    places: Option<FxHashMap<&'a Name, usize>>,
}

impl<'a> Search<'a> {
    /// How many nodes are searched before `places` is used.
    const SOON: usize = 8;

    fn node(&mut self, name: &Name) -> Option<&'a Node> {
        let soon = self.nodes.iter().skip(self.next).take(Self::SOON);
        let place = match { soon }.position(|n| n.name == *name) {
            Some(ahead) => self.next + ahead,
            None => {
                let nodes = self.nodes.iter().enumerate();
                let places = || nodes.map(|(i, n)| (&n.name, i)).collect();
                *self.places.get_or_insert_with(places).get(name)?
            }
        };
        self.next = place + 1;
        self.nodes.get(place).map(|node| &**node)
    }
}
