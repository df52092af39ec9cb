//! Writing to standard output.

use crate::error::{Code, CommandError};
use std::io::{self, Write};

/// Prints a text.
pub fn print(text: String) -> Result<(), CommandError> {
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
