//! The files of `--report`.

use crate::error::CommandError;
use pt2onnx::{
    Error, OnnxProgram, Report,
    writer::{Batch, Inputs},
};
use std::path::PathBuf;

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
        let text = match (path.extension().and_then(|e| e.to_str()), program) {
            (Some("json"), _) => report.to_json(),
            (Some("html"), Some(program)) => program.to_html(&report),
            (Some("html"), None) => report.to_html(),
            _ => report.to_markdown(),
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
