//! ONNX graphs in memory: arena, types, operator schemas, builder, verifier, text printer.
