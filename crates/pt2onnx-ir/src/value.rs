//! Values: inputs, constants, and outputs of nodes.

use crate::{
    ids::{NodeId, RegionId},
    origin::{Metadata, Name},
    types::Type,
    uses::{Use, Uses},
};
use pt2onnx_tensor::Tensor;
use std::sync::Arc;

/// The definition of a value.
#[derive(Clone, Debug)]
pub enum Def {
    /// An output of a node, and its position.
    Node(NodeId, u32),
    /// An input of a region, and its position.
    Input(RegionId, u32),
    /// A constant tensor. It is written as an initialiser.
    Constant(Tensor),
}

/// A value: its name, type, definition and uses.
#[derive(Clone, Debug)]
pub struct ValueData {
    /// Its name. [`Model::assign_names`](crate::Model::assign_names) names values that have none.
    /// The empty name marks an output of a node that is not used and not written.
    pub name: Option<Name>,
    /// Its type, if known.
    pub ty: Option<Type>,
    /// `metadata_props`, which are written for inputs, outputs and initialisers.
    pub metadata: Metadata,
    /// Documentation, which is written for inputs, outputs and initialisers.
    pub doc_string: Option<Arc<str>>,
    /// The default of an input of the main graph.
    pub default: Option<Box<Tensor>>,
    pub(crate) def: Def,
    pub(crate) uses: Uses,
}

impl ValueData {
    /// Its definition.
    pub fn def(&self) -> &Def {
        &self.def
    }

    /// Where it is used.
    pub fn uses(&self) -> impl ExactSizeIterator<Item = Use> + '_ {
        self.uses.as_slice().iter().copied()
    }

    /// The only input of a node that uses it, if nothing else does.
    pub fn only_use(&self) -> Option<(NodeId, usize)> {
        match self.uses.as_slice() {
            [one] => one.input(),
            _ => None,
        }
    }

    /// Whether it is an output of a region.
    pub fn is_output(&self) -> bool {
        self.uses().any(|at| at.input().is_none())
    }

    /// Whether the output is left out of its node. Some operators compute something else if an
    /// output is there.
    pub fn is_left_out(&self) -> bool {
        self.uses().len() == 0 && self.name.as_deref() == Some("")
    }

    /// The tensor, if it is a constant.
    pub fn constant(&self) -> Option<&Tensor> {
        match &self.def {
            Def::Constant(t) => Some(t),
            _ => None,
        }
    }
}
