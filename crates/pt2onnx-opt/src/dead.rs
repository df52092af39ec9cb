//! Dead nodes: those whose outputs nothing uses, in the main graph, in functions and in the bodies of nodes.

use crate::{Changed, Options};
use pt2onnx_ir::Model;

/// Users stand behind what they use, so one walk from the last node to the first finds all; a node comes before the
/// nodes of its bodies in [`Model::all_nodes`], so that bodies are done before their owner.
pub(crate) fn run(model: &mut Model, _: &Options) -> Changed {
    let mut changed = false;
    for node in model.all_nodes().into_iter().rev() {
        if model.contains(node) && model.is_unused(node) {
            changed |= model.erase(node);
        }
    }
    changed
}
