//! Regions as graphs of petgraph, whose algorithms work on them.

use crate::{
    ids::{NodeId, RegionId, Value},
    model::Model,
    value::Def,
};
use petgraph::graphmap::DiGraphMap;

/// The nodes of a region, with an edge from each node to every node that uses one of its outputs.
pub type Graph = DiGraphMap<NodeId, ()>;

impl Model {
    /// A region as a graph of petgraph. A node also uses what its bodies use. Later changes of the
    /// model do not change the graph.
    ///
    /// ```
    /// use petgraph::algo::toposort;
    /// use pt2onnx_ir::Model;
    ///
    /// let text = "g (float[2] x) => (float[2] y) { t = Relu (x) y = Add (t, x) }";
    /// let model: Model = text.parse()?;
    /// let sorted = toposort(&model.graph(Model::MAIN), None).unwrap_or_default();
    /// assert_eq!(sorted.iter().map(|n| model[*n].op()).collect::<Vec<_>>(), ["Relu", "Add"]);
    /// # Ok::<(), pt2onnx_ir::ParseError>(())
    /// ```
    pub fn graph(&self, region: RegionId) -> Graph {
        let mut graph = Graph::new();
        for node in self.nodes(region) {
            graph.add_node(node);
        }
        for user in self.nodes(region) {
            let makers = self.values_used(user).into_iter().filter_map(|v| self.producer(v));
            for maker in makers.filter(|n| self.contains(*n) && self[*n].region() == region) {
                graph.add_edge(maker, user, ());
            }
        }
        graph
    }

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
