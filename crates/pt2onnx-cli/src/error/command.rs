//! Errors as the command shows them: what is wrong, where, what to do; and the exit codes.

use std::{
    fmt::Display,
    io::{self, Write},
};

/// Exit codes, as `--help` has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Code {
    Internal = 1,
    Usage = 2,
    Input = 3,
    Program = 4,
    Output = 5,
    Different = 6,
}

pub const REPORT_IT: &str = "this is a bug of pt2onnx, please report it with the archive";

/// An error, in parts.
#[derive(Debug)]
pub struct CommandError {
    pub code: Code,
    what: String,
    places: Vec<String>,
    help: Option<String>,
}

impl CommandError {
    pub fn new(code: Code, what: impl Into<String>) -> Self {
        Self { code, what: what.into(), places: Vec::new(), help: None }
    }

    /// Adds where it is.
    pub fn place(mut self, place: impl Display) -> Self {
        self.places.push(place.to_string());
        self
    }

    /// Says what to do about it.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// What is wrong, in a line.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Places and help, a line each.
    pub fn details(&self) -> String {
        let places = self.places.iter().map(|place| format!("  {place}\n"));
        let help = self.help.iter().map(|help| format!("  help: {help}\n"));
        places.chain(help).collect()
    }

    /// Prints it to standard error. If that fails, there is nobody to tell.
    pub fn print(&self) {
        let text = format!("error: {}\n{}", self.what, self.details());
        let _ = io::stderr().write_all(text.as_bytes());
    }
}
