//! The project's own tasks: code generation, and the one test command.
//! `cargo xtask TASK`; each `regen-*` task takes `--check`, which compares instead of writing.

use anyhow::Result;
use clap::{Args, Parser, Subcommand};

mod generate;
mod onnx;
mod proto;
mod python;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Tasks of the pt2onnx workspace")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Operator schemas and typed builder methods of pt2onnx-ir, from the pinned `onnx` package.
    RegenOnnx(Regen),
    /// The protobuf messages of pt2onnx-proto, from proto/onnx.proto.
    RegenProto(Regen),
}

#[derive(Args)]
struct Regen {
    /// Write nothing; fail where the committed files differ from what would be generated.
    #[arg(long)]
    check: bool,
}

fn main() -> Result<()> {
    match Cli::parse().task {
        Task::RegenOnnx(args) => onnx::regen(args.check),
        Task::RegenProto(args) => proto::regen(args.check),
    }
}
