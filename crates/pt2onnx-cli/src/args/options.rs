//! The flags that say what the model shall be. Each is a key of [`pt2onnx::Options`].

use super::{
    choices,
    compress::Compress,
    merge::{set, set_list, set_some},
    names::Names,
    passes::Passes,
    saving::{Saving, check_data_file},
    script::Script,
    values,
};
use crate::{error::CommandError, options_file::OptionsFile};
use clap::{Args, builder::NonEmptyStringValueParser};
use pt2onnx::{Detail, Exporter, Operators, Spelling, State, Target, Training, Weights};
use std::path::PathBuf;

/// What the model shall be, for a conversion and for `check`.
#[derive(Debug, Args)]
pub struct Options {
    /// Read options from a TOML file; its keys are the names of these flags, which override it
    #[arg(long, value_name = "FILE.toml", help_heading = "Input and output")]
    pub options: Option<PathBuf>,
    #[command(flatten)]
    script: Script,
    /// What to do with values that the program writes into its buffers and inputs
    #[arg(long, alias = "state", value_parser = choices::state(), help_heading = "Input and output")]
    mutations: Option<State>,
    /// What to do with ops that behave as in training, because the model was exported without
    /// `model.eval()`
    #[arg(long, value_parser = choices::training(), help_heading = "Input and output")]
    training: Option<Training>,
    /// Opset of the ONNX operators
    #[arg(long, aliases = ["opset-version", "opset_version"])]
    #[arg(value_name = "N", value_parser = values::opset, help_heading = OPSET)]
    opset: Option<u32>,
    /// Version of the ONNX file format, for runtimes that refuse newer ones [default: the lowest
    /// that can hold the model]
    #[arg(long, value_name = "N", value_parser = values::ir_version, help_heading = OPSET)]
    ir_version: Option<u32>,
    /// The runtime to write for
    #[arg(long, value_parser = choices::target(), help_heading = OPSET)]
    target: Option<Target>,
    /// Seed for nodes that draw random numbers, to make them repeatable
    #[arg(long, value_name = "N", value_parser = values::seed, help_heading = OPSET)]
    seed: Option<u32>,
    /// Leave out nodes that only make NaN and infinities come out as in PyTorch
    #[arg(long, help_heading = OPSET)]
    assume_finite: bool,
    #[command(flatten)]
    passes: Passes,
    #[command(flatten)]
    compress: Compress,
    /// What to do with ops that have no translation
    #[arg(long, alias = "operators", value_parser = choices::operators(), help_heading = OPS)]
    unsupported_ops: Option<Operators>,
    /// Write ATen ops that have no translation as nodes `ATen` with the op in an attribute, as
    /// torch.onnx's older exporter does
    #[arg(long, help_heading = OPS)]
    aten_nodes: bool,
    /// Translate ops by functions in ONNX's textual syntax or of an ONNX model; can be given
    /// several times
    #[arg(long, alias = "functions", value_name = "FILE.onnxtxt", help_heading = OPS)]
    op_functions: Vec<PathBuf>,
    /// Make functions of the calls of modules: of all, by class, or by path: `all`, `BertLayer`,
    /// `encoder.layer.*`
    #[arg(long, alias = "functions-of", value_name = "all|CLASS,PATH", value_parser = NonEmptyStringValueParser::new(), value_delimiter = ',', help_heading = OPS)]
    module_functions: Vec<String>,
    /// Replace calls of functions by their bodies
    #[arg(long, help_heading = OPS)]
    inline: bool,
    /// Version at which the model imports a domain of custom ops, 1 by default; can be given
    /// several times
    #[arg(long, value_name = "DOMAIN=N", value_parser = values::version, help_heading = OPS)]
    custom_opset: Vec<(String, u32)>,
    #[command(flatten)]
    names: Names,
    /// Where to write weights
    #[arg(long, value_parser = choices::weights(), help_heading = "Weights")]
    weights: Option<Weights>,
    #[command(flatten)]
    pub saving: Saving,
    /// Make weights inputs of the model as well, so that callers can pass other values
    #[arg(long, help_heading = "Weights")]
    keep_initializers_as_inputs: bool,
    /// How much the model tells about the program
    #[arg(long, alias = "metadata", value_parser = choices::metadata(), help_heading = METADATA)]
    provenance: Option<Detail>,
    /// Write files in stack traces without their folders
    #[arg(long, help_heading = METADATA)]
    strip_paths: bool,
    /// Write the source lines of each node into its doc_string
    #[arg(long, alias = "doc-strings", help_heading = METADATA)]
    node_docs: bool,
    /// Add an entry to the model's metadata; can be given several times
    #[arg(long, alias = "meta", value_name = "KEY=VALUE", value_parser = values::key_value, help_heading = METADATA)]
    metadata_prop: Vec<(String, String)>,
    /// A description of the model
    #[arg(long, alias = "doc-string", value_name = "TEXT", help_heading = METADATA)]
    model_doc: Option<String>,
    /// Your version number of the model
    #[arg(long, value_name = "N", value_parser = values::model_version, help_heading = METADATA)]
    model_version: Option<i64>,
    /// The name of the model's producer [default: pt2onnx]
    #[arg(long, value_name = "NAME", help_heading = METADATA)]
    producer: Option<String>,
    /// If there are warnings, write nothing and exit with code 4
    #[arg(long, help_heading = "Diagnostics")]
    warnings_as_errors: bool,
}

