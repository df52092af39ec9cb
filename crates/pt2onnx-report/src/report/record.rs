//! Filling in a report while an export runs, and its text forms.

use super::{
    Environment, ModelSummary, ProgramSummary, REPORT_FORMAT, Report, ReportedArchive,
    ReportedError, ReportedFailure, ReportedOptions, Reports, Stage, StoredTensors, WrittenFile,
    markdown,
};
use crate::{
    drawing,
    error_kind::ErrorKind,
    printable::{cut, json},
    warning::Warning,
};
use pt2onnx_fx::{Constant, ExportedProgram};
use pt2onnx_ir::Model;
use pt2onnx_tensor::Tensor;
use pt2onnx_writer::Saved;
use serde::Serialize;
use std::{
    fmt::Display,
    path::Path,
    time::{Duration, Instant},
};

/// An error that a report can show.
pub trait ReportError: Display {
    /// The kind of the error.
    fn kind(&self) -> ErrorKind;

    /// Everything that prevents conversion, by node where possible.
    fn failures(&self) -> Vec<ReportedFailure>;
}

impl Default for Report {
    fn default() -> Self {
        Self::new(None)
    }
}

impl Report {
    /// A report of a conversion that has not begun; without options for a model that was read.
    pub fn new(options: Option<ReportedOptions>) -> Self {
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
            torchscript: None,
            program: None,
            stored: None,
            ops: Vec::new(),
            model: None,
            compressed: Vec::new(),
            stages: Vec::new(),
            program_text: None,
            model_text: None,
            drawing: None,
        }
    }

    /// Runs a stage, and logs and records its time.
    pub fn stage<T>(&mut self, name: &str, run: impl FnOnce() -> T) -> T {
        self.stage_with(name, |_| run())
    }

    /// Does the same as [`stage`](Self::stage), and the stage adds to the report.
    pub fn stage_with<T>(&mut self, name: &str, run: impl FnOnce(&mut Self) -> T) -> T {
        let timer = self.begin();
        let result = run(self);
        self.end(name, timer);
        result
    }

    /// Begins a stage.
    pub fn begin(&self) -> Timer {
        Timer { start: Instant::now(), known: self.stages.len() }
    }

    /// Ends a stage: logs and records its time without that of the stages inside of it.
    pub fn end(&mut self, name: &str, timer: Timer) {
        let inside: f64 = self.stages.iter().skip(timer.known).map(|stage| stage.seconds).sum();
        let time = timer.start.elapsed().as_secs_f64() - inside;
        log(name, time);
        self.note(name, time);
    }

    fn note(&mut self, name: &str, seconds: f64) {
        self.stages.push(Stage { name: name.to_owned(), seconds });
    }

    /// Records the file that is read.
    pub fn read(&mut self, path: &Path) {
        self.archive = Some(ReportedArchive {
            path: path.to_owned(),
            bytes: std::fs::metadata(path).ok().map(|m| m.len()),
        });
    }

    /// Records the program as the archive has it, and logs what the model does not check.
    pub fn program(&mut self, program: &ExportedProgram) {
        let summary = self.program.insert(ProgramSummary::of(program));
        for check in &summary.checks {
            tracing::info!("the model does not check: {check}");
        }
        let constants = program.constants.values().filter_map(|c| match c {
            Constant::Tensor(tensor) => Some(tensor),
            Constant::Opaque { .. } => None,
        });
        self.stored(program.state.values().chain(constants));
    }

    /// Keeps the text and the drawing of the program, for the report of a failure.
    pub fn keep(&mut self, program: &ExportedProgram) {
        self.drawing = Some(Box::new(drawing::of_program(program)));
        self.program_text = Some(text_of(program));
    }

    /// Records how the tensors of the archive are stored.
    pub fn stored<'a>(&mut self, tensors: impl Iterator<Item = &'a Tensor>) {
        self.stored = Some(StoredTensors::of(tensors));
    }

    /// Records that the model was made.
    pub fn done(&mut self, model: &Model, warnings: &[Warning]) {
        self.success = true;
        self.error = None;
        self.failures.clear();
        self.warnings = warnings.to_vec();
        self.model = Some(ModelSummary::of(model));
    }

    /// Records the files that the model was written to, and the time that it took.
    pub fn saved(&mut self, path: impl AsRef<Path>, saved: &Saved, time: Duration) {
        self.note("write", time.as_secs_f64());
        if let Some(model) = &mut self.model {
            let file = |path: &Path, bytes| WrittenFile { path: path.to_owned(), bytes };
            model.files = vec![file(path.as_ref(), saved.bytes)];
            let data = saved.data.iter();
            model.files.extend(data.map(|(path, bytes)| file(path, *bytes)));
        }
    }

    /// Records that the conversion failed; also for errors after it, such as a full disk.
    pub fn failed(&mut self, error: &impl ReportError) {
        self.success = false;
        self.failures = error.failures();
        self.error = Some(ReportedError { kind: error.kind(), message: error.to_string() });
    }

    /// Adds the program, if there is one, and the model as text, each cut after 2 MB.
    pub fn put_texts(&mut self, program: Option<&ExportedProgram>, model: &Model) {
        self.program_text = program.map(text_of);
        self.model_text = Some(cut(model.to_string()));
    }

    /// The report as JSON. [`REPORT_FORMAT`] is the version of its form.
    pub fn to_json(&self) -> String {
        as_json(self)
    }

    /// The report as Markdown.
    pub fn to_markdown(&self) -> String {
        markdown::write(self)
    }
}

impl Reports<'_> {
    /// All reports as JSON.
    pub fn to_json(&self) -> String {
        as_json(self)
    }

    /// All reports as Markdown: a table of all, then each without the texts of program and model.
    pub fn to_markdown(&self) -> String {
        markdown::write_all(self)
    }
}

fn as_json(report: &impl Serialize) -> String {
    // All keys are texts, so that this cannot fail.
    let text = serde_json::to_string_pretty(report).unwrap_or_default() + "\n";
    json(&text).into_owned()
}

/// A program as PyTorch prints it.
fn text_of(program: &ExportedProgram) -> String {
    cut(pt2onnx_fx::readable(program).to_string())
}

/// The start of a stage.
#[derive(Debug)]
pub struct Timer {
    start: Instant,
    /// Number of the stages before.
    known: usize,
}

/// Runs a stage, and logs its time.
pub fn stage<T>(name: &str, run: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = run();
    log(name, start.elapsed().as_secs_f64());
    result
}

fn log(name: &str, seconds: f64) {
    tracing::info!("{:>9.2} ms  {name}", seconds * 1e3);
}
