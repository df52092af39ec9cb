//! The command line.

mod choices;
mod values;

use crate::{
    passes::Passes,
    report::{Code, Report},
};
use choices::{Metadata, Operators, Place, State, Target, Weights};
use clap::{Args, Parser, Subcommand};
use pt2onnx::{DEFAULT_OPSET, DynamicAxes, OutputNames, SaveOptions};
use std::{num::NonZeroUsize, path::PathBuf};

const AFTER: &str = "\
Examples:
  pt2onnx model.pt2 -o model.onnx
  pt2onnx model.pt2 -o model.onnx --opset 18 --dim s77=batch --report report.md
  pt2onnx check --target ort-cpu *.pt2

Exit codes:
  0  done
  1  a bug of pt2onnx
  2  wrong usage of the command
  3  the input cannot be read, is no archive (or ONNX model), is damaged, or of a version that is not known
  4  the program cannot be translated (all that is in the way is listed), its weights have no values, or
     there are warnings and `--warnings-as-errors` is given
  5  the output cannot be written
  6  the models differ (`pt2onnx diff`)

After an error there is no output file, and one that was there before is as it was.";

const AFTER_CHECK: &str = "\
The exit code is 0 if all would be converted, else that of the first that would not, as `pt2onnx --help` lists them.";

const AFTER_DIFF: &str = "\
`THING: A | B` says what each model has, `-` stands for nothing. Weights are told by their types and the first 16 bytes of the SHA-256 of
their elements. The exit code is 0 if nothing differs, 6 if something does.";

const AFTER_OPTIMIZE: &str = "\
The model keeps its opset, its inputs, outputs and weights with their names, and its metadata. Functions and bodies are
optimised as well. Operators of other domains stay as they are, and so do those that are older than the forms known here:
their outputs are taken to be of the types that the model says.";

/// Turns a `.pt2` archive of torch.export.save into an ONNX model.
#[derive(Debug, Parser)]
#[command(name = "pt2onnx", version, after_help = AFTER, max_term_width = 100)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(override_usage = "pt2onnx [OPTIONS] MODEL.pt2 -o OUT.onnx\n       pt2onnx <COMMAND>")]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub convert: Convert,
}

/// What to do other than convert. A file that is called as a command is given with its folder: `./inspect`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show what an archive holds: inputs, outputs, dynamic dimensions, weights, ops, and all that is in the way
    Inspect {
        /// The archive
        #[arg(value_name = "MODEL.pt2")]
        model: PathBuf,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Print an ONNX model, whatever made it, as text; files with its weights need not be there
    Show {
        /// The model
        #[arg(value_name = "MODEL.onnx")]
        model: PathBuf,
        /// Print a drawing in the DOT language instead: `pt2onnx show --dot m.onnx | dot -Tsvg > m.svg`
        #[arg(long)]
        dot: bool,
    },
    /// Tell whether archives would be converted with the options given, and all that is in the way
    #[command(after_help = AFTER_CHECK)]
    Check(Box<Check>),
    /// Tell what two ONNX models differ in: opsets, inputs, outputs, operators, weights, types, names, nodes
    #[command(after_help = AFTER_DIFF)]
    Diff(Diff),
    /// Fold, simplify and fuse an ONNX model, whatever made it
    #[command(after_help = AFTER_OPTIMIZE)]
    Optimize(Box<Optimize>),
    /// Complete a model that was written without weights
    ApplyWeights(ApplyWeights),
    /// List the ops that can be translated, by their PyTorch schemas
    Ops {
        /// As JSON, with the ONNX operators they become, the lowest opset and the element types tested
        #[arg(long)]
        json: bool,
    },
    /// List the passes of `--optimize`, in the order they run
    Passes,
    /// Tell about one op: its overloads, what they become, and in which opset and types
    Explain {
        /// An op, with or without namespace and overload: `add`, `aten::add.Tensor`
        #[arg(value_name = "OP")]
        op: String,
    },
}

