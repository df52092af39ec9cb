//! How operators of ATen treat quantised tensors.

/// The way in which an operator treats quantised operands.
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
        let row = RULES.binary_search_by_key(&name, |(name, _)| name);
        match row.ok().and_then(|at| RULES.get(at)) {
            _ if namespace == "prim" => Some(Self::Query),
            Some((_, rule)) => Some(*rule),
            None if name.strip_prefix('_').unwrap_or(name).starts_with("upsample_") => {
                Some(Self::Passthrough)
            }
            None => None,
        }
    }
}

/// Operators and their rules, sorted by name.
const RULES: &[(&str, QuantRule)] = &[
    ("Bool", QuantRule::Dequantize),
    ("Float", QuantRule::Dequantize),
    ("Int", QuantRule::Dequantize),
    ("__interpolate", QuantRule::Passthrough),
    ("adaptive_avg_pool1d", QuantRule::Passthrough),
    ("adaptive_avg_pool2d", QuantRule::Passthrough),
    ("adaptive_avg_pool3d", QuantRule::Passthrough),
    ("adaptive_max_pool1d", QuantRule::Passthrough),
    ("adaptive_max_pool2d", QuantRule::Passthrough),
    ("alias", QuantRule::Permute),
    ("alpha_dropout", QuantRule::Permute),
    ("amax", QuantRule::Passthrough),
    ("amin", QuantRule::Passthrough),
    ("argmax", QuantRule::Dequantize),
    ("argmin", QuantRule::Dequantize),
    ("as_strided", QuantRule::Permute),
    ("avg_pool1d", QuantRule::Passthrough),
    ("avg_pool2d", QuantRule::Passthrough),
    ("avg_pool3d", QuantRule::Passthrough),
    ("cat", QuantRule::Passthrough),
    ("channel_shuffle", QuantRule::Permute),
    ("chunk", QuantRule::Permute),
    ("clamp", QuantRule::Passthrough),
    ("clamp_max", QuantRule::Passthrough),
    ("clamp_min", QuantRule::Passthrough),
    ("clip", QuantRule::Passthrough),
    ("clone", QuantRule::Permute),
    ("concat", QuantRule::Passthrough),
    ("concatenate", QuantRule::Passthrough),
    ("constant_pad_nd", QuantRule::Passthrough),
    ("contiguous", QuantRule::Permute),
    ("detach", QuantRule::Permute),
    ("dim", QuantRule::Query),
    ("dropout", QuantRule::Permute),
    ("element_size", QuantRule::Query),
    ("eq", QuantRule::Dequantize),
    ("equal", QuantRule::Dequantize),
    ("expand", QuantRule::Permute),
    ("expand_as", QuantRule::Permute),
    ("feature_dropout", QuantRule::Permute),
    ("flatten", QuantRule::Permute),
    ("flip", QuantRule::Permute),
    ("gather", QuantRule::Permute),
    ("ge", QuantRule::Dequantize),
    ("get_device", QuantRule::Query),
    ("gt", QuantRule::Dequantize),
    ("hardsigmoid", QuantRule::Fixed { range: 1.0, centred: false }),
    ("hardtanh", QuantRule::Passthrough),
    ("index", QuantRule::Permute),
    ("index_select", QuantRule::Permute),
    ("is_complex", QuantRule::Query),
    ("is_contiguous", QuantRule::Query),
    ("is_floating_point", QuantRule::Query),
    ("item", QuantRule::Dequantize),
    ("le", QuantRule::Dequantize),
    ("leaky_relu", QuantRule::Passthrough),
    ("len", QuantRule::Query),
    ("lt", QuantRule::Dequantize),
    ("masked_fill", QuantRule::Passthrough),
    ("max", QuantRule::Passthrough),
    ("max_pool1d", QuantRule::Passthrough),
    ("max_pool2d", QuantRule::Passthrough),
    ("max_pool3d", QuantRule::Passthrough),
    ("maximum", QuantRule::Passthrough),
    ("mean", QuantRule::Passthrough),
    ("min", QuantRule::Passthrough),
    ("minimum", QuantRule::Passthrough),
    ("moveaxis", QuantRule::Permute),
    ("movedim", QuantRule::Permute),
    ("narrow", QuantRule::Permute),
    ("ne", QuantRule::Dequantize),
    ("numel", QuantRule::Query),
    ("numpy_T", QuantRule::Permute),
    ("pad", QuantRule::Passthrough),
    ("permute", QuantRule::Permute),
    ("pixel_shuffle", QuantRule::Permute),
    ("pixel_unshuffle", QuantRule::Permute),
    ("quantized_max_pool1d", QuantRule::Passthrough),
    ("quantized_max_pool2d", QuantRule::Passthrough),
    ("quantized_max_pool3d", QuantRule::Passthrough),
    ("reflection_pad1d", QuantRule::Passthrough),
    ("reflection_pad2d", QuantRule::Passthrough),
    ("relu", QuantRule::Passthrough),
    ("relu6", QuantRule::Passthrough),
    ("repeat", QuantRule::Permute),
    ("repeat_interleave", QuantRule::Permute),
    ("replication_pad1d", QuantRule::Passthrough),
    ("replication_pad2d", QuantRule::Passthrough),
    ("replication_pad3d", QuantRule::Passthrough),
    ("requires_grad_", QuantRule::Query),
    ("reshape", QuantRule::Permute),
    ("reshape_as", QuantRule::Permute),
    ("roll", QuantRule::Permute),
    ("rot90", QuantRule::Permute),
    ("select", QuantRule::Permute),
    ("shape", QuantRule::Query),
    ("sigmoid", QuantRule::Fixed { range: 1.0, centred: false }),
    ("size", QuantRule::Query),
    ("slice", QuantRule::Permute),
    ("sort", QuantRule::Passthrough),
    ("split", QuantRule::Permute),
    ("split_with_sizes", QuantRule::Permute),
    ("squeeze", QuantRule::Permute),
    ("stack", QuantRule::Passthrough),
    ("stride", QuantRule::Query),
    ("swapaxes", QuantRule::Permute),
    ("swapdims", QuantRule::Permute),
    ("sym_size", QuantRule::Query),
    ("t", QuantRule::Permute),
    ("tanh", QuantRule::Fixed { range: 2.0, centred: true }),
    ("threshold", QuantRule::Passthrough),
    ("tile", QuantRule::Permute),
    ("tolist", QuantRule::Dequantize),
    ("topk", QuantRule::Passthrough),
    ("transpose", QuantRule::Permute),
    ("unbind", QuantRule::Permute),
    ("unflatten", QuantRule::Permute),
    ("unfold", QuantRule::Permute),
    ("unsqueeze", QuantRule::Permute),
    ("view", QuantRule::Permute),
    ("view_as", QuantRule::Permute),
];

#[cfg(test)]
mod tests {
    use super::RULES;

    #[test]
    fn the_table_is_sorted() {
        assert!(RULES.is_sorted_by(|(a, _), (b, _)| a < b));
    }
}
