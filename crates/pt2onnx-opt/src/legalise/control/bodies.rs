//! Operators with bodies: `If` with results of different sizes, a `Loop` without a state, and
//! `SequenceMap`.

use crate::{
    legalise::{Emitted, Outcome, Rewritten, input},
    rewrite,
};
use pt2onnx_ir::{
    Attributes, Builder, InsertPoint, Model, Node, NodeId, RegionId, Type, Value, attrs, schema,
};
use pt2onnx_tensor::{DType, Tensor};

/// Both branches of the older form have results of the same sizes.
pub(crate) fn same_sizes(model: &mut Model, id: NodeId) -> Outcome {
    let results: Vec<Vec<Value>> =
        model[id].regions().map(|body| model[body].output_values().collect()).collect();
    let [yes, no] = results.as_slice() else {
        return Err("its branches are missing".into());
    };
    for (&yes, &no) in yes.iter().zip(no) {
        let Some((yes, no)) = model.shape(yes).zip(model.shape(no)) else { continue };
        let differ = |(a, b)| matches!((a, b), (Some(a), Some(b)) if a != b);
        let sizes = yes.iter().map(|d| d.as_int()).zip(no.iter().map(|d| d.as_int()));
        if yes.len() != no.len() || sizes.into_iter().any(differ) {
            return Err("branches with results of different sizes need a newer opset".into());
        }
    }
    Ok(Rewritten::InPlace)
}

/// The older form has a state: a number that stays.
pub(crate) fn with_state(model: &mut Model, id: NodeId) -> Outcome {
    let body = model[id].regions().next().ok_or("its body is missing")?;
    let mut inputs = model[id].inputs().to_vec();
    if inputs.len() > 2 {
        return Ok(Rewritten::InPlace);
    }
    let ty = Some(Type::tensor(DType::I64, []));
    inputs.resize(2, None);
    inputs.push(Some(model.add_constant(Tensor::scalar(0i64))));
    model.set_inputs(id, &inputs);
    let before = model.add_input(body, ty.clone());
    let place = InsertPoint::End(body);
    let copy = model.add_node(place, "Identity", &[Some(before)], Attributes::default(), 1);
    let after = model[copy].outputs()[0];
    let mut results: Vec<Value> = model[body].output_values().collect();
    results.insert(results.len().min(1), after);
    model.set_outputs(body, &results);
    let state = model.insert_output(id, 0);
    (model[after].ty, model[state].ty) = (ty.clone(), ty);
    Ok(Rewritten::InPlace)
}

pub(crate) fn over_items(cx: &Builder, node: &Node) -> Emitted {
    let body = node.regions().next().ok_or("its body is missing")?;
    let results: Vec<Value> = cx.model()[body].output_values().collect();
    let collected: Vec<Type> = { results.iter() }
        .map(|&v| Some(Type::Sequence(Box::new(cx.type_of(v)?))))
        .collect::<Option<_>>()
        .ok_or("the types of its results are not known")?;
    let empty: Vec<Value> = results
        .iter()
        .map(|&v| {
            let dtype = Some(schema::data_type(cx.dtype(v)));
            cx.sequence_empty(attrs::SequenceEmpty { dtype })
        })
        .collect();
    let mut types = vec![Type::tensor(DType::I64, []), Type::tensor(DType::Bool, [])];
    types.extend(collected);
    let whole = cx.region(&types, |v| {
        items(cx, node, body, v[0]);
        let going = cx.identity(v[1]);
        let lists = v[2..].iter().zip(moved(cx, body, going));
        let lists = lists.map(|(&list, item)| cx.sequence_insert(list, item, None));
        std::iter::once(going).chain(lists).collect()
    });
    let count = cx.sequence_length(input(node, 0)?);
    let always = cx.constant(Tensor::scalar(true));
    Ok(cx.loop_op(empty.len(), count, always, &empty, whole).to_vec())
}

/// The items at a place take the place of the body's inputs.
fn items(cx: &Builder, node: &Node, body: RegionId, place: Value) {
    let inside = cx.model()[body].inputs().to_vec();
    for (&item, &given) in inside.iter().zip(node.inputs().iter().flatten()) {
        let own = match cx.type_of(given) {
            Some(Type::Tensor(_)) => given,
            _ => cx.sequence_at(given, place),
        };
        cx.edit(|model| rewrite::substitute(model, item, own));
    }
}

/// Moves the nodes of a body before the node that makes `next`; returns the body's results.
fn moved(cx: &Builder, body: RegionId, next: Value) -> Vec<Value> {
    cx.edit(|model| {
        let results = model[body].output_values().collect();
        let nodes: Vec<NodeId> = model.nodes(body).collect();
        model.set_outputs(body, &[]);
        if let Some(next) = model.producer(next) {
            for node in nodes {
                model.move_before(node, next);
            }
        }
        results
    })
}
