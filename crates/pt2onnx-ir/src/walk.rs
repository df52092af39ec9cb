//! Walks over a model: its nodes, values with their types, inputs and outputs.

use crate::{
    ids::{NodeId, RegionId, Value},
    model::Model,
    region::{InsertPoint, Output},
    types::Shape,
    uses::Use,
    value::{Def, ValueData},
};
use pt2onnx_tensor::DType;

impl Model {
    /// The node that makes a value.
    pub fn producer(&self, value: Value) -> Option<NodeId> {
        match self[value].def {
            Def::Node(node, _) => Some(node),
            _ => None,
        }
    }

    /// The element type of a tensor, if known.
    pub fn dtype(&self, value: Value) -> Option<DType> {
        Some(self[value].ty.as_ref()?.as_tensor()?.dtype)
    }

    /// The sizes of a tensor, if the rank is known.
    pub fn shape(&self, value: Value) -> Option<&Shape> {
        self[value].ty.as_ref()?.as_tensor()?.shape.as_ref()
    }

    /// The element type and sizes of a tensor, if both are known.
    pub fn tensor_type(&self, value: Value) -> Option<(DType, &Shape)> {
        self.dtype(value).zip(self.shape(value))
    }

    /// The number of dimensions of a tensor, if known.
    pub fn rank(&self, value: Value) -> Option<usize> {
        self.shape(value).map(Vec::len)
    }

    /// The node after a node in its region.
    pub fn next(&self, node: NodeId) -> Option<NodeId> {
        self.links[node.index()].next
    }

    /// The uses of all outputs of a node.
    pub fn uses_of(&self, node: NodeId) -> impl Iterator<Item = Use> + '_ {
        self[node].outputs().iter().flat_map(|v| self[*v].uses())
    }

    /// The place right after a node.
    pub fn after(&self, node: NodeId) -> InsertPoint {
        let end = InsertPoint::End(self[node].region());
        self.next(node).map_or(end, InsertPoint::Before)
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

    /// All nodes of the main graph, the functions, and their bodies. A node comes before the nodes
    /// of its bodies.
    pub fn all_nodes(&self) -> Vec<NodeId> {
        let roots = std::iter::once(Self::MAIN).chain(self.functions.iter().map(|f| f.body));
        self.nodes_in(&roots.collect::<Vec<_>>())
    }

    /// All nodes of the main graph and its bodies. A node comes before the nodes of its bodies.
    pub fn graph_nodes(&self) -> Vec<NodeId> {
        self.nodes_in(&[Self::MAIN])
    }

    /// All nodes of the given regions and of their bodies. A node comes before the nodes of its
    /// bodies.
    pub fn nodes_in(&self, regions: &[RegionId]) -> Vec<NodeId> {
        let mut todo: Vec<NodeId> = regions.iter().flat_map(|r| self.nodes(*r)).collect();
        // The model has no other regions, so these have no bodies.
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

    /// All values that were ever made, including those of erased nodes.
    pub fn values(&self) -> impl Iterator<Item = (Value, &ValueData)> {
        self.values_from(0)
    }

    /// The values but those that were added first, so many.
    pub fn values_from(&self, first: usize) -> impl Iterator<Item = (Value, &ValueData)> {
        self.values.iter().enumerate().skip(first).map(|(i, v)| (Value::new(i), v))
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
