//! Errors as the command shows them: what is wrong, where, what to do; and the exit codes.

use pt2onnx::printable::message;
use std::{
    borrow::Cow,
    fmt::Display,
    io::{self, Write},
};

/// Exit codes. `--help` lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Code {
    Internal = 1,
    Usage = 2,
    Input = 3,
    Program = 4,
    Output = 5,
    Different = 6,
    Runtime = 7,
}

/// How ops of other libraries get a translation.
pub const CUSTOM_OPS: &str = "add a translation: an ONNX function (`--op-functions FILE.onnxtxt`), a Python function \
    (`@pt2onnx.translation`) or a closure in Rust (`Registry::register`), see \
    https://github.com/pt2onnx/pt2onnx/blob/main/docs/custom-ops.md; or keep the op for a runtime that knows it: \
    `--unsupported-ops fallthrough`; or let PyTorch expand it before saving: `exported_program.run_decompositions()`";

pub const DAMAGED: &str = "the file may be damaged or cut short; export or copy it again";

pub const REPORT_IT: &str = "if PyTorch runs the program with such inputs, this is a bug of pt2onnx: please report it with the archive";

/// An error as the command shows it: lines without control characters, whatever names say.
#[derive(Debug)]
pub struct CommandError {
    pub code: Code,
    what: String,
    places: Vec<String>,
    help: Option<String>,
}

impl CommandError {
    pub fn new(code: Code, what: impl Into<String>) -> Self {
        Self { code, what: shown(&what.into()), places: Vec::new(), help: None }
    }

    /// Adds where it is.
    pub fn place(mut self, place: impl Display) -> Self {
        self.places.push(shown(&place.to_string()));
        self
    }

    /// Adds what to do about it.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(shown(&help.into()));
        self
    }

    /// The problem, in one line.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Places and help, one line each.
    pub fn details(&self) -> String {
        self.details_within("")
    }

    /// The same without this place, which the reader knows.
    pub fn details_within(&self, known: &str) -> String {
        let known = shown(known);
        let places =
            self.places.iter().filter(|place| **place != known).map(|place| format!("  {place}\n"));
        let help = self.help.iter().map(|help| format!("  help: {help}\n"));
        places.chain(help).collect()
    }

    /// Prints it to standard error. Failures to print are ignored.
    pub fn print(&self) {
        let text = format!("error: {}\n{}", self.what, self.details());
        let _ = io::stderr().write_all(text.as_bytes());
    }
}

/// A text of the library, which names options by their keys, with the flags of the command.
pub fn with_flags(text: &str) -> Cow<'_, str> {
    const OPTION: &str = "the option `";
    let mut parts = text.split(OPTION);
    let first = parts.next().unwrap_or_default();
    let flagged = parts.fold(first.to_owned(), |text, rest| {
        let dashes = if rest.starts_with("--") { "" } else { "--" };
        text + OPTION + dashes + rest
    });
    if flagged.len() == text.len() { text.into() } else { flagged.into() }
}

fn shown(text: &str) -> String {
    message(&with_flags(text)).into_owned()
}
