//! Writes the files of `--report`.

use crate::{
    error::CommandError,
    files::{NewFolder, is_folder},
    verdict::Verdict,
};
use pt2onnx::{
    Error, OnnxProgram, Report,
    writer::{Batch, Inputs},
};
use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

/// Where reports go.
#[derive(Debug, Default)]
pub struct ReportFiles {
    /// Each has the report of the only archive, or of all.
    files: Vec<PathBuf>,
    /// Each has a page and the JSON of each archive.
    folders: Vec<PathBuf>,
}

impl ReportFiles {
    /// The files and folders that `--report` names.
    pub fn new(paths: Vec<PathBuf>) -> Self {
        let (folders, files) = paths.into_iter().partition(|path| is_folder(path));
        Self { files, folders }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.folders.is_empty()
    }

    /// The reports of one archive, which is `alone` or one of several. In folders they are called
    /// `name`.
    pub fn of_one(&self, name: &OsStr, alone: bool) -> Vec<PathBuf> {
        let in_folder = |folder: &PathBuf| {
            ["html", "json"].map(|form| folder.join(format!("{}.{form}", name.display())))
        };
        let own = self.files.iter().filter(|_| alone).cloned();
        own.chain(self.folders.iter().flat_map(in_folder)).collect()
    }

    /// The reports of all archives, if there are several.
    fn of_all(&self, alone: bool) -> &[PathBuf] {
        if alone { &[] } else { &self.files }
    }

    /// Makes folders that are missing, and checks that reports of several archives can be written.
    pub fn prepare(&self, inputs: &Inputs, alone: bool) -> Result<Vec<NewFolder>, CommandError> {
        let make = |folder: &PathBuf| NewFolder::make("the folder of reports", folder);
        let folders = self.folders.iter().map(make).collect::<Result<_, _>>()?;
        let mut planned = Batch::new(inputs.clone());
        for path in self.of_all(alone) {
            planned.check("report", path).map_err(Error::Write)?;
        }
        Ok(folders)
    }

    /// Writes the reports of all archives, if there are several.
    pub fn write_all(&self, inputs: Inputs, verdicts: &[Verdict]) -> Result<(), CommandError> {
        let paths = self.of_all(verdicts.len() == 1);
        if paths.is_empty() {
            return Ok(());
        }
        let reports = Verdict::reports(verdicts);
        let mut files = Batch::new(inputs);
        for path in paths {
            let text = match form(path) {
                Form::Json => reports.to_json(),
                Form::Html => reports.to_html(),
                Form::Markdown => reports.to_markdown(),
            };
            files.file("report", path, text.as_bytes()).map_err(Error::Write)?;
        }
        files.commit().map_err(Error::Write)?;
        Ok(())
    }
}

enum Form {
    Markdown,
    Json,
    Html,
}

fn form(path: &Path) -> Form {
    match path.extension().and_then(OsStr::to_str) {
        Some("json") => Form::Json,
        Some("html") => Form::Html,
        _ => Form::Markdown,
    }
}

/// Adds a report to the files that are written together. `program` is there after a success.
pub fn add(
    files: &mut Batch,
    paths: &[PathBuf],
    report: &Report,
    program: Option<&OnnxProgram>,
) -> Result<(), Error> {
    if paths.is_empty() {
        return Ok(());
    }
    let mut report = report.clone();
    if let Some(program) = program {
        program.put_texts(&mut report);
    }
    for path in paths {
        let text = match (form(path), program) {
            (Form::Json, _) => report.to_json(),
            (Form::Html, Some(program)) => program.to_html(&report),
            (Form::Html, None) => report.to_html(),
            (Form::Markdown, _) => report.to_markdown(),
        };
        files.file("report", path, text.as_bytes()).map_err(Error::Write)?;
    }
    Ok(())
}

/// Writes reports alone: of a failure, or of a check. `program` is there after a success.
pub fn write(
    inputs: Inputs,
    paths: &[PathBuf],
    report: &Report,
    program: Option<&OnnxProgram>,
) -> Result<(), CommandError> {
    let mut files = Batch::new(inputs);
    add(&mut files, paths, report, program)?;
    files.commit().map_err(Error::Write)?;
    Ok(())
}

/// Writes the reports of a failure. A report that cannot be written is a warning only.
pub fn write_failure(inputs: Inputs, paths: &[PathBuf], report: &Report, error: &CommandError) {
    match write(inputs, paths, report, None) {
        Err(unwritten) if unwritten.what() != error.what() => {
            tracing::warn!("{}", unwritten.what());
        }
        _ => {}
    }
}
