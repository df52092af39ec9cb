//! The rules, one per operator and step. Steps that only add types, or attributes with defaults,
//! need none.

use super::{
    control::{bodies, running},
    early,
    error::Reason,
    forms::{ints_as_attribute, reduced_axes, unless, without},
    index::{axes, indexing, indices, scatter, sorting},
    linalg::{einsum, signal},
    nn::{
        affine, attention, columns, images, loss, normalization, quantization, recurrent, rotary,
        sampling,
    },
    pointwise::{activation, bits, comparison, floats, integers, random},
    replace::Done,
    shape::{padding, shapes, slicing},
};
use pt2onnx_ir::{Model, NodeId};

/// When a rule applies.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    /// If the older form does not accept the node.
    Needed,
    /// Always: the older form may accept the node but mean something else. The newer form keeps the
    /// meaning of the older one.
    Wider,
    /// As `Wider`: the newer form also counts the indices, which are this input, from the end.
    /// Nodes that were written in the older form keep indices that nodes compute.
    Counted(usize),
    /// Always: both forms may accept a node but mean different things.
    Always,
}

/// Edits or replaces the node. The error says what cannot be expressed.
type Apply = fn(&mut Model, NodeId) -> Result<Done, Reason>;

/// Rewrites an operator for one step: from the form that exists since `since` to the form before
/// it.
pub(super) struct Rule {
    pub op: &'static str,
    pub since: u32,
    pub when: When,
    pub apply: Apply,
}

const fn needed(op: &'static str, since: u32, apply: Apply) -> Rule {
    rule(op, since, When::Needed, apply)
}

const fn wider(op: &'static str, since: u32, apply: Apply) -> Rule {
    rule(op, since, When::Wider, apply)
}

const fn counted(op: &'static str, since: u32, input: usize, apply: Apply) -> Rule {
    rule(op, since, When::Counted(input), apply)
}

const fn always(op: &'static str, since: u32, apply: Apply) -> Rule {
    rule(op, since, When::Always, apply)
}

const fn rule(op: &'static str, since: u32, when: When, apply: Apply) -> Rule {
    Rule { op, since, when, apply }
}

