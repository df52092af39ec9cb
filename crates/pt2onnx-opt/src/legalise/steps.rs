//! The changes of operators from opset to opset: one row for each operator and step.
//!
//! Steps that only add types, or attributes with defaults, have no row.

use super::{
    Emitted, Outcome, Rewritten,
    control::{bodies, running},
    early,
    forms::reduced_axes,
    index::{axes, indexing, indices, scatter, sorting},
    ints_as_attribute,
    linalg::{einsum, signal},
    nn::{
        affine, attention, columns, images, loss, normalization, quantization, recurrent, rotary,
        sampling,
    },
    pointwise::{activation, bits, comparison, floats, integers, random},
    replace,
    shape::{padding, shapes, slicing},
    unless,
    up::{canonical, opset_7},
    without,
};
use pt2onnx_ir::{Builder, Model, Node, NodeId};
use std::{collections::BTreeMap, sync::LazyLock};

/// When a node is rewritten into the older form.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    /// If the older form does not accept the node.
    IfUnsupported,
    /// Always: the older form may accept the node but mean something else. The newer form keeps the
    /// meaning of the older one.
    Superset,
    /// As `Superset`: the newer form also counts the indices, which are this input, from the end.
    /// Nodes that were written in the older form keep computed indices.
    NegativeIndices(usize),
    /// Always: both forms may accept a node but mean different things.
    Always,
}

/// Rewrites a node into the older form, or says why the older opset cannot express it.
#[derive(Clone, Copy)]
pub(super) enum Down {
    /// In place or by others.
    Edit(Edit),
    /// By emitting others in the canonical form.
    Emit(fn(&Builder, &Node) -> Emitted),
}

impl Down {
    pub fn rewrite(self, model: &mut Model, id: NodeId) -> Outcome {
        match self {
            Self::Edit(edit) => edit(model, id),
            Self::Emit(emit) => replace(model, id, emit),
        }
    }
}

type Edit = fn(&mut Model, NodeId) -> Outcome;

/// Rewrites a node of any form before the step into the newer one. With the flag, only into a node
/// that [`Down`] can make the older one again.
type Up = fn(&mut Model, NodeId, bool) -> Outcome;

/// The change of operators to the forms that exist since `since`.
pub(super) struct Step {
    /// The operators, between spaces.
    ops: &'static str,
    since: u32,
    pub when: When,
    pub down: Option<Down>,
    pub up: Option<Up>,
    /// Whether a node means something else in the other form, or only the older one takes it,
    /// although both schemas accept it.
    pub changed_meaning: Option<fn(&Model, NodeId) -> bool>,
}

const fn step(ops: &'static str, since: u32) -> Step {
    Step { ops, since, when: When::IfUnsupported, down: None, up: None, changed_meaning: None }
}

const fn if_unsupported(ops: &'static str, since: u32, edit: Edit) -> Step {
    Step { down: Some(Down::Edit(edit)), ..step(ops, since) }
}

const fn by_nodes(ops: &'static str, since: u32, emit: fn(&Builder, &Node) -> Emitted) -> Step {
    Step { down: Some(Down::Emit(emit)), ..step(ops, since) }
}

const fn superset(ops: &'static str, since: u32, edit: Edit) -> Step {
    Step { when: When::Superset, ..if_unsupported(ops, since, edit) }
}

const fn negative_indices(ops: &'static str, since: u32, input: usize, edit: Edit) -> Step {
    Step { when: When::NegativeIndices(input), ..if_unsupported(ops, since, edit) }
}

const fn always(ops: &'static str, since: u32, edit: Edit) -> Step {
    Step { when: When::Always, ..if_unsupported(ops, since, edit) }
}

impl Step {
    const fn up(self, up: Up) -> Self {
        Self { up: Some(up), ..self }
    }

    const fn changes(self, changed_meaning: fn(&Model, NodeId) -> bool) -> Self {
        Self { changed_meaning: Some(changed_meaning), ..self }
    }
}

