//! Passes over ONNX graphs: folding, clean-up, opset legalisation.
