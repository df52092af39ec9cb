//! Applies the clean-up rules to each node.

use super::{
    broadcast, chain, concat_of_slices, gather_slice, identity_elimination, infer_reshape_dim,
    keepdims, nan_guards,
    node_view::{Action, NodeView},
    reshape_transpose, rnn_initial_state, sequences, sink_transpose, unit_dims,
};
use crate::{
    analysis::users,
    graph::{Changed, GraphMut},
    pass::Options,
    pool, rewrite,
};
use pt2onnx_ir::{Attributes, Model, Node, NodeId, Type, Value};
use pt2onnx_tensor::Tensor;
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

pub(crate) fn run(graph: &mut GraphMut<'_>, options: &Options) -> Changed {
    let (nodes, opset) = (graph.nodes(), graph.opset);
    let model = &mut *graph.model;
    let found = pool::find(&nodes, |id| may_change(model, id, options).then_some(()));
    if found.is_empty() {
        return false;
    }
    let mut found = found.into_iter().peekable();
    // Users of what was changed: in order, so that one walk merges a whole chain.
    let mut after = FxHashSet::default();
    let mut changed = false;
    for (place, id) in nodes.into_iter().enumerate() {
        let found = found.next_if(|(at, _)| *at == place).is_some();
        if !(found || after.contains(&id)) || !model.contains(id) || model.is_unused(id) {
            continue;
        }
        let users: SmallVec<[NodeId; 4]> = users(model, id).collect();
        if visit(model, id, opset, options) {
            changed = true;
            after.extend(users);
        }
    }
    changed
}

/// Applies the rules to a node.
fn visit(model: &mut Model, id: NodeId, opset: u32, options: &Options) -> Changed {
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
    if keepdims::run(model, id, options) {
        return true;
    }
    action(model, id, options).is_some_and(|action| apply(model, id, action)) || changed
}

/// Whether the walk may change a node, as the graph is now.
fn may_change(model: &Model, id: NodeId, options: &Options) -> bool {
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
            && (keepdims::applies(model, id, options) || action(model, id, options).is_some())
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

/// What the rules that look at nodes of one output say.
fn action(model: &Model, id: NodeId, options: &Options) -> Option<Action> {
    let seen = NodeView { model, node: &model[id], weights: options.max_neutral_bytes };
    identity_elimination::rule(&seen)
        .map(Action::Forward)
        .or_else(|| chain::rule(&seen))
        .or_else(|| reshape_transpose::rule(&seen))
        .or_else(|| concat_of_slices::reshaped(&seen))
        .or_else(|| gather_slice::rule(&seen))
        .or_else(|| sink_transpose::rule(&seen))
        .or_else(|| broadcast::rule(&seen))
        .or_else(|| unit_dims::rule(&seen))
        .or_else(|| nan_guards::rule(&seen))
        .or_else(|| infer_reshape_dim::rule(&seen))
}

fn apply(model: &mut Model, id: NodeId, action: Action) -> Changed {
    match action {
        Action::Forward(value) => return rewrite::bypass(model, id, value),
        Action::Become(op, inputs, attributes) => {
            match op {
                "Concat" => join_all_origins(model, id, &inputs),
                _ => join_origins(model, id, inputs.first().copied().flatten()),
            }
            rewrite::become_node(model, id, op, &inputs, *attributes)
        }
        Action::Reduce(op, x, axes) => {
            join_origins(model, id, Some(x));
            let axes = model.add_constant(Tensor::vector(&axes));
            let attributes = model[id].attributes.clone();
            rewrite::become_node(model, id, op, &[Some(x), Some(axes)], attributes);
        }
        Action::Gather(x, indices, axis) => {
            join_origins(model, id, Some(x));
            let indices = model.add_constant(indices);
            let attributes = Attributes::from_iter([("axis".into(), axis.into())]);
            rewrite::become_node(model, id, "Gather", &[Some(x), Some(indices)], attributes);
        }
        Action::Unsqueeze(x, axes) => {
            join_origins(model, id, Some(x));
            let axes = model.add_constant(Tensor::vector(&axes));
            rewrite::become_node(model, id, "Unsqueeze", &[Some(x), Some(axes)], Attributes::new());
        }
        Action::Slice(x, bounds) => {
            join_origins(model, id, Some(x));
            let bounds = bounds.map(|b| Some(model.add_constant(Tensor::vector(&b))));
            let inputs: Vec<_> = std::iter::once(Some(x)).chain(bounds).collect();
            rewrite::become_node(model, id, "Slice", &inputs, Attributes::new());
        }
        Action::Squeeze(x, axes) => {
            join_origins(model, id, Some(x));
            let axes = model.add_constant(Tensor::vector(&axes));
            rewrite::become_node(model, id, "Squeeze", &[Some(x), Some(axes)], Attributes::new());
        }
        Action::Meet(between, source, action) => {
            meet(model, &between, source);
            return apply(model, id, *action);
        }
        Action::Take(input, value) => return model.replace_input(id, input, Some(value)),
        Action::Reshape(x, sizes) => {
            join_origins(model, id, Some(x));
            let sizes = model.add_constant(Tensor::vector(&sizes));
            rewrite::become_node(model, id, "Reshape", &[Some(x), Some(sizes)], Attributes::new());
        }
    }
    true
}

/// Lets values be computed from the operand of the node that the last one is computed from.
fn meet(model: &mut Model, between: &[Value], source: Value) {
    let shape = model[source].ty.as_ref().and_then(|t| t.as_tensor()?.shape.clone());
    for &value in between {
        if let Some(Type::Tensor(t)) = &mut model[value].ty {
            t.shape = shape.clone();
        }
    }
    let first = between.last().and_then(|&v| model.producer(v));
    if let Some(first) = first {
        let from = |v: Option<Value>| {
            let made = v.and_then(|v| model.producer(v));
            made.is_some_and(|made| model[made].input(0) == Some(source))
        };
        let at = model[first].inputs().iter().position(|&v| from(v));
        model.replace_input(first, at.unwrap_or(0), Some(source));
    }
}

/// If a node takes the input of the node before it, it does that node's work too, and gets its
/// origins.
fn join_origins(model: &mut Model, id: NodeId, source: Option<Value>) {
    let input = model[id].input(0);
    if input != source
        && let Some(skipped) = input.and_then(|v| model.producer(v))
    {
        model.merge_origins(id, skipped);
    }
}

/// As [`join_origins`], of a node that takes the operands of any number of nodes before it.
fn join_all_origins(model: &mut Model, id: NodeId, taken: &[Option<Value>]) {
    let taken: FxHashSet<Value> = taken.iter().copied().flatten().collect();
    let mut open = vec![id];
    while let Some(node) = open.pop() {
        model.merge_origins(id, node);
        let skipped = model[node].inputs().iter().flatten().filter(|v| !taken.contains(v));
        open.extend(skipped.filter_map(|&v| model.producer(v)));
    }
}
