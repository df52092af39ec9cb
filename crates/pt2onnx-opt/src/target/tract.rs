//! tract, by the operators that tract-onnx 0.23.9 registers, without those and with the limits that the conformance cases
//! have shown when it ran them (`runtimes/tract`).

use super::runtime::{Limit, Runtime, types};
use pt2onnx_ir::Attribute;
use pt2onnx_tensor::DType::*;

pub(super) static TRACT: Runtime = Runtime {
    newest_opset: 24,
    max_rank: usize::MAX,
    operators: OPERATORS,
    limits: LIMITS,
};

const SINGLES: u32 = types(&[F32, F16, I64, I32, I16, I8, U64, U32, U16, U8]);
const NUMBERS: u32 = SINGLES | types(&[F64]);
const VALUES: u32 = NUMBERS | types(&[Bool]);

const OPERATORS: &[(&str, u32)] = &[
    ("Abs", VALUES),
    ("Acos", VALUES),
    ("Acosh", VALUES),
    ("Add", VALUES),
    ("And", VALUES),
    ("ArgMax", VALUES),
    ("ArgMin", VALUES),
    ("Asin", VALUES),
    ("Asinh", VALUES),
    ("Atan", VALUES),
    ("Atanh", VALUES),
    ("Attention", VALUES),
    ("AveragePool", VALUES),
    ("BatchNormalization", VALUES),
    ("BitShift", VALUES),
    ("BitwiseAnd", VALUES),
    ("BitwiseNot", VALUES),
    ("BitwiseOr", VALUES),
    ("BitwiseXor", VALUES),
    ("BlackmanWindow", VALUES),
    ("Cast", VALUES),
    ("CastLike", VALUES),
    ("Ceil", VALUES),
    ("Celu", VALUES),
    ("Clip", VALUES),
    ("Concat", VALUES),
    ("Constant", VALUES),
    ("ConstantOfShape", VALUES),
    ("Conv", VALUES),
    ("ConvInteger", VALUES),
    ("ConvTranspose", VALUES),
    ("Cos", VALUES),
    ("Cosh", VALUES),
    ("CumSum", VALUES),
    ("DepthToSpace", VALUES),
    ("DequantizeLinear", VALUES),
    ("Div", VALUES),
    ("Dropout", VALUES),
    ("DynamicQuantizeLinear", VALUES),
    ("Einsum", VALUES),
    ("Elu", VALUES),
    ("Equal", NUMBERS),
    ("Erf", SINGLES),
    ("Exp", VALUES),
    ("Expand", VALUES),
    ("EyeLike", VALUES),
    ("Flatten", VALUES),
    ("Floor", VALUES),
    ("GRU", VALUES),
    ("Gather", VALUES),
    ("GatherElements", VALUES),
    ("GatherND", VALUES),
    ("Gelu", VALUES),
    ("Gemm", VALUES),
    ("GlobalAveragePool", VALUES),
    ("GlobalLpPool", VALUES),
    ("GlobalMaxPool", VALUES),
    ("Greater", VALUES),
    ("GreaterOrEqual", VALUES),
    ("GridSample", VALUES),
    ("GroupNormalization", VALUES),
    ("HammingWindow", VALUES),
    ("HannWindow", VALUES),
    ("HardSigmoid", VALUES),
    ("HardSwish", SINGLES),
    ("Hardmax", VALUES),
    ("Identity", VALUES),
    ("If", VALUES),
    ("InstanceNormalization", VALUES),
    ("IsInf", VALUES),
    ("IsNaN", VALUES),
    ("LRN", VALUES),
    ("LSTM", VALUES),
    ("LayerNormalization", VALUES),
    ("LeakyRelu", SINGLES),
    ("Less", VALUES),
    ("LessOrEqual", VALUES),
    ("Log", VALUES),
    ("LogSoftmax", VALUES),
    ("LpNormalization", VALUES),
    ("MatMul", VALUES),
    ("MatMulInteger", VALUES),
    ("Max", VALUES),
    ("MaxPool", VALUES),
    ("Mean", VALUES),
    ("MeanVarianceNormalization", VALUES),
    ("MelWeightMatrix", VALUES),
    ("Min", VALUES),
    ("Mish", VALUES),
    ("Mod", VALUES),
    ("Mul", VALUES),
    ("Multinomial", VALUES),
    ("Neg", VALUES),
    ("NonMaxSuppression", VALUES),
    ("NonZero", VALUES),
    ("Not", VALUES),
    ("OneHot", VALUES),
    ("Or", VALUES),
    ("PRelu", VALUES),
    ("Pad", NUMBERS),
    ("Pow", VALUES),
    ("QLinearConv", VALUES),
    ("QLinearMatMul", VALUES),
    ("QuantizeLinear", VALUES),
    ("RMSNormalization", VALUES),
    ("RNN", VALUES),
    ("RandomNormal", VALUES),
    ("RandomNormalLike", VALUES),
    ("RandomUniform", VALUES),
    ("RandomUniformLike", VALUES),
    ("Range", VALUES),
    ("Reciprocal", VALUES),
    ("ReduceL1", VALUES),
    ("ReduceL2", VALUES),
    ("ReduceLogSum", VALUES),
    ("ReduceLogSumExp", VALUES),
    ("ReduceMax", NUMBERS),
    ("ReduceMean", VALUES),
    ("ReduceMin", NUMBERS),
    ("ReduceProd", VALUES),
    ("ReduceSum", VALUES),
    ("ReduceSumSquare", VALUES),
    ("Relu", VALUES),
    ("Reshape", VALUES),
    ("Resize", VALUES),
    ("RotaryEmbedding", VALUES),
    ("Round", SINGLES),
    ("STFT", VALUES),
    ("Scan", VALUES),
    ("Scatter", VALUES),
    ("ScatterElements", VALUES),
    ("ScatterND", VALUES),
    ("Selu", VALUES),
    ("Shape", VALUES),
    ("Shrink", VALUES),
    ("Sigmoid", SINGLES),
    ("Sign", VALUES),
    ("Sin", VALUES),
    ("Sinh", VALUES),
    ("Size", VALUES),
    ("Slice", VALUES),
    ("Softmax", VALUES),
    ("Softplus", VALUES),
    ("Softsign", VALUES),
    ("SpaceToDepth", VALUES),
    ("Split", VALUES),
    ("Sqrt", VALUES),
    ("Squeeze", VALUES),
    ("Sub", VALUES),
    ("Sum", VALUES),
    ("Swish", VALUES),
    ("Tan", VALUES),
    ("Tanh", VALUES),
    ("ThresholdedRelu", VALUES),
    ("Tile", VALUES),
    ("TopK", VALUES),
    ("Transpose", VALUES),
    ("Trilu", VALUES),
    ("Unsqueeze", VALUES),
    ("Where", VALUES),
    ("Xor", VALUES),
];

