//! onnx2tf 1.29 and LiteRT 2.1: which forms of the portable operators they do not take, or take
//! wrongly.
//!
//! Sizes have to be fixed.

use super::portable::{CROPS, IMAGES, LAST_INDEX, PAD_AXES, REDUCED, TABLE, WRAP};
use super::runtime::{Limit, Runtime, operators};
use pt2onnx_ir::attrs;
use std::sync::LazyLock;

pub(super) static TFLITE: Runtime = Runtime {
    newest_opset: 20,
    max_rank: 8,
    operators: LazyLock::new(|| operators(&[TABLE, include_str!("tflite.txt")])),
    limits: &[
        LAST_INDEX, PAD_AXES, IMAGES, WRAP, CROPS, REDUCED, VECTORS, SQUARE, SQUARES, SAMPLES,
        POWERS,
    ],
    computed_outputs: true,
};

const VECTORS: Limit =
    ("MatMul", "vectors", |n| n.node.inputs().iter().flatten().any(|&v| n.rank(v) == Some(1)));

// The result is wrong.
const SQUARE: Limit = ("Transpose", "matrices that are as high as wide", |n| {
    n.first_rank() == Some(2) && n.size(0, 0).is_some_and(|size| n.size(0, 1) == Some(size))
});

// It takes the wrong axis.
const SQUARES: Limit = ("Gather", "several matrices that are as high as wide", |n| {
    n.first_rank() == Some(3) && n.size(0, 1).is_some_and(|size| n.size(0, 2) == Some(size))
});

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

const POWERS: Limit = ("Pow", "a vector of exponents", |n| {
    n.constant(1).is_some_and(|exponents| exponents.rank() == 1 && exponents.numel() > 1)
});
