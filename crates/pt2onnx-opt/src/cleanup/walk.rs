//! Applies the clean-up rules to each node.

use super::{
    broadcast, chain, concat_of_slices, gather_slice, identity_elimination, infer_reshape_dim,
    keepdims::Keepdims, nan_guards, node_view::NodeView, reshape_transpose, rnn_initial_state,
    sequences, sink_transpose, unit_dims,
};
use crate::{Changed, GraphMut, Options, analysis::users, pool, rewrite::Rewrite};
use pt2onnx_ir::{Model, Node, NodeId};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

pub(super) fn run(graph: &mut GraphMut<'_>, options: &Options) -> Changed {
    let (nodes, opset) = (graph.nodes(), graph.opset);
    let mut walk = graph.walk_over(nodes.iter().copied().enumerate().collect());
    let model = &mut *graph.model;
    let keepdims = Keepdims::new(options);
    let found = pool::find(&nodes, |id| may_change(model, id, options, &keepdims).then_some(()));
    if found.is_empty() {
        return false;
    }
    let mut found = found.into_iter().peekable();
    // Users of changed nodes: in order, so that one walk merges a whole chain.
    let mut after = FxHashSet::default();
    let mut changed = false;
    while let Some((place, id)) = walk.next(model) {
        let found = found.next_if(|(at, _)| *at == place).is_some();
        if !(found || after.contains(&id)) || !model.contains(id) || model.is_unused(id) {
            continue;
        }
        let users: SmallVec<[NodeId; 4]> = users(model, id).collect();
        if visit(model, id, opset, options, &keepdims) {
            changed = true;
            keepdims.forget();
            after.extend(users);
        }
    }
    changed
}

fn visit(
    model: &mut Model,
    id: NodeId,
    opset: u32,
    options: &Options,
    keepdims: &Keepdims,
) -> Changed {
    let mut changed = rnn_initial_state::run(model, id);
    if !model[id].domain.is_empty() {
        return changed;
    }
    changed |= drop_left_out(model, id);
    if sequences::run(model, id, opset) {
        changed = true;
        if !model.contains(id) {
            return true;
        }
    }
    if let Some((x, output)) = identity_elimination::dropout(model, &model[id]) {
        model.replace_all_uses(output, x);
        return true;
    }
    if model[id].outputs().len() != 1 {
        return changed;
    }
    if keepdims.run(model, id) {
        return true;
    }
    rewrite(model, id, options).is_some_and(|rewrite| rewrite.apply(model)) || changed
}

/// Whether the walk may change a node in the current graph.
fn may_change(model: &Model, id: NodeId, options: &Options, keepdims: &Keepdims) -> bool {
    if model.is_unused(id) {
        return false;
    }
    let node = &model[id];
    rnn_initial_state::concern(node)
        || sequences::concern(node)
        || node.domain.is_empty() && ends_left_out(node)
        || node.domain.is_empty() && identity_elimination::dropout(model, node).is_some()
        || node.domain.is_empty()
            && node.outputs().len() == 1
            && (keepdims.applies(model, id) || rewrite(model, id, options).is_some())
}

/// Whether the last input of a node is there but left out.
fn ends_left_out(node: &Node) -> bool {
    node.inputs().last() == Some(&None)
}

/// Removes inputs that are left out if no others come after them.
fn drop_left_out(model: &mut Model, id: NodeId) -> Changed {
    let ends = ends_left_out(&model[id]);
    if ends {
        let given = Node::given(model[id].inputs()).to_vec();
        model.set_inputs(id, &given);
    }
    ends
}

fn rewrite(model: &Model, id: NodeId, options: &Options) -> Option<Rewrite> {
    let n = NodeView::of(model, id, options.max_neutral_bytes)?;
    identity_elimination::rule(&n)
        .map(|value| n.replace_with(value))
        .or_else(|| chain::rule(&n))
        .or_else(|| reshape_transpose::rule(&n))
        .or_else(|| concat_of_slices::reshaped(&n))
        .or_else(|| gather_slice::rule(&n))
        .or_else(|| sink_transpose::rule(&n))
        .or_else(|| broadcast::rule(&n))
        .or_else(|| unit_dims::rule(&n))
        .or_else(|| nan_guards::rule(&n))
        .or_else(|| infer_reshape_dim::rule(&n))
}
