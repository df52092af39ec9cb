//! Runtimes that support a part of ONNX: which operators, which element types, within which limits.

use super::error::Unrunnable;
use crate::{
    analysis,
    casts::{bound, cast_around},
};
use pt2onnx_ir::{
    Model, Node, NodeId, Value,
    schema::{self, OpSchema, TypeSet},
};
use pt2onnx_tensor::{DType, Tensor};

/// The operators, types and limits of a runtime.
pub(super) struct Runtime {
    /// The newest opset that it reads.
    pub newest_opset: u32,
    /// Its operators, sorted, each with the element types of its data as bits of their
    /// discriminants. Indices, conditions and the like have the types of the standard.
    pub operators: &'static [(&'static str, u32)],
    /// The limits of its operators.
    pub limits: &'static [Limit],
    /// The most dimensions of a value.
    pub max_rank: usize,
}

/// An operator, what is not supported, and whether that is the case for a node.
pub(super) type Limit = (&'static str, &'static str, fn(&NodeView) -> bool);

pub(super) const fn types(dtypes: &[DType]) -> u32 {
    let (mut bits, mut i) = (0, 0);
    while i < dtypes.len() {
        bits |= 1 << dtypes[i] as u32;
        i += 1;
    }
    bits
}

impl Runtime {
    /// Inserts casts around nodes of booleans if the runtime wants numbers. Returns all other nodes
    /// that it cannot run.
    pub fn fit(&self, model: &mut Model) -> Vec<Unrunnable> {
        let mut failures = Vec::new();
        for id in model.nodes_in(&[Model::MAIN]) {
            let place = model.describe(id);
            if let Some(reason) = self.lacks(model, id) {
                failures.push(Unrunnable { place, reason });
                continue;
            }
            let Some(schema) = schema::lookup(model[id].op(), model.opset) else {
                continue;
            };
            for (variable, from, to) in self.gaps(model, id, schema) {
                match to.filter(|_| from == DType::Bool) {
                    Some(to) => cast_around(model, id, schema, variable, from, to),
                    None => failures.push(Unrunnable {
                        place: place.clone(),
                        reason: format!("{} of {from} is not supported", model[id].op()),
                    }),
                }
            }
        }
        failures
    }

    fn operator(&self, op: &str) -> Option<u32> {
        let row = self.operators.binary_search_by_key(&op, |(name, _)| name);
        row.ok().map(|i| self.operators[i].1)
    }

    /// Why a node is not supported, whatever its types are.
    pub fn lacks(&self, model: &Model, id: NodeId) -> Option<String> {
        let node = &model[id];
        if !node.domain.is_empty() || self.operator(node.op()).is_none() {
            return Some(format!("the operator {} is not supported", node.op()));
        }
        let seen = NodeView { model, node };
        let broken = self.limits.iter().find(|(op, _, is)| *op == node.op() && is(&seen));
        if let Some((op, what, _)) = broken {
            return Some(format!("{op} does not support {what}"));
        }
        let deep = node.outputs().iter().filter_map(|&v| seen.rank(v));
        let deepest = deep.max().filter(|&rank| rank > self.max_rank)?;
        Some(format!(
            "values of {deepest} dimensions are not supported, only of up to {}",
            self.max_rank
        ))
    }

    /// The type variables of a node whose type is not supported: variable, its type, a wider one
    /// that is.
    fn gaps(
        &self,
        model: &Model,
        id: NodeId,
        schema: &OpSchema,
    ) -> Vec<(&'static str, DType, Option<DType>)> {
        let types = self.operator(model[id].op()).unwrap_or_default();
        // Type variables of data are those that allow floats.
        let data = schema.constraints.iter().filter(|c| c.types.has_tensor(DType::F32));
        let gap = |c: &schema::TypeConstraint| {
            let from = bound(model, id, schema, c.name)?;
            let here = TypeSet { tensor: c.types.tensor & types, ..c.types };
            (!here.has_tensor(from)).then(|| (c.name, from, here.widened(from)))
        };
        data.filter_map(gap).collect()
    }
}

/// A node, as limits see it.
pub(super) struct NodeView<'a> {
    model: &'a Model,
    pub node: &'a Node,
}

impl NodeView<'_> {
    pub fn rank(&self, value: Value) -> Option<usize> {
        analysis::rank(self.model, value)
    }

    /// Whether all dimensions of an input are known numbers.
    pub fn is_static(&self, input: usize) -> bool {
        let shape = self.node.input(input).and_then(|v| analysis::shape(self.model, v));
        shape.is_some_and(|shape| shape.iter().all(|d| d.is_static()))
    }

    /// An input, if it is a constant.
    pub fn constant(&self, input: usize) -> Option<&Tensor> {
        self.model[self.node.input(input)?].constant()
    }

    /// Whether an input is given and is not a constant.
    pub fn computed(&self, input: usize) -> bool {
        self.node.input(input).is_some() && self.constant(input).is_none()
    }

    /// Whether an input is left out or a constant of zeros.
    pub fn zero(&self, input: usize) -> bool {
        self.node.input(input).is_none() || self.constant(input).is_some_and(analysis::is_zero)
    }

    /// Whether an output is used.
    pub fn uses(&self, output: usize) -> bool {
        let output = self.node.outputs().get(output);
        output.is_some_and(|&v| self.model[v].uses().next().is_some())
    }
}
