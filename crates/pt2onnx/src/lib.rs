//! From a .pt2 archive to an ONNX model: the exporter.
