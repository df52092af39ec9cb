//! What the clean-up rules see of a node, and what they may do about it.

use crate::analysis::{self, known};
use pt2onnx_ir::{Attributes, Model, Node, Shape, Value};
use pt2onnx_tensor::{DType, Tensor};

/// What to do about a node.
pub(super) enum Action {
    /// Replace its output by this value.
    Forward(Value),
    /// Make it this node; its output stays.
    Become(&'static str, Vec<Option<Value>>, Box<Attributes>),
    /// Make it this reduction of a value along axes.
    Reduce(&'static str, Value, Vec<i64>),
    /// Replace an input.
    Take(usize, Value),
    /// Make it a `Gather` of a value at these indices along an axis.
    Gather(Value, Tensor, i64),
    /// Make it an `Unsqueeze` of a value.
    Unsqueeze(Value, Vec<i64>),
    /// Make it a `Slice` of a value, with these starts, ends, axes and steps.
    Slice(Value, [Vec<i64>; 4]),
    /// Make it a `Squeeze` of a value.
    Squeeze(Value, Vec<i64>),
    /// Let these values be computed from a source, not from a transpose or reshape of it: the first
    /// of them is the node's operand, the last one is computed from the source. Then do this.
    Meet(Vec<Value>, Value, Box<Action>),
    /// Make it a `Reshape` of a value to these sizes, of which at most one is -1.
    Reshape(Value, Vec<i64>),
}

/// What a rule sees: a node with one output.
pub(super) struct NodeView<'a> {
    pub model: &'a Model,
    pub node: &'a Node,
    /// Named constants of more bytes are not read to see whether they change anything.
    pub weights: usize,
}

impl<'a> NodeView<'a> {
    /// The same for the node that computes a value, if it has one output and is one of ONNX's own
    /// operators.
    pub fn producer(&self, value: Value) -> Option<NodeView<'a>> {
        let node = &self.model[self.model.producer(value)?];
        (node.domain.is_empty() && node.outputs().len() == 1).then_some(NodeView {
            model: self.model,
            node,
            weights: self.weights,
        })
    }

    /// Whether a `Transpose` keeps the order of elements: only dimensions of size 1 move.
    pub fn moves_ones(&self) -> Option<bool> {
        let shape = self.shape(self.node.input(0)?)?;
        let perm = self.perm()?;
        let is_one = |p: i64| shape.get(p as usize).and_then(|d| d.as_int()) == Some(1);
        Some(perm.into_iter().filter(|&p| !is_one(p)).is_sorted())
    }

    /// How a `Transpose` moves dimensions.
    pub fn perm(&self) -> Option<Vec<i64>> {
        analysis::perm(self.model, self.node)
    }

    pub fn output(&self) -> Value {
        self.node.outputs()[0]
    }

    /// Whether one node, or one output of the graph, uses a value, and no other.
    pub fn is_used_once(&self, value: Value) -> bool {
        self.model[value].uses().len() == 1
    }

    /// Sizes, if the rank is known.
    pub fn shape(&self, value: Value) -> Option<&'a Shape> {
        analysis::shape(self.model, value)
    }

    pub fn dtype(&self, value: Value) -> Option<DType> {
        analysis::dtype(self.model, value)
    }

    /// Whether both are known to have the same sizes.
    pub fn same_shape(&self, a: Value, b: Value) -> bool {
        match (self.shape(a), self.shape(b)) {
            (Some(a), Some(b)) => a == b && a.iter().all(known),
            _ => false,
        }
    }

    /// Whether it is a `Reshape` whose sizes [are chosen](analysis::are_chosen) at run time.
    pub fn checks_sizes(&self) -> bool {
        let sizes = self.node.input(1).filter(|_| self.node.is("Reshape"));
        sizes.is_some_and(|sizes| analysis::are_chosen(self.model, sizes))
    }

    /// The elements of an integer constant.
    pub fn ints(&self, input: usize) -> Option<Vec<i64>> {
        self.model.const_ints(self.node.input(input)?)
    }
}
