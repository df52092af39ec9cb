//! The files of `--report`.

use crate::{
    error::{Code, CommandError},
    files::absolute,
};
use pt2onnx::{Error, writer};
use std::path::{Path, PathBuf};

/// The files that `--report` names. They can be written, as far as that is known beforehand.
pub struct Reports(Vec<PathBuf>);

impl Reports {
    /// Checks that no report overwrites another one or a `taken` file, and that all can be written.
    pub fn new(paths: Vec<PathBuf>, taken: [&Path; 3]) -> Result<Self, CommandError> {
        let mut taken = taken.map(absolute).to_vec();
        for path in &paths {
            let place = absolute(path);
            if taken.contains(&place) {
                let what = "a report would overwrite the archive, the model or another report";
                return Err(CommandError::new(Code::Usage, what)
                    .place(path.display())
                    .help("give another name with --report"));
            }
            taken.push(place);
            writer::check_file(path).map_err(Error::Write)?;
        }
        Ok(Self(paths))
    }

    /// Writes a report to each.
    pub fn write(&self, report: &pt2onnx::Report) -> Result<(), CommandError> {
        for path in &self.0 {
            let json = path.extension().is_some_and(|e| e == "json");
            let text = match json {
                true => report.to_json(),
                false => report.to_markdown(),
            };
            writer::write_file(path, text.as_bytes()).map_err(Error::Write)?;
        }
        Ok(())
    }
}
