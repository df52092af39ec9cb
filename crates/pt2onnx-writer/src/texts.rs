//! Texts and pairs of texts in protobuf messages.

use pt2onnx_ir::Metadata;
use pt2onnx_proto::StringStringEntryProto;
use std::fmt::Display;

/// The value of a text field; an empty text is not written.
pub(crate) fn text(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// Metadata as a field.
pub(crate) fn metadata<T: Display>(entries: &Metadata<T>) -> Vec<StringStringEntryProto> {
    entries.iter().map(|(key, value)| entry(key, value.to_string())).collect()
}

/// A key with its value.
pub(crate) fn entry(key: &str, value: String) -> StringStringEntryProto {
    StringStringEntryProto { key: Some(key.to_owned()), value: Some(value) }
}
