//! Reserved words, short names of element types, and names of operators.

use crate::graph::OpName;
use pt2onnx_tensor::DType;

/// PyTorch's short names of element types (`torch.utils._dtype_abbrs`), and names in the same style
/// for other types.
pub(super) const SHORT: [(DType, &str); 27] = [
    (DType::F64, "f64"),
    (DType::F32, "f32"),
    (DType::F16, "f16"),
    (DType::BF16, "bf16"),
    (DType::I64, "i64"),
    (DType::I32, "i32"),
    (DType::I16, "i16"),
    (DType::I8, "i8"),
    (DType::U64, "u64"),
    (DType::U32, "u32"),
    (DType::U16, "u16"),
    (DType::U8, "u8"),
    (DType::Bool, "b8"),
    (DType::C32, "c32"),
    (DType::C64, "c64"),
    (DType::C128, "c128"),
    (DType::F8E4M3FN, "f8e4m3fn"),
    (DType::F8E4M3FNUZ, "f8e4m3fnuz"),
    (DType::F8E5M2, "f8e5m2"),
    (DType::F8E5M2FNUZ, "f8e5m2fnuz"),
    (DType::F8E8M0, "f8e8m0fnu"),
    (DType::F4E2M1, "f4e2m1"),
    (DType::I4, "i4"),
    (DType::U4, "u4"),
    (DType::I2, "i2"),
    (DType::U2, "u2"),
    (DType::String, "str"),
];

/// PyTorch's short name of an element type: `f32`.
pub(crate) fn short_name(dtype: DType) -> &'static str {
    let short = SHORT.iter().find(|(other, _)| *other == dtype);
    short.map_or("?", |(_, name)| name)
}

/// Words that cannot be names of values.
pub(super) const RESERVED: [&str; 11] =
    ["None", "True", "False", "inf", "nan", "infj", "nanj", "torch", "graph", "return", "Sym"];

/// Modules whose members are Python functions, not operators.
const FUNCTIONS: [&str; 4] = ["_operator", "operator", "math", "torch"];

/// The target that a path names: `aten.add.Tensor`, `aten.relu` (its default overload),
/// `higher_order.cond`, `_operator.add`, or any of them as the archive writes it.
pub(super) fn target(path: &str) -> OpName {
    let (module, rest) = path.split_once('.').unwrap_or((path, ""));
    if path.starts_with("torch.ops.") || FUNCTIONS.contains(&module) || rest.is_empty() {
        return OpName::parse(path);
    }
    let op = OpName::parse(&format!("torch.ops.{path}"));
    if op.is_operator() || op.is_higher_order() {
        op
    } else {
        OpName::new(&op.namespace, &op.name, "default")
    }
}
