//! The graph that a pass works on.

use pt2onnx_ir::{Model, NodeId, RegionId};

/// Whether a pass changed the model.
pub type Changed = bool;

/// The graph that a pass works on: the main graph or a function's body, with the bodies of its
/// nodes.
///
/// While passes run, every node of ONNX's own domain means what its operator means at
/// [`CANONICAL_OPSET`](pt2onnx_ir::schema::CANONICAL_OPSET). Nodes that do not are opaque: they are
/// in another domain until all passes are done.
#[derive(Debug)]
pub struct GraphMut<'m> {
    /// The model that holds the graph.
    pub model: &'m mut Model,
    /// The graph's region.
    pub region: RegionId,
    /// The opset of the graph's nodes; a function may import another one than the model.
    pub opset: u32,
}

impl<'m> GraphMut<'m> {
    /// The main graph of a model.
    pub fn main(model: &'m mut Model) -> Self {
        let opset = model.opset;
        Self { model, region: Model::MAIN, opset }
    }

    /// The graph's nodes in order. A node comes before the nodes of its bodies.
    pub fn nodes(&self) -> Vec<NodeId> {
        self.model.nodes_in(&[self.region])
    }
}
