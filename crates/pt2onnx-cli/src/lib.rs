//! The `pt2onnx` command: converts archives (`.pt2`, `.pt`) to ONNX files.
//!
//! It is a library so that Python's `python -m pt2onnx` is the same command.
//!
//! Layer 6, above the library `pt2onnx`. Standard output has the text that was asked for
//! (`inspect`, `show`, `diff`, `ops`, `passes`). Everything else goes to standard error.

mod apply;
mod args;
mod check;
mod convert;
mod destination;
mod diff;
mod error;
mod files;
mod inspect;
mod log;
mod many;
mod ops;
mod optimize;
mod options_file;
mod output;
mod passes;
mod process;
mod progress;
mod reports;
mod run;
mod show;
mod verdict;
mod verify;

use args::{Cli, Command};
use clap::CommandFactory;
use error::{Code, CommandError};
use output::print;
pub use process::Process;
use pt2onnx_cancel::Cancelled;
use std::{
    ffi::OsString,
    panic::{catch_unwind, resume_unwind},
};

/// The command line with all commands and options, for completions and man pages.
pub fn command() -> clap::Command {
    let mut command = Cli::command();
    command.build();
    command
}

/// Runs the command line `args`, whose first word is the name of the program. Returns the exit
/// code, which `pt2onnx --help` explains.
pub fn main(args: impl IntoIterator<Item = impl Into<OsString> + Clone>, process: Process) -> u8 {
    let args: Vec<OsString> = args.into_iter().map(Into::into).collect();
    if let Some(error) = args::misspelt(&args) {
        error.print();
        return error.code as u8;
    }
    let code = match Cli::read(args) {
        Ok(cli) => match catch_unwind(|| execute(cli, process)) {
            Ok(Ok(None)) => return 0,
            Ok(Ok(Some(code))) => code,
            Ok(Err(report)) => {
                report.print();
                report.code
            }
            Err(panic) if Cancelled::is_payload(&*panic) => resume_unwind(panic),
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
                (0, Ok(())) => return 0,
                (0, Err(error)) => {
                    error.print();
                    error.code
                }
                _ => Code::Usage,
            }
        }
    };
    code as u8
}

/// Runs the command. Returns an exit code if it is not success and everything was printed.
fn execute(cli: Cli, process: Process) -> Result<Option<Code>, CommandError> {
    let done = match cli.command {
        Some(Command::Check(args)) => return check::check(*args.0),
        Some(Command::Diff(args)) => return diff::compare(&args),
        Some(Command::Verify(args)) => return verify::verify(&args),
        Some(Command::Run(args)) => run::run(&args),
        Some(Command::Inspect(args)) => inspect::inspect(*args.0),
        Some(Command::Show(args)) if args.no_truncate => output::print_whole(&show::show(*args.0)?),
        Some(Command::Show(args)) => print(&show::show(*args.0)?),
        Some(Command::Optimize(args)) => optimize::optimize(*args.0, process),
        Some(Command::ApplyWeights(args)) => apply::apply(*args.0),
        Some(Command::Ops { json }) => ops::list(json),
        Some(Command::Passes) => print(&passes::list()),
        Some(Command::Explain { op }) => print(&ops::explain(&op)?),
        None => return convert::convert(cli.convert, process),
    };
    done.map(|()| None)
}
