//! Runtimes that support a part of ONNX: which operators, which element types, within which limits.

use super::{error::Unrunnable, outputs::compute_outputs};
use crate::{
    analysis,
    casts::{bound, cast_around},
};
use pt2onnx_ir::{
    Model, Node, NodeId, Value, attrs,
    schema::{self, OpSchema, TypeSet},
};
use pt2onnx_tensor::{DType, Tensor};
use rustc_hash::FxHashMap;
use std::{ops::Range, sync::LazyLock};

/// The operators, types and limits of a runtime.
pub(super) struct Runtime {
    /// The newest opset that it reads.
    pub newest_opset: u32,
    /// Its operators, each with the element types of its data as bits of their discriminants.
    /// Indices, conditions and the like have the types of the standard.
    pub operators: LazyLock<FxHashMap<&'static str, u32>>,
    /// The limits of its operators.
    pub limits: &'static [Limit],
    /// The most dimensions of a value.
    pub max_rank: usize,
    /// Whether outputs must be those of nodes.
    pub computed_outputs: bool,
}

/// An operator, or "" for all, what is not supported, and whether it concerns a node.
pub(super) type Limit = (&'static str, &'static str, fn(&NodeView) -> bool);

pub(super) const fn types(dtypes: &[DType]) -> u32 {
    let (mut bits, mut i) = (0, 0);
    while i < dtypes.len() {
        bits |= 1 << dtypes[i] as u32;
        i += 1;
    }
    bits
}

/// Reads tables, each on top of those before it. A line of element types that ends in a colon goes
/// before the operators that take them; `as T: U` gives U to all operators so far that take T, and
/// `without: ...` takes operators out.
pub(super) fn operators(tables: &[&'static str]) -> FxHashMap<&'static str, u32> {
    let (mut operators, mut types) = (FxHashMap::default(), 0);
    let lines = tables.iter().flat_map(|table| table.lines());
    for line in lines.filter(|line| !line.starts_with('#')) {
        if let Some((like, more)) = line.strip_prefix("as ").and_then(|as_| as_.split_once(": ")) {
            let (like, more) = (named(like), named(more));
            operators.values_mut().filter(|all| **all & like != 0).for_each(|all| *all |= more);
        } else if let Some(lacking) = line.strip_prefix("without: ") {
            lacking.split(' ').for_each(|op| _ = operators.remove(op));
        } else if let Some(names) = line.strip_suffix(':') {
            types = named(names);
        } else {
            operators.extend(line.split_whitespace().map(|op| (op, types)));
        }
    }
    operators
}

/// The element types of these names.
fn named(names: &str) -> u32 {
    let known = DType::ALL.iter().filter(|d| names.split(' ').any(|n| n == d.name()));
    known.fold(0, |bits, &dtype| bits | 1 << dtype as u32)
}

impl Runtime {
    /// Inserts casts around nodes of booleans if the runtime wants numbers. Returns all other nodes
    /// that it cannot run.
    pub fn fit(&self, model: &mut Model) -> Vec<Unrunnable> {
        if self.computed_outputs {
            compute_outputs(model);
        }
        let mut failures = Vec::new();
        for id in model.nodes_in(&[Model::MAIN]) {
            let place = model.describe(id);
            if let Some(reason) = self.lacks(model, id) {
                failures.push(Unrunnable { place, reason });
                continue;
            }
            let Some(schema) = schema::lookup(model[id].op(), model.opset) else { continue };
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

    /// Why a node is not supported, whatever its types are.
    pub fn lacks(&self, model: &Model, id: NodeId) -> Option<String> {
        let node = &model[id];
        if !node.domain.is_empty() || !self.operators.contains_key(node.op()) {
            return Some(format!("the operator {} is not supported", node.op()));
        }
        let seen = NodeView { model, node };
        let concerns = |op: &str| op.is_empty() || op == node.op();
        let broken = self.limits.iter().find(|(op, _, is)| concerns(op) && is(&seen));
        if let Some((_, what, _)) = broken {
            return Some(format!("{} does not support {what}", node.op()));
        }
        let deep = node.outputs().iter().filter_map(|&v| seen.rank(v));
        let deepest = deep.max().filter(|&rank| rank > self.max_rank)?;
        Some(format!(
            "values of {deepest} dimensions are not supported, only of up to {}",
            self.max_rank
        ))
    }

    /// The type variables that are not supported: variable, type, and a wider one that is.
    fn gaps(
        &self,
        model: &Model,
        id: NodeId,
        schema: &OpSchema,
    ) -> Vec<(&'static str, DType, Option<DType>)> {
        let types = self.operators.get(model[id].op()).copied().unwrap_or_default();
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

pub(super) struct NodeView<'a> {
    pub model: &'a Model,
    pub node: &'a Node,
}

impl NodeView<'_> {
    pub fn rank(&self, value: Value) -> Option<usize> {
        self.model.rank(value)
    }

    /// The rank of the first input.
    pub fn first_rank(&self) -> Option<usize> {
        self.rank(self.node.input(0)?)
    }

    /// The size of a dimension of an input, if that is a known number.
    pub fn size(&self, input: usize, axis: usize) -> Option<i64> {
        self.model.shape(self.node.input(input)?)?.get(axis)?.as_int()
    }

    /// Whether all dimensions of an input are known numbers.
    pub fn is_static(&self, input: usize) -> bool {
        let shape = self.node.input(input).and_then(|v| self.model.shape(v));
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

    /// Whether one of these inputs is given and is not a constant.
    pub fn computes(&self, mut inputs: Range<usize>) -> bool {
        inputs.any(|input| self.computed(input))
    }

    /// Whether an input is a constant with a number below 0.
    pub fn is_below_zero(&self, input: usize) -> bool {
        let numbers = self.constant(input).and_then(|numbers| numbers.to_vec::<i64>());
        numbers.is_some_and(|numbers| numbers.iter().any(|&n| n < 0))
    }

    /// Whether its windows have gaps.
    pub fn is_dilated(&self) -> bool {
        let dilations = attrs::MaxPool::read(self.node).ok().and_then(|pool| pool.dilations);
        dilations.is_some_and(|all| all.iter().any(|&d| d != 1))
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
