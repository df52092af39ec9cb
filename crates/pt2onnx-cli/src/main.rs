//! The `pt2onnx` command: converts `.pt2` archives to ONNX files.
//!
//! Layer 4, above the facade. Standard output has the text that was asked for (`inspect`, `show`, `diff`, `ops`,
//! `passes`). Everything else goes to standard error.

mod apply;
mod args;
mod check;
mod convert;
mod diff;
mod error;
mod files;
mod inspect;
mod log;
mod ops;
mod optimize;
mod options_file;
mod output;
mod passes;
mod progress;
mod reports;
mod show;

use args::{Cli, Command};
use error::{Code, CommandError};
use output::print;
use std::{panic::catch_unwind, process::ExitCode};

/// Graphs are many small allocations, which this allocator keeps together by size.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let code = match Cli::read() {
        Ok(cli) => match catch_unwind(|| run(cli)) {
            Ok(Ok(None)) => return ExitCode::SUCCESS,
            Ok(Ok(Some(code))) => code,
            Ok(Err(report)) => {
                report.print();
                report.code
            }
            Err(_) => {
                CommandError::new(Code::Internal, "pt2onnx ended unexpectedly")
                    .help(error::REPORT_IT)
                    .print();
                Code::Internal
            }
        },
        // Also `--help` and `--version`, which are no errors.
        Err(e) => {
            let printed = output::printed(e.print());
            match (e.exit_code(), printed) {
                (0, Ok(())) => return ExitCode::SUCCESS,
                (0, Err(error)) => {
                    error.print();
                    error.code
                }
                _ => Code::Usage,
            }
        }
    };
    ExitCode::from(code as u8)
}

/// Runs the command. Returns an exit code if it is not success and everything was printed.
fn run(cli: Cli) -> Result<Option<Code>, CommandError> {
    let done = match cli.command {
        Some(Command::Check(args)) => return check::check(args),
        Some(Command::Diff(args)) => return diff::compare(&args),
        Some(Command::Inspect { model, json }) => inspect::inspect(&model, json),
        Some(Command::Show { model, dot }) => print(&show::show(&model, dot)?),
        Some(Command::Optimize(args)) => optimize::optimize(*args),
        Some(Command::ApplyWeights(args)) => apply::apply(args),
        Some(Command::Ops { json }) => ops::list(json),
        Some(Command::Passes) => print(&passes::list()),
        Some(Command::Explain { op }) => print(&ops::explain(&op)?),
        None => convert::convert(cli.convert),
    };
    done.map(|()| None)
}
