//! The files of `--report`.

use crate::error::CommandError;
use pt2onnx::{
    Error, Report,
    writer::{Batch, Inputs},
};
use std::path::PathBuf;

/// Adds a report to the files that are written together.
pub fn add(files: &mut Batch, paths: &[PathBuf], report: &Report) -> Result<(), Error> {
    for path in paths {
        let json = path.extension().is_some_and(|e| e == "json");
        let text = match json {
            true => report.to_json(),
            false => report.to_markdown(),
        };
        files.file("report", path, text.as_bytes()).map_err(Error::Write)?;
    }
    Ok(())
}

/// Writes the report of a failure.
pub fn write(inputs: Inputs, paths: &[PathBuf], report: &Report) -> Result<(), CommandError> {
    let mut files = Batch::new(inputs);
    add(&mut files, paths, report)?;
    files.commit().map_err(Error::Write)?;
    Ok(())
}
