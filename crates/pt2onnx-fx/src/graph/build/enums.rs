//! Reads the numbers of schema.py's enums: element types, layouts, memory formats.

use super::builder::Built;
use crate::{
    error::Invalid,
    graph::{Layout, MemoryFormat},
};
use pt2onnx_tensor::DType;

fn unknown(owner: String, of: &'static str, value: i64) -> Invalid {
    Invalid::Enum { owner, of, value }
}

/// The number of `torch.float4_e2m1fn_x2`, which schema.py lacks: the Python package hands it over
/// so.
const FLOAT4: i64 = 255;

pub(crate) fn dtype(value: i64, owner: impl Fn() -> String) -> Built<DType> {
    dtype_numbered(value).ok_or_else(|| unknown(owner(), "ScalarType", value))
}

/// The element type that schema.py's `ScalarType` gives this number.
pub fn dtype_numbered(number: i64) -> Option<DType> {
    Some(match number {
        1 => DType::U8,
        2 => DType::I8,
        3 => DType::I16,
        4 => DType::I32,
        5 => DType::I64,
        6 => DType::F16,
        7 => DType::F32,
        8 => DType::F64,
        9 => DType::C32,
        10 => DType::C64,
        11 => DType::C128,
        12 => DType::Bool,
        13 => DType::BF16,
        28 => DType::U16,
        29 => DType::F8E4M3FN,
        30 => DType::F8E5M2,
        31 => DType::F8E4M3FNUZ,
        32 => DType::F8E5M2FNUZ,
        33 => DType::F8E8M0,
        34 => DType::U32,
        35 => DType::U64,
        FLOAT4 => DType::F4E2M1,
        _ => return None,
    })
}

/// schema.py's `Layout`.
pub(super) fn layout(value: i64, owner: impl Fn() -> String) -> Built<Layout> {
    Ok(match value {
        1 => Layout::SparseCoo,
        2 => Layout::SparseCsr,
        3 => Layout::SparseCsc,
        4 => Layout::SparseBsr,
        5 => Layout::SparseBsc,
        6 => Layout::Mkldnn,
        7 => Layout::Strided,
        _ => return Err(unknown(owner(), "Layout", value)),
    })
}

/// schema.py's `MemoryFormat`.
pub(super) fn memory_format(value: i64, owner: impl Fn() -> String) -> Built<MemoryFormat> {
    Ok(match value {
        1 => MemoryFormat::Contiguous,
        2 => MemoryFormat::ChannelsLast,
        3 => MemoryFormat::ChannelsLast3d,
        4 => MemoryFormat::Preserve,
        _ => return Err(unknown(owner(), "MemoryFormat", value)),
    })
}
