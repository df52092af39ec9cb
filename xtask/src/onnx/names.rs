//! Rust names for ONNX names, and facts about operators and attributes that the schemas do not
//! have.

/// Operators for which pt2onnx-ir has a hand-written method that does more (constants, identities,
/// attributes as plain arguments). The generated method has the suffix `_op`.
const HAND_WRITTEN: &[&str] = &[
    "Add",
    "Cast",
    "CastLike",
    "Clip",
    "Concat",
    "Constant",
    "ConstantOfShape",
    "Div",
    "Equal",
    "Expand",
    "Gather",
    "Greater",
    "GreaterOrEqual",
    "Identity",
    "If",
    "Less",
    "LessOrEqual",
    "Loop",
    "Mul",
    "Pad",
    "Pow",
    "Range",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSum",
    "Reshape",
    "Scan",
    "Shape",
    "Size",
    "Slice",
    "Split",
    "Squeeze",
    "Sub",
    "Tile",
    "Transpose",
    "Unsqueeze",
];

/// Integer attributes that are booleans.
const BOOLEAN: &[&str] = &[
    "align_corners",
    "allowzero",
    "antialias",
    "ceil_mode",
    "center_point_box",
    "count_include_pad",
    "detect_negative",
    "detect_positive",
    "exclude_outside",
    "exclusive",
    "fmod",
    "input_forget",
    "interleaved",
    "inverse",
    "is_case_sensitive",
    "is_causal",
    "keepdims",
    "largest",
    "linear_before_reset",
    "new_axis",
    "noop_with_empty_axes",
    "onesided",
    "periodic",
    "reverse",
    "saturate",
    "select_last_index",
    "sorted",
    "training_mode",
    "transA",
    "transB",
    "upper",
];

/// Whether the integer attribute with this name is a truth value, 0 or 1.
pub fn is_boolean(attribute: &str) -> bool {
    BOOLEAN.contains(&attribute)
}

/// The builder method of an operator: `MatMul` is `matmul`, `If` is `if_op`, `Where` is `where_`.
pub fn method(operator: &str) -> String {
    let name = snake(operator);
    if HAND_WRITTEN.contains(&operator) {
        return format!("{name}_op");
    }
    keyword(name)
}

/// A parameter or field: `transB` is `trans_b`, `data_0` is `data`, `type` is `type_`.
pub fn variable(name: &str) -> String {
    keyword(snake(name.trim_end_matches("_0")))
}

/// The constant of one schema: `GATHER_ND_13`.
pub fn constant(operator: &str, since: u32) -> String {
    format!("{}_{since}", snake(operator).to_uppercase())
}

/// `LayerNormalization` as `layer_normalization`, `GatherND` as `gather_nd`, `QLinearConv` as
/// `qlinear_conv`, `InvStdDev` as `inv_std_dev`: a word starts at a capital after a small letter,
/// and at the last capital of a run of three or more if a small letter follows. Exceptions are
/// listed here.
fn snake(name: &str) -> String {
    match name {
        "IsNaN" => return "is_nan".into(),
        "PRelu" => return "prelu".into(),
        "SwiGLU" => return "swiglu".into(),
        _ => {}
    }
    let chars: Vec<char> = name.chars().collect();
    let upper = |i: usize| chars.get(i).is_some_and(char::is_ascii_uppercase);
    let lower = |i: usize| chars.get(i).is_some_and(char::is_ascii_lowercase);
    let mut out = String::new();
    for (i, c) in chars.iter().enumerate() {
        let after_lower = i > 0 && lower(i - 1);
        let ends_run = i > 1 && upper(i - 1) && upper(i - 2) && lower(i + 1);
        if upper(i) && (after_lower || ends_run) {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out.replace("mat_mul", "matmul")
}

fn keyword(name: String) -> String {
    match name.as_str() {
        "if" | "loop" | "where" | "mod" | "type" | "in" | "ref" | "move" => name + "_",
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rust_names() {
        for (onnx, rust) in [
            ("Gemm", "gemm"),
            ("MatMul", "matmul"),
            ("LayerNormalization", "layer_normalization"),
            ("RMSNormalization", "rms_normalization"),
            ("GatherND", "gather_nd"),
            ("QLinearConv", "qlinear_conv"),
            ("ReduceL1", "reduce_l1"),
            ("Col2Im", "col2im"),
            ("IsNaN", "is_nan"),
            ("QLinearMatMul", "qlinear_matmul"),
            ("TopK", "top_k"),
            ("STFT", "stft"),
            ("LpPool", "lp_pool"),
            ("Reshape", "reshape_op"),
            ("If", "if_op"),
            ("Where", "where_"),
            ("Mod", "mod_"),
            ("Not", "not"),
        ] {
            assert_eq!(method(onnx), rust);
        }
        for (onnx, rust) in [
            ("transB", "trans_b"),
            ("data_0", "data"),
            ("type", "type_"),
            ("X", "x"),
            ("Inputs", "inputs"),
        ] {
            assert_eq!(variable(onnx), rust);
        }
    }
}
