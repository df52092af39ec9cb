//! A subset of ONNX that many runtimes run right, and the runtimes that run it and more: each is
//! one table of what it has besides.
//!
//! `cargo xtask runtimes` runs networks in them, which also showed the limits.

use super::runtime::{Limit, NodeView, Runtime, operators};
use pt2onnx_ir::attrs;
use std::sync::LazyLock;

const PORTABLE_TABLE: &str = include_str!("portable.txt");

/// The portable operators, and those of a table.
fn and(table: &'static str) -> rustc_hash::FxHashMap<&'static str, u32> {
    let mut all = operators(PORTABLE_TABLE);
    all.extend(operators(table));
    all
}

pub(super) static PORTABLE: Runtime = Runtime {
    newest_opset: 20,
    max_rank: 8,
    operators: LazyLock::new(|| operators(PORTABLE_TABLE)),
    limits: &[LAST_INDEX, PAD_AXES, VOLUMES, IMAGES, WRAP, CROPS],
    computed_outputs: true,
};

pub(super) static OPENVINO: Runtime = Runtime {
    newest_opset: 22,
    max_rank: usize::MAX,
    operators: LazyLock::new(|| and(include_str!("openvino.txt"))),
    limits: &[LAST_INDEX, PAD_AXES, IMAGES, WRAP],
    computed_outputs: true,
};

pub(super) static RTEN: Runtime = Runtime {
    newest_opset: 23,
    max_rank: usize::MAX,
    operators: LazyLock::new(|| and(include_str!("rten.txt"))),
    limits: &[LAST_INDEX, PAD_AXES, VOLUMES, IMAGES],
    computed_outputs: false,
};

pub(super) static MNN: Runtime = Runtime {
    newest_opset: 20,
    max_rank: usize::MAX,
    operators: LazyLock::new(|| and(include_str!("mnn.txt"))),
    limits: &[LAST_INDEX, PAD_AXES, IMAGES, WRAP, CROPS],
    computed_outputs: true,
};

pub(super) static OPENCV: Runtime = Runtime {
    newest_opset: 20,
    max_rank: 8,
    operators: LazyLock::new(|| and(include_str!("opencv.txt"))),
    limits: &[LAST_INDEX, PAD_AXES, IMAGES, WRAP],
    computed_outputs: true,
};

const LAST_INDEX: Limit = ("", "select_last_index", |n| {
    matches!(n.node.op(), "ArgMax" | "ArgMin")
        && attrs::ArgMax::read(n.node).is_ok_and(|a| a.select_last_index)
});

const PAD_AXES: Limit = ("Pad", "axes", |n| n.node.input(3).is_some());

const VOLUMES: Limit = ("", "more than two spatial dimensions", |n| {
    matches!(n.node.op(), "AveragePool" | "Conv" | "ConvTranspose" | "MaxPool")
        && first_rank(n).is_some_and(|rank| rank > 4)
});

const IMAGES: Limit = ("GridSample", "volumes", |n| first_rank(n).is_some_and(|rank| rank > 4));

const WRAP: Limit =
    ("Pad", "the mode `wrap`", |n| attrs::Pad::read(n.node).is_ok_and(|pad| pad.mode == "wrap"));

const CROPS: Limit = ("Pad", "pads below 0", |n| {
    let pads = n.constant(1).and_then(|pads| pads.to_vec::<i64>());
    pads.is_some_and(|pads| pads.iter().any(|&pad| pad < 0))
});

fn first_rank(n: &NodeView) -> Option<usize> {
    n.rank(n.node.input(0)?)
}