#[derive(Debug, Args)]
pub struct Check {
    /// The archives
    #[arg(value_name = "MODEL.pt2", required = true)]
    pub models: Vec<PathBuf>,
    /// As JSON: for each archive whether it would be converted, its error, failures and warnings
    #[arg(long)]
    pub json: bool,
    /// Archives to look at at once; by default as many as there are processors
    #[arg(short, long, value_name = "N", value_parser = values::jobs)]
    pub jobs: Option<NonZeroUsize>,
    #[command(flatten)]
    pub options: Options,
}

#[derive(Debug, Args)]
pub struct Diff {
    /// A model
    #[arg(value_name = "A.onnx")]
    pub a: PathBuf,
    /// Another one
    #[arg(value_name = "B.onnx")]
    pub b: PathBuf,
    /// Compare metadata and words about models, graphs, values and nodes too
    #[arg(long)]
    pub metadata: bool,
    /// Do not read the elements of weights; files with weights need not be there then
    #[arg(long)]
    pub no_weights: bool,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Optimize {
    /// The model
    #[arg(value_name = "MODEL.onnx")]
    pub model: PathBuf,
    /// The file to write; it may be the model itself
    #[arg(short, long, value_name = "OUT.onnx")]
    pub output: PathBuf,
    /// Say what is done and how long it takes; twice: in detail
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Write nothing where there are warnings, and exit with code 4
    #[arg(long)]
    pub warnings_as_errors: bool,
    /// Where weights go
    #[arg(long, value_enum, default_value_t)]
    pub weights: Place,
    #[command(flatten)]
    pub saving: Saving,
    #[command(flatten)]
    pub passes: Passes,
}

#[derive(Debug, Args)]
pub struct ApplyWeights {
    /// The model
    #[arg(value_name = "MODEL.onnx")]
    pub model: PathBuf,
    /// Weights by their names in the program: a .safetensors file, a folder or index of several, a .pt2 archive, or what
    /// torch.save(model.state_dict(), path) wrote
    #[arg(long, value_name = "FILE|FOLDER")]
    pub weights: PathBuf,
    /// The file to write; the model itself by default
    #[arg(short, long, value_name = "OUT.onnx")]
    pub output: Option<PathBuf>,
    /// Where the weights go
    #[arg(long, value_enum, default_value_t)]
    pub to: Place,
    #[command(flatten)]
    pub saving: Saving,
    /// Say what is done; twice: in detail
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

#[derive(Debug, Args)]
pub struct Convert {
    /// The archive; one that is called as a command is given as `./inspect`
    #[arg(value_name = "MODEL.pt2", required = true)]
    pub model: Option<PathBuf>,
    /// The file to write
    #[arg(short, long, value_name = "OUT.onnx", required = true)]
    pub output: Option<PathBuf>,
    /// Write a report of the conversion or its failure, as Markdown or JSON; may be given several times
    #[arg(long, value_name = "FILE.md|FILE.json", value_parser = values::report)]
    pub report: Vec<PathBuf>,
    /// Say what is done and how long it takes; twice: in detail
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub verbose: u8,
    #[command(flatten)]
    pub options: Options,
}

/// What the model shall be, for a conversion and `check` alike.
#[derive(Debug, Args)]
#[command(next_help_heading = "Model")]
pub struct Options {
    /// Opset of ONNX's operators
    #[arg(long, value_name = "N", default_value_t = DEFAULT_OPSET, value_parser = values::opset)]
    pub opset: u32,
    /// Version of the file format, for runtimes that refuse newer ones; by default the lowest that serves
    #[arg(long, value_name = "N", value_parser = values::ir_version)]
    pub ir_version: Option<u32>,
    /// Where weights go
    #[arg(long, value_enum, default_value_t)]
    pub weights: Weights,
    #[command(flatten)]
    pub saving: Saving,
    /// Make weights inputs of the model too, so that callers may give other values
    #[arg(long)]
    pub keep_initializers_as_inputs: bool,
    /// The runtime to write for
    #[arg(long, value_enum, default_value_t)]
    pub target: Target,
    /// What becomes of values that the program writes into buffers and inputs
    #[arg(long, value_enum, default_value_t)]
    pub state: State,
    /// What becomes of ops that cannot be translated
    #[arg(long, value_enum, default_value_t, help_heading = "Custom ops")]
    pub operators: Operators,
    /// Translations of ops as functions in ONNX's textual syntax; may be given several times
    #[arg(long, value_name = "FILE.onnxtxt", help_heading = "Custom ops")]
    pub functions: Vec<PathBuf>,
    /// Version at which the model imports a domain of custom ops, 1 by default; may be given several times
    #[arg(long, value_name = "DOMAIN=N", value_parser = values::version, help_heading = "Custom ops")]
    pub custom_opset: Vec<(String, u32)>,
    /// Write nothing where there are warnings, and exit with code 4
    #[arg(long)]
    pub warnings_as_errors: bool,
    /// Seed for nodes that draw random numbers, so that runs repeat
    #[arg(long, value_name = "N", value_parser = values::seed)]
    pub seed: Option<u32>,
    /// Names for the inputs, in order; inputs behind the last name keep theirs
    #[arg(long, value_name = "A,B", value_delimiter = ',', help_heading = "Names")]
    pub input_names: Vec<String>,
    /// Names for the outputs, in order; `from-tree`: by the keys of the dict or dataclass that the program returns
    #[arg(long, value_name = "A,B", value_parser = values::output_names, help_heading = "Names")]
    pub output_names: Option<OutputNames>,
    /// Rename any value; may be given several times
    #[arg(long, value_name = "OLD=NEW", value_parser = values::pair, help_heading = "Names")]
    pub rename: Vec<(String, String)>,
    /// Name a dynamic dimension everywhere, given its symbol or an axis: `s77=batch`, `x.0=batch`
    #[arg(long, value_name = "DIM=NAME", value_parser = values::pair, help_heading = "Dimensions")]
    pub dim: Vec<(String, String)>,
    /// Name axes as torch.onnx.export does: `{"x": {"0": "batch"}}`, or `{"x": [0]}` for `x_dynamic_axes_1`
    #[arg(long, value_name = "JSON", help_heading = "Dimensions")]
    pub dynamic_axes: Option<DynamicAxes>,
    /// Make a dynamic dimension static, and fold what follows: `batch=1`, `s77=1`, `x.0=1`
    #[arg(long, value_name = "DIM=N", value_parser = values::size, help_heading = "Dimensions")]
    pub fix: Vec<(String, i64)>,
    #[command(flatten)]
    pub passes: Passes,
    /// What the model tells of the program it comes from
    #[arg(long, value_enum, default_value_t, help_heading = "Metadata")]
    pub metadata: Metadata,
    /// Write files in stack traces without their folders
    #[arg(long, help_heading = "Metadata")]
    pub strip_paths: bool,
    /// Add an entry to the model's metadata; may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = values::key_value, help_heading = "Metadata")]
    pub meta: Vec<(String, String)>,
    /// What the model is, in your words
    #[arg(long, value_name = "TEXT", help_heading = "Metadata")]
    pub doc_string: Option<String>,
    /// Your version of the model
    #[arg(long, value_name = "N", value_parser = values::model_version, help_heading = "Metadata")]
    pub model_version: Option<i64>,
    /// Who made the model, instead of pt2onnx
    #[arg(long, value_name = "NAME", help_heading = "Metadata")]
    pub producer: Option<String>,
    /// Let nodes tell the source lines that they come from, as their doc_string
    #[arg(long, help_heading = "Metadata")]
    pub doc_strings: bool,
}

/// How data files are written.
#[derive(Debug, Args)]
#[command(next_help_heading = "Weights")]
pub struct Saving {
    /// Name of the file with external weights, beside the model [default: OUT.onnx.data]
    #[arg(long, value_name = "NAME")]
    pub weights_file: Option<String>,
    /// Weights of fewer bytes stay in the model file
    #[arg(long, value_name = "BYTES", default_value = "1024", value_parser = values::bytes)]
    pub external_threshold: u64,
    /// The most bytes of a data file: 4096, 500MB, 2GiB; above it there are several
    #[arg(long, value_name = "BYTES", value_parser = values::bytes)]
    pub shard_size: Option<u64>,
    /// External weights begin at multiples of this; 64KiB lets them be mapped on Windows
    #[arg(long, value_name = "BYTES", default_value = "4096", value_parser = values::alignment)]
    pub alignment: u64,
    /// Let `link` refer to files outside of the model's folder, which many runtimes refuse
    #[arg(long)]
    pub link_outside: bool,
}

impl Saving {
    pub fn options(self, weights: pt2onnx::Weights) -> Result<SaveOptions, Report> {
        use pt2onnx::Weights::{Embed, Link};
        let named = self.weights_file.is_some() || self.shard_size.is_some();
        if named && matches!(weights, Embed | Link) {
            let what = "--weights-file and --shard-size are given, but there will be no data file";
            return Err(
                Report::new(Code::Usage, what).help("leave them out, or let weights be external")
            );
        }
        Ok(SaveOptions {
            weights,
            data_file: self.weights_file,
            threshold: self.external_threshold,
            shard_size: self.shard_size,
            alignment: self.alignment,
            link_outside: self.link_outside,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn commands_and_files() {
        let parse = |args: &[&str]| Cli::try_parse_from([&["pt2onnx"], args].concat());
        for (args, ok) in [
            (&["m.pt2", "-o", "m.onnx"][..], true),
            (&["./ops", "-o", "m.onnx"], true),
            (
                &[
                    "m.pt2",
                    "-o",
                    "m.onnx",
                    "--opset",
                    "18",
                    "--weights",
                    "embed",
                    "--no-optimize",
                    "-vv",
                ],
                true,
            ),
            (
                &[
                    "m.pt2",
                    "-o",
                    "m.onnx",
                    "--metadata",
                    "basic",
                    "--meta",
                    "a=b=c",
                    "--meta",
                    "d=",
                ],
                true,
            ),
            (&["m.pt2", "-o", "m.onnx", "--optimize", "1"], true),
            (&["m.pt2", "-o", "m.onnx", "--optimize", "3"], false),
            (&["m.pt2", "-o", "m.onnx", "--skip-pass", "gelu"], true),
            (&["m.pt2", "-o", "m.onnx", "--skip-pass", "nope"], false),
            (&["m.pt2", "-o", "m.onnx", "--meta", "a"], false),
            (&["m.pt2", "-o", "m.onnx", "--meta", "=a"], false),
            (&["ops"], true),
            (&["inspect", "m.pt2"], true),
            (&["inspect", "m.pt2", "--json"], true),
            (&["show", "m.onnx"], true),
            (&["show", "m.onnx", "--dot"], true),
            (&["show"], false),
            (&["optimize", "m.onnx", "-o", "n.onnx", "--optimize", "1"], true),
            (&["optimize", "m.onnx"], false),
            (&[], false),
            (&["m.pt2"], false),
            (&["-o", "m.onnx"], false),
            (&["inspect"], false),
            (&["m.pt2", "-o", "m.onnx", "--opset", "8"], false),
            (&["m.pt2", "-o", "m.onnx", "--opset", "x"], false),
            (&["m.pt2", "n.pt2", "-o", "m.onnx"], false),
        ] {
            assert_eq!(parse(args).is_ok(), ok, "{args:?}: {:?}", parse(args).err());
        }
        assert!(parse(&["ops"]).unwrap().command.is_some());
        assert!(parse(&["./ops", "-o", "m.onnx"]).unwrap().command.is_none());
    }
}
