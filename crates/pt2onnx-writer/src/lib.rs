//! ONNX graphs to protobuf files and external data.
