//! The contents of a report. The keys of its JSON form are the names of the fields;
//! `docs/report.md` explains them.

use crate::{drawing::Drawing, error_kind::ErrorKind, warning::Warning};
use serde::Serialize;
use serde_json::{Map, Value};
use std::{collections::BTreeMap, path::PathBuf};

/// Version of the JSON form. New keys can be added without a new version.
pub const REPORT_FORMAT: u32 = 2;

/// The report of a conversion: its stages and results, or the reasons why it failed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// [`REPORT_FORMAT`].
    pub format: u32,
    /// Whether there is a model.
    pub success: bool,
    /// The error, if there was one.
    pub error: Option<ReportedError>,
    /// Everything that prevents conversion, by node where possible.
    pub failures: Vec<ReportedFailure>,
    /// The warnings.
    pub warnings: Vec<Warning>,
    /// The version and platform of pt2onnx.
    pub environment: Environment,
    /// The options of the export; none for a model that was read.
    pub options: Option<ReportedOptions>,
    /// The file that was read.
    pub archive: Option<ReportedArchive>,
    /// Its class and methods, if it is a TorchScript archive.
    pub torchscript: Option<TorchScriptSummary>,
    /// The program in it, if it could be read.
    pub program: Option<ProgramSummary>,
    /// The storage of the parameters, buffers and constants of the archive, if they could be read.
    /// Not in the JSON form.
    #[serde(skip)]
    pub stored: Option<StoredTensors>,
    /// The ops of the program, by name.
    pub ops: Vec<ReportedOp>,
    /// The model, if there is one.
    pub model: Option<ModelSummary>,
    /// Weights that were compressed, with their loss; left out if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub compressed: Vec<pt2onnx_compress::CompressedWeight>,
    /// The time of each stage, in order.
    pub stages: Vec<Stage>,
    /// The program as `print(ep)` shows it in PyTorch: after a failure, and after
    /// [`put_texts`](Self::put_texts).
    pub program_text: Option<String>,
    /// The model in ONNX's textual syntax, after [`put_texts`](Self::put_texts).
    pub model_text: Option<String>,
    /// The drawing of a failure, for its page.
    #[serde(skip)]
    pub(crate) drawing: Option<Box<Drawing>>,
}

/// The options of a conversion in their serialised form, and those that differ from the defaults.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct ReportedOptions {
    /// All options by key.
    pub all: Map<String, Value>,
    /// Those that differ from their defaults, in order.
    #[serde(skip)]
    pub changed: Vec<(String, Value)>,
}

/// An error, by kind and message.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ReportedError {
    /// The kind of the error.
    pub kind: ErrorKind,
    /// The whole text.
    pub message: String,
}

/// One thing that prevents conversion.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReportedFailure {
    /// The kind of the error.
    pub kind: ErrorKind,
    /// Name of the node in the program.
    pub node: Option<String>,
    /// Its op: `aten::add.Tensor`.
    pub op: Option<String>,
    /// Path of the module it ran in: `layer1.0`.
    pub module: Option<String>,
    /// The source file of the line that made the node, as Python recorded it.
    pub file: Option<String>,
    /// The number of that line.
    pub line: Option<u32>,
    /// The text of that line.
    pub code: Option<String>,
    /// The reason.
    pub reason: String,
    /// A suggestion, if the reason has none.
    pub suggestion: Option<String>,
}

/// The version and platform of pt2onnx.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Environment {
    /// Version of pt2onnx.
    pub pt2onnx: &'static str,
    /// Operating system: `linux`.
    pub os: &'static str,
    /// Processor: `x86_64`.
    pub arch: &'static str,
}

/// The file that was read.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ReportedArchive {
    /// The path as it was given.
    pub path: PathBuf,
    /// Its size, if it could be read.
    pub bytes: Option<u64>,
}

/// A TorchScript archive.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TorchScriptSummary {
    /// Version of the format.
    pub version: u32,
    /// Class of the saved module.
    pub class: String,
    /// Its methods: `forward(x: Tensor) -> Tensor`.
    pub methods: Vec<String>,
}

/// A program as the archive has it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ProgramSummary {
    /// Version of PyTorch that wrote it: `2.15.0+cu132`.
    pub torch: String,
    /// Version of the export schema: `8.20`.
    pub schema: String,
    /// The inputs of the user.
    pub inputs: Vec<End>,
    /// The outputs for the user.
    pub outputs: Vec<End>,
    /// Dynamic dimensions.
    pub dimensions: Vec<Dimension>,
    /// Parameters.
    pub parameters: Tensors,
    /// Buffers.
    pub buffers: Tensors,
    /// Constants that the program holds.
    pub constants: Tensors,
    /// The buffers and inputs that it writes into: `buffer steps`. Empty if the writes could not be
    /// followed.
    pub mutations: Vec<String>,
    /// Its checks at run time that the model does not have, apart from the ranges of dimensions:
    /// `Eq(Mod(u0, 2), 0) at model.py:6`.
    pub checks: Vec<String>,
    /// Number of nodes, without those in bodies.
    pub nodes: usize,
}

/// An input or output.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct End {
    /// Its name; `None` for a number that was fixed at export, and for Python's None.
    pub name: Option<String>,
    /// Its type: `float32[s0, 8]`, `int s0`.
    pub r#type: String,
}

/// A dynamic dimension.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Dimension {
    /// Its symbol.
    pub symbol: String,
    /// The smallest size.
    pub min: Option<i64>,
    /// The largest size.
    pub max: Option<i64>,
}

/// The size of a set of tensors.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Tensors {
    /// Number of tensors.
    pub count: usize,
    /// Number of elements.
    pub elements: usize,
    /// Bytes.
    pub bytes: usize,
    /// The same by element type; left out if there are none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub dtypes: BTreeMap<String, Tensors>,
}

/// The storage of a set of tensors.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct StoredTensors {
    /// Number of tensors.
    pub tensors: usize,
    /// Bytes of all storages, each counted once.
    pub bytes: usize,
    /// Tensors that share the storage of an earlier one.
    pub shared: usize,
    /// Tensors without values.
    pub absent: usize,
    /// The bytes that their values would have.
    pub absent_bytes: usize,
}

/// An op of the program, after wrappers and writes were removed from it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ReportedOp {
    /// `aten::add.Tensor`.
    pub op: String,
    /// Number of nodes, with those in bodies.
    pub count: usize,
    /// Whether there is a translation.
    pub supported: bool,
    /// Number of nodes that could not be translated.
    pub failed: usize,
    /// The ONNX operators that it becomes in this program, before the model is optimised; empty if
    /// it only computes constants and sizes.
    pub becomes: Vec<String>,
}

/// A model.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ModelSummary {
    /// Opset of the ONNX operators.
    pub opset: u32,
    /// Its inputs.
    pub inputs: Vec<End>,
    /// Its outputs.
    pub outputs: Vec<End>,
    /// Number of nodes, with those in bodies.
    pub nodes: usize,
    /// Number of nodes by operator.
    pub operators: BTreeMap<String, usize>,
    /// Number of calls by function; left out if there are none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub functions: BTreeMap<String, usize>,
    /// Constants that are used.
    pub weights: Tensors,
    /// Files that were written.
    pub files: Vec<WrittenFile>,
}

/// A file that was written.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct WrittenFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
}

/// The time of a stage.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Stage {
    /// Its name, as `-v` logs it.
    pub name: String,
    /// Its time in seconds.
    pub seconds: f64,
}
