//! The options of an export: one struct that the library, the command and reports share.

mod default_dtype;
mod dynamic_axes;
mod error;
mod form;
mod kv_names;
mod output_names;

pub use default_dtype::DefaultDtype;
pub use dynamic_axes::{DynamicAxes, DynamicAxesError};
pub use error::OptionError;
pub use form::{in_words, parse_bytes};
pub use kv_names::KvNames;
pub use output_names::{InputNames, OutputNames};

use crate::{ir_version::IR_VERSIONS, training::Training};
use pt2onnx_aten::{Detail, Operators, State};
use pt2onnx_compress::{Calibration, CastWeights, Precision, Quantize, Ranges, Spelling};
use pt2onnx_opt::{Level, OPSETS, Pass, Passes, Rules, Target};
use pt2onnx_writer::{SaveOptions, Weights, is_alignment};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The opset that is written by default.
pub const DEFAULT_OPSET: u32 = 20;

/// The first opset whose file format has functions.
pub(crate) const FUNCTIONS_SINCE: u32 = 15;

/// The options of an [`Exporter`](crate::Exporter), except for what cannot be written down (its
/// [`Registry`](crate::Registry)).
///
/// Keys and values of the serialised form are the flags of the command `pt2onnx` and their values.
/// In TOML:
///
/// ```toml
/// opset = 18
/// weights = "external"
/// shard-size = "2GB"
/// output-names = ["logits"]
///
/// [rename-dim]
/// s77 = "batch"
/// "x.1" = "length"
/// ```
///
/// An unknown key and a value of the wrong type are errors of deserialisation. [`Options::check`]
/// finds values that are out of range.
///
/// ```
/// use pt2onnx::{Exporter, Options};
///
/// let options: Options = serde_json::from_str(r#"{"opset": 18, "rename-dim": {"s77": "batch"}}"#)?;
/// let exporter = Exporter::with_options(options)?;
/// assert_eq!(exporter.options().opset, 18);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[non_exhaustive]
pub struct Options {
    /// Types of the inputs of a TorchScript archive, or their values: `float32[batch,3,224,224]`,
    /// `16000`, `none`, each by the name or position of a parameter or a path in it (`x`, `0`,
    /// `images.0`). A trace has those that it was made with.
    #[serde(with = "form::pairs")]
    pub input: Vec<(String, String)>,
    /// The method of a TorchScript archive to convert; `forward` by default.
    pub method: String,
    /// The type of floats of a TorchScript archive that have no other, such as quotients of
    /// integers; [`DefaultDtype::Float32`] by default. It is `torch.get_default_dtype()` where the
    /// module runs, which an archive does not tell.
    pub default_dtype: DefaultDtype,
    /// The program of an archive that has several, by its name; by default the only one, or the one
    /// called `model`.
    #[serde(alias = "model")]
    pub program: Option<String>,
    /// Opset of the model, one of [`OPSETS`]; [`DEFAULT_OPSET`] by default.
    pub opset: u32,
    /// Version of the ONNX file format, one of [`IR_VERSIONS`]; by default the lowest that came
    /// with the opset and has what the model uses. Metadata of nodes and values does not count, as
    /// older readers skip it.
    pub ir_version: Option<u32>,
    /// The runtime to write for; [`Target::Standard`] by default: pure ONNX, with a warning where
    /// ONNX Runtime has no kernel.
    pub target: Target,
    /// What to do with values that the program writes into buffers and inputs; [`State::Drop`] by
    /// default.
    #[serde(alias = "state")]
    pub mutations: State,
    /// What to do with ops that behave as in training, because `model.eval()` was not called before
    /// export; [`Training::Preserve`] by default.
    pub training: Training,
    /// What to do with ops that have no translation; [`Operators::Onnx`] by default: report an
    /// error.
    #[serde(alias = "operators")]
    pub unsupported_ops: Operators,
    /// Whether ATen ops that stay as they are become nodes `ATen`, whose attributes `operator` and
    /// `overload_name` name the op and whose inputs are all its arguments, as PyTorch's TorchScript
    /// exporter writes them; false by default.
    pub aten_nodes: bool,
    /// Files of ONNX functions in ONNX's textual syntax that translate ops; none by default.
    #[serde(alias = "functions")]
    pub op_functions: Vec<PathBuf>,
    /// Files of rewriting rules in ONNX's textual syntax ([`Rules`](pt2onnx_opt::Rules)), which the
    /// optimiser applies at every level; none by default.
    pub rules: Vec<PathBuf>,
    /// Modules of which the model has functions: `all`, their classes (`BertLayer`, or with the
    /// Python module) or paths (`encoder.layer.*`, in which `*` stands for any text without dots);
    /// none by default. Each call of such a module becomes a call of a function. Opset 15 or newer.
    #[serde(alias = "functions-of")]
    #[serde(deserialize_with = "form::words")]
    pub module_functions: Vec<String>,
    /// Whether calls of functions are replaced by their bodies, which are optimised with the rest
    /// then; false by default.
    pub inline: bool,
    /// Versions at which the model imports domains other than ONNX's own; 1 by default.
    #[serde(with = "form::pairs")]
    pub custom_opset: Vec<(String, u32)>,
    /// Seed of the first node that draws random numbers; the following nodes count up from it. None
    /// by default, with a warning.
    pub seed: Option<u32>,
    /// Whether the model may leave out what makes NaN and infinities come out as in PyTorch, where
    /// that costs nodes; false by default.
    pub assume_finite: bool,
    /// Whether a warning is an error; false by default.
    pub warnings_as_errors: bool,
    /// New names of the inputs.
    pub input_names: InputNames,
    /// New names of the outputs.
    pub output_names: OutputNames,
    /// New names of the tensors of caches of keys and values. By default they have names only where
    /// the names come from the tree, those of [`KvNames::default`].
    pub kv_names: Option<KvNames>,
    /// Old and new names of values, of any in the model that is written.
    #[serde(with = "form::pairs")]
    pub rename: Vec<(String, String)>,
    /// Names of dynamic dimensions, each given as its symbol (`s77`) or an axis of a value (`x.0`).
    /// A dimension has its name wherever it occurs, also in expressions: `2*batch`. Two can have
    /// one name only if they are equal whenever the model runs.
    #[serde(alias = "dim")]
    #[serde(with = "form::pairs")]
    pub rename_dim: Vec<(String, String)>,
    /// Names of axes of inputs and outputs, in the form of `torch.onnx.export`. The first name of a
    /// dimension is used everywhere; any other name only for its axis. An axis that is static in
    /// the program cannot be named.
    pub dynamic_axes: DynamicAxes,
    /// Sizes of dynamic dimensions that become static, each given as its symbol, its name or an
    /// axis of a value.
    #[serde(alias = "fix")]
    #[serde(with = "form::pairs")]
    pub fix_dim: Vec<(String, i64)>,
    /// Sizes of all dimensions of inputs: `1,3,224,224`. A name stands for a dynamic dimension of
    /// that name, `?` for one that stays as it is.
    #[serde(with = "form::pairs")]
    pub input_shape: Vec<(String, String)>,
    /// Where weights are written; [`Weights::Auto`] by default. With [`Weights::None`] the model
    /// has no parameters and no persistent buffers, and nothing is computed from them.
    pub weights: Weights,
    /// Name of the data file beside the model; the name of the model with `.data` appended by
    /// default.
    pub weights_file: Option<String>,
    /// Weights of fewer bytes stay in the model file; 1024 by default.
    #[serde(deserialize_with = "form::bytes")]
    pub external_threshold: u64,
    /// Largest size of a data file in bytes, above which there are several; no limit by default.
    #[serde(deserialize_with = "form::optional_bytes")]
    pub shard_size: Option<u64>,
    /// External weights start at multiples of this many bytes, a power of two of at most 1 GiB;
    /// 4096 by default.
    #[serde(deserialize_with = "form::bytes")]
    pub alignment: u64,
    /// Whether [`Weights::Link`] may refer to files outside of the model's folder; false by
    /// default.
    #[serde(alias = "link-outside")]
    pub allow_external_paths: bool,
    /// Whether parameters and persistent buffers are also inputs of the model, after its own, so
    /// that callers can pass other values; false by default. Nothing is computed from them
    /// beforehand then. If a model is only rewritten, weights that are inputs stay inputs, and the
    /// others stay constants.
    pub keep_initializers_as_inputs: bool,
    /// How far to optimise; [`Level::Fuse`] by default. The serialised form is 0, 1 or 2.
    #[serde(with = "form::level")]
    pub optimize: Level,
    /// Names of passes to leave out; none by default.
    pub skip_pass: Vec<String>,
    /// Constants of at most this many bytes are always folded; 8192 by default. In models of other
    /// producers, it is 128 times as many. Larger ones are folded only where the model gets no
    /// larger.
    #[serde(deserialize_with = "form::bytes")]
    pub fold_limit: u64,
    /// Whether weights of equal content become one; false by default.
    #[serde(alias = "merge-weights")]
    pub dedup_weights: bool,
    /// A smaller type to store weights in; none by default.
    pub cast_weights: Option<CastWeights>,
    /// The element type to compute in; [`Precision::Keep`] by default.
    pub precision: Precision,
    /// Whether inputs and outputs have the element type of `precision`, too; false by default.
    pub cast_io: bool,
    /// How weights are quantised; not at all by default.
    pub quantize: Option<Quantize>,
    /// How many elements share a scale; by default, those of a channel.
    #[serde(alias = "block")]
    pub block_size: Option<usize>,
    /// Whether quantised weights have zero points; false by default.
    #[serde(alias = "asymmetric")]
    pub zero_points: bool,
    /// Whether weights that products of integers take have a sign; false by default.
    pub signed: bool,
    /// The `accuracy_level` of ONNX Runtime's `MatMulNBits`; none by default.
    pub accuracy_level: Option<u8>,
    /// Names of weights (`encoder.*`) and operators (`MatMul`) to compress; all by default.
    #[serde(deserialize_with = "form::words")]
    pub compress_include: Vec<String>,
    /// Names of weights and operators that are not compressed; none by default.
    #[serde(deserialize_with = "form::words")]
    pub compress_exclude: Vec<String>,
    /// Weights of fewer elements are not compressed; 1024 by default.
    #[serde(alias = "compress-min")]
    pub min_elements: usize,
    /// Files with samples of the inputs, on which the scales of activations are found (`.npz`);
    /// none by default.
    #[serde(alias = "calibrate")]
    pub calibration_data: Vec<PathBuf>,
    /// How ranges are found from samples; [`Calibration::MinMax`] by default.
    #[serde(alias = "calibration")]
    pub calibration_method: Calibration,
    /// How much the model tells about the program; [`Detail::Full`] by default.
    #[serde(alias = "metadata")]
    pub provenance: Detail,
    /// Whether stack traces in metadata name files without their folders; false by default.
    pub strip_paths: bool,
    /// Whether the `doc_string` of a node holds the source lines that it comes from; false by
    /// default.
    #[serde(alias = "doc-strings")]
    pub node_docs: bool,
    /// Entries of the model's `metadata_props`.
    #[serde(alias = "meta")]
    #[serde(with = "form::pairs")]
    pub metadata_prop: Vec<(String, String)>,
    /// The model's `doc_string`.
    #[serde(alias = "doc-string")]
    pub model_doc: Option<String>,
    /// The model's `model_version`.
    pub model_version: Option<i64>,
    /// The model's `producer_name`; `pt2onnx` by default.
    pub producer: Option<String>,
    /// How errors and warnings spell options; as the serialised form does by default, which has no
    /// entry for it.
    #[serde(skip)]
    pub spelling: Spelling,
}