const OPSET: &str = "Opset and target";
const OPS: &str = "Custom ops and functions";
const METADATA: &str = "Metadata";

/// The options where no flag is given. Messages name options as flags.
pub fn defaults() -> pt2onnx::Options {
    let mut options = pt2onnx::Options::default();
    options.spelling = Spelling::Flag;
    options
}

impl Options {
    /// The options that the file and the flags give.
    pub fn read(self) -> Result<pt2onnx::Options, CommandError> {
        let file = self.options.as_deref().map(OptionsFile::read).transpose()?;
        let mut options = file.as_ref().map(|file| file.options.clone()).unwrap_or_default();
        options.spelling = Spelling::Flag;
        self.put(&mut options);
        match &file {
            // Files that the options name are read as well: their errors say where the name stands.
            Some(file) => Exporter::with_options(options.clone())
                .map(drop)
                .map_err(|error| file.explain(error, &options))?,
            None => options.check()?,
        }
        check_data_file(&options)?;
        Ok(options)
    }

    /// Puts the flags that are given into the options.
    fn put(self, to: &mut pt2onnx::Options) {
        self.passes.put(to);
        self.compress.put(to);
        self.saving.put(to);
        self.script.put(to);
        self.names.put(to);
        set(&mut to.opset, self.opset);
        set_some(&mut to.ir_version, self.ir_version);
        set(&mut to.target, self.target);
        set(&mut to.mutations, self.mutations);
        set(&mut to.training, self.training);
        set(&mut to.unsupported_ops, self.unsupported_ops);
        to.aten_nodes |= self.aten_nodes;
        set_list(&mut to.op_functions, self.op_functions);
        set_list(&mut to.module_functions, self.module_functions);
        to.inline |= self.inline;
        set_list(&mut to.custom_opset, self.custom_opset);
        set_some(&mut to.seed, self.seed);
        to.assume_finite |= self.assume_finite;
        set(&mut to.weights, self.weights);
        to.keep_initializers_as_inputs |= self.keep_initializers_as_inputs;
        set(&mut to.provenance, self.provenance);
        to.strip_paths |= self.strip_paths;
        to.node_docs |= self.node_docs;
        set_list(&mut to.metadata_prop, self.metadata_prop);
        set_some(&mut to.model_doc, self.model_doc);
        set_some(&mut to.model_version, self.model_version);
        set_some(&mut to.producer, self.producer);
        to.warnings_as_errors |= self.warnings_as_errors;
    }
}
