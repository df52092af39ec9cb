//! Turns the errors of the library into what the command shows, and into exit codes.

mod command;
mod export;
mod input;
mod options;

pub use command::{CUSTOM_OPS, Code, CommandError, DAMAGED, REPORT_IT, with_flags};
pub use input::{arrays, model, not_onnx, weights};
