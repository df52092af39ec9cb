//! Reads the numbers of schema.py's enums: element types, layouts, memory formats.

use super::builder::Built;
use crate::{
    element_types::dtype_numbered,
    error::Invalid,
    graph::{Layout, MemoryFormat},
};
use pt2onnx_tensor::DType;

pub(crate) fn dtype(value: i64, owner: impl Fn() -> String) -> Built<DType> {
    let of = "ScalarType";
    dtype_numbered(value).ok_or_else(|| Invalid::Enum { owner: owner(), of, value })
}

pub(super) fn layout(value: i64, owner: impl Fn() -> String) -> Built<Layout> {
    numbered(&Layout::ALL, "Layout", value, owner)
}

pub(super) fn memory_format(value: i64, owner: impl Fn() -> String) -> Built<MemoryFormat> {
    numbered(&MemoryFormat::ALL, "MemoryFormat", value, owner)
}

/// The member of an enum with this number. They start at 1.
fn numbered<T: Copy>(
    all: &[T],
    of: &'static str,
    value: i64,
    owner: impl Fn() -> String,
) -> Built<T> {
    let place = value.checked_sub(1).and_then(|place| usize::try_from(place).ok());
    let found = place.and_then(|place| all.get(place).copied());
    found.ok_or_else(|| Invalid::Enum { owner: owner(), of, value })
}
