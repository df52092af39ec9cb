//! Texts and pairs of texts in protobuf messages.

use crate::copy::wide;
use prost::encoding::{self, WireType};
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

/// The fields of an entry of metadata.
const KEY: u32 = 1;
const VALUE: u32 = 2;

/// Appends metadata of texts that share their start, as field `tag`. As messages, these texts would
/// be copied twice more.
pub(crate) fn encode_metadata(tag: u32, entries: &Metadata<SharedText>, to: &mut Vec<u8>) {
    for (key, value) in entries {
        let parts = value.parts();
        let length = parts.iter().map(|part| part.len()).sum();
        start_field(tag, entry_length(key, length), to);
        encode_text(KEY, key, to);
        start_field(VALUE, length, to);
        parts.iter().for_each(|part| to.extend_from_slice(part.as_bytes()));
    }
}

/// The bytes that [`encode_metadata`] appends.
pub(crate) fn metadata_length(tag: u32, entries: &Metadata<SharedText>) -> usize {
    let entries = entries.iter().map(|(key, value)| entry_length(key, value.len()));
    entries.map(|length| field_length(tag, length)).sum()
}

/// The bytes of an entry whose value has so many.
fn entry_length(key: &str, value: usize) -> usize {
    field_length(KEY, key.len()) + field_length(VALUE, value)
}

/// Appends a field with a text.
pub(crate) fn encode_text(tag: u32, text: &str, to: &mut Vec<u8>) {
    start_field(tag, text.len(), to);
    to.extend_from_slice(text.as_bytes());
}

/// Appends what stands before the content of a field with a text or message of so many bytes.
pub(crate) fn start_field(tag: u32, length: usize, to: &mut Vec<u8>) {
    encoding::encode_key(tag, WireType::LengthDelimited, to);
    encoding::encode_varint(wide(length), to);
}

/// The bytes of a field with a text or message of so many bytes.
pub(crate) fn field_length(tag: u32, length: usize) -> usize {
    encoding::key_len(tag) + encoding::encoded_len_varint(wide(length)) + length
}

/// A key with its value.
pub(crate) fn entry(key: &str, value: String) -> StringStringEntryProto {
    StringStringEntryProto { key: Some(key.to_owned()), value: Some(value) }
}
