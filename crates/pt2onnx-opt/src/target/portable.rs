//! A subset of ONNX that many runtimes run right, and the runtimes that run it and more: each is
//! one table of what it has besides.
//!
//! `cargo xtask runtimes` runs networks in them, which also showed the limits.

use super::runtime::{Limit, Runtime, operators};
use pt2onnx_ir::{Model, Traits, Use, Value, attrs};
use pt2onnx_tensor::DType;
use std::sync::LazyLock;

pub(super) const TABLE: &str = include_str!("portable.txt");

pub(super) static PORTABLE: Runtime = Runtime {
    newest_opset: 20,
    max_rank: 8,
    operators: LazyLock::new(|| operators(&[TABLE])),
    limits: &[
        LAST_INDEX,
        PAD_AXES,
        VOLUMES,
        IMAGES,
        WRAP,
        CROPS,
        BATCHED_VECTORS,
        CUBIC,
        CHANNELS,
        NORMS,
    ],
    computed_outputs: true,
};

pub(super) static OPENVINO: Runtime = Runtime {
    newest_opset: 22,
    max_rank: usize::MAX,
    operators: LazyLock::new(|| operators(&[TABLE, include_str!("openvino.txt")])),
    limits: &[LAST_INDEX, PAD_AXES, IMAGES, WRAP, CHANNELS],
    computed_outputs: true,
};

pub(super) static RTEN: Runtime = Runtime {
    newest_opset: 23,
    max_rank: usize::MAX,
    operators: LazyLock::new(|| operators(&[TABLE, include_str!("rten.txt")])),
    limits: &[LAST_INDEX, PAD_AXES, VOLUMES, IMAGES, BATCHED_VECTORS, CUBIC],
    computed_outputs: false,
};

pub(super) static OPENCV: Runtime = Runtime {
    newest_opset: 20,
    max_rank: 8,
    operators: LazyLock::new(|| operators(&[TABLE, include_str!("opencv.txt")])),
    limits: &[LAST_INDEX, PAD_AXES, IMAGES, WRAP, NORMS, BATCHED_VECTORS, DOUBLES],
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

// The result has the wrong sizes in rten; IREE, MNN and OpenCV refuse it.
pub(super) const BATCHED_VECTORS: Limit = ("MatMul", "vectors and several matrices", |n| {
    let ranks = || n.node.inputs().iter().flatten().filter_map(|&v| n.rank(v));
    ranks().any(|rank| rank == 1) && ranks().any(|rank| rank > 2)
});

// rten interpolates linearly instead, and MNN otherwise.
pub(super) const CUBIC: Limit = ("Resize", "the mode `cubic`", |n| {
    attrs::Resize::read(n.node).is_ok_and(|resize| resize.mode == "cubic")
});

const DOUBLES: Limit =
    ("MatMul", "float64", |n| n.node.input(0).and_then(|v| n.model.dtype(v)) == Some(DType::F64));

const NORMS: Limit = ("InstanceNormalization", "other than images", |n| {
    n.first_rank().is_some_and(|rank| rank != 4)
});

// MNN takes the last of the numbers, and onnx2tf refuses them.
pub(super) const REDUCED: Limit = ("", "reductions", |n| {
    n.node.op().starts_with("Scatter")
        && attrs::ScatterND::read(n.node).is_ok_and(|scatter| scatter.reduction != "none")
});

// In OpenVINO, the constant counts for each item of the first dimension instead of the second.
const CHANNELS: Limit = ("", "one axis of three dimensions before constants", |n| {
    let one = n.constant(1).is_some_and(|axes| axes.numel() == 1);
    let output = n.node.outputs().first();
    let meets = || output.is_some_and(|&output| meets_constants(n.model, output));
    n.node.traits().contains(Traits::REDUCTION) && n.first_rank() == Some(3) && one && meets()
});

/// Whether elementwise nodes compute from a value and constants other than single floats. Each node
/// is looked at once: none of them has two operands that are computed.
fn meets_constants(model: &Model, value: Value) -> bool {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        for (id, at) in model[value].uses().filter_map(Use::input) {
            let node = &model[id];
            let mut others = node.inputs().iter().enumerate().filter(|(i, _)| *i != at);
            let follows = match node.op() {
                "BatchNormalization" => return true,
                "Add" | "Div" | "Mul" | "PRelu" | "Sub" => {
                    let other = others.find_map(|(_, other)| model[(*other)?].constant());
                    if other.is_some_and(|c| c.numel() > 1 || !c.dtype().is_float()) {
                        return true;
                    }
                    other.is_some()
                }
                _ => node.traits().contains(Traits::UNARY),
            };
            open.extend(node.outputs().first().filter(|_| follows));
        }
    }
    false
}
