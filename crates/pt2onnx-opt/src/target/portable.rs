//! A subset of ONNX that many runtimes run right, and the runtimes that run it and more: each is
//! one table of what it has besides.
//!
//! `cargo xtask runtimes` runs networks in them, which also showed the limits.

use super::runtime::{Limit, Runtime, operators};
use pt2onnx_ir::attrs;
use std::sync::LazyLock;

pub(super) const TABLE: &str = include_str!("portable.txt");

pub(super) static PORTABLE: Runtime = Runtime {
    newest_opset: 20,
    max_rank: 8,
    operators: LazyLock::new(|| operators(&[TABLE])),
    limits: &[LAST_INDEX, PAD_AXES, VOLUMES, IMAGES, WRAP, CROPS],
    computed_outputs: true,
};

pub(super) static OPENVINO: Runtime = Runtime {
    newest_opset: 22,
    max_rank: usize::MAX,
    operators: LazyLock::new(|| operators(&[TABLE, include_str!("openvino.txt")])),
    limits: &[LAST_INDEX, PAD_AXES, IMAGES, WRAP],
    computed_outputs: true,
};

pub(super) static RTEN: Runtime = Runtime {
    newest_opset: 23,
    max_rank: usize::MAX,
    operators: LazyLock::new(|| operators(&[TABLE, include_str!("rten.txt")])),
    limits: &[LAST_INDEX, PAD_AXES, VOLUMES, IMAGES],
    computed_outputs: false,
};

pub(super) static OPENCV: Runtime = Runtime {
    newest_opset: 20,
    max_rank: 8,
    operators: LazyLock::new(|| operators(&[TABLE, include_str!("opencv.txt")])),
    limits: &[LAST_INDEX, PAD_AXES, IMAGES, WRAP],
    computed_outputs: true,
};

pub(super) const LAST_INDEX: Limit = ("", "select_last_index", |n| {
    matches!(n.node.op(), "ArgMax" | "ArgMin")
        && attrs::ArgMax::read(n.node).is_ok_and(|a| a.select_last_index)
});

pub(super) const PAD_AXES: Limit = ("Pad", "axes", |n| n.node.input(3).is_some());

const VOLUMES: Limit = ("", "more than two spatial dimensions", |n| {
    matches!(n.node.op(), "AveragePool" | "Conv" | "ConvTranspose" | "MaxPool")
        && n.first_rank().is_some_and(|rank| rank > 4)
});

pub(super) const IMAGES: Limit =
    ("GridSample", "volumes", |n| n.first_rank().is_some_and(|rank| rank > 4));

pub(super) const WRAP: Limit =
    ("Pad", "the mode `wrap`", |n| attrs::Pad::read(n.node).is_ok_and(|pad| pad.mode == "wrap"));

pub(super) const CROPS: Limit = ("Pad", "pads below 0", |n| n.is_below_zero(1));