impl Default for Options {
    fn default() -> Self {
        let (save, passes) = (SaveOptions::default(), pt2onnx_opt::Options::default());
        Self {
            input: Vec::new(),
            method: "forward".to_owned(),
            default_dtype: DefaultDtype::default(),
            program: None,
            opset: DEFAULT_OPSET,
            ir_version: None,
            target: Target::default(),
            mutations: State::default(),
            training: Training::default(),
            unsupported_ops: Operators::default(),
            aten_nodes: false,
            op_functions: Vec::new(),
            rules: Vec::new(),
            module_functions: Vec::new(),
            inline: false,
            custom_opset: Vec::new(),
            seed: None,
            assume_finite: false,
            warnings_as_errors: false,
            input_names: InputNames::default(),
            output_names: OutputNames::default(),
            kv_names: None,
            rename: Vec::new(),
            rename_dim: Vec::new(),
            dynamic_axes: DynamicAxes::default(),
            fix_dim: Vec::new(),
            input_shape: Vec::new(),
            weights: save.weights,
            weights_file: save.data_file,
            external_threshold: save.threshold,
            shard_size: save.shard_size,
            alignment: save.alignment,
            allow_external_paths: save.allow_external_paths,
            keep_initializers_as_inputs: false,
            optimize: passes.level,
            skip_pass: Vec::new(),
            fold_limit: passes.max_folded_bytes as u64,
            dedup_weights: passes.dedup_weights,
            cast_weights: None,
            precision: Precision::default(),
            cast_io: false,
            quantize: None,
            block_size: None,
            zero_points: false,
            signed: false,
            accuracy_level: None,
            compress_include: Vec::new(),
            compress_exclude: Vec::new(),
            min_elements: pt2onnx_compress::Options::default().min_elements,
            calibration_data: Vec::new(),
            calibration_method: Calibration::default(),
            provenance: Detail::default(),
            strip_paths: false,
            node_docs: false,
            metadata_prop: Vec::new(),
            model_doc: None,
            model_version: None,
            producer: None,
            spelling: Spelling::default(),
        }
    }
}

