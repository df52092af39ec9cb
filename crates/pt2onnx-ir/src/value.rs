//! Values: inputs, constants, and outputs of nodes.

use crate::{
    ids::{NodeId, RegionId},
    origin::{Metadata, Name},
    types::Type,
    uses::{Use, Uses},
};
use pt2onnx_tensor::Tensor;
use std::sync::Arc;

/// Where a value comes from.
#[derive(Clone, Debug)]
pub enum Def {
    /// Output `1` of a node.
    Node(NodeId, u32),
    /// Input `1` of a region.
    Input(RegionId, u32),
    /// A known tensor: an initialiser when written.
    Constant(Tensor),
}

/// All about a value.
#[derive(Clone, Debug)]
pub struct ValueData {
    /// Its name; unnamed ones get one before the model is written. An output of a node that nothing uses may be left out
    /// of the file: its name is empty then.
    pub name: Option<Name>,
    /// Its type, if known.
    pub ty: Option<Type>,
    /// For `metadata_props` of inputs, outputs and initialisers.
    pub metadata: Metadata,
    /// Words about an input, output or initialiser.
    pub doc_string: Option<Arc<str>>,
    /// For an input of the main graph: what it is where the caller gives nothing.
    pub default: Option<Box<Tensor>>,
    pub(crate) def: Def,
    pub(crate) uses: Uses,
}

impl ValueData {
    /// Where it comes from.
    pub fn def(&self) -> &Def {
        &self.def
    }

    /// Where it is used.
    pub fn uses(&self) -> impl ExactSizeIterator<Item = Use> + '_ {
        self.uses.as_slice().iter().copied()
    }

    /// Whether it is an output that its node leaves out: some operators do other things where all are wanted.
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
