//! Verdicts on archives, each separately and in a summary.

use crate::error::{self, Code, CommandError};
use pt2onnx::{Blocker, Failed, OnnxProgram, Report, Reports, grouped, printable::line};
use pt2onnx_cancel::Cancelled;
use serde_json::{Value, json};
use std::{
    fmt::Write,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    path::{Path, PathBuf},
};

/// A report, and with it the error if there was one.
pub type Outcome = Result<Box<Report>, (CommandError, Box<Report>)>;

/// The verdict on one archive.
pub struct Verdict {
    pub path: PathBuf,
    /// The name of the program, if the archive has several.
    pub program: Option<String>,
    /// Its report, unless there was a panic.
    pub report: Option<Box<Report>>,
    pub error: Option<CommandError>,
}

impl Verdict {
    /// Runs an export, and takes its result.
    pub fn of(path: &Path, attempt: impl FnOnce() -> Result<OnnxProgram, Failed>) -> Self {
        Self::with_program(path, attempt).0
    }

    /// Does the same, and keeps the program.
    pub fn with_program(
        path: &Path,
        attempt: impl FnOnce() -> Result<OnnxProgram, Failed>,
    ) -> (Self, Option<OnnxProgram>) {
        let mut made = None;
        let verdict = Self::after(path, || match attempt() {
            Ok(program) => {
                let mut report = Box::new(program.report().clone());
                match made.insert(program).check() {
                    Ok(()) => Ok(report),
                    Err(error) => {
                        report.failed(&error);
                        Err((error.into(), report))
                    }
                }
            }
            Err(Failed { error, report, .. }) => Err((error.into(), report)),
        });
        (verdict, made)
    }

    /// Runs what works on the archive, and takes its result.
    pub fn after(path: &Path, work: impl FnOnce() -> Outcome) -> Self {
        let path = path.to_owned();
        // An archive that brings pt2onnx down must not hide what there is to say of the others.
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok(Ok(report)) => Self { path, program: None, report: Some(report), error: None },
            Ok(Err((error, report))) => {
                Self { path, program: None, report: Some(report), error: Some(error) }
            }
            Err(panic) if Cancelled::is_payload(&*panic) => resume_unwind(panic),
            Err(_) => {
                let error = CommandError::new(Code::Internal, "pt2onnx ended unexpectedly");
                Self {
                    path,
                    program: None,
                    report: None,
                    error: Some(error.help(error::REPORT_IT)),
                }
            }
        }
    }

    /// The archive in messages, with the name of the program.
    pub fn name(&self) -> String {
        let path = self.path.display();
        self.program.as_ref().map_or_else(|| path.to_string(), |name| format!("{path}, {name}"))
    }

    /// The reports of all archives.
    pub fn reports(verdicts: &[Self]) -> Reports<'_> {
        let mut all = Reports::default();
        verdicts.iter().for_each(|verdict| all.add(verdict.name(), verdict.report.as_deref()));
        all
    }

    pub fn json(&self) -> Value {
        let report = self.report.as_ref();
        let internal =
            || json!({"kind": "internal", "message": self.error.as_ref().map(CommandError::what)});
        let mut said = json!({
            "path": self.path.display().to_string(),
            "converts": self.error.is_none(),
            "exit_code": self.error.as_ref().map_or(0, |e| e.code as u8),
            "error": report.map_or_else(
                || Some(internal()),
                |r| r.error.as_ref().map(|e| json!(e)),
            ),
            "failures": report.map(|r| &r.failures),
            "warnings": report.map(|r| &r.warnings),
        });
        if let (Some(name), Some(entries)) = (&self.program, said.as_object_mut()) {
            entries.insert("program".to_owned(), json!(name));
        }
        said
    }

    /// The error in full, after the name of the archive.
    pub fn failure(&self) -> Option<String> {
        let error = self.error.as_ref()?;
        let path = self.name();
        let details = error.details_within(&self.path.display().to_string());
        Some(format!("{}: {}\n{details}", line(&path), error.what()))
    }
}

/// Shows the warnings of all archives, many of the same as one.
pub fn warn(verdicts: &[Verdict]) {
    let names: Vec<String> = verdicts.iter().map(Verdict::name).collect();
    let all = verdicts.iter().zip(&names).flat_map(|(verdict, name)| {
        verdict.report.iter().flat_map(move |r| r.warnings.iter().map(move |w| (name, w)))
    });
    for group in grouped(all) {
        tracing::warn!("{}: {group}", line(group.from));
    }
}

/// The exit code for all: that of the first archive that failed.
pub fn code(verdicts: &[Verdict]) -> Option<Code> {
    verdicts.iter().find_map(|v| Some(v.error.as_ref()?.code))
}

/// How many archives `can be converted` or `were converted`, and which ops prevent how many;
/// nothing if there is one only.
pub fn summary(verdicts: &[Verdict], converted: &str) -> String {
    if verdicts.len() < 2 {
        return String::new();
    }
    let good = verdicts.iter().filter(|v| v.error.is_none()).count();
    let mut out = format!("{good} of {} archives {converted}\n", verdicts.len());
    for Blocker { op, archives, nodes, .. } in Verdict::reports(verdicts).blockers() {
        let plural = |n: usize, one: &str| format!("{n} {one}{}", if n == 1 { "" } else { "s" });
        let (archives, nodes) = (plural(archives, "archive"), plural(nodes, "node"));
        // A String takes whatever is written to it.
        let _ = writeln!(out, "  {}: {nodes} in {archives}", line(&op));
    }
    out
}
