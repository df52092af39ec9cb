//! The ONNX protobuf messages.
