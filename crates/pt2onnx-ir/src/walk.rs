//! Walks over a model: nodes of regions, values, inputs and outputs.

use crate::{
    ids::{NodeId, RegionId, Value},
    model::Model,
    region::Output,
    value::{Def, ValueData},
};

impl Model {
    /// The node that makes a value.
    pub fn producer(&self, value: Value) -> Option<NodeId> {
        match self[value].def {
            Def::Node(node, _) => Some(node),
            _ => None,
        }
    }

    /// The node after a node in its region.
    pub fn next(&self, node: NodeId) -> Option<NodeId> {
        self.links[node.index()].next
    }

    /// The node before a node in its region.
    pub fn prev(&self, node: NodeId) -> Option<NodeId> {
        self.links[node.index()].prev
    }

    /// A region's nodes in order.
    pub fn nodes(&self, region: RegionId) -> impl Iterator<Item = NodeId> + '_ {
        std::iter::successors(self[region].first, |n| self.next(*n))
    }

    /// A region's nodes, last first.
    pub fn nodes_rev(&self, region: RegionId) -> impl Iterator<Item = NodeId> + '_ {
        std::iter::successors(self[region].last, |n| self.prev(*n))
    }

    /// All nodes of the main graph, its bodies and the functions. A node comes before the nodes of its bodies.
    pub fn all_nodes(&self) -> Vec<NodeId> {
        let roots = std::iter::once(Self::MAIN).chain(self.functions.iter().map(|f| f.body));
        self.nodes_in(&roots.collect::<Vec<_>>())
    }

    /// All nodes that passes work on: those of the main graph or of one function ([`Model::with_root`]), with their
    /// bodies. A node comes before the nodes of its bodies.
    pub fn graph_nodes(&self) -> Vec<NodeId> {
        self.nodes_in(&[self.root])
    }

    /// The region that passes work on.
    pub fn root(&self) -> RegionId {
        self.root
    }

    /// Runs passes on a function's body, which is written for that opset, as on the main graph.
    pub fn with_root<R>(
        &mut self,
        root: RegionId,
        opset: u32,
        work: impl FnOnce(&mut Self) -> R,
    ) -> R {
        let outside = (self.root, self.opset);
        (self.root, self.opset) = (root, opset);
        let done = work(self);
        (self.root, self.opset) = outside;
        done
    }

    /// All nodes of regions and of their bodies. A node comes before the nodes of its bodies.
    pub fn nodes_in(&self, regions: &[RegionId]) -> Vec<NodeId> {
        let mut todo: Vec<NodeId> = regions.iter().flat_map(|r| self.nodes(*r)).collect();
        // There are no bodies to look for.
        if regions.len() == self.regions.len() {
            return todo;
        }
        todo.reverse();
        let mut all = Vec::with_capacity(todo.len());
        while let Some(node) = todo.pop() {
            all.push(node);
            let start = todo.len();
            todo.extend(self[node].regions().flat_map(|r| self.nodes(r)));
            todo[start..].reverse();
        }
        all
    }

    /// All values ever made, dead ones too.
    pub fn values(&self) -> impl Iterator<Item = (Value, &ValueData)> {
        self.values.iter().enumerate().map(|(i, v)| (Value::new(i), v))
    }

    /// The main graph's inputs.
    pub fn inputs(&self) -> &[Value] {
        self[Self::MAIN].inputs()
    }

    /// The main graph's outputs.
    pub fn outputs(&self) -> &[Output] {
        self[Self::MAIN].outputs()
    }

    /// The values in the main graph's output slots.
    pub fn output_values(&self) -> impl ExactSizeIterator<Item = Value> + '_ {
        self[Self::MAIN].output_values()
    }
}
