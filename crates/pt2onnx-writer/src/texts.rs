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

/// The field with the metadata of a node.
const METADATA_PROPS: u32 = 9;

/// Appends metadata of texts that share their start to a node that has no field after it. As messages, these texts would be copied
/// twice more.
pub(crate) fn encode_metadata(entries: &Metadata<SharedText>, to: &mut Vec<u8>) {
    let (key_tag, value_tag) = (1, 2);
    for (key, value) in entries {
        let parts = value.parts();
        let length = parts.iter().map(|part| part.len()).sum();
        let both = field_length(key_tag, key.len()) + field_length(value_tag, length);
        start_field(METADATA_PROPS, both, to);
        start_field(key_tag, key.len(), to);
        to.extend_from_slice(key.as_bytes());
        start_field(value_tag, length, to);
        parts.iter().for_each(|part| to.extend_from_slice(part.as_bytes()));
    }
}

/// Appends what stands before the content of a field with a text or message of so many bytes.
pub(crate) fn start_field(tag: u32, length: usize, to: &mut Vec<u8>) {
    encoding::encode_key(tag, WireType::LengthDelimited, to);
    encoding::encode_varint(wide(length), to);
}

/// The bytes of a field with a text of so many bytes.
fn field_length(tag: u32, length: usize) -> usize {
    encoding::key_len(tag) + encoding::encoded_len_varint(wide(length)) + length
}

/// A key with its value.
pub(crate) fn entry(key: &str, value: String) -> StringStringEntryProto {
    StringStringEntryProto { key: Some(key.to_owned()), value: Some(value) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message;
    use pt2onnx_proto::NodeProto;
    use std::sync::Arc;

    #[test]
    fn metadata_is_encoded_as_in_a_message() {
        let start = Arc::new(SharedText::from("m.Layer/"));
        let entries = vec![
            ("namespace".into(), SharedText::after(&start, "relu".repeat(100))),
            ("class".into(), SharedText::from("")),
            ("".into(), SharedText::from("a")),
        ];
        let mut bytes = Vec::new();
        encode_metadata(&entries, &mut bytes);
        let metadata_props = shared_metadata(&entries);
        assert_eq!(bytes, NodeProto { metadata_props, ..NodeProto::default() }.encode_to_vec());
    }
}
