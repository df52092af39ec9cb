//! The graph that a pass works on.

use crate::budget::{Budget, Walk};
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
    /// When the pass that works on the graph has to stop.
    pub(crate) budget: Budget,
}

impl<'m> GraphMut<'m> {
    /// The main graph of a model.
    pub fn main(model: &'m mut Model) -> Self {
        let opset = model.opset;
        Self::of(model, Model::MAIN, opset)
    }

    pub(crate) fn of(model: &'m mut Model, region: RegionId, opset: u32) -> Self {
        Self { model, region, opset, budget: Budget::UNLIMITED }
    }

    /// A walk over the graph's nodes in order, which a pass should prefer to
    /// [`nodes`](Self::nodes): it ends if the pass has to stop.
    pub fn walk(&self) -> Walk {
        self.walk_over(self.nodes())
    }

    /// Calls `change` for each node that is still there. Whether one was changed: `Some`.
    pub(crate) fn change_each(
        &mut self,
        mut change: impl FnMut(&mut Model, NodeId) -> Option<()>,
    ) -> Changed {
        let mut changed = false;
        let mut walk = self.walk();
        while let Some(id) = walk.next(self.model) {
            changed |= self.model.contains(id) && change(self.model, id).is_some();
        }
        changed
    }

    /// A walk over what was found in the graph.
    pub(crate) fn walk_over<T>(&self, items: Vec<T>) -> Walk<T> {
        Walk::new(items, self.budget)
    }

    /// The graph's nodes in order. A node comes before the nodes of its bodies.
    pub fn nodes(&self) -> Vec<NodeId> {
        self.model.nodes_in(&[self.region])
    }
}
