//! ATen to ONNX: the registry of lowerings and the driver that runs them.
