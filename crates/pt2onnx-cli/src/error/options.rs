//! Turns the errors of options into those of the command.

use super::{Code, CommandError};
use pt2onnx::{OptionError, ir::ParseError};
use std::path::Path;

impl From<OptionError> for CommandError {
    fn from(error: OptionError) -> Self {
        match &error {
            OptionError::FunctionFile { path, error } => {
                CommandError::new(Code::Input, format!("the functions cannot be read: {error}"))
                    .place(path.display())
            }
            OptionError::RuleFile { path, error } => {
                CommandError::new(Code::Input, format!("the rules cannot be read: {error}"))
                    .place(path.display())
            }
            OptionError::Functions { path, error } => functions(path, error),
            OptionError::Rules { path, error } => functions(path, error),
            _ => CommandError::new(Code::Usage, error.to_string()),
        }
    }
}

/// An error in the text of functions: the place, the line, and a caret under the column.
fn functions(file: &Path, error: &ParseError) -> CommandError {
    let (line, column) = (error.line, error.column);
    let mut report = CommandError::new(Code::Usage, &error.what)
        .place(format!("{}:{line}:{column}", file.display()));
    let shown = error.to_string();
    for line in shown.lines().skip(1) {
        report = report.place(line);
    }
    report
}
