//! ONNX Runtime's CoreML provider, from its list of operators for ML Programs and its builders.
//!
//! ONNX Runtime computes on the CPU what the provider does not take, and copies in between: a model
//! for this target stays whole.

use super::runtime::{Limit, Runtime, operators};
use pt2onnx_ir::{Traits, attrs};
use std::sync::LazyLock;

pub(super) static COREML: Runtime = Runtime {
    newest_opset: 20,
    max_rank: 5,
    operators: LazyLock::new(|| operators(&[include_str!("coreml.txt")])),
    limits: LIMITS,
    computed_outputs: true,
};

const LIMITS: &[Limit] = &[
    ("", "other than two spatial dimensions", |n| {
        n.node.op().ends_with("Pool") && n.first_rank().is_some_and(|rank| rank != 4)
    }),
    ("", "more than two spatial dimensions", |n| {
        n.node.op().starts_with("Conv") && n.first_rank().is_some_and(|rank| rank > 4)
    }),
    ("", "dilations", |n| n.node.op().ends_with("Pool") && n.is_dilated()),
    ("MaxPool", "indices", |n| n.uses(1)),
    ("BatchNormalization", "computed statistics", |n| n.computes(1..5)),
    ("Clip", "computed bounds", |n| n.computes(1..3)),
    ("Conv", "a computed bias", |n| n.computed(2)),
    ("ConvTranspose", "computed weights", |n| n.computes(1..3)),
    ("ConvTranspose", "more of the output", |n| {
        attrs::ConvTranspose::read(n.node).is_ok_and(|given| {
            given.output_shape.is_some()
                || given.output_padding.is_some_and(|more| more.iter().any(|&more| more != 0))
        })
    }),
    ("GatherND", "batch dimensions", |n| {
        attrs::GatherND::read(n.node).is_ok_and(|gather| gather.batch_dims != 0)
    }),
    ("Gemm", "a computed second matrix, or factors", |n| {
        n.computed(1)
            || attrs::Gemm::read(n.node)
                .is_ok_and(|gemm| gemm.trans_a || gemm.alpha != 1.0 || gemm.beta != 1.0)
    }),
    ("GridSample", "volumes", |n| n.first_rank().is_some_and(|rank| rank != 4)),
    ("GridSample", "these modes", |n| {
        attrs::GridSample::read(n.node).is_ok_and(|grid| {
            grid.mode == "cubic" || grid.padding_mode == "reflection" && !grid.align_corners
        })
    }),
    ("", "computed scales", |n| n.node.op().ends_with("Normalization") && n.computes(1..3)),
    ("LayerNormalization", "further outputs", |n| n.uses(1) || n.uses(2)),
    ("Pad", "this mode", |n| {
        attrs::Pad::read(n.node).is_ok_and(|pad| !["constant", "reflect"].contains(&pad.mode))
    }),
    ("Pad", "computed pads or axes", |n| n.computes(1..4)),
    ("Pad", "pads below 0", |n| n.is_below_zero(1)),
    ("PRelu", "computed slopes", |n| n.computed(1)),
    ("", "computed axes", |n| n.node.traits().contains(Traits::REDUCTION) && n.computed(1)),
    ("Resize", "these modes", |n| {
        attrs::Resize::read(n.node).is_ok_and(|r| match r.mode {
            _ if r.antialias || r.exclude_outside || r.keep_aspect_ratio_policy != "stretch" => {
                true
            }
            "nearest" => {
                r.nearest_mode != "floor" || r.coordinate_transformation_mode != "asymmetric"
            }
            "linear" => !["half_pixel", "pytorch_half_pixel", "align_corners"]
                .contains(&r.coordinate_transformation_mode),
            _ => true,
        })
    }),
    ("Resize", "computed sizes", |n| n.computes(2..4)),
    ("Reshape", "a computed shape", |n| n.computed(1)),
    ("Slice", "computed places", |n| n.computes(1..5)),
    ("Split", "computed sizes", |n| n.computed(1)),
    ("", "computed axes", |n| matches!(n.node.op(), "Squeeze" | "Unsqueeze") && n.computed(1)),
];
