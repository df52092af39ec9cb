//! How operators treat quantised tensors.

/// The way in which an operator of ATen treats quantised operands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum QuantRule {
    /// It answers from the integers.
    Query,
    /// It moves elements: it runs on the integers.
    Permute,
    /// It computes with floats, and the result is quantised as the first operand is.
    Passthrough,
    /// It computes with floats, and the result is quantised in the type's own way, with this range.
    Fixed { range: f64, centred: bool },
    /// It computes with floats.
    Dequantize,
}

impl QuantRule {
    /// The rule for an operator, without the `_` of one that writes.
    pub(crate) fn of(namespace: &str, name: &str) -> Option<Self> {
        if namespace == "prim" {
            return Some(Self::Query);
        }
        let row = RULES.iter().find(|(_, names)| names.split_whitespace().any(|of| of == name));
        let upsamples = name.trim_start_matches('_').starts_with("upsample_");
        row.map(|(rule, _)| *rule).or(upsamples.then_some(Self::Passthrough))
    }
}

/// The operators of each rule.
const RULES: &[(QuantRule, &str)] = &[
    (
        QuantRule::Query,
        "dim element_size get_device is_complex is_contiguous is_floating_point len numel \
        requires_grad_ shape size stride sym_size",
    ),
    (
        QuantRule::Permute,
        "alias alpha_dropout as_strided channel_shuffle chunk clone contiguous detach dropout \
        expand expand_as feature_dropout flatten flip gather index index_select moveaxis movedim \
        narrow numpy_T permute pixel_shuffle pixel_unshuffle repeat repeat_interleave reshape \
        reshape_as roll rot90 select slice split split_with_sizes squeeze swapaxes swapdims t tile \
        transpose unbind unflatten unfold unsqueeze view view_as",
    ),
    (
        QuantRule::Passthrough,
        "__interpolate adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d \
        adaptive_max_pool1d adaptive_max_pool2d amax amin avg_pool1d avg_pool2d avg_pool3d cat \
        clamp clamp_max clamp_min clip concat concatenate constant_pad_nd hardtanh leaky_relu \
        masked_fill max max_pool1d max_pool2d max_pool3d maximum mean min minimum pad \
        quantized_max_pool1d quantized_max_pool2d quantized_max_pool3d reflection_pad1d \
        reflection_pad2d relu relu6 replication_pad1d replication_pad2d replication_pad3d sort \
        stack threshold topk",
    ),
    (QuantRule::Fixed { range: 1.0, centred: false }, "hardsigmoid sigmoid"),
    (QuantRule::Fixed { range: 2.0, centred: true }, "tanh"),
    (QuantRule::Dequantize, "Bool Float Int argmax argmin eq equal ge gt item le lt ne tolist"),
];

/// Operators of `quantized` that ATen has for floats, and the parameters that ATen's take.
const COMPUTES: &[(&str, &str)] = &[
    ("add", "qa qb"),
    ("celu", "self alpha"),
    ("clamp", "qx min max"),
    ("elu", "self alpha scale input_scale"),
    ("group_norm", "input num_groups weight bias eps"),
    ("hardswish", "input"),
    ("layer_norm", "input normalized_shape weight bias eps"),
    ("leaky_relu", "qx negative_slope"),
    ("matmul", "qa qb"),
    ("max_pool1d", "qx kernel_size stride padding dilation ceil_mode"),
    ("max_pool2d", "qx kernel_size stride padding dilation ceil_mode"),
    ("mul", "qa qb"),
    ("prelu", "qx weight"),
    ("relu6", "qx"),
    ("sigmoid", "qx"),
    ("softmax", "qx dim"),
    ("threshold", "qx threshold value"),
];

/// The parameters of an operator of `quantized` that ATen has for floats.
pub(crate) fn float_params(name: &str) -> Option<impl Iterator<Item = &'static str>> {
    let row = COMPUTES.iter().find(|(known, _)| *known == name);
    row.map(|(_, params)| params.split(' '))
}
