//! Texts and pairs of texts in protobuf messages.

use pt2onnx_ir::{Metadata, SharedText};
use pt2onnx_proto::StringStringEntryProto;

/// The value of a text field; an empty text is not written.
pub(crate) fn text(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// Metadata as a field.
pub(crate) fn metadata(entries: &Metadata) -> Vec<StringStringEntryProto> {
    entries.iter().map(|(key, value)| entry(key, String::from(&**value))).collect()
}

/// Metadata of texts that share their start, as a field.
pub(crate) fn shared_metadata(entries: &Metadata<SharedText>) -> Vec<StringStringEntryProto> {
    entries.iter().map(|(key, value)| entry(key, value.into())).collect()
}

/// A key with its value.
pub(crate) fn entry(key: &str, value: String) -> StringStringEntryProto {
    StringStringEntryProto { key: Some(key.to_owned()), value: Some(value) }
}
