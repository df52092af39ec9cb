//! The operators that tract-onnx 0.23.9 registers, without those that failed in the conformance
//! cases.
//!
//! The cases are run by `runtimes/tract`; they also showed the limits.

use super::runtime::{Limit, Runtime, operators};
use pt2onnx_ir::attrs;
use std::sync::LazyLock;

pub(super) static TRACT: Runtime = Runtime {
    newest_opset: 24,
    max_rank: usize::MAX,
    operators: LazyLock::new(|| operators(&[include_str!("tract.txt")])),
    limits: LIMITS,
    computed_outputs: false,
};

const LIMITS: &[Limit] = &[
    ("BatchNormalization", "computed statistics", |n| n.computes(1..5)),
    ("DequantizeLinear", "a computed scale", |n| n.computed(1)),
    ("Dropout", "training mode", |n| !n.zero(2)),
    ("Einsum", "an index twice in one operand", |n| {
        attrs::Einsum::equation(n.node).is_ok_and(repeats)
    }),
    ("MatMul", "two vectors", |n| {
        let inputs = || n.node.inputs().iter().flatten();
        inputs().all(|&v| n.rank(v) == Some(1))
    }),
    // The result is wrong.
    ("Mod", "a constant dividend", |n| n.constant(0).is_some()),
    ("Pad", "the mode `wrap`", |n| {
        attrs::Pad::read(n.node).is_ok_and(|p| !["constant", "edge", "reflect"].contains(&p.mode))
    }),
    ("QuantizeLinear", "a computed scale", |n| n.computed(1)),
    ("RandomNormalLike", "a missing dtype", |n| {
        attrs::RandomNormalLike::read(n.node).is_ok_and(|r| r.dtype.is_none())
    }),
    ("RandomUniformLike", "a missing dtype", |n| {
        attrs::RandomUniformLike::read(n.node).is_ok_and(|r| r.dtype.is_none())
    }),
    // The result is wrong.
    ("RNN", "activations", |n| n.node.attribute("activations").is_some()),
    ("STFT", "a computed window", |n| n.computed(2)),
];

fn repeats(equation: &str) -> bool {
    let operands = equation.split("->").next().unwrap_or_default().split(',');
    operands.map(str::trim).any(|operand| {
        let letters = || operand.chars().filter(char::is_ascii_alphabetic);
        letters().any(|c| letters().filter(|other| *other == c).count() > 1)
    })
}
