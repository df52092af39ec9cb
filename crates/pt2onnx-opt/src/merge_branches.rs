//! Merging the branches of `If`s: what both begin with comes before, what both end with behind.

use crate::{GraphMut, Options, dead, fold_control_flow, tail_merge};
use pt2onnx_ir::Model;

/// How often all nodes are visited at most.
const MAX_ROUNDS: usize = 16;

/// Moves nodes that both branches of an `If` of the main graph begin or end with before and behind
/// it, as the passes `fold-control-flow` and `tail-merge` do, whatever the opset: equal nodes mean
/// the same. Removes nodes that nothing uses.
pub fn merge_branches(model: &mut Model) {
    for _ in 0..MAX_ROUNDS {
        let mut changed = false;
        // Inner nodes first: what they share may be shared by the branch around them.
        for id in model.graph_nodes().into_iter().rev() {
            pt2onnx_cancel::check();
            if model.contains(id) && model[id].is("If") && !model.is_unused(id) {
                changed |= fold_control_flow::share_heads(model, id);
                changed |= tail_merge::merge(model, id);
            }
        }
        (dead::DEAD).run(&mut GraphMut::main(model), &Options::default());
        if !changed {
            break;
        }
    }
}
