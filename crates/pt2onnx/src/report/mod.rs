//! What an export did, or why it failed: for people as Markdown, for programs as JSON.
//!
//! The JSON's keys are the names of the fields here; `docs/report.md` explains them.

mod markdown;
mod summary;

use crate::{Error, ErrorKind, Failure, Saved};
use pt2onnx_fx::ExportedProgram;
use pt2onnx_ir::Model;
use serde::Serialize;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};
pub(crate) use summary::ops;

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
    /// Options, by name; those at their defaults too, unless that is nothing.
    pub options: BTreeMap<String, String>,
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

impl Report {
    pub(crate) fn new(options: BTreeMap<String, String>) -> Self {
        Self {
            format: REPORT_FORMAT,
            success: false,
            error: None,
            failures: Vec::new(),
            warnings: Vec::new(),
            environment: Environment {
                pt2onnx: env!("CARGO_PKG_VERSION"),
                os: std::env::consts::OS,
                arch: std::env::consts::ARCH,
            },
            options,
            archive: None,
            program: None,
            ops: Vec::new(),
            model: None,
            stages: Vec::new(),
        }
    }

    /// Runs a stage, logs how long it took and notes it.
    pub(crate) fn stage<T>(&mut self, name: &str, run: impl FnOnce() -> T) -> T {
        let (result, time) = stage(name, run);
        self.note(name, time);
        result
    }

    fn note(&mut self, name: &str, time: Duration) {
        self.stages.push(Stage { name: name.to_owned(), seconds: time.as_secs_f64() });
    }

    pub(crate) fn read(&mut self, path: &Path) {
        self.archive = Some(ReportedArchive {
            path: path.to_owned(),
            bytes: std::fs::metadata(path).ok().map(|m| m.len()),
        });
    }

    pub(crate) fn program(&mut self, program: &ExportedProgram) {
        self.program = Some(ProgramSummary::of(program));
    }

    /// The model is there.
    pub(crate) fn done(&mut self, model: &Model, warnings: &[String]) {
        self.success = true;
        self.warnings = warnings.to_vec();
        self.model = Some(ModelSummary::of(model));
    }

    /// Notes the files that the model was written to, and how long that took.
    pub fn saved(&mut self, path: impl AsRef<Path>, saved: &Saved, time: Duration) {
        self.note("write", time);
        if let Some(model) = &mut self.model {
            let file = |path: &Path, bytes| WrittenFile { path: path.to_owned(), bytes };
            model.files = vec![file(path.as_ref(), saved.bytes)];
            let data = saved.data.iter();
            model.files.extend(data.map(|(path, bytes)| file(path, *bytes)));
        }
    }

    /// Notes that it failed: also for errors behind the export, such as a full disk.
    pub fn failed(&mut self, error: &Error) {
        self.success = false;
        self.failures = failures(error);
        self.error = Some(ReportedError { kind: error.kind(), message: error.to_string() });
    }

    /// As JSON, which [`REPORT_FORMAT`] counts the versions of.
    pub fn to_json(&self) -> String {
        // Maps with text as keys only: that cannot fail.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// As Markdown.
    pub fn to_markdown(&self) -> String {
        markdown::write(self)
    }
}

/// Runs a stage, and logs how long it took.
pub(crate) fn stage<T>(name: &str, run: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = run();
    let time = start.elapsed();
    tracing::info!("{name}: {time:.1?}");
    (result, time)
}

fn failures(error: &Error) -> Vec<ReportedFailure> {
    let plain = |reason: String, suggestion: Option<String>| ReportedFailure {
        kind: error.kind(),
        node: None,
        op: None,
        module: None,
        file: None,
        line: None,
        code: None,
        reason,
        suggestion,
    };
    match error {
        Error::Program(failures) => failures.iter().map(ReportedFailure::of).collect(),
        Error::Legalise(pt2onnx_opt::LegaliseError::Nodes { failures, .. }) => {
            let failures = failures.iter();
            let each = failures.map(|f| {
                let suggestion = format!("use `--opset {}` or higher", f.lowest);
                plain(format!("{}: {}", f.place, f.reason), Some(suggestion))
            });
            each.collect()
        }
        Error::Target(pt2onnx_opt::TargetError::Nodes { failures, .. }) => {
            let reasons = failures.iter().map(|f| format!("{}: {}", f.place, f.reason));
            reasons.map(|reason| plain(reason, None)).collect()
        }
        Error::Warnings(warnings) => warnings.iter().map(|w| plain(w.clone(), None)).collect(),
        Error::Verify(errors) | Error::Invalid(errors) => {
            errors.iter().map(|e| plain(e.to_string(), None)).collect()
        }
        Error::Write(pt2onnx_writer::Error::NoData(names)) => {
            let names = names.iter();
            let each = names.map(|name| {
                let suggestion =
                    "save the program with real weights, not under FakeTensorMode".to_owned();
                plain(format!("the weight `{name}` has no values"), Some(suggestion))
            });
            each.collect()
        }
        _ => vec![plain(error.to_string(), None)],
    }
}

impl ReportedFailure {
    fn of(failure: &Failure) -> Self {
        let site = failure.site.as_ref();
        let line = site.and_then(|s| s.source_line());
        Self {
            kind: failure.kind(),
            node: site.map(|s| s.node.to_string()),
            op: site.map(|s| s.target.schema_name()),
            module: site.and_then(|s| s.module.as_ref()).map(ToString::to_string),
            file: line.map(|l| l.file.to_owned()),
            line: line.map(|l| l.line),
            code: line.map(|l| l.code.to_owned()),
            reason: failure.reason.to_string(),
            suggestion: failure.suggestion(),
        }
    }
}
