//! Weights pass through the messages without being copied.

use bytes::Bytes;
use prost::Message;
use pt2onnx_proto::TensorProto;

#[test]
fn decoding_shares_the_buffer() {
    let tensor = TensorProto { raw_data: Some(Bytes::from(vec![7u8; 4096])), ..Default::default() };
    let file = Bytes::from(tensor.encode_to_vec());
    let decoded = TensorProto::decode(file.clone()).unwrap();
    let inside = file.as_ptr_range();
    let bytes = decoded.raw_data.unwrap().as_ptr_range();
    assert!(inside.start <= bytes.start && bytes.end <= inside.end);
}
