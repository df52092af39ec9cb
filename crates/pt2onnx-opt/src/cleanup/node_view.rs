//! A node with what the clean-up rules ask of it, and the rewrites that they return.

use crate::{
    analysis::{self, known},
    rewrite::{NodeEdit, Operand, Rewrite},
};
use pt2onnx_ir::{Attributes, Model, Node, NodeId, Shape, Value};
use pt2onnx_tensor::DType;

/// A node with one output.
pub(super) struct NodeView<'a> {
    pub model: &'a Model,
    pub id: NodeId,
    pub node: &'a Node,
    /// Named constants of more bytes are not read to see whether they change anything.
    pub weights: usize,
}

impl<'a> NodeView<'a> {
    /// The view of a node, if it has one output and is one of ONNX's own operators.
    pub fn of(model: &'a Model, id: NodeId, weights: usize) -> Option<Self> {
        let node = &model[id];
        let own = node.domain.is_empty() && node.outputs().len() == 1;
        own.then_some(Self { model, id, node, weights })
    }

    /// The same for the node that computes a value.
    pub fn producer(&self, value: Value) -> Option<NodeView<'a>> {
        Self::of(self.model, self.model.producer(value)?, self.weights)
    }

    /// Replaces the output by a value.
    pub fn replace_with(&self, value: Value) -> Rewrite {
        Rewrite::replace(self.id, self.node.outputs(), [value])
    }

    /// Makes the node another one; its output stays.
    pub fn become_op(
        &self,
        op: &'static str,
        inputs: impl IntoIterator<Item = impl Into<Operand>>,
        attributes: Attributes,
    ) -> Rewrite {
        let inputs = inputs.into_iter().map(Into::into).collect();
        Rewrite::edit(self.id, NodeEdit::Become { op, inputs, attributes })
    }

    /// Makes the node one that has a constant of sizes or axes as its second input.
    pub fn become_view(&self, op: &'static str, x: Value, ints: &[i64]) -> Rewrite {
        self.become_op(op, [x.into(), Operand::ints(ints)], Attributes::new())
    }

    /// Makes the node a `Slice`, with these starts, ends, axes and steps.
    pub fn become_slice(&self, x: Value, bounds: [Vec<i64>; 4]) -> Rewrite {
        let bounds = bounds.iter().map(|ints| Operand::ints(ints));
        let inputs = std::iter::once(Operand::Value(x)).chain(bounds);
        self.become_op("Slice", inputs, Attributes::new())
    }

    /// Makes the node a `Gather` at these indices along an axis.
    pub fn become_gather(&self, x: Value, indices: impl Into<Operand>, axis: i64) -> Rewrite {
        let attributes = Attributes::from_iter([("axis".into(), axis.into())]);
        self.become_op("Gather", [x.into(), indices.into()], attributes)
    }

    /// Replaces an input of the node.
    pub fn set_input(&self, input: usize, value: Value) -> Rewrite {
        Rewrite::edit(self.id, NodeEdit::SetInput(input, value.into()))
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
        self.model.shape(value)
    }

    pub fn dtype(&self, value: Value) -> Option<DType> {
        self.model.dtype(value)
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