impl Options {
    /// Checks values that the types allow and an export does not. Reads no files.
    ///
    /// # Errors
    /// The first value that is out of range.
    pub fn check(&self) -> Result<(), OptionError> {
        if !OPSETS.contains(&self.opset) {
            return Err(OptionError::Opset(self.opset));
        }
        self.target.reads(self.opset).map_err(OptionError::Target)?;
        if let Some(version) = self.ir_version.filter(|v| !IR_VERSIONS.contains(v)) {
            return Err(OptionError::IrVersion(version));
        }
        if let Some((domain, _)) = self.custom_opset.iter().find(|(_, version)| *version == 0) {
            return Err(OptionError::Version(domain.clone()));
        }
        if !self.module_functions.is_empty() && self.opset < FUNCTIONS_SINCE {
            return Err(OptionError::FunctionsOf(self.opset));
        }
        if !is_alignment(self.alignment) {
            return Err(OptionError::Alignment(self.alignment));
        }
        self.compression().check().map_err(OptionError::Compress)?;
        self.standard_passes().map(|_| ())
    }

    /// Checks that no option is without effect, as another one is missing or says otherwise.
    ///
    /// # Errors
    /// The first that is.
    pub fn check_together(&self) -> Result<(), OptionError> {
        let text = |text| self.spelling.text(text);
        let needs = |option, with| Err(OptionError::needs(text(option), text(with)));
        if self.allow_external_paths && self.weights != Weights::Link {
            return needs("{allow-external-paths}", "{weights} `link`");
        }
        if self.aten_nodes && self.unsupported_ops == Operators::Onnx {
            return needs(
                "{aten-nodes}",
                "{unsupported-ops} `aten`, `aten-fallback` or `fallthrough`",
            );
        }
        if self.shard_size == Some(0) {
            return Err(OptionError::NoShard(text("{shard-size}")));
        }
        for (option, names) in
            [("{input-names}", &self.input_names), ("{output-names}", &self.output_names)]
        {
            if names.listed().iter().any(|name| name == "from-tree") {
                return Err(OptionError::FromTree(text(option)));
            }
        }
        OptionError::once(text("{metadata-prop}"), &self.metadata_prop)?;
        OptionError::once(text("{fix-dim}"), &self.fix_dim)?;
        OptionError::once(text("{input-shape}"), &self.input_shape)?;
        OptionError::once(text("{custom-opset}"), &self.custom_opset)
    }

