//! `pt2onnx check`: whether archives can be converted.

use crate::{
    args::Check,
    error::{self, Code, CommandError},
    output::{print, print_json},
};
use indicatif::{ProgressBar, ProgressStyle};
use pt2onnx::{Exporter, Failed, OnnxProgram, printable::line};
use rayon::prelude::*;
use serde_json::{Value, json};
use std::{
    fmt::Write,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

/// Size of a thread's stack in bytes. It is that of the main thread, as graphs nest.
const STACK: usize = 8 << 20;

/// The result of checking one archive.
pub struct Verdict {
    path: PathBuf,
    /// Its report, unless there was a panic.
    pub report: Option<Box<pt2onnx::Report>>,
    pub error: Option<CommandError>,
}

/// Prints whether each archive can be converted, in the given order. The exit code is that of the first one that
/// cannot.
pub fn check(args: Box<Check>) -> Result<Option<Code>, CommandError> {
    let exporter = Exporter::with_options(args.options.read()?)?;
    let threads = args.jobs.map_or(0, |n| n.get());
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .stack_size(STACK)
        .build()
        .map_err(|e| CommandError::new(Code::Internal, format!("cannot start threads: {e}")))?;
    let progress = progress(args.models.len());
    let verdicts: Vec<Verdict> = pool.install(|| {
        let models = args.models.par_iter().with_max_len(1);
        models
            .map(|path| {
                let verdict = Verdict::of(path, || exporter.attempt(path));
                progress.inc(1);
                verdict
            })
            .collect()
    });
    progress.finish_and_clear();
    let failed = verdicts.iter().filter_map(|v| v.error.as_ref());
    let codes: Vec<Code> = failed.map(|e| e.code).collect();
    match args.json {
        true => {
            let all: Vec<Value> = verdicts.iter().map(Verdict::json).collect();
            print_json(&all.into(), true)?;
        }
        false => print(&text(&verdicts, codes.len()))?,
    }
    Ok(codes.first().copied())
}

/// A progress bar, shown on a terminal only.
fn progress(archives: usize) -> ProgressBar {
    let bar = ProgressBar::new(archives as u64);
    match ProgressStyle::with_template("{bar:30} {pos}/{len} archives") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

fn text(verdicts: &[Verdict], failed: usize) -> String {
    let mut out = String::new();
    for Verdict { path, error, .. } in verdicts {
        let path = path.display().to_string();
        let path = line(&path);
        // A String takes whatever is written to it.
        let _ = match error {
            None => writeln!(out, "{path}: can be converted"),
            Some(error) => write!(out, "{path}: {}\n{}", error.what(), error.details()),
        };
    }
    if verdicts.len() > 1 {
        let good = verdicts.len() - failed;
        let _ = writeln!(out, "{good} of {} archives can be converted", verdicts.len());
    }
    out
}

impl Verdict {
    /// Runs an export, and takes its result.
    pub fn of(path: &Path, attempt: impl FnOnce() -> Result<OnnxProgram, Failed>) -> Self {
        // An archive that brings pt2onnx down must not hide what there is to say of the others.
        let looked = catch_unwind(AssertUnwindSafe(|| match attempt() {
            Ok(program) => {
                let mut report = Box::new(program.report().clone());
                let checked = program.check();
                if let Err(error) = &checked {
                    report.failed(error);
                }
                (report, checked.err())
            }
            Err(Failed { error, report, .. }) => (report, Some(error)),
        }));
        let (report, error) = match looked {
            Ok((report, error)) => (Some(report), error.map(CommandError::from)),
            Err(_) => {
                let error = CommandError::new(Code::Internal, "pt2onnx ended unexpectedly");
                (None, Some(error.help(error::REPORT_IT)))
            }
        };
        let path = path.to_owned();
        Self { path, report, error }
    }

    pub fn json(&self) -> Value {
        let report = self.report.as_ref();
        json!({
            "path": self.path.display().to_string(),
            "converts": self.error.is_none(),
            "exit_code": self.error.as_ref().map_or(0, |e| e.code as u8),
            "error": report.map_or_else(
                || Some(json!({"kind": "internal", "message": self.error.as_ref().map(CommandError::what)})),
                |r| r.error.as_ref().map(|e| json!(e)),
            ),
            "failures": report.map(|r| &r.failures),
            "warnings": report.map(|r| &r.warnings),
        })
    }
}
