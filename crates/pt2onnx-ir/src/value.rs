//! Values: inputs, constants, and outputs of nodes.

use crate::{
    ids::{NodeId, RegionId},
    origin::{Metadata, Name},
    types::Type,
    uses::{Use, Uses},
};
use pt2onnx_tensor::Tensor;
use std::sync::Arc;

/// What defines a value.
#[derive(Clone, Debug)]
pub enum Def {
    /// Output `1` of a node.
    Node(NodeId, u32),
    /// Input `1` of a region.
    Input(RegionId, u32),
    /// A known tensor: an initialiser when written.
    Constant(Tensor),
}

/// What is known of a value.
#[derive(Clone, Debug)]
pub struct ValueData {
    /// Its name. [`Model::assign_names`](crate::Model::assign_names) gives one to each value without. The empty name is
    /// that of a node's output which nothing uses and which is left out of the file.
    pub name: Option<Name>,
    /// Its type, if known.
    pub ty: Option<Type>,
    /// For `metadata_props` of inputs, outputs and initialisers.
    pub metadata: Metadata,
    /// Documentation of an input, output or initialiser.
    pub doc_string: Option<Arc<str>>,
    /// For an input of the main graph: its value if the caller gives none.
    pub default: Option<Box<Tensor>>,
    pub(crate) def: Def,
    pub(crate) uses: Uses,
}

impl ValueData {
    /// What defines it.
    pub fn def(&self) -> &Def {
        &self.def
    }

    /// Where it is used.
    pub fn uses(&self) -> impl ExactSizeIterator<Item = Use> + '_ {
        self.uses.as_slice().iter().copied()
    }

    /// Whether its node leaves this output out. Some operators compute something else if all outputs are wanted.
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
