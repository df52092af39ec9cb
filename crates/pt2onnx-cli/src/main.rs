//! The `pt2onnx` command: from a `.pt2` archive to an ONNX file.
//!
//! Layer 4, over the facade. Standard output has what was asked for (`inspect`, `show`, `diff`, `ops`, `passes`), all else goes to standard error.

mod apply;
mod args;
mod check;
mod convert;
mod diff;
mod inspect;
mod log;
mod ops;
mod optimize;
mod passes;
mod report;
mod show;

use args::{Cli, Command};
use clap::Parser;
use report::{Code, Report};
use std::{
    io::{self, BufWriter, Write},
    panic::catch_unwind,
    process::ExitCode,
};

/// Graphs are many small pieces: it keeps those of one size together, in the order they came.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let code = match Cli::try_parse() {
        Ok(cli) => match catch_unwind(|| run(cli)) {
            Ok(Ok(None)) => return ExitCode::SUCCESS,
            Ok(Ok(Some(code))) => code,
            Ok(Err(report)) => {
                report.print();
                report.code
            }
            Err(_) => {
                Report::new(Code::Internal, "pt2onnx ended unexpectedly")
                    .help(report::REPORT_IT)
                    .print();
                Code::Internal
            }
        },
        // Also `--help` and `--version`, which are no errors.
        Err(e) => {
            let printed = e.print();
            return match e.exit_code() {
                0 if printed.is_ok() => ExitCode::SUCCESS,
                _ => ExitCode::from(Code::Usage as u8),
            };
        }
    };
    ExitCode::from(code as u8)
}

/// Does what is asked for; gives the exit code where that is no success, and there is nothing more to say.
fn run(cli: Cli) -> Result<Option<Code>, Report> {
    let done = match cli.command {
        Some(Command::Check(args)) => return check::check(args),
        Some(Command::Diff(args)) => return diff::compare(&args),
        Some(Command::Inspect { model, json }) => print(inspect::inspect(&model, json)?),
        Some(Command::Show { model, dot }) => print(show::show(&model, dot)?),
        Some(Command::Optimize(args)) => optimize::optimize(*args),
        Some(Command::ApplyWeights(args)) => apply::apply(args),
        Some(Command::Ops { json }) => print(ops::list(json)),
        Some(Command::Passes) => print(passes::list()),
        Some(Command::Explain { op }) => print(ops::explain(&op)?),
        None => convert::convert(cli.convert),
    };
    done.map(|()| None)
}

/// To standard output; that nobody reads to the end (`pt2onnx ops | head`) is no error.
fn print(text: String) -> Result<(), Report> {
    let mut out = BufWriter::new(io::stdout().lock());
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            Err(Report::new(Code::Output, format!("cannot write to standard output: {e}")))
        }
        _ => Ok(()),
    }
}
