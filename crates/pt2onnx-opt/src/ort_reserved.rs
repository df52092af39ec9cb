//! Nodes that passes leave to ONNX Runtime: its own fusions replace more of them on loading.
//!
//! Its fusions look for certain nodes: a rewrite that takes one of them saves a node or two, and
//! costs a whole fused operator. They are left for every target: models of the target `standard`
//! run in ONNX Runtime, too, and for other runtimes they are a few nodes more.
//!
//! [`FORMULAS`] has those that are one formula: a standard fusion that would take some nodes of one
//! and leave others is not applied ([`broken`]). Other passes ask the functions below.

use crate::{Pattern, analysis::users};
use pt2onnx_ir::{Model, NodeId, OpSet, Value};
use std::sync::LazyLock;

/// GELU by `Erf` as exporters write it. ONNX Runtime makes one node of it, with the sum before it.
pub(crate) const GELU_BY_ERF: [&str; 3] = [
    "Mul({Mul(x, 0.5) | Div(x, 2)}, Add(Erf({Div(x, 1.4142135623730951) | Mul(x, 0.7071067811865476)}), 1))",
    "Mul(x, Mul(Add(Erf({Div(x, 1.4142135623730951) | Mul(x, 0.7071067811865476)}), 1), 0.5))",
    "Mul(Mul(x, Add(Erf({Div(x, 1.4142135623730951) | Mul(x, 0.7071067811865476)}), 1)), 0.5)",
];

/// GELU by `Tanh`.
pub(crate) const GELU_BY_TANH: [&str; 2] = [
    "Mul(Mul(x, 0.5), Add(Tanh(Mul(Add(x, Mul({Pow(x, 3) | Mul(Mul(x, x), x)}, 0.044715)), 0.7978845608028654)), 1))",
    "Mul(x, Mul(Add(Tanh(Mul(Add(x, Mul({Pow(x, 3) | Mul(Mul(x, x), x)}, 0.044715)), 0.7978845608028654)), 1), 0.5))",
];

/// `x * sigmoid(alpha x)`.
const QUICK_GELU: [&str; 1] = ["Mul(x, Sigmoid(Mul(x, #alpha)))"];

/// Layer normalization and RMS normalization with their scale.
const NORMALIZATIONS: [&str; 2] = [
    "Mul(Div(d:Sub(x, ReduceMean(x)), Sqrt(Add(ReduceMean({Mul(d, d) | Pow(d, 2)}), #epsilon))), #scale)",
    "Mul({Div(x, Sqrt(Add(ReduceMean({Mul(x, x) | Pow(x, 2)}), #epsilon))) \
      | Mul(x, {Reciprocal(Sqrt(Add(ReduceMean({Mul(x, x) | Pow(x, 2)}), #epsilon))) \
                | Div(1, Sqrt(Add(ReduceMean({Mul(x, x) | Pow(x, 2)}), #epsilon)))})}, #scale)",
];

/// The formulas that ONNX Runtime makes one node of, and why passes leave them. One that contains
/// another comes before it: [`broken`] stops at a formula that is replaced whole.
const FORMULAS: [(&[&str], &str); 4] = [
    (&GELU_BY_ERF, "ONNX Runtime fuses the GELU that it is part of"),
    (&GELU_BY_TANH, "ONNX Runtime fuses the GELU that it is part of"),
    (&QUICK_GELU, "ONNX Runtime fuses the quick GELU that it is part of"),
    (&NORMALIZATIONS, "ONNX Runtime fuses the normalization that it is part of"),
];

/// A formula as it is looked for.
#[derive(Debug)]
pub(crate) struct Formula {
    pattern: Pattern,
    /// Its operators in all alternatives, those in each of them, and those of its last node.
    ops: OpSet,
    needed: OpSet,
    last: OpSet,
    reason: &'static str,
}

static READ: LazyLock<Vec<Formula>> = LazyLock::new(|| {
    let rows = FORMULAS.iter().flat_map(|(all, reason)| all.iter().map(move |text| (text, reason)));
    let read = |(text, reason): (&&str, &&'static str)| {
        let pattern: Pattern = text.parse().ok()?;
        let last = pattern.last_operators().into_iter().collect();
        let (ops, needed) = (pattern.operators(), pattern.needed());
        Some(Formula { ops, needed, last, pattern, reason })
    };
    rows.filter_map(read).collect()
});

/// How many nodes behind one are looked at for the end of a formula.
const FAR: usize = 16;

/// The formulas that a graph with these operators can have.
pub(crate) fn possible(present: OpSet) -> Vec<&'static Formula> {
    READ.iter().filter(|formula| present.is_superset(formula.needed)).collect()
}

/// Why nodes stay: some of them, but not all, are part of one of the formulas.
pub(crate) fn broken(
    model: &Model,
    nodes: &[NodeId],
    formulas: &[&'static Formula],
) -> Option<&'static str> {
    for formula in formulas {
        let part = nodes.iter().copied().filter(|&id| model.may_be(id, formula.ops));
        let mut seen: Vec<NodeId> = part.collect();
        let mut next = 0;
        while let Some(&id) = seen.get(next).filter(|_| next < FAR) {
            next += 1;
            let found = model.may_be(id, formula.last).then(|| formula.pattern.find(model, id));
            if let Some(found) = found.flatten() {
                let taken = found.nodes().iter().filter(|id| nodes.contains(id)).count();
                if 0 < taken && taken < found.nodes().len() {
                    return Some(formula.reason);
                }
                if taken == nodes.len() {
                    // They are this formula. One that contains it was looked for before.
                    return None;
                }
            }
            for user in users(model, id).take(FAR) {
                if model.may_be(user, formula.ops) && !seen.contains(&user) {
                    seen.push(user);
                }
            }
        }
    }
    None
}

/// Whether layers are queries, keys and values of an attention: `sums` are the nodes that add their
/// biases. Each is split into heads, and their product is scaled and masked before its softmax, or
/// divided. Such layers stay apart: ONNX Runtime makes `Attention` of all of it.
pub(crate) fn is_attention(model: &Model, sums: &[NodeId]) -> bool {
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
pub(crate) fn is_feature_map(model: &Model, x: Value) -> bool {
    model.producer(x).is_some_and(|node| matches!(model[node].op(), "Reshape" | "Transpose"))
}

/// Whether a value is the result of `DequantizeLinear`. Products of it with quantized weights stay
/// apart: ONNX Runtime makes each an operator on integers, with the `QuantizeLinear` after it.
pub(crate) fn is_quantized(model: &Model, x: Value) -> bool {
    model.producer(x).is_some_and(|node| model[node].is("DequantizeLinear"))
}

/// The only node that uses the result of a node, if it is one of these operators.
fn user(model: &Model, id: NodeId, ops: &[&str]) -> Option<NodeId> {
    let (user, _) = model[*model[id].outputs().first()?].only_use()?;
    ops.iter().any(|op| model[user].is(op)).then_some(user)
}

#[cfg(test)]
mod tests {
    use super::{FORMULAS, READ};

    #[test]
    fn all_formulas_are_read() {
        assert_eq!(READ.len(), FORMULAS.iter().map(|(all, _)| all.len()).sum::<usize>());
    }
}
