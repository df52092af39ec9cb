//! Prints text and JSON to standard output.

use crate::error::{Code, CommandError};
use pt2onnx::printable::{json, lines, shown};
use serde_json::Value;
use std::io::{self, Write};

/// Prints a text of several lines for people: without other control characters, and without the
/// middle of long words.
pub fn print(text: &str) -> Result<(), CommandError> {
    write(&shown(text))
}

/// Prints a text of several lines for programs: without other control characters, and with long
/// words.
pub fn print_whole(text: &str) -> Result<(), CommandError> {
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

/// Whether all was written. A reader that stops early is fine (`pt2onnx ops | head`).
pub fn printed(written: io::Result<()>) -> Result<(), CommandError> {
    match written.and_then(|()| io::stdout().flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            Err(CommandError::new(Code::Output, format!("cannot write to standard output: {e}")))
        }
        _ => Ok(()),
    }
}
