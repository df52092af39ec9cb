//! The kinds of errors.

/// The kind of an error of a conversion. Python's `torch.onnx` has classes for some kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The archive cannot be read.
    Archive,
    /// Ops of the program, or the way they are used, have no translation:
    /// `torch.onnx.errors.UnsupportedOperatorError`.
    UnsupportedOperator,
    /// The program does something else that cannot be translated, such as a write into a view that
    /// cannot be followed: `torch.onnx.errors.OnnxExporterError`.
    Conversion,
    /// The opset asked for cannot express the model.
    Opset,
    /// The runtime to write for cannot run the model.
    Target,
    /// An option is out of range or does not fit the program: an opset, names, sizes.
    Options,
    /// Weights have no values, or the given weights do not fit the model.
    NoWeights,
    /// The exported model is not valid ONNX, which is a bug of pt2onnx:
    /// `torch.onnx.errors.CheckerError`.
    Checker,
    /// There are warnings, and warnings are errors.
    Warnings,
    /// The file is not an ONNX model that can be read, or the model is not valid.
    Model,
    /// The output cannot be written.
    Output,
    /// ONNX Runtime cannot load or run the model (feature `ort`).
    Runtime,
}
