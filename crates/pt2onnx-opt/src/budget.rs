//! The budget of a pass: how many edits of the graph it may make, and the walk that ends with it.

use pt2onnx_ir::{Model, NodeId};
use std::vec::IntoIter;

/// A pass may make so many edits of any graph, and in one run
const LEAST_EDITS: u64 = 1 << 16;

/// so many for each node of the graph. Passes that take time linear in the size of the graph make
/// few.
const EDITS_OF_NODE: u64 = 1 << 9;

/// When a pass has to stop. Every walk over a graph asks it before the next node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    /// The last of the [edits](Model::edits) that are allowed.
    last: u64,
}

impl Budget {
    /// The budget of work that no pass does.
    pub const UNLIMITED: Self = Self { last: u64::MAX };

    /// The budget of a pass that starts now, over a graph that had so many nodes.
    pub fn of_pass(model: &Model, nodes: usize) -> Self {
        let most = EDITS_OF_NODE.saturating_mul(nodes as u64).saturating_add(LEAST_EDITS);
        Self { last: model.edits().saturating_add(most) }
    }

    /// Whether the pass has to stop before its next node.
    pub fn is_spent(self, model: &Model) -> bool {
        model.edits() > self.last
    }
}

/// A walk over the nodes of a graph, or over groups of them, which can be cancelled. It ends early
/// if the pass has to stop: after more edits than a multiple of the size of the graph.
///
/// ```
/// use pt2onnx_opt::{GraphMut, bypass};
///
/// fn remove_identities(graph: &mut GraphMut<'_>) {
///     let mut walk = graph.walk();
///     while let Some(id) = walk.next(graph.model) {
///         let node = &graph.model[id];
///         if node.is("Identity") && let Some(x) = node.input(0) {
///             bypass(graph.model, id, x);
///         }
///     }
/// }
/// ```
#[derive(Debug)]
pub struct Walk<T = NodeId> {
    rest: IntoIter<T>,
    budget: Budget,
}

impl<T> Walk<T> {
    pub(crate) fn new(items: Vec<T>, budget: Budget) -> Self {
        Self { rest: items.into_iter(), budget }
    }

    /// The next node; `None` at the end, or if the pass has to stop.
    pub fn next(&mut self, model: &Model) -> Option<T> {
        pt2onnx_cancel::check();
        self.rest.next().filter(|_| !self.budget.is_spent(model))
    }
}
