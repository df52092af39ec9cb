//! Traits of ONNX's operators: one row for each set of traits.
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
        static BY_NAME: LazyLock<FxHashMap<&str, Traits>> = LazyLock::new(|| rows().collect());
        BY_NAME.get(op).copied().unwrap_or_default()
    }

    /// The operators that have all of these traits.
    pub fn operators(self) -> impl Iterator<Item = &'static str> {
        rows().filter(move |row| row.1.contains(self)).map(|row| row.0)
    }
}

fn rows() -> impl Iterator<Item = (&'static str, Traits)> {
    OPERATORS.iter().flat_map(|(ops, traits)| ops.iter().map(|op| (*op, *traits)))
}

macro_rules! operators {
    ($($($op:ident)+: $($name:ident)*;)*) => {
        /// All operators: those of a row have the same traits.
        static OPERATORS: &[(&[&str], Traits)] =
            &[$((&[$(stringify!($op)),+], Traits::empty()$(.union(Traits::$name))*)),*];
    };
}

operators! {
    Acos Acosh Asin Asinh Atan Atanh BitwiseNot Celu Cosh Elu Gelu HardSwish IsInf IsNaN Mish Not
        Selu Shrink Sinh Softplus Swish Tan ThresholdedRelu: UNARY;
    Sign: UNARY SELECTING DISCONTINUOUS BOUNDED;
    Clip: UNARY SELECTING LIPSCHITZ AFTER_OVERFLOW;
    Ceil Floor Round: UNARY DISCONTINUOUS SHRINKING;
    Relu: UNARY LIPSCHITZ SHRINKING;
    Abs Neg: UNARY LIPSCHITZ SHRINKING AFTER_OVERFLOW;
    Erf HardSigmoid Softsign Tanh: UNARY BOUNDED;
    Sigmoid: UNARY BOUNDED QUANTISABLE;
    Cos Sin: UNARY BOUNDED AFTER_OVERFLOW;
    LeakyRelu: UNARY QUANTISABLE;
    BitCast: UNARY FLOAT32;
    Cast Exp Log Reciprocal Sqrt: UNARY AFTER_OVERFLOW;
    BitShift StringConcat Where: NARY;
    And BitwiseAnd BitwiseOr BitwiseXor Mean Or Sum Xor: NARY COMMUTATIVE;
    Equal: NARY COMMUTATIVE SELECTING DISCONTINUOUS;
    Max Min: NARY COMMUTATIVE SELECTING LIPSCHITZ AFTER_OVERFLOW;
    Add Mul: NARY COMMUTATIVE LIPSCHITZ QUANTISABLE AFTER_OVERFLOW;
    Greater Less: NARY SELECTING DISCONTINUOUS;
    GreaterOrEqual LessOrEqual Mod: NARY DISCONTINUOUS;
    Div Sub: NARY LIPSCHITZ AFTER_OVERFLOW;
    Pow: NARY OVERFLOWING;
    CastLike DequantizeLinear Hardmax LRN QuantizeLinear RMSNormalization RegexFullMatch
        RotaryEmbedding ScatterElements ScatterND TensorScatter Trilu: SAME_SHAPE;
    Identity ReverseSequence: SAME_SHAPE DATA_MOVEMENT;
    Bernoulli RandomNormalLike RandomUniformLike: SAME_SHAPE RANDOM;
    Softmax: SAME_SHAPE BOUNDED;
    CumProd CumSum: SAME_SHAPE OVERFLOWING;
    EyeLike GroupNormalization LogSoftmax LpNormalization MeanVarianceNormalization: SAME_SHAPE
        FLOAT32;
    Flatten: SHAPE_ONLY DATA_MOVEMENT QUANTISABLE;
    Reshape Squeeze Unsqueeze: SHAPE_ONLY DATA_MOVEMENT QUANTISABLE AFTER_OVERFLOW;
    Compress DepthToSpace Gather GatherElements GatherND SpaceToDepth Split Tile: DATA_MOVEMENT;
    Transpose: DATA_MOVEMENT SPECULATABLE QUANTISABLE AFTER_OVERFLOW;
    Slice: DATA_MOVEMENT QUANTISABLE;
    Expand: DATA_MOVEMENT AFTER_OVERFLOW;
    OneHot Pad TopK: SELECTING;
    ReduceMax ReduceMin: SELECTING REDUCTION AFTER_OVERFLOW;
    ArgMax ArgMin: SELECTING COUNTING;
    ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceProd ReduceSum ReduceSumSquare: REDUCTION
        OVERFLOWING;
    ReduceMean: REDUCTION AFTER_OVERFLOW;
    Multinomial RandomNormal RandomUniform: RANDOM;
    Conv ConvTranspose Gemm MatMul: LAYER;
    NonZero: COUNTING;
    Shape Size: COUNTING SPECULATABLE;
    Concat GlobalAveragePool: QUANTISABLE;
    DFT Det GlobalLpPool STFT: OVERFLOWING;
    MelWeightMatrix NegativeLogLikelihoodLoss NonMaxSuppression Range Resize RoiAlign
        SoftmaxCrossEntropyLoss Upsample: FLOAT32;
    MaxPool: POOL SELECTING SHRINKING QUANTISABLE;
    AveragePool: POOL QUANTISABLE;
    LpPool: POOL OVERFLOWING;
    AffineGrid Attention BatchNormalization BlackmanWindow CausalConvWithState CenterCropPad Col2Im
        ConcatFromSequence Constant ConstantOfShape ConvInteger DeformConv Dropout
        DynamicQuantizeLinear Einsum GRU GlobalMaxPool GridSample HammingWindow HannWindow If
        ImageDecoder InstanceNormalization LSTM LayerNormalization LinearAttention Loop
        MatMulInteger MaxRoiPool MaxUnpool Optional OptionalGetElement OptionalHasElement PRelu
        QLinearConv QLinearMatMul RNN Scan Scatter SequenceAt SequenceConstruct SequenceEmpty
        SequenceErase SequenceInsert SequenceLength SequenceMap SplitToSequence StringNormalizer
        StringSplit SwiGLU TfIdfVectorizer Unique:;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;

    #[test]
    fn every_operator_has_a_row() {
        let mut names: Vec<&str> = schema::all().iter().map(|s| s.name).collect();
        names.dedup();
        let mut listed: Vec<&str> = rows().map(|row| row.0).collect();
        listed.sort_unstable();
        assert_eq!(listed, names);
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