const LIMITS: &[Limit] = &[
    ("BatchNormalization", "statistics that are computed", |n| {
        (1..5).any(|i| n.computed(i))
    }),
    ("DequantizeLinear", "scale that is computed", |n| {
        n.computed(1)
    }),
    ("Dropout", "training mode", |n| !n.zero(2)),
    (
        "Einsum",
        "index twice in one operand",
        |n| matches!(n.node.attribute("equation"), Some(Attribute::String(e)) if repeats(e)),
    ),
    ("MatMul", "two vectors", |n| {
        let inputs = || n.node.inputs().iter().flatten();
        inputs().all(|&v| n.rank(v) == Some(1))
    }),
    // It gives wrong numbers.
    ("Mod", "dividend that is a constant", |n| {
        n.constant(0).is_some()
    }),
    ("Pad", "mode wrap", |n| {
        !n.text_in("mode", &["constant", "edge", "reflect"])
    }),
    ("QuantizeLinear", "scale that is computed", |n| {
        n.computed(1)
    }),
    ("RandomNormalLike", "type that is not given", |n| {
        n.node.int("dtype").is_none()
    }),
    ("RandomUniformLike", "type that is not given", |n| {
        n.node.int("dtype").is_none()
    }),
    // It gives wrong numbers.
    ("RNN", "activations", |n| {
        n.node.attribute("activations").is_some()
    }),
    ("STFT", "window that is computed", |n| n.computed(2)),
];

fn repeats(equation: &str) -> bool {
    let operands = equation.split("->").next().unwrap_or_default().split(',');
    operands.map(str::trim).any(|operand| {
        let letters = || operand.chars().filter(char::is_ascii_alphabetic);
        letters().any(|c| letters().filter(|other| *other == c).count() > 1)
    })
}
