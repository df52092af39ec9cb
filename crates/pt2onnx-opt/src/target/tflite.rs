//! onnx2tf 1.29 and LiteRT 2.1: which forms of the portable operators they do not take, or take
//! wrongly.
//!
//! Sizes have to be fixed.

use super::portable::{CROPS, IMAGES, LAST_INDEX, PAD_AXES, TABLE, WRAP};
use super::runtime::{Limit, Runtime, operators};
use pt2onnx_ir::attrs;
use std::sync::LazyLock;

pub(super) static TFLITE: Runtime = Runtime {
    newest_opset: 18,
    max_rank: 8,
    operators: LazyLock::new(|| operators(&[TABLE, include_str!("tflite.txt")])),
    limits: &[LAST_INDEX, PAD_AXES, IMAGES, WRAP, CROPS, VECTORS, SAMPLES],
    computed_outputs: true,
};

const VECTORS: Limit =
    ("MatMul", "vectors", |n| n.node.inputs().iter().flatten().any(|&v| n.rank(v) == Some(1)));

// The result is wrong.
const SAMPLES: Limit = ("Resize", "these modes", |n| {
    attrs::Resize::read(n.node).is_ok_and(|resize| {
        let (places, rounding) = (resize.coordinate_transformation_mode, resize.nearest_mode);
        match resize.mode {
            "nearest" => (places, rounding) != ("asymmetric", "floor"),
            "linear" => !["half_pixel", "pytorch_half_pixel"].contains(&places),
            _ => true,
        }
    })
});
