//! TensorRT 10.15, from the operator table of its ONNX parser (`docs/operators.md` of
//! onnx-tensorrt).

use super::runtime::{Limit, NodeView, Runtime, operators};
use pt2onnx_ir::{Traits, attrs};
use std::sync::LazyLock;

pub(super) static TENSORRT: Runtime = Runtime {
    newest_opset: 24,
    max_rank: 8,
    operators: LazyLock::new(|| operators(&[include_str!("tensorrt.txt")])),
    limits: LIMITS,
    computed_outputs: false,
};

const LIMITS: &[Limit] = &[
    ("Attention", "caches", |n| (4..7).any(|i| n.node.input(i).is_some())),
    ("Attention", "further outputs", |n| (1..4).any(|i| n.uses(i))),
    ("Attention", "softcap", |n| attrs::Attention::read(n.node).is_ok_and(|a| a.softcap != 0.0)),
    ("Attention", "operands with other than 4 dimensions", |n| {
        (0..4).filter_map(|i| n.node.input(i)).any(|v| n.rank(v) != Some(4))
    }),
    ("AveragePool", "dilations", |n| n.is_dilated()),
    ("AveragePool", "other than 1 to 3 spatial dimensions", pools_more),
    ("CumSum", "a computed axis", |n| n.computed(1)),
    ("DequantizeLinear", "zero points", |n| !n.zero(2)),
    ("Dropout", "training mode", |n| !n.zero(2)),
    ("EyeLike", "a dynamic shape", |n| !n.is_static(0)),
    ("GridSample", "an input with other than 4 dimensions", |n| n.first_rank() != Some(4)),
    ("LayerNormalization", "further outputs", |n| n.uses(1) || n.uses(2)),
    ("Loop", "scan outputs with a computed number of iterations", |n| {
        let carried = n.node.inputs().len().saturating_sub(2);
        n.node.outputs().len() > carried && n.constant(0).is_none()
    }),
    ("LpPool", "dilations", |n| n.is_dilated()),
    ("LSTM", "layout 1 and input_forget", |n| {
        attrs::LSTM::read(n.node).is_ok_and(|l| l.layout != 0 || l.input_forget)
    }),
    ("MaxPool", "dilations", |n| n.is_dilated()),
    ("MaxPool", "indices", |n| n.uses(1)),
    ("MaxPool", "other than 1 to 3 spatial dimensions", pools_more),
    ("OneHot", "a computed depth", |n| n.computed(1)),
    ("QuantizeLinear", "zero points", |n| !n.zero(2)),
    ("", "computed axes", |n| {
        let axes = n.node.traits().contains(Traits::REDUCTION);
        (axes || matches!(n.node.op(), "Squeeze" | "Unsqueeze")) && n.computed(1)
    }),
    ("Resize", "these modes", |n| {
        let modes = ["nearest", "linear"];
        let roundings = ["round_prefer_floor", "floor", "ceil", "round_prefer_ceil"];
        let coordinates = [
            "half_pixel",
            "pytorch_half_pixel",
            "tf_half_pixel_for_nn",
            "asymmetric",
            "align_corners",
        ];
        attrs::Resize::read(n.node).is_ok_and(|r| {
            !modes.contains(&r.mode)
                || !roundings.contains(&r.nearest_mode)
                || !coordinates.contains(&r.coordinate_transformation_mode)
                || r.keep_aspect_ratio_policy != "stretch"
                || r.antialias
        })
    }),
    ("ScatterND", "reductions", |n| {
        attrs::ScatterND::read(n.node).is_ok_and(|s| s.reduction != "none")
    }),
    ("STFT", "computed steps or windows", |n| n.computes(1..3)),
    ("TensorScatter", "other than 4 dimensions", |n| n.first_rank() != Some(4)),
    ("TopK", "unsorted results", |n| attrs::TopK::read(n.node).is_ok_and(|t| !t.sorted)),
    ("TopK", "more than 3839 results", |n| {
        let k = n.constant(1).and_then(|k| k.to_vec::<i64>());
        k.is_some_and(|k| k.iter().any(|&k| k >= 3840))
    }),
];

fn pools_more(n: &NodeView) -> bool {
    n.first_rank().is_some_and(|rank| !(3..=5).contains(&rank))
}
