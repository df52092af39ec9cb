//! TensorRT 10.15, from the operator table of its ONNX parser (`docs/operators.md` of
//! onnx-tensorrt).

use super::runtime::{Limit, NodeView, Runtime, types};
use pt2onnx_ir::attrs;
use pt2onnx_tensor::DType::*;

pub(super) static TENSORRT: Runtime =
    Runtime { newest_opset: 24, max_rank: 8, operators: OPERATORS, limits: LIMITS };

const HALVES: u32 = types(&[F32, F16]);
const FLOATS: u32 = types(&[F32, F16, BF16]);
const NUMBERS: u32 = types(&[F32, F16, BF16, I32, I64]);
const VALUES: u32 = types(&[F32, F16, BF16, I32, I64, Bool]);
const CASTS: u32 = types(&[F32, F16, BF16, I32, I64, U8, Bool]);
const CONSTANTS: u32 = types(&[F32, F16, BF16, F8E4M3FN, F4E2M1, I4, I32, I64, Bool]);
const QUANTIZED: u32 = types(&[F32, F16, BF16, I8, F8E4M3FN, F4E2M1, I4]);

const OPERATORS: &[(&str, u32)] = &[
    ("Abs", NUMBERS),
    ("Acos", FLOATS),
    ("Acosh", FLOATS),
    ("Add", NUMBERS),
    ("And", VALUES),
    ("ArgMax", NUMBERS),
    ("ArgMin", NUMBERS),
    ("Asin", FLOATS),
    ("Asinh", FLOATS),
    ("Atan", FLOATS),
    ("Atanh", FLOATS),
    ("Attention", FLOATS),
    ("AveragePool", FLOATS),
    ("BatchNormalization", FLOATS),
    ("BlackmanWindow", HALVES),
    ("Cast", CASTS),
    ("CastLike", CASTS),
    ("Ceil", FLOATS),
    ("Celu", FLOATS),
    ("Clip", FLOATS),
    ("Concat", VALUES),
    ("Constant", CONSTANTS),
    ("ConstantOfShape", CONSTANTS),
    ("Conv", FLOATS),
    ("ConvTranspose", FLOATS),
    ("Cos", FLOATS),
    ("Cosh", FLOATS),
    ("CumSum", FLOATS),
    ("DeformConv", HALVES),
    ("DepthToSpace", NUMBERS),
    ("DequantizeLinear", QUANTIZED),
    ("Div", NUMBERS),
    ("Dropout", FLOATS),
    ("Einsum", FLOATS),
    ("Elu", FLOATS),
    ("Equal", NUMBERS),
    ("Erf", FLOATS),
    ("Exp", FLOATS),
    ("Expand", VALUES),
    ("EyeLike", VALUES),
    ("Flatten", VALUES),
    ("Floor", FLOATS),
    ("GRU", FLOATS),
    ("Gather", VALUES),
    ("GatherElements", VALUES),
    ("GatherND", VALUES),
    ("Gelu", NUMBERS),
    ("Gemm", FLOATS),
    ("GlobalAveragePool", FLOATS),
    ("GlobalLpPool", FLOATS),
    ("GlobalMaxPool", FLOATS),
    ("Greater", NUMBERS),
    ("GreaterOrEqual", NUMBERS),
    ("GridSample", HALVES),
    ("GroupNormalization", FLOATS),
    ("HammingWindow", HALVES),
    ("HannWindow", HALVES),
    ("HardSigmoid", FLOATS),
    ("HardSwish", FLOATS),
    ("Hardmax", FLOATS),
    ("Identity", VALUES),
    ("If", VALUES),
    ("InstanceNormalization", FLOATS),
    ("IsInf", FLOATS),
    ("IsNaN", NUMBERS),
    ("LRN", FLOATS),
    ("LSTM", FLOATS),
    ("LayerNormalization", FLOATS),
    ("LeakyRelu", FLOATS),
    ("Less", NUMBERS),
    ("LessOrEqual", NUMBERS),
    ("Log", FLOATS),
    ("LogSoftmax", FLOATS),
    ("Loop", VALUES),
    ("LpNormalization", FLOATS),
    ("LpPool", FLOATS),
    ("MatMul", FLOATS),
    ("Max", NUMBERS),
    ("MaxPool", FLOATS),
    ("Mean", NUMBERS),
    ("MeanVarianceNormalization", FLOATS),
    ("Min", NUMBERS),
    ("Mish", HALVES),
    ("Mod", NUMBERS),
    ("Mul", NUMBERS),
    ("Neg", NUMBERS),
    ("NonMaxSuppression", HALVES),
    ("NonZero", HALVES),
    ("Not", VALUES),
    ("OneHot", VALUES),
    ("Or", VALUES),
    ("PRelu", FLOATS),
    ("Pad", NUMBERS),
    ("Pow", NUMBERS),
    ("QuantizeLinear", QUANTIZED),
    ("RMSNormalization", FLOATS),
    ("RNN", FLOATS),
    ("RandomNormal", FLOATS),
    ("RandomNormalLike", FLOATS),
    ("RandomUniform", FLOATS),
    ("RandomUniformLike", FLOATS),
    ("Range", NUMBERS),
    ("Reciprocal", FLOATS),
    ("ReduceL1", NUMBERS),
    ("ReduceL2", NUMBERS),
    ("ReduceLogSum", NUMBERS),
    ("ReduceLogSumExp", NUMBERS),
    ("ReduceMax", NUMBERS),
    ("ReduceMean", NUMBERS),
    ("ReduceMin", NUMBERS),
    ("ReduceProd", NUMBERS),
    ("ReduceSum", NUMBERS),
    ("ReduceSumSquare", NUMBERS),
    ("Relu", NUMBERS),
    ("Reshape", VALUES),
    ("Resize", FLOATS),
    ("ReverseSequence", VALUES),
    ("RoiAlign", HALVES),
    ("RotaryEmbedding", FLOATS),
    ("Round", FLOATS),
    ("STFT", types(&[F32])),
    ("Scan", FLOATS),
    ("ScatterElements", NUMBERS),
    ("ScatterND", NUMBERS),
    ("Selu", FLOATS),
    ("Shape", VALUES),
    ("Shrink", NUMBERS),
    ("Sigmoid", FLOATS),
    ("Sign", NUMBERS),
    ("Sin", FLOATS),
    ("Sinh", FLOATS),
    ("Size", VALUES),
    ("Slice", VALUES),
    ("Softmax", FLOATS),
    ("Softplus", FLOATS),
    ("Softsign", FLOATS),
    ("SpaceToDepth", NUMBERS),
    ("Split", VALUES),
    ("Sqrt", FLOATS),
    ("Squeeze", VALUES),
    ("Sub", NUMBERS),
    ("Sum", NUMBERS),
    ("Tan", FLOATS),
    ("Tanh", FLOATS),
    ("TensorScatter", types(&[F32, F16, BF16, I32])),
    ("ThresholdedRelu", FLOATS),
    ("Tile", VALUES),
    ("TopK", NUMBERS),
    ("Transpose", VALUES),
    ("Trilu", VALUES),
    ("Unsqueeze", VALUES),
    ("Where", VALUES),
    ("Xor", VALUES),
];

