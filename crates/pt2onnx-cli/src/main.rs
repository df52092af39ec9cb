//! The executable of the `pt2onnx` command.

use pt2onnx_cli::Process;
use std::{env, process::ExitCode};

/// Graphs are many small allocations, which this allocator keeps together by size.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ExitCode::from(pt2onnx_cli::main(env::args_os(), Process::Own))
}
