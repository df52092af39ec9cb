//! Nodes that passes leave to ONNX Runtime: its own fusions replace more of them on loading.
//!
//! Its fusions look for certain nodes: a rewrite that takes one of them saves a node or two, and
//! costs a whole fused operator. They are left for every target: models of the target `standard`
//! run in ONNX Runtime, too, and for other runtimes they are a few nodes more.

use super::gelu::HALVED_GELU;
use crate::Pattern;
use pt2onnx_ir::{Model, NodeId, Value};
use std::sync::LazyLock;

/// Whether a value is the result of GELU as PyTorch's older exporter writes it, which ends in a
/// product with a half. The half does not go into the weight of what follows: ONNX Runtime makes
/// `BiasGelu` of the GELUs of transformers.
pub(super) fn is_halved_gelu(model: &Model, value: Value) -> bool {
    static FORMULA: LazyLock<Option<Pattern>> = LazyLock::new(|| HALVED_GELU.parse().ok());
    let found = |last| FORMULA.as_ref()?.find(model, last);
    model.producer(value).and_then(found).is_some()
}

/// Whether layers are queries, keys and values of an attention: `sums` are the nodes that add their
/// biases. Each is split into heads, and their product is scaled and masked before its softmax, or
/// divided. Such layers stay apart: ONNX Runtime makes `Attention` of all of it.
pub(super) fn is_attention(model: &Model, sums: &[NodeId]) -> bool {
    let heads = |sum: NodeId| user(model, user(model, sum, &["Reshape"])?, &["Transpose"]);
    let scored = |sum: NodeId| {
        let scaled = user(model, user(model, heads(sum)?, &["MatMul"])?, &["Mul", "Div"])?;
        match model[scaled].is("Div").then(|| user(model, scaled, &["Softmax"])).flatten() {
            None => user(model, user(model, scaled, &["Add"])?, &["Softmax"]),
            softmax => softmax,
        }
    };
    sums.len() == 3
        && sums.iter().all(|&sum| heads(sum).is_some())
        && sums.iter().any(|&sum| scored(sum).is_some())
}

/// Whether a value comes from a feature map: the result of a `Transpose` or `Reshape`. Products of
/// others stay `MatMul` and `Add`: after a layer normalization, ONNX Runtime looks for these to
/// make `Attention` of them.
pub(super) fn is_feature_map(model: &Model, x: Value) -> bool {
    model.producer(x).is_some_and(|node| matches!(model[node].op(), "Reshape" | "Transpose"))
}

/// Whether a value is the result of `DequantizeLinear`. Products of it with quantized weights stay
/// apart: ONNX Runtime makes each an operator on integers, with the `QuantizeLinear` after it.
pub(super) fn is_quantized(model: &Model, x: Value) -> bool {
    model.producer(x).is_some_and(|node| model[node].is("DequantizeLinear"))
}

/// The only node that uses the result of a node, if it is one of these operators.
fn user(model: &Model, id: NodeId, ops: &[&str]) -> Option<NodeId> {
    let (user, _) = model[*model[id].outputs().first()?].only_use()?;
    ops.iter().any(|op| model[user].is(op)).then_some(user)
}
