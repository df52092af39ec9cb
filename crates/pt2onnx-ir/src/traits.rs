//! Traits of ONNX's operators: one row for each operator.
//!
//! The single place for facts that hold for all nodes of an operator, as MLIR's op traits.
//! Passes ask [`Node::traits`](crate::Node::traits) instead of listing names.

use bitflags::bitflags;
use rustc_hash::FxHashMap;
use std::sync::LazyLock;

bitflags! {
    /// A set of operator traits.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Traits: u32 {
        /// Each element of the result follows from one element of each operand. Without
        /// [`BROADCASTING`](Self::BROADCASTING), the first input is the only operand; others, as
        /// the bounds of `Clip`, are scalars.
        const ELEMENTWISE = 1 << 0;
        /// All inputs broadcast to the shape of the result.
        const BROADCASTING = 1 << 1;
        /// The first two inputs may change places.
        const COMMUTATIVE = 1 << 2;
        /// The first output has the shape of the first input.
        const SAME_SHAPE = 1 << 3;
        /// The result has the elements of the first input in their order; only the sizes differ.
        const SHAPE_ONLY = 1 << 4;
        /// Each element of each output is an element of the first input; the other inputs are
        /// sizes, axes and positions.
        const DATA_MOVEMENT = 1 << 5;
        /// Selects or compares elements: the result is the same in any type that holds them.
        const SELECTING = 1 << 6;
        /// Reduces axes, which are input 1, with the attributes of `ReduceSum`.
        const REDUCTION = 1 << 7;
        /// Draws random numbers. `Dropout`, which does so in training mode only, does not have it.
        const RANDOM = 1 << 8;
        /// A product with a weight: input 1, if that is constant.
        const LAYER = 1 << 9;
        /// Results are sizes or positions: integers from 0 to 2^31.
        const COUNTING = 1 << 10;
        /// Has a result for any input, so that a node may run where it did not before. `Cast` from
        /// strings is an exception.
        const SPECULATABLE = 1 << 11;
        /// A small change of an operand may change the result by a whole step.
        const DISCONTINUOUS = 1 << 12;
        /// A small change of an operand changes the result about as little.
        const LIPSCHITZ = 1 << 13;
        /// Results are NaN or between -1 and 1.
        const BOUNDED = 1 << 14;
        /// No element of the result is larger in magnitude than the largest one of the first input,
        /// but for rounding.
        const SHRINKING = 1 << 15;
        /// Runtimes have kernels for int8 operands in `QuantizeLinear` and `DequantizeLinear`;
        /// layers have them as well.
        const QUANTISABLE = 1 << 16;
        /// A sum, product or power, whose results leave the range of float16.
        const OVERFLOWING = 1 << 17;
        /// Stays in float32 in a float16 model: a sum whose result is small again, a position, or
        /// bits, or ONNX's function body computes in float32.
        const FLOAT32 = 1 << 18;
        /// Computes on with an [`OVERFLOWING`](Self::OVERFLOWING) result in float32.
        const AFTER_OVERFLOW = 1 << 19;
        /// A window moves over the spatial dimensions.
        const POOL = 1 << 20;

        /// Elementwise, of one operand.
        const UNARY = Self::ELEMENTWISE.bits() | Self::SAME_SHAPE.bits() | Self::SPECULATABLE.bits();
        /// Elementwise, of operands that broadcast.
        const NARY = Self::ELEMENTWISE.bits() | Self::BROADCASTING.bits();
    }
}

impl Traits {
    /// The traits of an operator of the default domain; none for other names.
    pub fn of(op: &str) -> Self {
        static BY_NAME: LazyLock<FxHashMap<&str, Traits>> =
            LazyLock::new(|| OPERATORS.iter().copied().collect());
        BY_NAME.get(op).copied().unwrap_or_default()
    }

    /// The operators that have all of these traits, sorted by name.
    pub fn operators(self) -> impl Iterator<Item = &'static str> {
        OPERATORS.iter().filter(move |row| row.1.contains(self)).map(|row| row.0)
    }
}

macro_rules! operators {
    ($($op:ident: $($name:ident)*;)*) => {
        /// All operators, sorted by name.
        static OPERATORS: &[(&str, Traits)] =
            &[$((stringify!($op), Traits::empty()$(.union(Traits::$name))*)),*];
    };
}

