//! The exporter: options, translations, and the ways to start an export.

use crate::{
    DefaultDtype, Detail, DynamicAxes, Error, Failed, InputNames, KvNames, OnnxProgram, Operators,
    OptionError, Options, OutputNames, Registry, Report, SaveOptions, State, Target, Training,
    Weights,
    archives::{self, Source},
    pipeline::{self, Translated, translate},
    torchscript_program::Read,
};
use bytes::Bytes;
use indexmap::IndexMap;
use pt2onnx_fx::{Constant, ExportedProgram, archive};
use pt2onnx_ir::ParseError;
use pt2onnx_opt::{Level, Pass};
use pt2onnx_tensor::Tensor;
use pt2onnx_writer::Inputs;
use std::{fmt, io, path::Path};

/// Turns exported programs into ONNX models.
///
/// It holds [`Options`], each of which has a method here, and the [`Registry`] of translations.
#[derive(Default)]
pub struct Exporter {
    options: Options,
    registry: Registry,
    forgets_graph: bool,
}

impl fmt::Debug for Exporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exporter").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Exporter {
    /// An exporter with default options and the built-in translations.
    pub fn new() -> Self {
        Self::default()
    }

    /// An exporter with these options and the built-in translations. Reads the files of [`Options::functions`].
    ///
    /// # Errors
    /// An option has a value that it cannot have ([`Options::check`]), or a file of functions cannot be read.
    pub fn with_options(options: Options) -> Result<Self, OptionError> {
        options.check()?;
        // Errors in rules are told before anything is done.
        options.passes()?;
        let mut registry = Registry::default();
        for path in &options.functions {
            let unread = |source| OptionError::FunctionFile { path: path.clone(), source };
            let bytes = pt2onnx_tensor::read(path).map_err(unread)?;
            match pt2onnx_writer::from_bytes(bytes.clone()) {
                // Text is hardly ever a message of protobuf.
                Ok(model) if !model.functions.is_empty() => registry.add_function_library(model),
                _ => {
                    let neither = "they are neither text nor a model with functions";
                    let text = str::from_utf8(&bytes)
                        .map_err(|_| unread(io::Error::new(io::ErrorKind::InvalidData, neither)))?;
                    registry
                        .add_functions(text)
                        .map_err(|source| OptionError::Functions { path: path.clone(), source })?;
                }
            }
        }
        Ok(Self { options, registry, forgets_graph: false })
    }

    /// The options.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Sets the opset of the model, one of [`OPSETS`](crate::OPSETS); [`DEFAULT_OPSET`](crate::DEFAULT_OPSET) by default.
    pub fn opset(mut self, opset: u32) -> Self {
        self.options.opset = opset;
        self
    }

    /// Sets the version of the ONNX file format, one of [`IR_VERSIONS`](crate::IR_VERSIONS), for runtimes that refuse newer
    /// ones. By default it is the lowest version that came with the opset and has what the model uses. Metadata of nodes and
    /// values does not count, as older readers skip it.
    pub fn ir_version(mut self, version: u32) -> Self {
        self.options.ir_version = Some(version);
        self
    }

    /// Sets where [`OnnxProgram::save`] puts the weights; [`Weights::Auto`] by default. With [`Weights::None`] the model has no
    /// parameters and no persistent buffers, and nothing is computed from them. [`OnnxProgram::apply_weights`] completes it.
    pub fn weights(mut self, weights: Weights) -> Self {
        self.options.weights = weights;
        self
    }

    /// Sets how [`OnnxProgram::save`] writes, and where it puts the weights.
    pub fn save_options(mut self, save: SaveOptions) -> Self {
        let SaveOptions { weights, data_file, threshold, shard_size, alignment, .. } = save;
        let link_outside = save.link_outside;
        self.options.keep_initializers_as_inputs |= save.keep_initializers_as_inputs;
        self.options = Options {
            weights,
            weights_file: data_file,
            external_threshold: threshold,
            shard_size,
            alignment,
            link_outside,
            ..self.options
        };
        self
    }

    /// Sets whether parameters and persistent buffers are also inputs of the model, after its own, so that callers can pass
    /// other values; false by default. Nothing is computed from them beforehand then.
    pub fn keep_initializers_as_inputs(mut self, keep: bool) -> Self {
        self.options.keep_initializers_as_inputs = keep;
        self
    }

    /// Adds a file of rewriting rules ([`Rules`](pt2onnx_opt::Rules)). Can be called several times.
    pub fn rules(mut self, path: impl Into<std::path::PathBuf>) -> Self {
        self.options.rules.push(path.into());
        self
    }

    /// Sets how far to fold, simplify and fuse; [`Level::Fuse`] by default, which is all of it.
    pub fn optimize(mut self, level: Level) -> Self {
        self.options.optimize = level;
        self
    }

    /// Leaves out an optimiser pass. Can be called several times.
    pub fn skip_pass(mut self, pass: &Pass) -> Self {
        self.options.skip_pass.push(pass.name.to_owned());
        self
    }

    /// Sets up to how many bytes a constant is always folded; 8192 by default. Larger constants are folded only where the model
    /// gets no larger.
    pub fn fold_limit(mut self, bytes: u64) -> Self {
        self.options.fold_limit = bytes;
        self
    }

    /// Sets whether weights of equal content become one, with the name of the first; false by default.
    pub fn merge_weights(mut self, merge: bool) -> Self {
        self.options.merge_weights = merge;
        self
    }

    /// Sets the runtime to write for; [`Target::Standard`] by default: pure ONNX, with a warning where ONNX Runtime has no
    /// kernel.
    pub fn target(mut self, target: Target) -> Self {
        self.options.target = target;
        self
    }

    /// Sets whether the model may leave out what makes NaN and infinities come out as in PyTorch, where that costs nodes; false by
    /// default.
    pub fn assume_finite(mut self, assume_finite: bool) -> Self {
        self.options.assume_finite = assume_finite;
        self
    }

    /// Sets what to do with values that the program writes into buffers and inputs; [`State::Drop`] by default.
    pub fn state(mut self, state: State) -> Self {
        self.options.state = state;
        self
    }

    /// Sets what to do with ops that behave as in training, because `model.eval()` was not called before export;
    /// [`Training::Preserve`] by default.
    pub fn training(mut self, training: Training) -> Self {
        self.options.training = training;
        self
    }

    /// Sets the seed of the first node that draws random numbers; the following nodes count up from it. By default there is no
    /// seed, and a warning.
    pub fn seed(mut self, seed: u32) -> Self {
        self.options.seed = Some(seed);
        self
    }

    /// Replaces the translations, and with them any given by [`functions`](Self::functions) before. By default all built-in
    /// translations are used.
    pub fn registry(mut self, registry: Registry) -> Self {
        self.registry = registry;
        self
    }

    /// Sets whether the graph of the program is freed when it is no longer needed; false by default. It takes as much memory as
    /// that of the model. There is no [`OnnxProgram::exported_program`] then, and reports do not show the program.
    ///
    /// ```
    /// # let archive = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/models/mlp.pt2");
    /// let program = pt2onnx::Exporter::new().forget_graph(true).export(archive)?;
    /// assert!(program.exported_program().is_none());
    /// # Ok::<(), pt2onnx::Error>(())
    /// ```
    pub fn forget_graph(mut self, forget: bool) -> Self {
        self.forgets_graph = forget;
        self
    }

    /// The translations, to be extended.
    pub fn registry_mut(&mut self) -> &mut Registry {
        &mut self.registry
    }

    /// Adds functions in ONNX's textual syntax, as translations of the ops that they are named after
    /// ([`Registry::add_functions`]). Can be called several times.
    ///
    /// # Errors
    /// The text cannot be parsed.
    pub fn functions(mut self, text: &str) -> Result<Self, ParseError> {
        self.registry.add_functions(text)?;
        Ok(self)
    }

    /// Sets of which modules the model has functions: `all`, classes (`BertLayer`, or with the Python module) or paths, in which
    /// `*` stands for any text without dots (`encoder.layer.*`). Each call of such a module becomes a call of a function. By
    /// default there are none.
    ///
    /// ```
    /// # let archive = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/models/mlp.pt2");
    /// let program = pt2onnx::Exporter::new().functions_of(["Linear"]).export(archive)?;
    /// assert!(program.model().functions.iter().all(|f| f.domain == "torch.nn.modules.linear"));
    /// # Ok::<(), pt2onnx::Error>(())
    /// ```
    pub fn functions_of(mut self, modules: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.options.functions_of = modules.into_iter().map(Into::into).collect();
        self
    }

    /// Sets whether calls of functions are replaced by their bodies; false by default. The bodies are optimised with the rest then.
    pub fn inline(mut self, inline: bool) -> Self {
        self.options.inline = inline;
        self
    }

    /// Sets what to do with ops that have no translation; [`Operators::Onnx`] by default: report an error.
    pub fn operators(mut self, operators: Operators) -> Self {
        self.options.operators = operators;
        self
    }

    /// Sets whether ATen ops that stay as they are become nodes `ATen`, as PyTorch's TorchScript exporter writes them; false by default.
    pub fn aten_nodes(mut self, aten_nodes: bool) -> Self {
        self.options.aten_nodes = aten_nodes;
        self
    }

    /// Sets the version at which the model imports a domain other than ONNX's own; 1 by default. If a domain is given twice, the
    /// last version is used.
    pub fn custom_opset(mut self, domain: impl Into<String>, version: u32) -> Self {
        self.options.custom_opset.push((domain.into(), version));
        self
    }

    /// Sets how much the model tells about the program; [`Detail::Full`] by default.
    pub fn metadata(mut self, metadata: Detail) -> Self {
        self.options.metadata = metadata;
        self
    }

    /// Sets whether stack traces in metadata name files without their folders; false by default.
    pub fn strip_paths(mut self, strip_paths: bool) -> Self {
        self.options.strip_paths = strip_paths;
        self
    }

    /// Adds an entry to the model's `metadata_props`. If a key is given twice, the last value is used.
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        let (key, value) = (key.into(), value.into());
        self.options.meta.retain(|(k, _)| *k != key);
        self.options.meta.push((key, value));
        self
    }

    /// Sets the model's `doc_string`; none by default.
    pub fn doc_string(mut self, text: impl Into<String>) -> Self {
        self.options.doc_string = Some(text.into());
        self
    }

    /// Sets the model's `model_version`; none by default.
    pub fn model_version(mut self, version: i64) -> Self {
        self.options.model_version = Some(version);
        self
    }

    /// Sets the model's `producer_name`; by default `pt2onnx`, with its version.
    pub fn producer(mut self, name: impl Into<String>) -> Self {
        self.options.producer = Some(name.into());
        self
    }

    /// Sets whether the `doc_string` of a node holds the lines of the user's source that it comes from; false by default.
    pub fn source_lines(mut self, source_lines: bool) -> Self {
        self.options.doc_strings = source_lines;
        self
    }

    /// Sets whether a warning is an error, so that there is no model; false by default.
    pub fn warnings_as_errors(mut self, errors: bool) -> Self {
        self.options.warnings_as_errors = errors;
        self
    }

    /// Sets names of the inputs, in order. Inputs after the last name keep the program's.
    pub fn input_names(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.options.input_names = InputNames::List(names.into_iter().map(Into::into).collect());
        self
    }

    /// Names inputs after the parameters, keys and fields that lead to them in the program's arguments, and the tensors of caches as
    /// [`KvNames`] says.
    pub fn input_names_from_tree(mut self) -> Self {
        self.options.input_names = InputNames::FromTree;
        self
    }

    /// Sets names of the tensors of caches of keys and values.
    pub fn kv_names(mut self, names: KvNames) -> Self {
        self.options.kv_names = Some(names);
        self
    }

    /// Sets names of the outputs; the program's by default.
    pub fn output_names(mut self, names: OutputNames) -> Self {
        self.options.output_names = names;
        self
    }

    /// Renames the value `old`, which may be any value of the model that is written.
    pub fn rename(mut self, old: impl Into<String>, new: impl Into<String>) -> Self {
        self.options.rename.push((old.into(), new.into()));
        self
    }

    /// Names a dynamic dimension: `target` is its symbol in the program (`s77`) or an axis of a value (`x.0`). It has that name
    /// wherever it occurs, also in expressions: `2*batch`. Two dimensions can have one name only if they are equal whenever the
    /// model runs.
    pub fn dim(mut self, target: impl Into<String>, name: impl Into<String>) -> Self {
        self.options.dim.push((target.into(), name.into()));
        self
    }

    /// Names axes of inputs and outputs. The first name of a dimension is used everywhere; any other name only for its axis. An
    /// axis that is static in the program cannot be named.
    pub fn dynamic_axes(mut self, axes: DynamicAxes) -> Self {
        self.options.dynamic_axes = axes;
        self
    }

    /// Makes a dynamic dimension static: a symbol, a name given to one, or an axis of a value.
    pub fn fix(mut self, target: impl Into<String>, size: i64) -> Self {
        self.options.fix.push((target.into(), size));
        self
    }

    /// Reads an archive and translates its program. The file is mapped while the result lives, and must not change meanwhile.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn export(&self, archive: impl AsRef<Path>) -> Result<OnnxProgram, Error> {
        self.attempt(archive).map_err(|failed| failed.error)
    }

    /// Does the same as [`export`](Self::export) with an archive in memory. Weights are views of the bytes.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn export_bytes(&self, archive: impl Into<Bytes>) -> Result<OnnxProgram, Error> {
        self.attempt_bytes(archive).map_err(|failed| failed.error)
    }

    /// Translates a program that was read before.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn export_program(&self, program: ExportedProgram) -> Result<OnnxProgram, Error> {
        self.attempt_program(program).map_err(|failed| failed.error)
    }

    /// Does the same as [`export`](Self::export), but an error comes with a [`Report`]. A program has one, too.
    ///
    /// ```
    /// # use pt2onnx::Exporter;
    /// let report = match Exporter::new().attempt("no/such/file.pt2") {
    ///     Ok(program) => program.report().clone(),
    ///     Err(failed) => *failed.report,
    /// };
    /// assert!(report.to_markdown().contains("**Failed:**"));
    /// ```
    ///
    /// # Errors
    /// See [`Error`].
    pub fn attempt(&self, archive: impl AsRef<Path>) -> Result<OnnxProgram, Failed> {
        let path = archive.as_ref();
        let mut report = Report::new(Some(self.options.clone()));
        report.read(path);
        let inputs = self.inputs(Some(path));
        self.translated(report, inputs, |report| {
            archives::read(&Source::File(path), &self.options, &self.registry, report)
        })
    }

    /// Sets the program of the archive to convert, by its name, if there are several ([`Options::model`]).
    pub fn model(mut self, name: impl Into<String>) -> Self {
        self.options.model = Some(name.into());
        self
    }

    /// Does the same as [`attempt`](Self::attempt) with the program of this name, of an archive that has several.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn attempt_model(
        &self,
        archive: impl AsRef<Path>,
        name: &str,
    ) -> Result<OnnxProgram, Failed> {
        let options = Options { model: Some(name.to_owned()), ..self.options.clone() };
        let path = archive.as_ref();
        let mut report = Report::new(Some(options.clone()));
        report.read(path);
        self.translated(report, self.inputs(Some(path)), |report| {
            archives::read(&Source::File(path), &options, &self.registry, report)
        })
    }

    /// Does the same as [`export_bytes`](Self::export_bytes), but an error comes with a [`Report`]. A program has one, too.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn attempt_bytes(&self, archive: impl Into<Bytes>) -> Result<OnnxProgram, Failed> {
        let report = Report::new(Some(self.options.clone()));
        let source = Source::Bytes(archive.into());
        self.translated(report, self.inputs(None), |report| {
            archives::read(&source, &self.options, &self.registry, report)
        })
    }

    /// Does the same as [`export_program`](Self::export_program), but an error comes with a [`Report`]. A program has one, too.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn attempt_program(&self, program: ExportedProgram) -> Result<OnnxProgram, Failed> {
        let report = Report::new(Some(self.options.clone()));
        self.translated(report, self.inputs(None), |_| Read::exported(program, &self.options))
    }

    /// The program of an archive as PyTorch's `print(ep)` shows it. Without `raw` it is shown as it is translated, after all passes
    /// over it.
    ///
    /// ```
    /// # let archive = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/models/mlp.pt2");
    /// let text = pt2onnx::Exporter::new().program_text(archive, true)?;
    /// assert!(text.starts_with("ExportedProgram:\n    class GraphModule(torch.nn.Module):\n"));
    /// # Ok::<(), pt2onnx::Error>(())
    /// ```
    ///
    /// # Errors
    /// The archive cannot be read, or a pass refuses the program.
    pub fn program_text(&self, archive: impl AsRef<Path>, raw: bool) -> Result<String, Error> {
        let source = Source::File(archive.as_ref());
        let mut report = Report::new(None);
        let mut program =
            archives::read(&source, &self.options, &self.registry, &mut report)?.program;
        if !raw {
            program = pipeline::prepared(program, &self.options, &self.registry, &mut report)?;
        }
        Ok(pt2onnx_fx::readable(&program).to_string())
    }

    /// Translates a program in parts: its JSON, as archives hold it, and its tensors ([`archive::from_json`]).
    ///
    /// # Errors
    /// See [`Error`].
    pub fn attempt_parts(
        &self,
        json: &[u8],
        state: IndexMap<String, Tensor>,
        constants: IndexMap<String, Constant>,
    ) -> Result<OnnxProgram, Failed> {
        let report = Report::new(Some(self.options.clone()));
        self.translated(report, self.inputs(None), |_| {
            let program = archive::from_json(json, state, constants);
            Read::exported(program.map_err(Error::Archive)?, &self.options)
        })
    }

    fn translated(
        &self,
        mut report: Report,
        inputs: Inputs,
        read: impl FnOnce(&mut Report) -> Result<Read, Error>,
    ) -> Result<OnnxProgram, Failed> {
        let read = report.stage_with("read", read);
        let mut translated = |read: Read| {
            let Self { options, registry, forgets_graph } = self;
            let made = translate(read.program, options, registry, *forgets_graph, &mut report)?;
            let warnings = read.warnings.into_iter().chain(made.warnings).collect();
            Ok(Translated { warnings, ..made })
        };
        let made = read.and_then(|mut read| {
            let by_cases = read.by_cases.take();
            let made = translated(read);
            match by_cases.filter(|_| made.is_err()) {
                Some(read) => translated(*read),
                None => made,
            }
        });
        self.close(made, report, inputs)
    }

    /// Sets the type or value of an input of a TorchScript archive ([`Options::input`]).
    pub fn input(mut self, name: impl Into<String>, given: impl Into<String>) -> Self {
        self.options.input.push((name.into(), given.into()));
        self
    }

    /// Sets the method of a TorchScript archive to convert; `forward` by default.
    pub fn method(mut self, method: impl Into<String>) -> Self {
        self.options.method = method.into();
        self
    }

    /// Sets the type of floats of a TorchScript archive that have no other: `torch.get_default_dtype()` where the module runs;
    /// [`DefaultDtype::Float32`] by default.
    pub fn default_dtype(mut self, dtype: DefaultDtype) -> Self {
        self.options.default_dtype = dtype;
        self
    }

    /// The files that an export reads.
    fn inputs(&self, archive: Option<&Path>) -> Inputs {
        let mut inputs = Inputs::new();
        if let Some(archive) = archive {
            inputs.add("archive", archive);
        }
        self.options.files().for_each(|(what, path)| inputs.add(what, path));
        inputs
    }

    /// Makes the result, and completes its report.
    fn close(
        &self,
        made: Result<Translated, Error>,
        mut report: Report,
        inputs: Inputs,
    ) -> Result<OnnxProgram, Failed> {
        let strict = self.options.warnings_as_errors;
        let made = made.and_then(|made| match strict && !made.warnings.is_empty() {
            true => Err(Error::Warnings(made.warnings)),
            false => Ok(made),
        });
        match made {
            Ok(made) => {
                report.done(&made.model, &made.warnings);
                let save = self.options.saving();
                let program = OnnxProgram::new(made.model, report, save, made.untouched);
                let keeps_graph = !self.forgets_graph;
                Ok(program.of(made.source, keeps_graph, inputs).having(made.compressed))
            }
            Err(error) => {
                report.failed(&error);
                let report = Box::new(report);
                Err(Failed { error, report })
            }
        }
    }
}
