//! The options of an export: one declaration, from which come the struct, its form in files, the
//! flags of the command, Python's keywords and the documentation.

mod check;
#[macro_use]
mod declare;
mod default_dtype;
mod dynamic_axes;
mod error;
#[cfg(feature = "clap")]
mod flags;
mod io_names;
mod kv_names;
mod value;

pub use declare::{Assign, OptionMeta, Task};
#[doc(hidden)]
pub use declare::{kebab, of_type};
pub use default_dtype::DefaultDtype;
pub use dynamic_axes::{DynamicAxes, DynamicAxesError};
pub use error::OptionError;
#[cfg(feature = "clap")]
pub use flags::{Flags, words};
pub use io_names::IoNames;
pub use kv_names::KvNames;
pub use value::{Bytes, Choice, FlagKind, Item, OptionValue, Pairs, in_words, parse_bytes};

#[cfg(doc)]
use crate::{exporter::Exporter, ir_version::IR_VERSIONS};
use crate::{modules::ModuleAttributes, training::Training};
use pt2onnx_aten::{Mutations, Provenance, UnsupportedOps};
use pt2onnx_compress::{Calibration, CastWeights, Precision, Quantize, Spelling};
#[cfg(doc)]
use pt2onnx_opt::OPSETS;
use pt2onnx_opt::{Level, Target};
use pt2onnx_writer::{SaveOptions, Weights};
use std::path::PathBuf;

/// The opset that is written by default.
pub const DEFAULT_OPSET: u32 = 20;

