//! IREE 3.13: which forms of the portable operators its importer of ONNX does not take, or takes
//! wrongly.
//!
//! Sizes have to be fixed: most networks with dynamic ones do not compile.

use super::portable::{BATCHED_VECTORS, CROPS, IMAGES, LAST_INDEX, PAD_AXES, TABLE, WRAP};
use super::runtime::{Limit, Runtime, operators};
use pt2onnx_ir::attrs;
use std::sync::LazyLock;

pub(super) static IREE: Runtime = Runtime {
    newest_opset: 20,
    max_rank: usize::MAX,
    operators: LazyLock::new(|| operators(&[TABLE, include_str!("iree.txt")])),
    limits: &[
        LAST_INDEX,
        PAD_AXES,
        IMAGES,
        WRAP,
        CROPS,
        REFLECTED,
        COLUMNS_FIRST,
        BATCHED_VECTORS,
        GROUPS,
        DEPTHWISE,
        EXTREMES,
        WHILE,
    ],
    computed_outputs: true,
};

const REFLECTED: Limit = ("Pad", "the mode `reflect`", |n| {
    attrs::Pad::read(n.node).is_ok_and(|pad| pad.mode == "reflect")
});

// The result is wrong.
const COLUMNS_FIRST: Limit = ("DepthToSpace", "the mode `CRD`", |n| {
    attrs::DepthToSpace::read(n.node).is_ok_and(|depth| depth.mode == "CRD")
});

const GROUPS: Limit = ("ConvTranspose", "groups", |n| {
    attrs::ConvTranspose::read(n.node).is_ok_and(|conv| conv.group != 1)
});

const DEPTHWISE: Limit = ("Conv", "a group for each channel of a volume", |n| {
    let groups = attrs::Conv::read(n.node).map_or(1, |conv| conv.group);
    n.first_rank() == Some(5) && groups > 1 && n.size(0, 1) == Some(groups)
});

const EXTREMES: Limit = ("", "products and extremes", |n| {
    n.node.op().starts_with("Scatter")
        && attrs::ScatterND::read(n.node).is_ok_and(|s| !["none", "add"].contains(&s.reduction))
});

const WHILE: Limit = ("Loop", "an unknown number of iterations", |n| n.constant(0).is_none());
