//! Tests of readers, of both forms of text, and of passes, as one binary, which is linked once.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail so")]

mod cases;
mod hostile;
mod long;
mod pickles;
mod programs;
mod support;
mod text;
mod versions;
