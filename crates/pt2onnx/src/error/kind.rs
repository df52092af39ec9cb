//! The kinds of errors.

/// Of what sort an [`Error`] is. Python's `torch.onnx` has classes for some.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The archive cannot be read.
    Archive,
    /// Ops of the program, or the way they are used, have no translation: `torch.onnx.errors.UnsupportedOperatorError`.
    UnsupportedOperator,
    /// The program does something else that cannot be translated, such as a write that cannot be followed:
    /// `torch.onnx.errors.OnnxExporterError`.
    Conversion,
    /// The opset asked for cannot express the model.
    Opset,
    /// The runtime to write for cannot run the model.
    Target,
    /// What was asked for does not fit the program, or cannot be had: an opset, names, sizes.
    Options,
    /// Weights have no values, or those given do not fit the model.
    NoWeights,
    /// The model made is not valid ONNX, a bug of pt2onnx: `torch.onnx.errors.CheckerError`.
    Checker,
    /// There are warnings, which were asked to be errors.
    Warnings,
    /// The file is no ONNX model that can be read, or not a valid one.
    Model,
    /// The output cannot be written.
    Output,
    /// ONNX Runtime cannot load or run the model (feature `ort`).
    Runtime,
}