/// Sorted by operator and step.
pub(super) static RULES: &[Rule] = &[
    needed("AffineGrid", 20, affine::affine_grid),
    wider("ArgMax", 11, axes::axis),
    needed("ArgMax", 12, indexing::first_index),
    wider("ArgMin", 11, axes::axis),
    needed("ArgMin", 12, indexing::first_index),
    needed("Attention", 23, attention::attention),
    needed("AveragePool", 10, images::pool),
    needed("AveragePool", 19, images::undilated),
    needed("BatchNormalization", 14, normalization::batch_in_training),
    needed("BatchNormalization", 15, normalization::batch_of_one_type),
    needed("Bernoulli", 15, random::bernoulli),
    needed("BitCast", 26, floats::bit_cast),
    needed("BitShift", 11, integers::shift),
    needed("BitwiseAnd", 18, bits::binary),
    needed("BitwiseNot", 18, bits::not),
    needed("BitwiseOr", 18, bits::binary),
    needed("BitwiseXor", 18, bits::binary),
    needed("Cast", 19, |m, n| without(m, n, "saturate")),
    needed("Cast", 24, |m, n| without(m, n, "round_mode")),
    needed("CastLike", 15, shapes::cast_like),
    needed("CastLike", 19, |m, n| without(m, n, "saturate")),
    needed("CastLike", 24, |m, n| without(m, n, "round_mode")),
    needed("Celu", 12, activation::celu),
    needed("Clip", 11, comparison::clip_bounds),
    wider("Clip", 12, comparison::clip_of_others),
    needed("Col2Im", 18, columns::col2im),
    wider("Compress", 11, axes::axis),
    wider("Concat", 11, axes::axis),
    needed("Constant", 12, shapes::constant),
    needed("ConstantOfShape", 9, shapes::expanded),
    needed("ConstantOfShape", 20, shapes::expanded),
    needed("CumProd", 26, running::along),
    needed("CumSum", 11, running::along),
    needed("DFT", 17, signal::transform),
    always("DFT", 20, signal::axis),
    needed("DepthToSpace", 11, shapes::depth_to_space),
    needed("DequantizeLinear", 10, quantization::dequantize),
    always("DequantizeLinear", 13, quantization::axis),
    needed("DequantizeLinear", 19, quantization::dequantize),
    needed("DequantizeLinear", 21, quantization::dequantize),
    needed("DequantizeLinear", 23, quantization::output_dtype_of_scale),
    needed("Dropout", 12, random::dropout),
    needed("Einsum", 12, einsum::einsum),
    needed("Equal", 11, comparison::equal),
    needed("Expand", 8, early::expand),
    wider("Flatten", 11, axes::axis),
    needed("GRU", 14, recurrent::time_first),
    counted("Gather", 11, 1, indices::indices),
    needed("GatherElements", 11, indexing::elements),
    needed("GatherND", 11, indexing::tuples),
    needed("GatherND", 12, indexing::batches),
    needed("Gelu", 20, activation::gelu),
    needed("Gemm", 11, shapes::gemm),
    needed("Greater", 9, early::of_int64),
    needed("GreaterOrEqual", 12, comparison::or_equal),
    needed("GridSample", 16, sampling::grid_sample),
    always("GridSample", 20, images::grid_sample_modes),
    always("GroupNormalization", 21, normalization::group),
    needed("HardSwish", 14, activation::hard_swish),
    wider("Hardmax", 11, axes::axis),
    always("Hardmax", 13, activation::softmax),
    wider("If", 11, bodies::same_sizes),
    needed("IsInf", 10, comparison::is_inf),
    needed("IsNaN", 9, early::is_nan),
    needed("LSTM", 14, recurrent::time_first),
    needed("LayerNormalization", 17, normalization::layer),
    needed("Less", 9, early::of_int64),
    needed("LessOrEqual", 12, comparison::or_equal),
    wider("LogSoftmax", 11, axes::axis),
    always("LogSoftmax", 13, activation::softmax),
    needed("Loop", 11, bodies::with_state),
    needed("LpPool", 18, images::pool),
    wider("Max", 8, early::same_sizes),
    needed("Max", 12, comparison::extremum),
    needed("MaxPool", 10, images::pool),
    wider("Mean", 8, early::same_sizes),
    wider("Min", 8, early::same_sizes),
    needed("Min", 12, comparison::extremum),
    needed("Mish", 18, activation::mish),
    needed("Mod", 10, integers::modulo),
    needed("NegativeLogLikelihoodLoss", 12, loss::negative_log_likelihood),
    needed("NonZero", 9, early::counted),
    needed("OneHot", 9, early::one_hot),
    counted("OneHot", 11, 0, indices::one_hot),
    needed("Pad", 11, slicing::pad),
    needed("Pad", 18, slicing::pad_of_all),
    wider("Pad", 19, padding::wrap),
    needed("Pow", 12, integers::pow),
    needed("QuantizeLinear", 10, quantization::quantize),
    always("QuantizeLinear", 13, quantization::axis),
    needed("QuantizeLinear", 19, quantization::quantize),
    needed("QuantizeLinear", 21, quantization::zero_point_for_output_dtype),
    needed("RMSNormalization", 23, normalization::rms),
    needed("RNN", 14, recurrent::time_first),
    needed("Range", 11, shapes::range),
    wider("ReduceL1", 11, axes::axes),
    needed("ReduceL1", 18, reduced_axes),
    wider("ReduceL2", 11, axes::axes),
    needed("ReduceL2", 18, reduced_axes),
    wider("ReduceLogSum", 11, axes::axes),
    needed("ReduceLogSum", 18, reduced_axes),
    wider("ReduceLogSumExp", 11, axes::axes),
    needed("ReduceLogSumExp", 18, reduced_axes),
    wider("ReduceMax", 11, axes::axes),
    needed("ReduceMax", 18, reduced_axes),
    wider("ReduceMean", 11, axes::axes),
    needed("ReduceMean", 18, reduced_axes),
    wider("ReduceMin", 11, axes::axes),
    needed("ReduceMin", 18, reduced_axes),
    wider("ReduceProd", 11, axes::axes),
    needed("ReduceProd", 18, reduced_axes),
    wider("ReduceSum", 11, axes::axes),
    needed("ReduceSum", 13, reduced_axes),
    wider("ReduceSumSquare", 11, axes::axes),
    needed("ReduceSumSquare", 18, reduced_axes),
    needed("Relu", 14, comparison::relu_of_integers),
    needed("Reshape", 14, shapes::reshape),
    needed("Resize", 10, images::upsample),
    always("Resize", 11, images::resize_modes),
    needed("Resize", 13, shapes::resize_inputs),
    needed("Resize", 18, images::resize_axes),
    wider("Resize", 19, |m, n| {
        unless(m, n, "coordinate_transformation_mode", "half_pixel_symmetric")
    }),
    always("RoiAlign", 16, indexing::roi_align),
    needed("RotaryEmbedding", 23, rotary::rotary),
    needed("Round", 11, integers::round),
    needed("STFT", 17, signal::short_time),
    always("Scan", 9, early::scan),
    wider("Scan", 11, axes::scan_axes),
    needed("ScatterElements", 11, scatter::elements),
    needed("ScatterElements", 16, scatter::sums),
    wider("ScatterElements", 18, scatter::extremes),
    needed("ScatterND", 11, scatter::tuples),
    needed("ScatterND", 16, scatter::sums),
    wider("ScatterND", 18, scatter::extremes),
    needed("SequenceMap", 17, bodies::over_items),
    needed("Shape", 15, shapes::shape),
    needed("Sign", 9, early::sign),
    needed("Slice", 10, slicing::slice),
    wider("Slice", 11, slicing::slice_axes),
    wider("Softmax", 11, axes::axis),
    always("Softmax", 13, activation::softmax),
    needed("SoftmaxCrossEntropyLoss", 12, loss::softmax_cross_entropy),
    wider("Split", 11, axes::axis),
    needed("Split", 13, slicing::split_sizes),
    needed("Split", 18, slicing::split_evenly),
    wider("Squeeze", 11, axes::axes),
    needed("Squeeze", 13, |m, n| ints_as_attribute(m, n, 1, "axes")),
    wider("Sum", 8, early::same_sizes),
    needed("Swish", 24, activation::swish),
    needed("ThresholdedRelu", 10, comparison::thresholded_relu),
    needed("TopK", 10, sorting::top_k_number),
    needed("TopK", 11, sorting::top_k_order),
    needed("Trilu", 14, shapes::trilu),
    wider("Unsqueeze", 11, axes::axes_of_output),
    needed("Unsqueeze", 13, |m, n| ints_as_attribute(m, n, 1, "axes")),
    needed("Upsample", 9, early::scales),
    needed("Where", 9, early::select),
];

/// The rule of an operator and step.
pub(super) fn at(op: &str, since: u32) -> Option<&'static Rule> {
    let found = RULES.binary_search_by(|r| (r.op, r.since).cmp(&(op, since)));
    found.ok().map(|i| &RULES[i])
}
