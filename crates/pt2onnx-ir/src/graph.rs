//! A region as a graph of petgraph. It implements petgraph's visit traits, so petgraph's algorithms
//! work on models.

use crate::{
    ids::{NodeId, RegionId, Value},
    model::Model,
    value::Def,
};
use indexmap::IndexMap;
use petgraph::{
    Direction,
    visit::{
        GraphBase, IntoNeighbors, IntoNeighborsDirected, IntoNodeIdentifiers, NodeCount,
        NodeIndexable, Visitable,
    },
};
use rustc_hash::{FxBuildHasher, FxHashSet};

/// A region as a graph of petgraph: its nodes, with an edge from each node to every node that uses
/// one of its outputs. A node also uses what its bodies use. Later changes of the model do not
/// change the graph.
///
/// ```
/// use petgraph::algo::toposort;
/// use pt2onnx_ir::{Graph, Model};
///
/// let model: Model = "g (float[2] x) => (float[2] y) { t = Relu (x) y = Add (t, x) }".parse()?;
/// let sorted = toposort(&Graph::of(&model, Model::MAIN), None).unwrap_or_default();
/// assert_eq!(sorted.iter().map(|n| model[*n].op()).collect::<Vec<_>>(), ["Relu", "Add"]);
/// # Ok::<(), pt2onnx_ir::ParseError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Graph {
    nodes: IndexMap<NodeId, Neighbours, FxBuildHasher>,
}

#[derive(Clone, Debug, Default)]
struct Neighbours {
    before: Vec<NodeId>,
    after: Vec<NodeId>,
}

impl Graph {
    /// The graph of one region.
    pub fn of(model: &Model, region: RegionId) -> Self {
        let ids = model.nodes(region).map(|node| (node, Neighbours::default()));
        let mut nodes: IndexMap<_, Neighbours, _> = ids.collect();
        for user in model.nodes(region) {
            let mut makers = model.values_used(user);
            makers.retain(|v| model.producer(*v).is_some_and(|n| nodes.contains_key(&n)));
            for maker in makers.into_iter().filter_map(|v| model.producer(v)) {
                if nodes[&user].before.contains(&maker) {
                    continue;
                }
                nodes[&user].before.push(maker);
                nodes[&maker].after.push(user);
            }
        }
        Self { nodes }
    }
}

impl Model {
    /// The outputs of nodes that a node or its bodies use.
    pub fn values_used(&self, node: NodeId) -> Vec<Value> {
        let mut used: Vec<Value> = self[node].inputs().iter().flatten().copied().collect();
        let mut todo: Vec<RegionId> = self[node].regions().collect();
        while let Some(region) = todo.pop() {
            for inner in self.nodes(region) {
                used.extend(self[inner].inputs().iter().flatten());
                todo.extend(self[inner].regions());
            }
            used.extend(self[region].output_values());
        }
        used.retain(|v| matches!(self[*v].def(), Def::Node(..)));
        used
    }
}

impl GraphBase for Graph {
    type NodeId = NodeId;
    type EdgeId = (NodeId, NodeId);
}

impl<'g> IntoNeighbors for &'g Graph {
    type Neighbors = std::iter::Copied<std::slice::Iter<'g, NodeId>>;

    fn neighbors(self, node: NodeId) -> Self::Neighbors {
        self.neighbors_directed(node, Direction::Outgoing)
    }
}

impl<'g> IntoNeighborsDirected for &'g Graph {
    type NeighborsDirected = std::iter::Copied<std::slice::Iter<'g, NodeId>>;

    fn neighbors_directed(self, node: NodeId, direction: Direction) -> Self::NeighborsDirected {
        let found = self.nodes.get(&node).map(|neighbours| match direction {
            Direction::Outgoing => neighbours.after.as_slice(),
            Direction::Incoming => neighbours.before.as_slice(),
        });
        found.unwrap_or_default().iter().copied()
    }
}

impl IntoNodeIdentifiers for &Graph {
    type NodeIdentifiers = std::vec::IntoIter<NodeId>;

    fn node_identifiers(self) -> Self::NodeIdentifiers {
        self.nodes.keys().copied().collect::<Vec<_>>().into_iter()
    }
}

impl NodeCount for Graph {
    fn node_count(&self) -> usize {
        self.nodes.len()
    }
}

/// The index of a node is its position in the arena.
impl NodeIndexable for Graph {
    fn node_bound(&self) -> usize {
        self.nodes.keys().map(|node| node.index() + 1).max().unwrap_or(0)
    }

    fn to_index(&self, node: NodeId) -> usize {
        node.index()
    }

    fn from_index(&self, index: usize) -> NodeId {
        NodeId::new(index)
    }
}

impl Visitable for Graph {
    type Map = FxHashSet<NodeId>;

    fn visit_map(&self) -> Self::Map {
        FxHashSet::default()
    }

    fn reset_map(&self, map: &mut Self::Map) {
        map.clear();
    }
}