const LIMITS: &[Limit] = &[
    ("Attention", "caches", |n| (4..7).any(|i| n.node.input(i).is_some())),
    ("Attention", "further outputs", |n| (1..4).any(|i| n.uses(i))),
    ("Attention", "softcap", |n| attrs::Attention::read(n.node).is_ok_and(|a| a.softcap != 0.0)),
    ("Attention", "operands with other than 4 dimensions", |n| {
        (0..4).filter_map(|i| n.node.input(i)).any(|v| n.rank(v) != Some(4))
    }),
    ("AveragePool", "dilations", dilated),
    ("AveragePool", "other than 1 to 3 spatial dimensions", pools_more),
    ("CumSum", "a computed axis", |n| n.computed(1)),
    ("DequantizeLinear", "zero points", |n| !n.zero(2)),
    ("Dropout", "training mode", |n| !n.zero(2)),
    ("EyeLike", "a dynamic shape", |n| !n.is_static(0)),
    ("GridSample", "an input with other than 4 dimensions", |n| {
        n.node.input(0).is_some_and(|v| n.rank(v) != Some(4))
    }),
    ("LayerNormalization", "further outputs", |n| n.uses(1) || n.uses(2)),
    ("Loop", "scan outputs with a computed number of iterations", |n| {
        let carried = n.node.inputs().len().saturating_sub(2);
        n.node.outputs().len() > carried && n.constant(0).is_none()
    }),
    ("LpPool", "dilations", dilated),
    ("LSTM", "layout 1 and input_forget", |n| {
        attrs::LSTM::read(n.node).is_ok_and(|l| l.layout != 0 || l.input_forget)
    }),
    ("MaxPool", "dilations", dilated),
    ("MaxPool", "indices", |n| n.uses(1)),
    ("MaxPool", "other than 1 to 3 spatial dimensions", pools_more),
    ("OneHot", "a computed depth", |n| n.computed(1)),
    ("QuantizeLinear", "zero points", |n| !n.zero(2)),
    ("ReduceL1", "computed axes", axes_computed),
    ("ReduceL2", "computed axes", axes_computed),
    ("ReduceLogSum", "computed axes", axes_computed),
    ("ReduceLogSumExp", "computed axes", axes_computed),
    ("ReduceMax", "computed axes", axes_computed),
    ("ReduceMean", "computed axes", axes_computed),
    ("ReduceMin", "computed axes", axes_computed),
    ("ReduceProd", "computed axes", axes_computed),
    ("ReduceSum", "computed axes", axes_computed),
    ("ReduceSumSquare", "computed axes", axes_computed),
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
    ("Squeeze", "computed axes", axes_computed),
    ("STFT", "computed steps or windows", |n| n.computed(1) || n.computed(2)),
    ("TensorScatter", "other than 4 dimensions", |n| {
        n.node.input(0).is_some_and(|v| n.rank(v) != Some(4))
    }),
    ("TopK", "unsorted results", |n| attrs::TopK::read(n.node).is_ok_and(|t| !t.sorted)),
    ("TopK", "more than 3839 results", |n| {
        let k = n.constant(1).and_then(|k| k.to_vec::<i64>());
        k.is_some_and(|k| k.iter().any(|&k| k >= 3840))
    }),
    ("Unsqueeze", "computed axes", axes_computed),
];

fn dilated(n: &NodeView) -> bool {
    let dilations = attrs::MaxPool::read(n.node).ok().and_then(|p| p.dilations);
    dilations.is_some_and(|all| all.iter().any(|&d| d != 1))
}

fn pools_more(n: &NodeView) -> bool {
    let rank = n.node.input(0).and_then(|v| n.rank(v));
    rank.is_some_and(|rank| !(3..=5).contains(&rank))
}

fn axes_computed(n: &NodeView) -> bool {
    n.computed(1)
}
