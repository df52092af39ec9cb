//! Errors as the command shows them.

mod command;
mod export;
mod input;
mod options;

pub use command::{Code, CommandError, REPORT_IT};
pub use input::{arrays, model, not_onnx, weights};
