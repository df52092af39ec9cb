//! The walk of the clean-up.

use super::{
    broadcast, chain, noop, parts,
    seen::{Action, Seen},
};
use crate::{
    graph::{Changed, GraphMut},
    pass::Options,
    rewrite,
};
use pt2onnx_ir::{Attributes, Model, NodeId, Value};
use pt2onnx_tensor::Tensor;

pub(crate) fn run(graph: &mut GraphMut<'_>, _: &Options) -> Changed {
    let mut changed = false;
    let nodes = graph.nodes();
    let model = &mut *graph.model;
    // In order, so that one walk merges a whole chain.
    for id in nodes {
        if !model.contains(id)
            || model[id].outputs().len() != 1
            || !model[id].domain.is_empty()
            || model.is_unused(id)
        {
            continue;
        }
        let seen = Seen { model, node: &model[id] };
        let action = noop::rule(&seen)
            .map(Action::Forward)
            .or_else(|| chain::rule(&seen))
            .or_else(|| parts::reshaped(&seen))
            .or_else(|| broadcast::rule(&seen));
        if let Some(action) = action {
            changed |= apply(model, id, action);
        }
    }
    changed
}

fn apply(model: &mut Model, id: NodeId, action: Action) -> Changed {
    match action {
        Action::Forward(value) => return rewrite::bypass(model, id, value),
        Action::Become(op, inputs, attributes) => {
            join_origins(model, id, inputs.first().copied().flatten());
            rewrite::become_node(model, id, op, &inputs, *attributes)
        }
        Action::Reduce(op, x, axes) => {
            join_origins(model, id, Some(x));
            let axes = model.add_constant(Tensor::vector(&axes));
            let attributes = model[id].attributes.clone();
            rewrite::become_node(model, id, op, &[Some(x), Some(axes)], attributes);
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

/// If a node takes the input of the node before it, it does that node's work too, and gets its origins.
fn join_origins(model: &mut Model, id: NodeId, source: Option<Value>) {
    let input = model[id].input(0);
    if input != source
        && let Some(skipped) = input.and_then(|v| model.producer(v))
    {
        model.merge_origins(id, skipped);
    }
}
