//! Element types by ONNX's numbers, as attributes like `Cast`'s `to` hold them.

use pt2onnx_tensor::DType;

/// From `TensorProto.DataType` 1 on.
const NUMBERED: [DType; 26] = {
    use DType::*;
    [
        F32, U8, I8, U16, I16, I32, I64, String, Bool, F16, F64, U32, U64, C64, C128, BF16,
        F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, U4, I4, F4E2M1, F8E8M0, U2, I2,
    ]
};

/// The element type of a `TensorProto.DataType`.
pub(crate) fn dtype(number: i64) -> Option<DType> {
    NUMBERED
        .get(usize::try_from(number.checked_sub(1)?).ok()?)
        .copied()
}

/// The `TensorProto.DataType` of an element type; 0 (undefined) where it has none.
pub(crate) fn number(dtype: DType) -> i64 {
    NUMBERED
        .iter()
        .position(|&d| d == dtype)
        .map_or(0, |i| i as i64 + 1)
}