/// Rows of steps, each of one or more operators.
static ROWS: &[Step] = &[
    step("Add And Div Equal Greater Less Mul Or Pow Sub Xor", 7).up(opset_7::broadcast),
    by_nodes("AffineGrid", 20, affine::affine_grid),
    superset(
        "ArgMax ArgMin Compress Concat Flatten Hardmax LogSoftmax Softmax Split",
        11,
        axes::axis,
    ),
    if_unsupported("ArgMax ArgMin", 12, indexing::first_index),
    by_nodes("Attention", 23, attention::attention),
    if_unsupported("AveragePool MaxPool", 10, images::pool),
    if_unsupported("AveragePool", 19, images::undilated),
    step("BatchNormalization Dropout", 7).up(opset_7::inference),
    if_unsupported("BatchNormalization", 14, normalization::batch_in_training)
        .up(canonical::batch_norm),
    by_nodes("BatchNormalization", 15, normalization::batch_of_one_type),
    by_nodes("Bernoulli", 15, random::bernoulli),
    if_unsupported("BitCast", 26, floats::bit_cast),
    by_nodes("BitShift", 11, integers::shift),
    by_nodes("BitwiseAnd BitwiseOr BitwiseXor", 18, bits::binary),
    by_nodes("BitwiseNot", 18, bits::not),
    step("Cast", 6).up(opset_7::cast),
    if_unsupported("Cast CastLike", 19, |m, n| without(m, n, "saturate")),
    if_unsupported("Cast CastLike", 24, |m, n| without(m, n, "round_mode")),
    by_nodes("CastLike", 15, shapes::cast_like),
    by_nodes("Celu", 12, activation::celu),
    step("Clip", 6).up(opset_7::clip),
    if_unsupported("Clip", 11, comparison::clip_bounds).up(canonical::clip),
    superset("Clip", 12, comparison::clip_of_others),
    by_nodes("Col2Im", 18, columns::col2im),
    // The axis was 1 if it was not given.
    step("Concat", 4).up(|m, n, _| opset_7::defaults(m, n, [("axis", 1)])),
    if_unsupported("Constant", 12, shapes::constant),
    by_nodes("ConstantOfShape", 9, shapes::expanded),
    by_nodes("ConstantOfShape", 20, shapes::expanded),
    if_unsupported("CumProd", 26, running::along),
    if_unsupported("CumSum", 11, running::along),
    by_nodes("DFT", 17, signal::transform),
    always("DFT", 20, signal::axis).up(canonical::transform),
    if_unsupported("DepthToSpace", 11, shapes::depth_to_space),
    if_unsupported("DequantizeLinear", 10, quantization::dequantize),
    always("DequantizeLinear QuantizeLinear", 13, quantization::axis).up(canonical::quantization),
    if_unsupported("DequantizeLinear", 19, quantization::dequantize),
    if_unsupported("DequantizeLinear", 21, quantization::dequantize),
    if_unsupported("DequantizeLinear", 23, quantization::output_dtype_of_scale),
    step("Dropout", 10).up(canonical::typed_dropout).changes(|m, n| m[n].outputs().len() > 1),
    if_unsupported("Dropout", 12, random::dropout).up(|m, n, _| without(m, n, "ratio")),
    by_nodes("Einsum", 12, einsum::einsum),
    if_unsupported("Equal", 11, comparison::equal),
    by_nodes("Expand", 8, early::expand),
    if_unsupported("GRU LSTM RNN", 14, recurrent::time_first),
    negative_indices("Gather", 11, 1, indices::indices),
    by_nodes("GatherElements", 11, indexing::elements),
    by_nodes("GatherND", 11, indexing::tuples),
    if_unsupported("GatherND", 12, indexing::batches),
    by_nodes("Gelu", 20, activation::gelu),
    step("Gemm", 7).up(|m, n, _| without(m, n, "broadcast")),
    if_unsupported("Gemm", 11, shapes::gemm),
    step("GlobalLpPool LpPool", 2).up(opset_7::norm),
    if_unsupported("Greater Less", 9, early::of_int64),
    by_nodes("GreaterOrEqual LessOrEqual", 12, comparison::or_equal),
    by_nodes("GridSample", 16, sampling::grid_sample),
    always("GridSample", 20, images::grid_sample_modes).up(canonical::grid_sample),
    always("GroupNormalization", 21, |m, n| replace(m, n, normalization::group))
        .up(canonical::group_norm),
    by_nodes("HardSwish", 14, activation::hard_swish),
    always("Hardmax LogSoftmax Softmax", 13, activation::softmax).up(canonical::softmax),
    superset("If", 11, bodies::same_sizes),
    by_nodes("IsInf", 10, comparison::is_inf),
    by_nodes("IsNaN", 9, early::is_nan),
    by_nodes("LayerNormalization", 17, normalization::layer),
    if_unsupported("Loop", 11, bodies::with_state),
    if_unsupported("LpPool", 18, images::pool),
    superset("Max Mean Min Sum", 8, early::same_sizes),
    if_unsupported("Max Min", 12, comparison::extremum),
    by_nodes("Mish", 18, activation::mish),
    if_unsupported("Mod", 10, integers::modulo),
    by_nodes("NegativeLogLikelihoodLoss", 12, loss::negative_log_likelihood),
    if_unsupported("NonZero", 9, early::counted),
    if_unsupported("OneHot", 9, early::one_hot),
    negative_indices("OneHot", 11, 0, indices::one_hot),
    step("PRelu", 7).up(opset_7::slope),
    step("Pad", 2).up(opset_7::pad),
    if_unsupported("Pad", 11, slicing::pad).up(canonical::pad),
    if_unsupported("Pad", 18, slicing::pad_of_all),
    superset("Pad", 19, padding::wrap),
    if_unsupported("Pow", 12, integers::pow),
    if_unsupported("QuantizeLinear", 10, quantization::quantize),
    if_unsupported("QuantizeLinear", 19, quantization::quantize),
    if_unsupported("QuantizeLinear", 21, quantization::zero_point_for_output_dtype),
    by_nodes("RMSNormalization", 23, normalization::rms),
    by_nodes("Range", 11, shapes::range),
    superset(
        "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin \
         ReduceProd ReduceSum ReduceSumSquare Squeeze",
        11,
        axes::axes,
    ),
    if_unsupported(
        "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin \
         ReduceProd ReduceSumSquare",
        18,
        reduced_axes,
    )
    .up(canonical::reduction),
    if_unsupported("ReduceSum", 13, reduced_axes).up(canonical::reduction),
    by_nodes("Relu", 14, comparison::relu_of_integers),
    step("Reshape", 5).up(|m, n, _| canonical::ints_as_input(m, n, "shape", 1)),
    if_unsupported("Reshape", 14, shapes::reshape),
    if_unsupported("Resize", 10, images::upsample),
    always("Resize", 11, images::resize_modes).up(canonical::resize),
    if_unsupported("Resize", 13, shapes::resize_inputs)
        .up(canonical::resize_inputs)
        .changes(images::is_lost),
    if_unsupported("Resize", 18, images::resize_axes),
    superset("Resize", 19, |m, n| {
        unless(m, n, "coordinate_transformation_mode", "half_pixel_symmetric")
    }),
    always("RoiAlign", 16, indexing::roi_align).up(canonical::roi_align),
    by_nodes("RotaryEmbedding", 23, rotary::rotary),
    by_nodes("Round", 11, integers::round),
    by_nodes("STFT", 17, signal::short_time),
    always("Scan", 9, early::scan),
    superset("Scan", 11, axes::scan_axes),
    step("Scatter", 11).up(|m, n, _| {
        m.set_op(n, "ScatterElements");
        Ok(Rewritten::InPlace)
    }),
    if_unsupported("ScatterElements", 11, scatter::elements),
    if_unsupported("ScatterElements ScatterND", 16, scatter::sums),
    superset("ScatterElements ScatterND", 18, scatter::extremes),
    by_nodes("ScatterND", 11, scatter::tuples),
    // The defaults have more digits since then.
    step("Selu", 6)
        .up(|m, n, _| opset_7::defaults(m, n, [("alpha", 1.6732f32), ("gamma", 1.0507)])),
    by_nodes("SequenceMap", 17, bodies::over_items),
    by_nodes("Shape", 15, shapes::shape),
    by_nodes("Sign", 9, early::sign),
    if_unsupported("Slice", 10, slicing::slice).up(canonical::slice),
    superset("Slice", 11, slicing::slice_axes),
    by_nodes("SoftmaxCrossEntropyLoss", 12, loss::softmax_cross_entropy),
    step("Split", 2).up(opset_7::split),
    if_unsupported("Split", 13, slicing::split_sizes),
    if_unsupported("Split", 18, slicing::split_evenly)
        .up(canonical::split)
        .changes(|m, n| m[n].input(1).is_none() && m[n].attribute("num_outputs").is_none()),
    if_unsupported("Squeeze Unsqueeze", 13, |m, n| ints_as_attribute(m, n, 1, "axes"))
        .up(|m, n, _| canonical::ints_as_input(m, n, "axes", 1)),
    by_nodes("Swish", 24, activation::swish),
    by_nodes("ThresholdedRelu", 10, comparison::thresholded_relu),
    step("Tile", 6).up(opset_7::tile),
    if_unsupported("TopK", 10, sorting::top_k_number).up(canonical::top_k),
    if_unsupported("TopK", 11, sorting::top_k_order),
    by_nodes("Trilu", 14, shapes::trilu),
    superset("Unsqueeze", 11, |m, n| axes::counted(m, n, <[i64]>::len)),
    step("Upsample", 7).up(opset_7::upsample),
    if_unsupported("Upsample", 9, early::scales),
    step("Upsample", 10).up(canonical::upsample),
    by_nodes("Where", 9, early::select),
];

pub(super) static STEPS: LazyLock<BTreeMap<(&str, u32), &Step>> = LazyLock::new(|| {
    let rows = ROWS.iter();
    rows.flat_map(|step| step.ops.split(' ').map(move |op| ((op, step.since), step))).collect()
});

pub(super) fn at(op: &str, since: u32) -> Option<&'static Step> {
    STEPS.get(&(op, since)).copied()
}

/// The rewriting of an operator's form of opset `from` into a newer one, up to opset `to`.
pub(super) fn up(op: &str, from: u32, to: u32) -> Option<Up> {
    let newer = STEPS.range((op, from + 1)..);
    newer.take_while(|((name, since), _)| *name == op && *since <= to).find_map(|(_, s)| s.up)
}
