//! Defines a node: its operator, inputs, outputs and attributes, and where it comes from.

use crate::{
    attribute::{Attribute, Attributes},
    ids::{OriginId, RegionId, Value},
    origin::Name,
    traits::Traits,
};
use pt2onnx_tensor::Tensor;
use smallvec::SmallVec;
use std::borrow::Cow;

/// A node.
#[derive(Clone, Debug)]
pub struct Node {
    pub(crate) op: Cow<'static, str>,
    /// The traits of `op` in the default domain.
    pub(crate) traits: Traits,
    /// Domain; empty for ONNX's own operators.
    pub domain: Cow<'static, str>,
    /// Overload of the function that it calls; mostly empty.
    pub overload: Cow<'static, str>,
    /// Attributes. Regions in them belong to this node alone. The nodes of a region that is taken
    /// out here still count as users of values:
    /// [`Model::set_attributes`](crate::Model::set_attributes) removes them.
    pub attributes: Attributes,
    /// Its name, if it has one.
    pub name: Option<Name>,
    /// The source nodes that it was made from. A fused node has several; the first is the one with
    /// the same result.
    pub origins: SmallVec<[OriginId; 1]>,
    pub(crate) inputs: SmallVec<[Option<Value>; 4]>,
    pub(crate) outputs: SmallVec<[Value; 2]>,
    pub(crate) region: RegionId,
}

impl Node {
    /// Operator type.
    pub fn op(&self) -> &str {
        &self.op
    }

    /// The traits of its operator; none outside the default domain.
    pub fn traits(&self) -> Traits {
        if self.domain.is_empty() { self.traits } else { Traits::empty() }
    }

    /// Inputs in order; `None` for an optional input that is left out.
    pub fn inputs(&self) -> &[Option<Value>] {
        &self.inputs
    }

    /// Inputs without those that are left out at the end.
    pub fn given(inputs: &[Option<Value>]) -> &[Option<Value>] {
        let end = inputs.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        inputs.get(..end).unwrap_or_default()
    }

    /// Input `index`, if given.
    pub fn input(&self, index: usize) -> Option<Value> {
        self.inputs.get(index).copied().flatten()
    }

    /// Outputs in order.
    pub fn outputs(&self) -> &[Value] {
        &self.outputs
    }

    /// The region it stands in.
    pub fn region(&self) -> RegionId {
        self.region
    }

    /// Whether it is the operator `op` of the default domain.
    pub fn is(&self, op: &str) -> bool {
        self.domain.is_empty() && self.op == op
    }

    /// The attribute of that name.
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        attribute(&self.attributes, name)
    }

    /// The integer attribute of that name.
    pub fn int(&self, name: &str) -> Option<i64> {
        match self.attribute(name) {
            Some(Attribute::Int(i)) => Some(*i),
            _ => None,
        }
    }

    /// The tensor that the attribute of a `Constant` is; `None` if it is of strings, or unknown.
    pub fn given_tensor(&self) -> Option<Tensor> {
        let [(_, value)] = self.attributes.as_slice() else {
            return None;
        };
        match value {
            Attribute::Tensor(t) => Some(t.clone()),
            Attribute::Int(i) => Some(Tensor::scalar(*i)),
            Attribute::Float(f) => Some(Tensor::scalar(*f)),
            Attribute::Ints(v) => Some(Tensor::vector(v)),
            Attribute::Floats(v) => Some(Tensor::vector(v)),
            _ => None,
        }
    }

    /// The regions it owns.
    pub fn regions(&self) -> impl Iterator<Item = RegionId> + '_ {
        self.attributes.iter().flat_map(|(_, a)| a.regions().iter().copied())
    }
}

/// The attribute of that name.
pub(crate) fn attribute<'a>(attributes: &'a Attributes, name: &str) -> Option<&'a Attribute> {
    attributes.iter().find(|(n, _)| n == name).map(|(_, a)| a)
}