    /// Checks that options fit together: those that [`check_together`](Self::check_together) is
    /// about, and those of compression.
    ///
    /// # Errors
    /// The first that has no meaning without another.
    pub fn check_compression(&self) -> Result<(), OptionError> {
        self.check_together()?;
        let compression = self.compression();
        compression.check_together().map_err(OptionError::Compress)?;
        let text = |text| self.spelling.text(text);
        let needs = |option, with| Err(OptionError::needs(text(option), text(with)));
        if self.signed && matches!(self.target, Target::Ort | Target::OrtCpu) {
            // These are for all processors.
            return needs("{signed}", "{target} `standard`");
        }
        match (compression.quantize == Some(Quantize::StaticInt8), self.calibration_data.is_empty())
        {
            (true, true) => return needs("{quantize} `static-int8`", "{calibration-data}"),
            (false, false) => return needs("{calibration-data}", "{quantize} `static-int8`"),
            (false, true) if self.calibration_method != Calibration::default() => {
                return needs("{calibration-method}", "{calibration-data}");
            }
            _ => {}
        }
        match compression.is_off() {
            true => Ok(()),
            false if self.weights == Weights::None => {
                Err(OptionError::NothingToCompress(text("{weights}")))
            }
            false if self.keep_initializers_as_inputs => {
                Err(OptionError::NothingToCompress(text("{keep-initializers-as-inputs}")))
            }
            false => Ok(()),
        }
    }