operators! {
    Abs: UNARY LIPSCHITZ SHRINKING AFTER_OVERFLOW;
    Acos: UNARY;
    Acosh: UNARY;
    Add: NARY COMMUTATIVE LIPSCHITZ QUANTISABLE AFTER_OVERFLOW;
    AffineGrid:;
    And: NARY COMMUTATIVE;
    ArgMax: SELECTING COUNTING;
    ArgMin: SELECTING COUNTING;
    Asin: UNARY;
    Asinh: UNARY;
    Atan: UNARY;
    Atanh: UNARY;
    Attention:;
    AveragePool: POOL QUANTISABLE;
    BatchNormalization:;
    Bernoulli: SAME_SHAPE RANDOM;
    BitCast: UNARY FLOAT32;
    BitShift: NARY;
    BitwiseAnd: NARY COMMUTATIVE;
    BitwiseNot: UNARY;
    BitwiseOr: NARY COMMUTATIVE;
    BitwiseXor: NARY COMMUTATIVE;
    BlackmanWindow:;
    Cast: UNARY AFTER_OVERFLOW;
    CastLike: SAME_SHAPE;
    CausalConvWithState:;
    Ceil: UNARY DISCONTINUOUS SHRINKING;
    Celu: UNARY;
    CenterCropPad:;
    Clip: UNARY SELECTING LIPSCHITZ AFTER_OVERFLOW;
    Col2Im:;
    Compress: DATA_MOVEMENT;
    Concat: QUANTISABLE;
    ConcatFromSequence:;
    Constant:;
    ConstantOfShape:;
    Conv: LAYER;
    ConvInteger:;
    ConvTranspose: LAYER;
    Cos: UNARY BOUNDED AFTER_OVERFLOW;
    Cosh: UNARY;
    CumProd: SAME_SHAPE OVERFLOWING;
    CumSum: SAME_SHAPE OVERFLOWING;
    DFT: OVERFLOWING;
    DeformConv:;
    DepthToSpace: DATA_MOVEMENT;
    DequantizeLinear: SAME_SHAPE;
    Det: OVERFLOWING;
    Div: NARY LIPSCHITZ AFTER_OVERFLOW;
    Dropout:;
    DynamicQuantizeLinear:;
    Einsum:;
    Elu: UNARY;
    Equal: NARY COMMUTATIVE SELECTING DISCONTINUOUS;
    Erf: UNARY BOUNDED;
    Exp: UNARY AFTER_OVERFLOW;
    Expand: DATA_MOVEMENT AFTER_OVERFLOW;
    EyeLike: SAME_SHAPE FLOAT32;
    Flatten: SHAPE_ONLY DATA_MOVEMENT QUANTISABLE;
    Floor: UNARY DISCONTINUOUS SHRINKING;
    GRU:;
    Gather: DATA_MOVEMENT;
    GatherElements: DATA_MOVEMENT;
    GatherND: DATA_MOVEMENT;
    Gelu: UNARY;
    Gemm: LAYER;
    GlobalAveragePool: QUANTISABLE;
    GlobalLpPool: OVERFLOWING;
    GlobalMaxPool:;
    Greater: NARY SELECTING DISCONTINUOUS;
    GreaterOrEqual: NARY DISCONTINUOUS;
    GridSample:;
    GroupNormalization: SAME_SHAPE FLOAT32;
    HammingWindow:;
    HannWindow:;
    HardSigmoid: UNARY BOUNDED;
    HardSwish: UNARY;
    Hardmax: SAME_SHAPE;
    Identity: SAME_SHAPE DATA_MOVEMENT;
    If:;
    ImageDecoder:;
    InstanceNormalization:;
    IsInf: UNARY;
    IsNaN: UNARY;
    LRN: SAME_SHAPE;
    LSTM:;
    LayerNormalization:;
    LeakyRelu: UNARY QUANTISABLE;
    Less: NARY SELECTING DISCONTINUOUS;
    LessOrEqual: NARY DISCONTINUOUS;
    LinearAttention:;
    Log: UNARY AFTER_OVERFLOW;
    LogSoftmax: SAME_SHAPE FLOAT32;
    Loop:;
    LpNormalization: SAME_SHAPE FLOAT32;
    LpPool: POOL OVERFLOWING;
    MatMul: LAYER;
    MatMulInteger:;
    Max: NARY COMMUTATIVE SELECTING LIPSCHITZ AFTER_OVERFLOW;
    MaxPool: POOL SELECTING SHRINKING QUANTISABLE;
    MaxRoiPool:;
    MaxUnpool:;
    Mean: NARY COMMUTATIVE;
    MeanVarianceNormalization: SAME_SHAPE FLOAT32;
    MelWeightMatrix: FLOAT32;
    Min: NARY COMMUTATIVE SELECTING LIPSCHITZ AFTER_OVERFLOW;
    Mish: UNARY;
    Mod: NARY DISCONTINUOUS;
    Mul: NARY COMMUTATIVE LIPSCHITZ QUANTISABLE AFTER_OVERFLOW;
    Multinomial: RANDOM;
    Neg: UNARY LIPSCHITZ SHRINKING AFTER_OVERFLOW;
    NegativeLogLikelihoodLoss: FLOAT32;
    NonMaxSuppression: FLOAT32;
    NonZero: COUNTING;
    Not: UNARY;
    OneHot: SELECTING;
    Optional:;
    OptionalGetElement:;
    OptionalHasElement:;
    Or: NARY COMMUTATIVE;
    PRelu:;
    Pad: SELECTING;
    Pow: NARY OVERFLOWING;
    QLinearConv:;
    QLinearMatMul:;
    QuantizeLinear: SAME_SHAPE;
    RMSNormalization: SAME_SHAPE;
    RNN:;
    RandomNormal: RANDOM;
    RandomNormalLike: SAME_SHAPE RANDOM;
    RandomUniform: RANDOM;
    RandomUniformLike: SAME_SHAPE RANDOM;
    Range: FLOAT32;
    Reciprocal: UNARY AFTER_OVERFLOW;
    ReduceL1: REDUCTION OVERFLOWING;
    ReduceL2: REDUCTION OVERFLOWING;
    ReduceLogSum: REDUCTION OVERFLOWING;
    ReduceLogSumExp: REDUCTION OVERFLOWING;
    ReduceMax: SELECTING REDUCTION AFTER_OVERFLOW;
    ReduceMean: REDUCTION AFTER_OVERFLOW;
    ReduceMin: SELECTING REDUCTION AFTER_OVERFLOW;
    ReduceProd: REDUCTION OVERFLOWING;
    ReduceSum: REDUCTION OVERFLOWING;
    ReduceSumSquare: REDUCTION OVERFLOWING;
    RegexFullMatch: SAME_SHAPE;
    Relu: UNARY LIPSCHITZ SHRINKING;
    Reshape: SHAPE_ONLY DATA_MOVEMENT QUANTISABLE AFTER_OVERFLOW;
    Resize: FLOAT32;
    ReverseSequence: SAME_SHAPE DATA_MOVEMENT;
    RoiAlign: FLOAT32;
    RotaryEmbedding: SAME_SHAPE;
    Round: UNARY DISCONTINUOUS SHRINKING;
    STFT: OVERFLOWING;
    Scan:;
    Scatter:;
    ScatterElements: SAME_SHAPE;
    ScatterND: SAME_SHAPE;
    Selu: UNARY;
    SequenceAt:;
    SequenceConstruct:;
    SequenceEmpty:;
    SequenceErase:;
    SequenceInsert:;
    SequenceLength:;
    SequenceMap:;
    Shape: COUNTING SPECULATABLE;
    Shrink: UNARY;
    Sigmoid: UNARY BOUNDED QUANTISABLE;
    Sign: UNARY SELECTING DISCONTINUOUS BOUNDED;
    Sin: UNARY BOUNDED AFTER_OVERFLOW;
    Sinh: UNARY;
    Size: COUNTING SPECULATABLE;
    Slice: DATA_MOVEMENT QUANTISABLE;
    Softmax: SAME_SHAPE BOUNDED;
    SoftmaxCrossEntropyLoss: FLOAT32;
    Softplus: UNARY;
    Softsign: UNARY BOUNDED;
    SpaceToDepth: DATA_MOVEMENT;
    Split: DATA_MOVEMENT;
    SplitToSequence:;
    Sqrt: UNARY AFTER_OVERFLOW;
    Squeeze: SHAPE_ONLY DATA_MOVEMENT QUANTISABLE AFTER_OVERFLOW;
    StringConcat: NARY;
    StringNormalizer:;
    StringSplit:;
    Sub: NARY LIPSCHITZ AFTER_OVERFLOW;
    Sum: NARY COMMUTATIVE;
    SwiGLU:;
    Swish: UNARY;
    Tan: UNARY;
    Tanh: UNARY BOUNDED;
    TensorScatter: SAME_SHAPE;
    TfIdfVectorizer:;
    ThresholdedRelu: UNARY;
    Tile: DATA_MOVEMENT;
    TopK: SELECTING;
    Transpose: DATA_MOVEMENT SPECULATABLE QUANTISABLE AFTER_OVERFLOW;
    Trilu: SAME_SHAPE;
    Unique:;
    Unsqueeze: SHAPE_ONLY DATA_MOVEMENT QUANTISABLE AFTER_OVERFLOW;
    Upsample: FLOAT32;
    Where: NARY;
    Xor: NARY COMMUTATIVE;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;

    #[test]
    fn every_operator_has_a_row() {
        let mut names: Vec<&str> = schema::all().iter().map(|s| s.name).collect();
        names.dedup();
        assert_eq!(OPERATORS.iter().map(|row| row.0).collect::<Vec<_>>(), names);
    }

    #[test]
    fn schemas_agree() {
        let form = |op| schema::lookup(op, schema::CANONICAL_OPSET).unwrap();
        let names = |op| form(op).attributes.iter().map(|a| a.name).collect::<Vec<_>>();
        for op in Traits::REDUCTION.operators() {
            assert_eq!(names(op), names("ReduceSum"), "{op}");
        }
        for op in Traits::COMMUTATIVE.operators() {
            let types = [0, 1].map(|i| form(op).input(i).unwrap().ty);
            assert_eq!(types[0], types[1], "{op}");
        }
    }
}
