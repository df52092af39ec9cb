//! The pt2onnx command.
fn main() {}