    /// What to compress, for [`OnnxProgram::compress`](crate::OnnxProgram::compress).
    pub fn compression(&self) -> pt2onnx_compress::Options {
        pt2onnx_compress::Options {
            cast_weights: self.cast_weights,
            precision: self.precision,
            cast_io: self.cast_io,
            quantize: self.quantize,
            block_size: self.block_size,
            zero_points: self.zero_points,
            signed: self.signed,
            ort: self.target == Target::Ort,
            accuracy_level: self.accuracy_level,
            include: self.compress_include.clone(),
            exclude: self.compress_exclude.clone(),
            min_elements: self.min_elements,
            ranges: Ranges::default(),
            symmetric_activations: self.target == Target::TensorRt,
            restored_tables: self.target == Target::TensorRt,
            spelling: self.spelling,
        }
    }

    /// The files that options name, and what they hold: an export reads them.
    pub fn files(&self) -> impl Iterator<Item = (&'static str, &PathBuf)> {
        let Self { op_functions, rules, calibration_data, .. } = self;
        let named = [("functions", op_functions), ("rules", rules), ("samples", calibration_data)];
        named.into_iter().flat_map(|(what, paths)| paths.iter().map(move |path| (what, path)))
    }

    /// How to save a model, for [`OnnxProgram::save_with`](crate::OnnxProgram::save_with).
    pub fn saving(&self) -> SaveOptions {
        SaveOptions {
            weights: self.weights,
            data_file: self.weights_file.clone(),
            threshold: self.external_threshold,
            shard_size: self.shard_size,
            alignment: self.alignment,
            allow_external_paths: self.allow_external_paths,
            ..SaveOptions::default()
        }
    }

    /// The rewriting rules of all files; `None` if there are no files.
    fn read_rules(&self) -> Result<Option<Rules>, OptionError> {
        let mut all: Option<Rules> = None;
        for path in &self.rules {
            let text = pt2onnx_tensor::read_text(path)
                .map_err(|error| OptionError::RuleFile { path: path.clone(), error })?;
            let rules: Rules = text.parse().map_err(|error| OptionError::Rules {
                path: path.clone(),
                error: Box::new(error),
            })?;
            all.get_or_insert_default().extend(rules);
        }
        Ok(all)
    }

    /// The standard passes without those to leave out.
    fn standard_passes(&self) -> Result<Passes, OptionError> {
        let standard = Passes::standard();
        for name in &self.skip_pass {
            standard.get(name).map_err(OptionError::Pass)?;
        }
        let skipped = |name: &str| self.skip_pass.iter().any(|skip| skip == name);
        Ok(standard.into_iter().filter(|pass| !skipped(pass.name)).collect())
    }

    /// What the optimiser may do, for [`OnnxProgram::optimize`](crate::OnnxProgram::optimize).
    /// Reads the files of [`rules`](Self::rules).
    ///
    /// # Errors
    /// A pass to leave out does not exist, or a file of rules cannot be read.
    pub fn passes(&self) -> Result<pt2onnx_opt::Options, OptionError> {
        let mut passes = self.standard_passes()?;
        if let Some(rules) = self.read_rules()? {
            passes = passes.first(Pass::of_rules("rules", rules));
        }
        Ok(pt2onnx_opt::Options {
            level: self.optimize,
            opset: self.opset,
            target: self.target,
            max_folded_bytes: usize::try_from(self.fold_limit).unwrap_or(usize::MAX),
            dedup_weights: self.dedup_weights,
            passes,
            ..pt2onnx_opt::Options::default()
        })
    }

    /// Each option that differs from its default: its key and its value as JSON, in the order of
    /// the fields.
    pub fn changed(&self) -> Vec<(String, serde_json::Value)> {
        let entries = |options: &Self| match serde_json::to_value(options) {
            Ok(serde_json::Value::Object(entries)) => entries,
            _ => serde_json::Map::new(),
        };
        let defaults = entries(&Self::default());
        let own = entries(self).into_iter();
        own.filter(|(key, value)| defaults.get(key) != Some(value)).collect()
    }
}
