//! The reference evaluator of onnx 1.23: which forms of the portable operators it computes wrongly.

use super::portable::{CROPS, PAD_AXES, TABLE};
use super::runtime::{Limit, Runtime, operators};
use pt2onnx_ir::attrs;
use std::sync::LazyLock;

pub(super) static REFERENCE: Runtime = Runtime {
    newest_opset: 23,
    max_rank: usize::MAX,
    operators: LazyLock::new(|| operators(&[TABLE, include_str!("reference.txt")])),
    limits: &[PAD_AXES, CROPS, PADS],
    computed_outputs: false,
};

// It swaps the pads of images, and leaves out others.
const PADS: Limit = ("MaxPool", "pads that are not equal, or not of images", |n| {
    let pads = attrs::MaxPool::read(n.node).ok().and_then(|pool| pool.pads).unwrap_or_default();
    let equal = n.first_rank() == Some(4) && pads.iter().all(|pad| *pad == pads[0]);
    !equal && pads.iter().any(|pad| *pad != 0)
});
