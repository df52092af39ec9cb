//! Lets `Attention` append new keys and values to a cache, in place of `Concat`.

use crate::{Changed, GraphMut, Options, analysis::known, rewrite};
use pt2onnx_ir::{InsertPoint, Model, NodeId, Use, Value, attrs};

/// Replaces the `Concat` of past and new keys, and that of values, by inputs and outputs of
/// `Attention`, if they are outputs of the graph and nothing else uses them.
pub(super) fn run(graph: &mut GraphMut<'_>, _: &Options) -> Changed {
    let mut changed = false;
    let mut walk = graph.walk();
    while let Some(id) = walk.next(graph.model) {
        let model = &mut *graph.model;
        let node = &model[id];
        let plain = node.is("Attention")
            && node.outputs().len() == 1
            && node.inputs().len() <= 4
            && attrs::Attention::read(node).is_ok_and(|a| !a.is_causal);
        let joined = plain.then(|| {
            let queries = node.input(0)?;
            Some((appended(model, (id, 1), queries)?, appended(model, (id, 2), queries)?))
        });
        let Some(([past_key, key], [past_value, value])) = joined.flatten() else { continue };
        let old =
            [node.outputs()[0], node.inputs()[1].unwrap_or(key), node.inputs()[2].unwrap_or(value)];
        let mask = node.input(3);
        let inputs =
            [node.input(0), Some(key), Some(value), mask, Some(past_key), Some(past_value)];
        let (attributes, origins) = (node.attributes.clone(), node.origins.clone());
        let new = model.add_node(InsertPoint::Before(id), "Attention", &inputs, attributes, 3);
        model[new].origins = origins;
        let outputs = model[new].outputs().to_vec();
        for (old, new) in old.into_iter().zip(outputs) {
            let Some(maker) = model.producer(old) else { continue };
            if let Some(owner) = model.producer(new) {
                model.merge_origins(owner, maker);
            }
            rewrite::substitute(model, old, new);
            model.erase(maker);
        }
        changed = true;
    }
    changed
}

/// The two inputs of the `Concat` along the lengths that computes an input of a node, if it is an
/// output of the graph and no other node uses it.
pub(super) fn appended(
    model: &Model,
    (id, input): (NodeId, usize),
    queries: Value,
) -> Option<[Value; 2]> {
    let joined = model[id].input(input)?;
    let node = &model[model.producer(joined)?];
    let own = model[joined].uses().filter_map(Use::input).all(|at| at == (id, input));
    let here = node.is("Concat") && node.region() == model[id].region();
    let &[Some(past), Some(new)] = node.inputs() else { return None };
    let (new_sizes, queries) = (model.shape(new)?, model.shape(queries)?);
    let lengths = new_sizes.get(2)? == queries.get(2)? && known(&new_sizes[2]);
    let fits = here && own && model[joined].is_output() && lengths;
    (fits && matches!(attrs::Concat::axis(node), Ok(2 | -2))).then_some([past, new])
}
