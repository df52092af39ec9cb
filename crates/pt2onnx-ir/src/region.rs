//! Regions: ordered lists of nodes with inputs and outputs.

use crate::{
    ids::{NodeId, OriginId, RegionId, Value},
    origin::{Metadata, Name},
};
use smallvec::SmallVec;
use std::sync::Arc;

/// An ordered list of nodes with inputs and outputs.
#[derive(Clone, Debug, Default)]
pub struct Region {
    /// Name of a body; if `None`, the writer makes one. The name of the main graph is
    /// [`Model::name`](crate::Model::name).
    pub name: Option<Name>,
    /// Documentation.
    pub doc_string: Option<Arc<str>>,
    /// `metadata_props` of a body. Those of the main graph are
    /// [`Model::graph_metadata`](crate::Model::graph_metadata).
    pub metadata: Metadata,
    pub(crate) inputs: Vec<Value>,
    pub(crate) outputs: Vec<Output>,
    pub(crate) first: Option<NodeId>,
    pub(crate) last: Option<NodeId>,
}

impl Region {
    /// Inputs in order.
    pub fn inputs(&self) -> &[Value] {
        &self.inputs
    }

    /// Output slots in order.
    pub fn outputs(&self) -> &[Output] {
        &self.outputs
    }

    /// The values in the output slots, in order.
    pub fn output_values(&self) -> impl ExactSizeIterator<Item = Value> + '_ {
        self.outputs.iter().map(|output| output.value)
    }
}

/// An output slot of a region. It may hold any value, and several slots may hold the same value.
///
/// ONNX demands more: outputs are distinct values, made by nodes of the region.
/// [`Model::assign_names`](crate::Model::assign_names) inserts an `Identity` where this is not so.
#[derive(Clone, Debug)]
pub struct Output {
    /// Name of the output; `None` if it is the value's own name.
    pub name: Option<Name>,
    pub(crate) value: Value,
    /// Set if another value was in the slot before, or if the value needs a copy.
    pub(crate) copy: Option<PlannedCopy>,
}

/// An `Identity` that will make an output, unless the value in the slot can then be the output
/// itself.
#[derive(Clone, Debug)]
pub(crate) struct PlannedCopy {
    /// The value that the copy will make: the one that was in the slot before, or a new one.
    pub result: Value,
    /// The origins of the copy.
    pub origins: SmallVec<[OriginId; 1]>,
}

impl Output {
    /// The value in the slot.
    pub fn value(&self) -> Value {
        self.value
    }

    /// Whether the value can be written as the output. If not,
    /// [`Model::finish_outputs`](crate::Model::finish_outputs) must be called first.
    pub fn is_finished(&self) -> bool {
        self.name.is_none() && self.copy.is_none()
    }
}

/// Where to put a new node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertPoint {
    /// After all nodes of a region.
    End(RegionId),
    /// Before a node, which must not have been erased: adding a node there would panic.
    Before(NodeId),
}
