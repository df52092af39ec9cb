//! The schemas of ONNX's operators at every opset. The table is generated.

mod operator;

pub use operator::{
    AttributeDefault, AttributeKind, AttributeSchema, OpSchema, Param, ParamKind, TypeConstraint,
    TypeSet,
};

use pt2onnx_tensor::DType;
use rustc_hash::FxHashMap;
use std::sync::LazyLock;

/// The newest opset of the table.
pub const NEWEST_OPSET: u32 = 28;

/// The opset that lowerings emit operators for: the newest that the pinned ONNX Runtime supports.
/// Legalisation converts to other opsets.
pub const CANONICAL_OPSET: u32 = 26;

/// The schema of an operator at `opset`; `None` if the default domain has no such operator at that
/// opset.
pub fn lookup(name: &str, opset: u32) -> Option<&'static OpSchema> {
    versions(name).iter().rfind(|s| s.since <= opset)
}

/// Operators that opsets 1 to 9 had as experiments, without schemas. Runtimes still know most of
/// them.
const EXPERIMENTS: &str = "Affine ConstantFill Crop DynamicSlice ImageScaler \
    MeanVarianceNormalization ParametricSoftplus Scale ScaledTanh ThresholdedRelu";

/// Operators that ONNX Runtime has in ONNX's domain at all opsets. Its optimiser and its model
/// builder write them.
pub const OF_ONNX_RUNTIME: [&str; 2] = ["LayerNormalization", "SimplifiedLayerNormalization"];

/// Whether models have an operator at an opset that has no schema for it: it was an experiment
/// there, or ONNX Runtime added it.
pub fn is_extension(name: &str, opset: u32) -> bool {
    let experiment = opset < 10 && EXPERIMENTS.split(' ').any(|known| known == name);
    (experiment || OF_ONNX_RUNTIME.contains(&name)) && lookup(name, opset).is_none()
}

/// All versions of all operators, sorted by name and opset.
pub fn all() -> &'static [OpSchema] {
    crate::generated::schema::SCHEMAS
}

/// All versions of an operator, oldest first.
pub fn versions(name: &str) -> &'static [OpSchema] {
    static BY_NAME: LazyLock<FxHashMap<&str, &[OpSchema]>> =
        LazyLock::new(|| all().chunk_by(|a, b| a.name == b.name).map(|v| (v[0].name, v)).collect());
    BY_NAME.get(name).copied().unwrap_or_default()
}

/// Element types in the order of `TensorProto.DataType`, from 1 on.
const NUMBERS: [DType; 26] = {
    use DType::*;
    [
        F32, U8, I8, U16, I16, I32, I64, String, Bool, F16, F64, U32, U64, C64, C128, BF16,
        F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, U4, I4, F4E2M1, F8E8M0, U2, I2,
    ]
};

/// `TensorProto.DataType` of an element type, as in the attribute `to` of `Cast`; 0 (undefined) for
/// complex32.
pub fn data_type(dtype: DType) -> i64 {
    NUMBERS.iter().position(|&d| d == dtype).map_or(0, |i| i as i64 + 1)
}

/// The element type with that `TensorProto.DataType`; `None` if the number is not known.
pub fn dtype(number: i64) -> Option<DType> {
    NUMBERS.get(usize::try_from(number.checked_sub(1)?).ok()?).copied()
}
