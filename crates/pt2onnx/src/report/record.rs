//! Filling in a report while an export runs, and its text forms.

use super::{
    Environment, ModelSummary, ProgramSummary, REPORT_FORMAT, Report, ReportedArchive,
    ReportedError, Reports, Stage, StoredTensors, WrittenFile, failures::failures, markdown,
};
use crate::{
    Error, Options, Saved, Warning, drawing,
    printable::{cut, json},
};
use pt2onnx_fx::{Constant, ExportedProgram};
use pt2onnx_ir::Model;
use pt2onnx_tensor::Tensor;
use serde::Serialize;
use std::{
    path::Path,
    time::{Duration, Instant},
};

impl Report {
    pub(crate) fn new(options: Option<Options>) -> Self {
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
    pub(crate) fn stage<T>(&mut self, name: &str, run: impl FnOnce() -> T) -> T {
        let (result, time) = stage(name, run);
        self.note(name, time);
        result
    }

    /// Does the same as [`stage`](Self::stage), and the stage adds to the report.
    pub(crate) fn stage_with<T>(&mut self, name: &str, run: impl FnOnce(&mut Self) -> T) -> T {
        let (result, time) = stage(name, || run(self));
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

    /// Keeps what the report of a failure shows of the program.
    pub(crate) fn keep(&mut self, program: &ExportedProgram) {
        self.drawing = Some(Box::new(drawing::of_program(program)));
        self.program_text = Some(text_of(program));
    }

    pub(crate) fn stored<'a>(&mut self, tensors: impl Iterator<Item = &'a Tensor>) {
        self.stored = Some(StoredTensors::of(tensors));
    }

    /// Records that the model was made.
    pub(crate) fn done(&mut self, model: &Model, warnings: &[Warning]) {
        self.success = true;
        self.warnings = warnings.to_vec();
        self.model = Some(ModelSummary::of(model));
    }

    /// Records the files that the model was written to, and the time that it took.
    pub fn saved(&mut self, path: impl AsRef<Path>, saved: &Saved, time: Duration) {
        self.note("write", time);
        if let Some(model) = &mut self.model {
            let file = |path: &Path, bytes| WrittenFile { path: path.to_owned(), bytes };
            model.files = vec![file(path.as_ref(), saved.bytes)];
            let data = saved.data.iter();
            model.files.extend(data.map(|(path, bytes)| file(path, *bytes)));
        }
    }

    /// Records that it failed; also for errors after the export, such as a full disk.
    pub fn failed(&mut self, error: &Error) {
        self.success = false;
        self.failures = failures(error);
        self.error = Some(ReportedError { kind: error.kind(), message: error.to_string() });
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
    // Maps with text as keys only: that cannot fail.
    let text = serde_json::to_string_pretty(report).unwrap_or_default() + "\n";
    json(&text).into_owned()
}

/// A program as PyTorch prints it.
pub(crate) fn text_of(program: &ExportedProgram) -> String {
    cut(pt2onnx_fx::readable(program).to_string())
}

/// Runs a stage, and logs its time.
pub(crate) fn stage<T>(name: &str, run: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = run();
    let time = start.elapsed();
    tracing::info!("{:>9.2} ms  {name}", time.as_secs_f64() * 1e3);
    (result, time)
}