declare_options! {
    /// The options of an [`Exporter`], except for what cannot be written down (its
    /// [`Registry`](crate::Registry)).
    ///
    /// Keys and values of the serialised form are the flags of the command `pt2onnx` and their
    /// values. In TOML:
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
    /// An unknown key and a value of the wrong type are errors of deserialisation.
    /// [`Options::check`] finds values that are out of range.
    ///
    /// ```
    /// use pt2onnx::{Exporter, Options};
    ///
    /// let text = r#"{"opset": 18, "rename-dim": {"s77": "batch"}}"#;
    /// let options: Options = serde_json::from_str(text)?;
    /// let exporter = Exporter::with_options(options)?;
    /// assert_eq!(exporter.options().opset, 18);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct Options, setters setters;

    "Input and output" for [Convert, Inspect] {
        /// TorchScript: the type or value of an input, by name, position or path:
        /// `x=float32[batch,3,224,224]`, `1=16000`, `images.0=none`.
        pub input: Pairs<String> via value::assignments,
            value_name = "NAME=TYPE", unset = "those of the trace";
        /// TorchScript: the method to convert.
        pub method: String = "forward".to_owned(), value_name = "NAME";
        /// TorchScript: the type of floats that have no other, such as quotients of integers:
        /// `torch.get_default_dtype()`.
        ///
        /// An archive does not record it.
        pub default_dtype: DefaultDtype, value_name = "TYPE";
        /// The program to convert, of an archive that has several.
        #[alias = "model"]
        pub program: Option<String>, value_name = "NAME", unset = "the only one, or `model`";
    }
    "Input and output" for [Convert] {
        /// How to treat values that the program writes into its buffers and inputs.
        #[alias = "state"]
        pub mutations: Mutations;
        /// How to treat ops that behave as in training, because the model was exported without
        /// `model.eval()`.
        pub training: Training;
    }
    "Opset and target" for [Convert, Optimize] {
        /// Opset of the ONNX operators, 7 to 26.
        ///
        /// One of [`OPSETS`]; [`DEFAULT_OPSET`] by default.
        #[alias = "opset-version"]
        #[alias = "opset_version"]
        pub opset: u32 = DEFAULT_OPSET,
            value_name = "N", unset = "20; for `optimize`, that of the model";
    }
    "Opset and target" for [Convert] {
        /// Version of the ONNX file format, for runtimes that refuse newer ones.
        ///
        /// One of [`IR_VERSIONS`]; by default the lowest that came with the opset and has what the
        /// model uses. Metadata of nodes and values does not count, as older readers skip it.
        pub ir_version: Option<u32>,
            value_name = "N", unset = "the lowest that can hold the model";
    }
    "Opset and target" for [Convert, Optimize] {
        /// The runtime to write for.
        pub target: Target;
        /// The number of tokens of the longest sequence that a language model is run for: the
        /// target `ort-genai` then keeps the angles of so many positions in the model.
        pub max_positions: Option<usize>, value_name = "N", unset = "angles are computed";
    }
    "Opset and target" for [Convert] {
        /// Seed of the first node that draws random numbers, to make them repeatable; the following
        /// nodes count up from it.
        ///
        /// None by default, with a warning.
        pub seed: Option<u32>, value_name = "N";
        /// Leave out nodes that only make NaN and infinities come out as in PyTorch.
        pub assume_finite: bool;
        /// Make the model fail for sizes of inputs for which the program was not exported, with the
        /// reason as the name of the node that fails.
        pub size_checks: bool;
    }
    "Optimisation" for [Convert, Optimize] {
        /// How far to optimise: 0 not at all, 1 fold and simplify, 2 also fuse.
        pub optimize: Level, value_name = "LEVEL";
        /// Leave out passes that `pt2onnx passes` lists.
        pub skip_pass: Vec<String>, value_name = "PASS";
        /// Apply the rewriting rules of a file, in ONNX's textual syntax, at every level.
        ///
        /// See [`Rules`](pt2onnx_opt::Rules).
        pub rules: Vec<PathBuf>, value_name = "FILE.onnxtxt";
        /// Fold constants of up to this many bytes, `optimize` those of up to 128 times as many;
        /// larger ones only if the file gets no larger.
        pub fold_limit: Bytes = pt2onnx_opt::Options::default().max_folded_bytes as u64,
            value_name = "BYTES";
        /// Write weights of equal content once; `apply-weights` then knows them by the name of the
        /// first.
        #[alias = "merge-weights"]
        pub dedup_weights: bool = pt2onnx_opt::Options::default().dedup_weights;
    }
    "Compression" for [Convert, Optimize] {
        /// Store weights in a smaller type, with a Cast after each.
        pub cast_weights: Option<CastWeights>;
        /// Compute in another element type; inputs and outputs keep theirs.
        pub precision: Precision;
        /// Give inputs and outputs the element type of `precision`, too.
        pub cast_io: bool;
        /// Quantise weights.
        pub quantize: Option<Quantize>;
        /// Elements that share a scale: 16, 32, 64, 128 or 256.
        #[alias = "block"]
        pub block_size: Option<usize>, value_name = "N", unset = "those of a channel";
        /// Keep 8 bits in `int4` for weights that 4 bits harm most: those of the last products, and
        /// those with a few large numbers.
        pub mixed: bool;
        /// Give quantised weights zero points.
        #[alias = "asymmetric"]
        pub zero_points: bool;
        /// Give weights of `dynamic-int8` and `static-int8` a sign: faster on processors with VNNI,
        /// wrong on older x86 ones.
        pub signed: bool;
        /// `accuracy_level` of ONNX Runtime's MatMulNBits, 0 to 4; 4 computes with integers of 8
        /// bits.
        pub accuracy_level: Option<u8>,
            value_name = "LEVEL", unset = "4 for `ort-genai`, else ONNX Runtime's";
        /// Compress only these weights, by name or by operator: `encoder.*`, `MatMul`.
        pub compress_include: Vec<String>, value_name = "NAME,OP";
        /// Do not compress these weights, by name or by operator.
        pub compress_exclude: Vec<String>, value_name = "NAME,OP";
        /// Do not compress weights of fewer elements.
        #[alias = "compress-min"]
        pub min_elements: usize = pt2onnx_compress::Options::default().min_elements,
            value_name = "N";
        /// Samples of the inputs, as arrays by their names: for `static-int8`, and for `int4`,
        /// whose weights then make up for the errors of others (GPTQ).
        #[alias = "calibrate"]
        pub calibration_data: Vec<PathBuf>, value_name = "FILE.npz";
        /// How the ranges of activations are found from samples.
        #[alias = "calibration"]
        pub calibration_method: Calibration;
    }
    "Custom ops and functions" for [Convert] {
        /// How to treat ops that have no translation.
        #[alias = "operators"]
        pub unsupported_ops: UnsupportedOps;
        /// Write ATen ops that have no translation as nodes `ATen` with the op in an attribute, as
        /// torch.onnx's older exporter does.
        ///
        /// The attributes `operator` and `overload_name` name the op; its arguments are the inputs.
        pub aten_nodes: bool;
        /// Translate ops by functions in ONNX's textual syntax, or those of an ONNX model.
        ///
        /// [`Exporter::with_options`] reads the files;
        /// [`Exporter::functions`] takes a text.
        #[alias = "functions"]
        #[no_setter]
        pub op_functions: Vec<PathBuf>, value_name = "FILE.onnxtxt";
        /// Make functions of the calls of modules: of all, by class, or by path: `all`,
        /// `BertLayer`, `encoder.layer.*`.
        ///
        /// A class may have its Python module; in a path, `*` stands for any text without dots.
        /// Opset 15 or newer.
        #[alias = "functions-of"]
        pub module_functions: Vec<String>, value_name = "all|CLASS,PATH";
    }
    "Custom ops and functions" for [Convert, Optimize] {
        /// Replace calls of functions by their bodies.
        pub inline: bool;
    }
    "Custom ops and functions" for [Convert] {
        /// Version at which the model imports a domain of custom ops.
        pub custom_opset: Pairs<u32>, value_name = "DOMAIN=N", unset = "1";
    }
    "Names and dims" for [Convert, Optimize] {
        /// Names of the inputs, in order; `from-tree` uses the parameters of `forward` and the keys
        /// of dicts.
        pub input_names: IoNames, value_name = "A,B";
        /// Names of the outputs, in order; `from-tree` uses the keys of the dict or dataclass that
        /// the program returns.
        pub output_names: IoNames, value_name = "A,B";
        /// Names of keys and values in caches.
        ///
        /// By default they have names only where the names come from the tree:
        /// [`KvNames::default`].
        pub kv_names: Option<KvNames>,
            value_name = "IN,OUT",
            unset = "with `from-tree`, past_key_values.{layer}.{part},present.{layer}.{part}";
        /// Rename a value of the model.
        pub rename: Pairs<String>, value_name = "OLD=NEW";
        /// Name a dynamic dimension, by its symbol or an axis: `s77=batch`, `x.0=batch`.
        ///
        /// A dimension has its name wherever it occurs, also in expressions: `2*batch`. Two can
        /// have one name only if they are equal whenever the model runs.
        #[alias = "dim"]
        pub rename_dim: Pairs<String>, value_name = "DIM=NAME";
        /// Name axes as torch.onnx.export does: `{"x": {"0": "batch"}}`, or `{"x": [0]}` for
        /// `x_dynamic_axes_1`.
        ///
        /// The first name of a dimension is used everywhere; any other name only for its axis. An
        /// axis that is static in the program cannot be named.
        pub dynamic_axes: DynamicAxes, value_name = "JSON";
        /// Make a dynamic dimension static: `batch=1`, `s77=1`, `x.0=1`.
        #[alias = "fix"]
        pub fix_dim: Pairs<i64>, value_name = "DIM=N";
        /// Sizes of all dimensions of an input: `x=1,3,h,?`. A name names the dimension, `?` keeps
        /// it.
        pub input_shape: Pairs<String> via value::shapes, value_name = "INPUT=SIZES";
    }
    "Weights" for [Convert, Optimize, Save] {
        /// Where to write weights.
        ///
        /// With [`Weights::None`] the model has no parameters and no persistent buffers, and
        /// nothing is computed from them.
        pub weights: Weights = SaveOptions::default().weights;
    }
    "Weights" for [Convert, Optimize, ApplyWeights, Save] {
        /// Name of the file with external weights, beside the model.
        pub weights_file: Option<String>, value_name = "NAME", unset = "OUT.onnx.data";
        /// Weights of fewer bytes stay in the model file.
        pub external_threshold: Bytes = SaveOptions::default().threshold, value_name = "BYTES";
        /// Largest size of a data file (4096, 500MB, 2GiB), above which there are several.
        pub shard_size: Option<Bytes>, value_name = "BYTES", unset = "no limit";
        /// External weights start at multiples of this; Windows can map them at 64KiB.
        ///
        /// A power of two of at most 1 GiB.
        pub alignment: Bytes = SaveOptions::default().alignment, value_name = "BYTES";
        /// Let `link` refer to files outside the model's folder, which many runtimes refuse.
        #[alias = "link-outside"]
        pub allow_external_paths: bool;
    }
    "Weights" for [Convert, Optimize] {
        /// Make weights inputs of the model as well, so that callers can pass other values.
        /// `optimize` keeps those that are inputs, and otherwise makes them constants if all are.
        ///
        /// Nothing is computed beforehand from weights that are inputs.
        pub keep_initializers_as_inputs: bool;
    }
    "Metadata" for [Convert] {
        /// How much the model records of the program it comes from.
        #[alias = "metadata"]
        pub provenance: Provenance;
        /// Write files in stack traces without their folders.
        pub strip_paths: bool;
        /// Name nodes and values by modules and operators, as torch.onnx.export does for traces:
        /// `/conv1/Conv` and `/conv1/Conv_output_0`.
        pub scoped_names: bool;
        /// Write the source lines of each node into its `doc_string`.
        #[alias = "doc-strings"]
        pub node_docs: bool;
        /// Add an entry to the model's `metadata_props`.
        #[alias = "meta"]
        #[no_setter]
        pub metadata_prop: Pairs<String> via value::assignments, value_name = "KEY=VALUE";
        /// A description of the model: its `doc_string`.
        #[alias = "doc-string"]
        pub model_doc: Option<String>, value_name = "TEXT";
        /// Your version number of the model.
        pub model_version: Option<i64>, value_name = "N";
        /// The name of the model's producer.
        pub producer: Option<String>, value_name = "NAME", unset = "pt2onnx";
    }
    "Diagnostics" for [Convert, Optimize] {
        /// If there are warnings, write nothing and report them as an error.
        pub warnings_as_errors: bool;
    }

    /// How errors and warnings spell options; as the serialised form does by default, which has no
    /// entry for it.
    skip spelling: Spelling;

    /// Attributes of modules by their paths, for the calls of their functions: numbers, texts,
    /// truth values, and lists of these. With them, functions have attributes as those of
    /// torch.onnx.export: others have the prefix `inferred::`.
    skip module_attributes: Option<ModuleAttributes>;
}

pub(crate) use setters as option_setters;
