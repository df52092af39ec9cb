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
mod cases;
mod circles;
mod generate;
mod kernels;
mod node;
mod onnx;
mod ops;
mod package;
mod proto;
mod python;
mod regen_options;
mod release;
mod runtimes;
mod test;
mod walk;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Tasks of the pt2onnx workspace")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Generates operator schemas and typed builder methods of pt2onnx-ir from the pinned `onnx`
    /// package.
    RegenOnnx(Regen),
    /// Generates the protobuf messages of pt2onnx-proto from proto/onnx.proto.
    RegenProto(Regen),
    /// Generates the list of PyTorch's operator schemas for pt2onnx-aten, with the PyTorch of the
    /// interpreter in PT2ONNX_TORCH_PYTHON. --check needs no PyTorch.
    RegenAten(Regen),
    /// Generates the table of element types that ONNX Runtime's CPU kernels lack, for pt2onnx-opt,
    /// from the pinned release.
    RegenKernels(Regen),
    /// Generates docs/supported-ops.md and the table of `pt2onnx explain` from the registry and the
    /// conformance cases.
    RegenOps(Regen),
    /// Generates the tables of docs/options.md and the keywords of the Python package from the
    /// declaration of options.
    RegenOptions(Regen),
    /// Prints the lowerings that no conformance case runs. Fails if there are any.
    Coverage,
    /// Compares the time and memory of conversions with `cp` and torch.onnx.export. Writes
    /// docs/benchmarks.md and its plots.
    Bench(bench::Options),
    /// Writes a synthetic archive of a decoder for benchmarks, in PyTorch's format.
    Synth {
        /// Number of layers, or size of the weights: 32, 500MB, 4GB.
        extent: xtask::synth::Extent,
        /// Path of the archive to write.
        out: PathBuf,
        /// Width of the hidden state. The default is 256 for a number of layers, 2048 for a size.
        #[arg(long)]
        hidden: Option<u64>,
        /// Rows of the embedding and of the last layer. The default is 1000.
        #[arg(long)]
        vocabulary: Option<u64>,
    },
    /// Runs `pt2onnx optimize` on the models of the ONNX backend tests of the pinned `onnx`
    /// package: plain, in functions and in bodies. Fails if an optimised model does not give
    /// the expected outputs.
    Backend {
        /// Afterwards also rewrite the models for these opsets, and from the oldest one back:
        /// `all`, or `9,13,20`. Fails if a result is wrong, or refused by the checker or ONNX
        /// Runtime.
        #[arg(long, value_name = "OPSETS")]
        opsets: Option<String>,
    },
    /// Runs the graphs of the text cases of pt2onnx-opt in ONNX Runtime, before and after. Fails if
    /// the outputs differ.
    Cases,
    /// Builds the pages of docs/ as a book in target/book. Installs mdBook below target/ first.
    Book,
    /// Prints files of a crate that use each other's items in a circle, with the lines that do.
    /// Fails if there are any.
    Circles {
        /// A crate, by name or folder. Without it, all crates of the workspace.
        #[arg(short, long)]
        package: Option<String>,
    },
    /// Prints comments and lines of pages with sentence forms that the project avoids. Fails if
    /// there are any.
    Prose,
    /// Converts every archive below a folder with two builds of the command. Prints what differs;
    /// fails if anything does.
    Compare {
        /// The old build of the command.
        old: PathBuf,
        /// The new build of the command.
        new: PathBuf,
        /// The folder with the archives.
        folder: PathBuf,
        /// Compare only about N archives, chosen evenly.
        #[arg(long, value_name = "N")]
        sample: Option<usize>,
        /// Options for both commands.
        #[arg(last = true)]
        args: Vec<OsString>,
    },
    /// Exports small models of transformers for transformers.js and compares tokens and classes in
    /// Node with those of transformers; needs PT2ONNX_TORCH_PYTHON with transformers and npm,
    /// which installs the package below target/. Without npm it is skipped.
    Node {
        /// Only these folders of xtask/python/transformers_js.py: llama, bert, whisper, ...
        folders: Vec<String>,
    },
    /// Converts networks for other runtimes (OpenVINO, rten, MNN, OpenCV, ...), with their targets
    /// and `standard`, runs them there without network, compares with PyTorch, and prints a table.
    /// Each runtime is installed into an environment below target/runtimes. Needs
    /// PT2ONNX_TORCH_PYTHON with onnx and onnxruntime.
    Runtimes {
        /// The folder with the networks, each with model.pt2, case.json and io.safetensors, or with
        /// bundles of them: testdata/cases.
        #[arg(long, required_unless_present = "graphs")]
        corpus: Option<PathBuf>,
        /// Take one network of so many.
        #[arg(long, default_value_t = 1)]
        every: usize,
        /// Instead run the graphs of runtimes/NAME, which the runtime refuses or has wrong.
        #[arg(long)]
        graphs: bool,
        /// Only these runtimes of xtask/python/runtimes.py: openvino, rten, mnn, ...
        names: Vec<String>,
    },
    /// Builds the Python module and runs the tests of the package that need PyTorch.
    Python(package::Options),
    /// Checks what a release needs: version and changelog, docs, packages, an installation from the
    /// packages, and a wheel installed without a compiler.
    Release(release::Options),
    /// Runs all tests of the workspace with the pinned ONNX Runtime, and those of the Python
    /// package that need no PyTorch.
    Test {
        /// Arguments for `cargo test`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
}

#[derive(Args)]
struct Regen {
    /// Write nothing. Fail if the committed files differ from the generated ones.
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
        Task::RegenOptions(args) => regen_options::regen(args.check),
        Task::Coverage => ops::coverage(),
        Task::Bench(options) => bench::bench(&options),
        Task::Synth { extent, out, hidden, vocabulary } => {
            xtask::synth::synth(extent, hidden, vocabulary, &out)
        }
        Task::Backend { opsets } => backend::backend(opsets.as_deref()),
        Task::Cases => cases::cases(),
        Task::Book => book::book(),
        Task::Circles { package } => circles::circles(package.as_deref()),
        Task::Prose => {
            let (_, findings) = xtask::prose::workspace(generate::root())?;
            findings.iter().for_each(|finding| println!("{finding}"));
            ensure!(findings.is_empty(), "found {} phrases to mend", findings.len());
            Ok(())
        }
        Task::Compare { old, new, folder, sample, args } => {
            let counts = xtask::compare::compare(&old, &new, &folder, sample, &args)?;
            println!("{counts}");
            ensure!(counts.differ == 0, "the commands differ");
            Ok(())
        }
        Task::Node { folders } => node::node(&folders),
        Task::Runtimes { corpus, every, graphs, names } => {
            runtimes::runtimes(&corpus.unwrap_or_default(), every, graphs, &names)
        }
        Task::Python(options) => package::python(&options),
        Task::Release(options) => release::release(&options),
        Task::Test { args } => test::test(&args),
    }
}
