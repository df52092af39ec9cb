//! MNN 3.6: which forms of the portable operators it computes wrongly.

use super::portable::{
    BATCHED_VECTORS, CROPS, CUBIC, IMAGES, LAST_INDEX, PAD_AXES, REDUCED, TABLE, WRAP,
};
use super::runtime::{Limit, Runtime, operators};
use pt2onnx_ir::{attrs, einsum_terms};
use std::sync::LazyLock;

pub(super) static MNN: Runtime = Runtime {
    newest_opset: 20,
    max_rank: usize::MAX,
    operators: LazyLock::new(|| operators(&[TABLE, include_str!("mnn.txt")])),
    limits: &[
        LAST_INDEX,
        PAD_AXES,
        IMAGES,
        WRAP,
        CROPS,
        BATCHED_VECTORS,
        CUBIC,
        TURNED,
        REDUCED,
        POOLS,
    ],
    computed_outputs: true,
};

// The dimensions of the result stay in the order of the operands.
const TURNED: Limit = ("Einsum", "letters of the second operand before those of the first", |n| {
    let (left, right) = einsum_terms(attrs::Einsum::equation(n.node).unwrap_or_default());
    let Some((first, second)) = left.split_once(',') else { return false };
    let of_first = right.rfind(|c| first.contains(c) && !second.contains(c));
    let of_second = right.find(|c| second.contains(c) && !first.contains(c));
    of_first.zip(of_second).is_some_and(|(last, first)| first < last)
});

// All volumes but the first are wrong.
const POOLS: Limit = ("", "several volumes", |n| {
    n.node.op().ends_with("Pool") && n.first_rank() == Some(5) && n.size(0, 0) != Some(1)
});
