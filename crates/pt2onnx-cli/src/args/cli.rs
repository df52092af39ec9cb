//! The command line: commands, and what each takes.

use super::{
    deferred::Deferred,
    options::{NoOptimize, Options},
    running::{Run, Verify},
    tasks::by_tasks,
    values,
};
use clap::{
    Args, CommandFactory, FromArgMatches, Parser, Subcommand,
    builder::NonEmptyStringValueParser,
    error::{ContextKind, ErrorKind},
};
use pt2onnx::{Flags, Task, Weights};
use std::{ffi::OsString, num::NonZeroUsize, path::PathBuf};

const USAGE: &str = "\
pt2onnx [OPTIONS] MODEL.pt2 -o OUT.onnx
       pt2onnx [OPTIONS] A.pt2 B.pt2 ... -o FOLDER/
       pt2onnx <COMMAND>";

const AFTER: &str = "\
Examples:
  pt2onnx model.pt2 -o model.onnx
  pt2onnx models/*.pt2 -o models/
  pt2onnx model.pt2 -o model.onnx --opset 18 --rename-dim s77=batch --report report.md
  pt2onnx model.pt2 -o model.onnx --options export.toml
  pt2onnx scripted.pt -o model.onnx --input x=float32[batch,3,224,224]
  pt2onnx check --target ort-cpu *.pt2

Exit codes:
  0  success
  1  a bug of pt2onnx
  2  wrong usage of the command
  3  the input cannot be read, is damaged, is not an archive (or ONNX model), or has an unknown version
  4  the program cannot be translated (everything that prevents it is listed), its weights have no values,
     or there are warnings and `--warnings-as-errors` is given
  5  the output cannot be written
  6  the models differ (`pt2onnx diff`), or outputs are not as expected (`pt2onnx verify`)
  7  ONNX Runtime is not there, refuses the model or fails (`pt2onnx run`, `pt2onnx verify`)

After an error no output file is written, and an existing one stays as it was.";

const AFTER_CHECK: &str = "\
The exit code is 0 if all archives can be converted. Otherwise it is that of the first one that cannot, see `pt2onnx --help`.";

const AFTER_DIFF: &str = "\
`THING: A | B` shows what each model has; `-` stands for nothing. Weights are shown as their type and the first 16 bytes of the SHA-256
of their elements. The exit code is 0 if nothing differs, and 6 if something does.";

const AFTER_RUN: &str = "\
Examples:
  pt2onnx run model.onnx
  pt2onnx run model.onnx --inputs inputs.npz -o outputs.npz
  pt2onnx run model.onnx --fix-dim batch=8 --seed 1";

const AFTER_VERIFY: &str = "\
Examples:
  pt2onnx verify model.onnx --inputs inputs.npz --outputs expected.npz
  pt2onnx verify optimised.onnx --against model.onnx
  pt2onnx verify model.onnx --archive model.pt2

Numbers may differ by atol + rtol * |expected|; NaN and infinities must be where they are expected, types and shapes must be the same.
The exit code is 0 if all outputs are as expected, and 6 if not.";

const AFTER_OPTIMIZE: &str = "\
The model keeps its opset, its metadata, and its inputs, outputs and weights, with their names unless other ones are given. Functions and bodies are optimised, too.
Operators of other domains, and operators in a form that is older than the known ones, stay as they are. Their outputs
are assumed to have the types that the model states.";

/// Converts an archive of torch.export.save (`.pt2`) or torch.jit.save (`.pt`) to an ONNX model.
#[derive(Debug, Parser)]
#[command(name = "pt2onnx", version, after_help = AFTER, max_term_width = 100)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(override_usage = USAGE, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub convert: Convert,
}

/// The tasks other than conversion. To convert a file named like a command, write `./inspect`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show what an archive holds, and everything that prevents conversion
    ///
    /// Its inputs, outputs, dynamic dimensions, weights and ops.
    Inspect(Deferred<Inspect>),
    /// Print any ONNX model, or the program of an archive, as text
    ///
    /// A model without the files of its weights, a program as PyTorch prints it.
    Show(Deferred<Show>),
    /// Check whether archives can be converted, and show what prevents it
    #[command(after_help = AFTER_CHECK)]
    Check(Deferred<Check>),
    /// Show how two ONNX models differ
    ///
    /// Their opsets, inputs, outputs, operators, weights, types, names and nodes.
    #[command(after_help = AFTER_DIFF)]
    Diff(Deferred<Diff>),
    /// Run a model in ONNX Runtime, and show or write its outputs
    #[command(after_help = AFTER_RUN)]
    Run(Deferred<Run>),
    /// Compare the outputs of a model with given ones, another model or its archive
    ///
    /// The model runs in ONNX Runtime.
    #[command(after_help = AFTER_VERIFY)]
    Verify(Deferred<Verify>),
    /// Fold, simplify, fuse and compress any ONNX model
    #[command(after_help = AFTER_OPTIMIZE, alias = "optimise")]
    Optimize(Deferred<Optimize>),
    /// Give values to the weights of a model that was written without them
    #[command(alias = "apply_weights")]
    ApplyWeights(Deferred<ApplyWeights>),
    /// List the ops that have a translation, by their PyTorch schemas
    Ops {
        /// Print JSON, with the ONNX operators that each op becomes, the lowest opset and the
        /// tested element types
        #[arg(long)]
        json: bool,
    },
    /// List the passes of `--optimize`, in the order in which they run
    Passes,
    /// Explain one op: its overloads, and the ONNX operators that they become
    ///
    /// Also the lowest opset and the tested element types.
    Explain {
        /// An op, with or without namespace and overload: `add`, `aten::add.Tensor`
        #[arg(value_name = "OP", value_parser = NonEmptyStringValueParser::new())]
        op: String,
    },
}

#[derive(Debug, Args)]
pub struct Inspect {
    /// The archive
    #[arg(value_name = "MODEL.pt2|MODEL.pt")]
    pub model: PathBuf,
    /// Print JSON
    #[arg(long, help_heading = "Diagnostics")]
    pub json: bool,
    #[command(flatten)]
    pub script: Flags<{ Task::Inspect as u8 }>,
}

#[derive(Debug, Args)]
pub struct Show {
    /// The model or archive
    #[arg(value_name = "MODEL.onnx|MODEL.pt2|MODEL.pt")]
    pub model: PathBuf,
    /// Print a drawing of a model in the DOT language: `pt2onnx show --dot m.onnx | dot -Tsvg >
    /// m.svg`
    #[arg(long)]
    pub dot: bool,
    /// Print no elements of constants, for a model
    #[arg(long, conflicts_with = "dot")]
    pub no_values: bool,
    /// Print the types of all values, for a model
    #[arg(long, conflicts_with = "dot")]
    pub types: bool,
    /// Print the program before the passes over it, for an archive
    #[arg(long)]
    pub raw: bool,
    /// Do not truncate names and other words of more than 256 characters, for programs that read
    /// the text
    #[arg(long, alias = "whole")]
    pub no_truncate: bool,
    #[command(flatten)]
    pub script: Flags<{ Task::Inspect as u8 }>,
}

#[derive(Debug, Args)]
pub struct Check {
    /// The archives, or patterns such as `models/*.pt2`
    #[arg(value_name = "MODEL.pt2", required = true)]
    pub models: Vec<PathBuf>,
    /// Print JSON: for each archive whether it can be converted, its error, its failures and its
    /// warnings
    #[arg(long, help_heading = "Diagnostics")]
    pub json: bool,
    /// Number of archives to check at once [default: the number of processors]
    #[arg(short, long, value_name = "N", value_parser = values::jobs, allow_negative_numbers = true, help_heading = "Input and output")]
    pub jobs: Option<NonZeroUsize>,
    #[command(flatten)]
    pub options: Options,
    /// Write a report of the check, as Markdown, JSON or a page that draws the graph; of several
    /// archives, a table of all and the report of each. A folder gets NAME.html and NAME.json for
    /// each archive. Can be given several times
    #[arg(long, value_name = "FILE.md|FILE.json|FILE.html|FOLDER/", value_parser = values::report, help_heading = "Diagnostics")]
    pub report: Vec<PathBuf>,
    /// Print no warnings
    #[arg(short, long, help_heading = "Diagnostics")]
    pub quiet: bool,
}

#[derive(Debug, Args)]
pub struct Diff {
    /// A model
    #[arg(value_name = "A.onnx")]
    pub a: PathBuf,
    /// Another model
    #[arg(value_name = "B.onnx")]
    pub b: PathBuf,
    /// Also compare metadata and doc_strings
    #[arg(long)]
    pub metadata: bool,
    /// Do not compare the elements of weights; files with weights are then not needed
    #[arg(long)]
    pub no_weights: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Also write a page that shows both models side by side, with what differs marked
    #[arg(long, value_name = "FILE.html", value_parser = values::page)]
    pub html: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Optimize {
    /// The model
    #[arg(value_name = "MODEL.onnx", required_unless_present_any = ["merge", "choose"])]
    pub model: Option<PathBuf>,
    /// The file to write; it can be the model itself. `-` is standard output
    #[arg(short, long, value_name = "OUT.onnx", help_heading = "Input and output")]
    pub output: PathBuf,
    /// Only the part of the model that computes some values from others: `IN1,IN2:OUT1,OUT2`
    #[arg(long, value_name = "IN,..:OUT,..", value_parser = values::cut, help_heading = "Optimisation")]
    pub extract: Option<values::Cut>,
    /// Instead of one model, two: outputs of the first become the inputs of the second that have
    /// their names
    #[arg(long, value_name = "A.onnx:B.onnx", value_parser = values::models, conflicts_with = "model", help_heading = "Optimisation")]
    pub merge: Option<(PathBuf, PathBuf)>,
    /// With `--merge`, the input that an output becomes, instead of those of equal names; can be
    /// given several times
    #[arg(long, value_name = "OUT=IN", value_parser = values::pair::<String>, help_heading = "Optimisation")]
    pub connect: Vec<(String, String)>,
    /// Instead of one model, several of one program, each right for some sizes of the inputs: the
    /// first that is right for the sizes it gets. The conditions are those that a conversion wrote
    /// into each model
    #[arg(long, value_name = "A.onnx B.onnx", num_args = 2.., conflicts_with_all = ["model", "merge"], help_heading = "Optimisation")]
    pub choose: Vec<PathBuf>,
    /// Report the effects of each pass, how often it had them, and why fusions did not apply
    #[arg(long, help_heading = "Optimisation")]
    pub explain: bool,
    #[command(flatten)]
    pub flags: Flags<{ Task::Optimize as u8 }>,
    #[command(flatten)]
    pub level: NoOptimize,
    /// Log each stage and its time; twice: in detail
    #[arg(short, long, action = clap::ArgAction::Count, help_heading = "Diagnostics")]
    pub verbose: u8,
}

#[derive(Debug, Args)]
pub struct ApplyWeights {
    /// The model
    #[arg(value_name = "MODEL.onnx")]
    pub model: PathBuf,
    /// Weights by their names in the program: a .safetensors file, a folder or index of several, a
    /// .pt2 or .pt archive, or what torch.save(model.state_dict(), path) wrote
    #[arg(long, value_name = "FILE|FOLDER", help_heading = "Input and output")]
    pub weights: PathBuf,
    /// The file to write; `-` is standard output [default: the model itself]
    #[arg(short, long, value_name = "OUT.onnx", help_heading = "Input and output")]
    pub output: Option<PathBuf>,
    /// Ignore weights that the model does not use; `-v` lists them
    #[arg(long, help_heading = "Weights")]
    pub allow_unused: bool,
    /// Where to write the weights
    #[arg(long, value_parser = pt2onnx::words::<Weights>(&["none"]), default_value_t, help_heading = "Weights")]
    pub to: Weights,
    #[command(flatten)]
    pub flags: Flags<{ Task::ApplyWeights as u8 }>,
    /// Log each stage; twice: in detail
    #[arg(short, long, action = clap::ArgAction::Count, help_heading = "Diagnostics")]
    pub verbose: u8,
}

#[derive(Debug, Args)]
pub struct Convert {
    /// The archive, or several for a folder of models; for one named like a command, write
    /// `./inspect`
    #[arg(value_name = "MODEL.pt2", required = true)]
    pub models: Vec<PathBuf>,
    /// The file to write, or the folder for several models; `-` is standard output, for models with
    /// embedded weights
    #[arg(short, long, value_name = "OUT.onnx|FOLDER/", help_heading = "Input and output")]
    pub output: Option<PathBuf>,
    /// Number of archives to convert at once [default: the number of processors]
    #[arg(short, long, value_name = "N", value_parser = values::jobs, allow_negative_numbers = true, help_heading = "Input and output")]
    pub jobs: Option<NonZeroUsize>,
    /// Convert all programs of an archive that has several, into the folder: FOLDER/NAME.onnx
    #[arg(long, conflicts_with = "program", help_heading = "Input and output")]
    pub all: bool,
    #[command(flatten)]
    pub options: Options,
    /// Write a report of the conversion or its failure, as Markdown, JSON or a page that draws the
    /// graph; of several archives, a table of all and the report of each. A folder gets NAME.html
    /// and NAME.json for each archive. Can be given several times
    #[arg(long, value_name = "FILE.md|FILE.json|FILE.html|FOLDER/", value_parser = values::report, help_heading = "Diagnostics")]
    pub report: Vec<PathBuf>,
    /// With a folder as output, print JSON: for each archive whether it was converted, its error,
    /// its failures and its warnings
    #[arg(long, help_heading = "Diagnostics")]
    pub json: bool,
    /// Log each stage and its time; twice: in detail
    #[arg(short, long, action = clap::ArgAction::Count, help_heading = "Diagnostics")]
    pub verbose: u8,
    /// Print errors only: no warnings, no progress, and no line about the model that was written
    #[arg(short, long, conflicts_with = "verbose", help_heading = "Diagnostics")]
    pub quiet: bool,
}

impl Cli {
    /// Reads a command line.
    pub fn read(
        args: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    ) -> Result<Self, clap::Error> {
        let args: Vec<OsString> = args.into_iter().map(Into::into).collect();
        let matches = Self::command().try_get_matches_from(&args).or_else(|mut error| {
            match error.kind() {
                // The list of commands takes time that conversions need not spend.
                ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
                    by_tasks(Self::command()).try_get_matches_from(&args)
                }
                // A misspelt option was not meant as a value.
                ErrorKind::UnknownArgument => {
                    error.remove(ContextKind::Suggested);
                    Err(error)
                }
                _ => Err(error),
            }
        })?;
        Self::from_arg_matches(&matches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pt2onnx::{DEFAULT_OPSET, OPSETS};

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn defaults_are_those_of_the_library() {
        let help = Cli::command().render_help().to_string();
        let (first, last) = (OPSETS.start(), OPSETS.end());
        let opset = format!("operators, {first} to {last} [default: {DEFAULT_OPSET};");
        for default in [&opset, "[default: 2]", "[default: standard]", "[default: 1024]"] {
            assert!(help.contains(default), "{default}: {help}");
        }
        let twice = help.lines().find(|line| line.matches("[default").count() > 1);
        assert_eq!(twice, None);
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
                    "--provenance",
                    "basic",
                    "--metadata-prop",
                    "a=b=c",
                    "--metadata-prop",
                    "d=",
                ],
                true,
            ),
            (&["m.pt2", "-o", "m.onnx", "--optimize", "1"], true),
            (&["m.pt2", "-o", "m.onnx", "--optimize", "3"], false),
            (&["m.pt2", "-o", "m.onnx", "--skip-pass", "gelu"], true),
            (&["m.pt2", "-o", "m.onnx", "--metadata-prop", "a"], false),
            (&["m.pt2", "-o", "m.onnx", "--metadata-prop", "=a"], false),
            (&["ops"], true),
            (&["inspect", "m.pt2"], true),
            (&["inspect", "m.pt2", "--json"], true),
            (&["show", "m.onnx"], true),
            (&["show", "m.onnx", "--dot"], true),
            (&["show"], false),
            (&["optimize", "m.onnx", "-o", "n.onnx", "--optimize", "1"], true),
            (&["optimize", "m.onnx"], false),
            (&[], false),
            (&["m.pt2"], true),
            (&["-o", "m.onnx"], false),
            (&["m.pt2", "-o", "m.onnx", "-q"], true),
            (&["m.pt2", "-o", "m.onnx", "-q", "-v"], false),
            (&["inspect"], false),
            (&["m.pt2", "-o", "m.onnx", "--opset", "x"], false),
            (&["m.pt2", "n.pt2", "-o", "models/", "--jobs", "2"], true),
            (&["m.pt2", "-o", "m.onnx", "--opset_version", "18"], true),
        ] {
            assert_eq!(parse(args).is_ok(), ok, "{args:?}: {:?}", parse(args).err());
        }
        assert!(parse(&["ops"]).unwrap().command.is_some());
        assert!(parse(&["./ops", "-o", "m.onnx"]).unwrap().command.is_none());
    }

    /// Spellings of flags before 0.1, each with a value: hidden aliases until 0.2.
    const OLD_SPELLINGS: &[(&str, &str, &str)] = &[
        ("--model=x", "--program=x", CONVERT),
        ("--dim=a=b", "--rename-dim=a=b", CONVERT),
        ("--fix=a=1", "--fix-dim=a=1", CONVERT),
        ("--fix=a=1", "--fix-dim=a=1", "run m.onnx"),
        ("--meta=a=b", "--metadata-prop=a=b", CONVERT),
        ("--metadata=none", "--provenance=none", CONVERT),
        ("--doc-string=x", "--model-doc=x", CONVERT),
        ("--doc-strings", "--node-docs", CONVERT),
        ("--functions=f.onnxtxt", "--op-functions=f.onnxtxt", CONVERT),
        ("--functions-of=all", "--module-functions=all", CONVERT),
        ("--operators=aten", "--unsupported-ops=aten", CONVERT),
        ("--state=pairs", "--mutations=pairs", CONVERT),
        ("--link-outside", "--allow-external-paths", CONVERT),
        ("--calibrate=a.npz", "--calibration-data=a.npz", CONVERT),
        ("--calibration=entropy", "--calibration-method=entropy", CONVERT),
        ("--block=32", "--block-size=32", CONVERT),
        ("--asymmetric", "--zero-points", CONVERT),
        ("--compress-min=3", "--min-elements=3", CONVERT),
        ("--merge-weights", "--dedup-weights", CONVERT),
        ("--whole", "--no-truncate", "show m.onnx"),
    ];
    const CONVERT: &str = "m.pt2 -o m.onnx";

    #[test]
    fn old_spellings_mean_the_same() {
        let parse = |flag: &str, line: &str| {
            let words = ["pt2onnx"].into_iter().chain(line.split(' ')).chain([flag]);
            format!("{:?}", Cli::try_parse_from(words).unwrap())
        };
        let help = Cli::command().render_long_help().to_string();
        for (old, new, line) in OLD_SPELLINGS {
            assert_eq!(parse(old, line), parse(new, line), "{old}");
            let flag = old.split('=').next().unwrap_or_default();
            let shown = help.split_whitespace().any(|word| word == flag);
            assert!(!shown, "{flag} is in --help");
        }
    }
}
