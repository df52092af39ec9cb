//! Writing to standard output.

use crate::error::{Code, CommandError};
use std::io::{self, BufWriter, Write};

/// Prints a text. It is no error if nobody reads to the end (`pt2onnx ops | head`).
pub fn print(text: String) -> Result<(), CommandError> {
    let mut out = BufWriter::new(io::stdout().lock());
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            Err(CommandError::new(Code::Output, format!("cannot write to standard output: {e}")))
        }
        _ => Ok(()),
    }
}
