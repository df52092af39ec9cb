//! Weights of recurrent layers: restored by `DequantizeLinear`, or codes that ONNX Runtime's
//! `DynamicQuantizeLSTM` multiplies.

use crate::{
    Axes, Cx, NewNode, Quantised, Weight,
    bytes::Tensors,
    dequantize::{Stored, add, saves},
};
use pt2onnx_ir::{InsertPoint, Model, NodeId, Value};
use pt2onnx_tensor::{DType, Tensor};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The inputs of a recurrent layer that are weights: those of its input and of its state.
const WEIGHTS: [usize; 2] = [1, 2];

/// The axes of a weight that only recurrent layers take: `[directions, gates, inputs]`.
pub(crate) fn axes(model: &Model, weight: &Weight) -> Option<Axes> {
    let own = |&(node, index): &(NodeId, usize)| {
        let node = &model[node];
        let recurrent = matches!(node.op(), "LSTM" | "GRU" | "RNN");
        recurrent && node.domain.is_empty() && WEIGHTS.contains(&index)
    };
    let all = !weight.uses.is_empty() && weight.uses.iter().all(own);
    (all && weight.tensor.rank() == 3).then_some(Axes { channel: 1, sum: 2 })
}

/// Makes each `LSTM` with two weights that are quantised a `DynamicQuantizeLSTM`.
pub(crate) fn replace(cx: &mut Cx<'_>, weights: &[Weight]) {
    let model = &*cx.edit.model;
    let own = weights.iter().filter(|weight| axes(model, weight).is_some());
    let own: FxHashMap<Value, &Weight> = own.map(|weight| (weight.value, weight)).collect();
    let mut nodes = model.graph_nodes();
    nodes.retain(|&node| model[node].is("LSTM") && model[node].int("layout").unwrap_or(0) == 0);
    let mut stored = FxHashMap::default();
    for node in nodes {
        // One that has no counterpart stays.
        let _: Option<()> = lstm(cx, node, &own, &mut stored);
    }
}

fn lstm(
    cx: &mut Cx<'_>,
    node: NodeId,
    weights: &FxHashMap<Value, &Weight>,
    stored: &mut FxHashMap<Value, Stored>,
) -> Option<()> {
    let mut inputs = cx.edit.model[node].inputs().to_vec();
    inputs.resize(8, None);
    let own = WEIGHTS.map(|at| inputs[at].and_then(|value| weights.get(&value).copied()));
    let [Some(input), Some(state)] = own else { return None };
    for weight in [input, state] {
        let fits = weight.tensor.has_data() && weight.dtype == DType::F32;
        if !fits || !saves(cx, weight, Some(1), None) {
            return None;
        }
    }
    for (at, weight) in WEIGHTS.into_iter().zip([input, state]) {
        let made = match stored.get(&weight.value) {
            Some(made) => *made,
            None => columns(cx, weight)?,
        };
        stored.insert(weight.value, made);
        inputs[at] = Some(made.codes);
        inputs.extend([Some(made.scales), made.zeros]);
    }
    let model = &mut *cx.edit.model;
    let olds = model[node].outputs().to_vec();
    let types = olds.iter().map(|&value| model[value].ty.clone()).collect::<Vec<_>>();
    let mut attributes = model[node].attributes.clone();
    attributes.retain(|(name, _)| name != "layout");
    let new = NewNode::of("DynamicQuantizeLSTM", inputs).ort().with(attributes);
    let news = cx.edit.add((InsertPoint::Before(node), Some(node)), new, types);
    let model = &mut *cx.edit.model;
    for (old, new) in olds.into_iter().zip(news) {
        model[new].name = model[old].name.take();
        model[new].metadata = std::mem::take(&mut model[old].metadata);
        model.replace_all_uses(old, new);
    }
    model.erase(node);
    Some(())
}

/// The codes of a weight as `[directions, inputs, gates]`; each gate has a scale in each direction.
fn columns(cx: &mut Cx<'_>, weight: &Weight) -> Option<Stored> {
    let &[directions, gates, inputs] = weight.tensor.shape() else { return None };
    let rows = weight.tensor.reshaped([directions * gates, inputs])?;
    let scheme = cx.scheme(weight);
    let made = Quantised::in_order(weight.name.clone(), rows, scheme, Some(0), None);
    let made = Arc::new(made);
    let Tensors { codes, scales, zeros } = Tensors::plain(&made).ok()?;
    let by_gate = [directions, gates];
    let zeros = match zeros {
        Some(zeros) => zeros.reshaped(by_gate)?,
        None => Tensor::new(scheme.dtype(), by_gate, vec![0; directions * gates]).ok()?,
    };
    let tensors = Tensors {
        codes: codes.reshaped([directions, gates, inputs])?.permuted(&[0, 2, 1])?,
        scales: scales.reshaped(by_gate)?,
        zeros: Some(zeros),
    };
    cx.note(weight, &made, tensors.nbytes());
    Some(add(&mut cx.edit, weight, tensors))
}
