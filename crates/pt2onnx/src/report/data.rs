//! What a report holds. The keys of its JSON form are the names of the fields; `docs/report.md` explains them.

use crate::{Error, ErrorKind, Options};
use serde::Serialize;
use std::{collections::BTreeMap, path::PathBuf};

/// Version of the JSON form. New keys may come without a new version.
pub const REPORT_FORMAT: u32 = 1;

/// What an export did, or why it failed. [`OnnxProgram::report`](crate::OnnxProgram::report) has that of a success,
/// [`Failed`] that of a failure.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// [`REPORT_FORMAT`].
    pub format: u32,
    /// Whether there is a model.
    pub success: bool,
    /// What the error was, if there was one.
    pub error: Option<ReportedError>,
    /// Everything that is in the way, by node where it is one.
    pub failures: Vec<ReportedFailure>,
    /// What the user should know.
    pub warnings: Vec<String>,
    /// With what it was made.
    pub environment: Environment,
    /// The options of the export; none for a model that was read.
    pub options: Option<Options>,
    /// The file that was read.
    pub archive: Option<ReportedArchive>,
    /// The program in it, if it could be read.
    pub program: Option<ProgramSummary>,
    /// The ops of the program, by name.
    pub ops: Vec<ReportedOp>,
    /// The model, if there is one.
    pub model: Option<ModelSummary>,
    /// How long each stage took, in order.
    pub stages: Vec<Stage>,
}

/// An error, as [`Error`] tells it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ReportedError {
    /// Of what sort.
    pub kind: ErrorKind,
    /// All of its text.
    pub message: String,
}

/// One thing that is in the way.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ReportedFailure {
    /// Of what sort.
    pub kind: ErrorKind,
    /// Name of the node in the program.
    pub node: Option<String>,
    /// Its op: `aten::add.Tensor`.
    pub op: Option<String>,
    /// Path of the module it ran in: `layer1.0`.
    pub module: Option<String>,
    /// File of the user's line that made the node, as Python had it.
    pub file: Option<String>,
    /// Number of that line.
    pub line: Option<u32>,
    /// Text of that line.
    pub code: Option<String>,
    /// What is wrong.
    pub reason: String,
    /// What to do about it, where the reason does not say so.
    pub suggestion: Option<String>,
}

/// With what a report was made.
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
    /// As it was given.
    pub path: PathBuf,
    /// Its size, if it could be read.
    pub bytes: Option<u64>,
}

/// A program, before anything was done to it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ProgramSummary {
    /// Version of PyTorch that wrote it: `2.15.0+cu132`.
    pub torch: String,
    /// Version of the export schema: `8.20`.
    pub schema: String,
    /// What the user gives.
    pub inputs: Vec<End>,
    /// What the user gets.
    pub outputs: Vec<End>,
    /// Dynamic dimensions.
    pub dimensions: Vec<Dimension>,
    /// Parameters.
    pub parameters: Tensors,
    /// Buffers.
    pub buffers: Tensors,
    /// Constants that the program holds.
    pub constants: Tensors,
    /// What it writes into: `buffer steps`. Only known when its writes could be followed.
    pub mutations: Vec<String>,
    /// Nodes, without those of bodies.
    pub nodes: usize,
}

/// An input or output.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct End {
    /// Its name; none for numbers that were fixed at export, and None.
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

/// How many tensors.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Tensors {
    /// Number of tensors.
    pub count: usize,
    /// Number of elements.
    pub elements: usize,
    /// Bytes.
    pub bytes: usize,
}

/// An op of the program, after what wraps and writes was taken out of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ReportedOp {
    /// `aten::add.Tensor`.
    pub op: String,
    /// Nodes, in bodies too.
    pub count: usize,
    /// Whether there is a translation.
    pub supported: bool,
    /// Nodes that could not be translated.
    pub failed: usize,
    /// The ONNX operators that it becomes here, before the model is optimised; none for what is computed at once.
    pub becomes: Vec<String>,
}

/// A model.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ModelSummary {
    /// Opset of ONNX's operators.
    pub opset: u32,
    /// Its inputs.
    pub inputs: Vec<End>,
    /// Its outputs.
    pub outputs: Vec<End>,
    /// Nodes, in bodies too.
    pub nodes: usize,
    /// Nodes of each operator.
    pub operators: BTreeMap<String, usize>,
    /// Constants that something uses.
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

/// How long a stage took.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Stage {
    /// Its name, as `-v` tells it.
    pub name: String,
    /// Its time.
    pub seconds: f64,
}

/// An export that failed: why, and the report about it.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct Failed {
    /// Why.
    #[source]
    pub error: Error,
    /// The report.
    pub report: Box<Report>,
}
