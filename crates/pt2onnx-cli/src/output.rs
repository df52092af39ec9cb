//! Writing to standard output.

use crate::error::{Code, CommandError};
use pt2onnx::printable::{json, lines};
use serde_json::Value;
use std::io::{self, Write};

/// Prints a text of several lines, without other control characters.
pub fn print(text: &str) -> Result<(), CommandError> {
    write(&lines(text))
}

/// Prints JSON, in several lines or in one.
pub fn print_json(value: &Value, pretty: bool) -> Result<(), CommandError> {
    let text = if pretty { format!("{value:#}\n") } else { format!("{value}\n") };
    write(&json(&text))
}

fn write(text: &str) -> Result<(), CommandError> {
    printed(io::stdout().lock().write_all(text.as_bytes()))
}

/// Whether all was written. It is no error if nobody reads to the end (`pt2onnx ops | head`).
pub fn printed(written: io::Result<()>) -> Result<(), CommandError> {
    match written.and_then(|()| io::stdout().flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            Err(CommandError::new(Code::Output, format!("cannot write to standard output: {e}")))
        }
        _ => Ok(()),
    }
}
