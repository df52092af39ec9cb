//! The project's own tasks: code generation, and the one test command.
//! `cargo xtask TASK`; each `regen-*` task takes `--check`, which compares instead of writing.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::{Args, Parser, Subcommand};

mod aten;
mod backend;
mod bench;
mod book;
mod circles;
mod generate;
mod kernels;
mod onnx;
mod ops;
mod proto;
mod python;
mod test;

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
    /// The list of PyTorch's operator schemas for pt2onnx-aten, from the PyTorch of the interpreter
    /// in PT2ONNX_TORCH_PYTHON; --check needs none.
    RegenAten(Regen),
    /// The element types that ONNX Runtime's CPU kernels lack, for pt2onnx-opt, from the pinned release.
    RegenKernels(Regen),
    /// docs/supported-ops.md and the table of `pt2onnx explain`, from the registry and the conformance cases.
    RegenOps(Regen),
    /// The lowerings that no conformance case runs.
    Coverage,
    /// Measures conversions against `cp` and torch.onnx.export; writes docs/benchmarks.md and its plots.
    Bench(bench::Options),
    /// An archive of a decoder as PyTorch would save it, for measuring.
    Synth {
        /// How many layers, or how many bytes of weights: 32, 500MB, 4GB.
        extent: xtask::synth::Extent,
        /// Where to.
        out: PathBuf,
        /// Width of the hidden state: 256 where layers are given, 2048 where bytes are.
        #[arg(long)]
        hidden: Option<u64>,
    },
    /// The models of the ONNX backend tests of the pinned `onnx` package through `pt2onnx optimize`: as they are, in
    /// functions and in bodies. Fails where one does not give the expected outputs any more.
    Backend,
    /// The pages of docs/ as a book in target/book, by mdBook, which is installed below target/.
    Book,
    /// Files of a crate that use items of each other in a circle, with the lines that do. Fails if there are any.
    Circles {
        /// A crate, by name or by folder; all of the workspace otherwise.
        #[arg(short, long)]
        package: Option<String>,
    },
    /// Converts every archive below a folder with two builds of the command. Prints what differs; fails if anything does.
    Compare {
        /// The command from before.
        old: PathBuf,
        /// The command to compare with it.
        new: PathBuf,
        /// Where the archives are.
        folder: PathBuf,
        /// Compare about N archives, evenly chosen.
        #[arg(long, value_name = "N")]
        sample: Option<usize>,
        /// Options for both commands.
        #[arg(last = true)]
        args: Vec<OsString>,
    },
    /// Every test of the workspace, with the pinned ONNX Runtime.
    Test {
        /// Arguments for `cargo test`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
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
        Task::RegenAten(args) => aten::regen(args.check),
        Task::RegenKernels(args) => kernels::regen(args.check),
        Task::RegenOps(args) => ops::regen(args.check),
        Task::Coverage => ops::coverage(),
        Task::Bench(options) => bench::bench(&options),
        Task::Synth { extent, out, hidden } => xtask::synth::synth(extent, hidden, &out),
        Task::Backend => backend::backend(),
        Task::Book => book::book(),
        Task::Circles { package } => circles::circles(package.as_deref()),
        Task::Compare { old, new, folder, sample, args } => {
            let counts = xtask::compare::compare(&old, &new, &folder, sample, &args)?;
            println!("{counts}");
            ensure!(counts.differ == 0, "the commands differ");
            Ok(())
        }
        Task::Test { args } => test::test(&args),
    }
}
