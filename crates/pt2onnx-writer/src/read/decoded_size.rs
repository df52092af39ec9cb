//! The memory that a file takes when it is decoded: an empty message takes two bytes of a file, and
//! hundreds in memory.

use pt2onnx_proto::{InMemory, MESSAGES};

/// Nesting of messages in a file, as prost decodes them.
const MAX_DEPTH: usize = 100;

/// The bytes that the messages within a message take in memory, as far as it can be read; decoding
/// finds what is wrong with the rest. Stops above `most`.
pub(super) fn decoded_size(bytes: &[u8], message: usize, most: usize) -> usize {
    let mut size = 0;
    add(bytes, message, MAX_DEPTH, most, &mut size);
    size
}

fn add(mut bytes: &[u8], message: usize, depth: usize, most: usize, size: &mut usize) {
    let Some(fields) = MESSAGES.get(message).map(|m| m.fields).filter(|_| depth > 0) else {
        return;
    };
    while let Some((number, content, rest)) = field(bytes) {
        bytes = rest;
        match fields.iter().find(|(known, _)| *known == number) {
            Some((_, InMemory::Message(inner))) => {
                *size += MESSAGES.get(*inner).map_or(0, |m| m.size);
                add(content, *inner, depth - 1, most, size);
            }
            Some((_, InMemory::Text)) => *size += size_of::<String>(),
            None => {}
        }
        if *size > most {
            return;
        }
    }
}

/// The number of the first field, its content if it has a length, and the bytes behind it.
fn field(bytes: &[u8]) -> Option<(u32, &[u8], &[u8])> {
    let (key, bytes) = varint(bytes)?;
    let number = u32::try_from(key >> 3).ok()?;
    let (length, bytes) = match key & 7 {
        0 => (0, varint(bytes)?.1),
        1 => (8, bytes),
        2 => {
            let (length, bytes) = varint(bytes)?;
            (usize::try_from(length).ok()?, bytes)
        }
        // The fields of a group follow.
        3 | 4 => (0, bytes),
        5 => (4, bytes),
        _ => return None,
    };
    let (content, rest) = bytes.split_at_checked(length)?;
    Some((number, if key & 7 == 2 { content } else { &[] }, rest))
}

#[inline]
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    // Nearly all keys and lengths take one byte.
    if let [byte @ ..0x80, rest @ ..] = bytes {
        return Some((u64::from(*byte), rest));
    }
    let mut value = 0;
    for (i, &byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            return Some((value, bytes.get(i + 1..)?));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message;
    use pt2onnx_proto::{
        AttributeProto, GraphProto, MODEL, ModelProto, NodeProto, TensorProto, ValueInfoProto,
    };

    fn size(graph: GraphProto) -> usize {
        let model = ModelProto { ir_version: Some(9), graph: Some(graph), ..Default::default() };
        decoded_size(&model.encode_to_vec(), MODEL, usize::MAX) - size_of::<GraphProto>()
    }

    #[test]
    fn messages_and_texts_are_counted() {
        let graph =
            GraphProto { initializer: vec![TensorProto::default(); 7], ..Default::default() };
        assert_eq!(size(graph), 7 * size_of::<TensorProto>());
        let graph = GraphProto { input: vec![ValueInfoProto::default(); 5], ..Default::default() };
        assert_eq!(size(graph), 5 * size_of::<ValueInfoProto>());
        let attribute = vec![AttributeProto { i: Some(3), ..Default::default() }; 2];
        let input = vec![String::new(); 3];
        let node = vec![NodeProto { input, attribute, ..Default::default() }];
        let graph = GraphProto { node, ..Default::default() };
        let in_node = 2 * size_of::<AttributeProto>() + 3 * size_of::<String>();
        assert_eq!(size(graph), size_of::<NodeProto>() + in_node);
    }

    #[test]
    fn anything_ends() {
        let bytes: Vec<u8> = (0..=255).cycle().take(4096).collect();
        for start in 0..256 {
            decoded_size(&bytes[start..], MODEL, usize::MAX);
        }
        // Deeper ones are an error of prost.
        assert_eq!(size(nested(100)), size(nested(200)));
    }

    /// Bodies within bodies.
    fn nested(depth: usize) -> GraphProto {
        (0..depth).fold(GraphProto::default(), |graph, _| {
            let attribute = AttributeProto { g: Some(Box::new(graph)), ..Default::default() };
            let node = NodeProto { attribute: vec![attribute], ..Default::default() };
            GraphProto { node: vec![node], ..Default::default() }
        })
    }
}
