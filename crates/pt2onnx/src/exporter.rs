//! The way from an archive to a model.

use crate::{
    Detail, DynamicAxes, Error, Failed, Failure, OPSETS, OnnxProgram, Operators, OutputNames,
    Registry, Report, SaveOptions, State, Target, Weights,
    dims::{self, Dims},
    domains, error, ir_version,
    naming::{self, Names},
    random, report, weights,
};
use pt2onnx_aten::emitted;
use pt2onnx_fx::{ExportedProgram, archive, passes};
use pt2onnx_ir::{Model, ParseError, Value};
use rustc_hash::{FxHashMap, FxHashSet};
use std::{collections::BTreeMap, path::Path};

/// The opset that is written unless another is asked for.
pub const DEFAULT_OPSET: u32 = 20;

/// Turns exported programs into ONNX models.
pub struct Exporter {
    opset: u32,
    ir_version: Option<u32>,
    save: SaveOptions,
    weights_as_inputs: bool,
    optimize: pt2onnx_opt::Options,
    target: Target,
    state: State,
    seed: Option<u32>,
    registry: Registry,
    operators: Operators,
    custom_opsets: Vec<(String, u32)>,
    names: Names,
    dims: Dims,
    metadata: Detail,
    strip_paths: bool,
    warnings_as_errors: bool,
    head: Head,
}

/// What the user says of the model.
#[derive(Default)]
struct Head {
    metadata: Vec<(String, String)>,
    doc_string: Option<String>,
    model_version: Option<i64>,
    producer: Option<String>,
    source_lines: bool,
}

impl Head {
    fn write(&self, model: &mut Model) {
        let entries = self.metadata.iter();
        let entries = entries.map(|(k, v)| (k.clone().into(), v.as_str().into()));
        model.metadata.extend(entries);
        model.doc_string.clone_from(&self.doc_string);
        model.model_version = self.model_version;
        model.producer.clone_from(&self.producer);
        model.source_lines = self.source_lines;
    }
}

/// What becomes of a program.
struct Translated {
    model: Model,
    source: ExportedProgram,
    warnings: Vec<String>,
    /// Weights from which nothing was computed.
    untouched: FxHashSet<Value>,
}

impl Default for Exporter {
    fn default() -> Self {
        Self {
            opset: DEFAULT_OPSET,
            ir_version: None,
            save: SaveOptions::default(),
            weights_as_inputs: false,
            optimize: pt2onnx_opt::Options::default(),
            target: Target::Standard,
            state: State::Drop,
            seed: None,
            registry: Registry::default(),
            operators: Operators::Onnx,
            custom_opsets: Vec::new(),
            metadata: Detail::Full,
            strip_paths: false,
            warnings_as_errors: false,
            head: Head::default(),
            names: Names::default(),
            dims: Dims::default(),
        }
    }
}

impl Exporter {
    /// An exporter with the defaults that its methods name.
    pub fn new() -> Self {
        Self::default()
    }

    /// Opset of the model, one of [`OPSETS`]; [`DEFAULT_OPSET`] by default.
    pub fn opset(mut self, opset: u32) -> Self {
        self.opset = opset;
        self
    }

    /// Version of the file format, one of [`IR_VERSIONS`](crate::IR_VERSIONS): for runtimes that refuse newer ones. By
    /// default the lowest that the opset came with and that has what the model uses; metadata of nodes and values does not
    /// count, as older readers skip it.
    pub fn ir_version(mut self, version: u32) -> Self {
        self.ir_version = Some(version);
        self
    }

    /// Where [`OnnxProgram::save`] puts the weights; [`Weights::Auto`] by default. With [`Weights::None`] the model has no
    /// parameters and persistent buffers, and nothing is computed from them: [`OnnxProgram::apply_weights`] completes it.
    pub fn weights(mut self, weights: Weights) -> Self {
        self.save.weights = weights;
        self
    }

    /// How [`OnnxProgram::save`] writes, and where it puts the weights.
    pub fn save_options(mut self, options: SaveOptions) -> Self {
        self.save = options;
        self
    }

    /// Whether parameters and persistent buffers are inputs of the model too, behind its own, so that callers may give
    /// other values; false by default. Nothing is computed from them beforehand then.
    pub fn keep_initializers_as_inputs(mut self, keep: bool) -> Self {
        self.weights_as_inputs = keep;
        self
    }

    /// How far to fold, simplify and fuse; all of it by default. The opset is the exporter's, whatever these say.
    pub fn optimize(mut self, options: impl Into<pt2onnx_opt::Options>) -> Self {
        self.optimize = options.into();
        self
    }

    /// The runtime to write for; [`Target::Standard`] by default: pure ONNX, with a warning where ONNX Runtime has no kernel.
    pub fn target(mut self, target: Target) -> Self {
        self.target = target;
        self
    }

    /// What becomes of the values that the program writes into buffers and inputs; [`State::Drop`] by default.
    pub fn state(mut self, state: State) -> Self {
        self.state = state;
        self
    }

    /// Seed of the first node that draws random numbers, those behind it count up; none by default, with a warning.
    pub fn seed(mut self, seed: u32) -> Self {
        self.seed = Some(seed);
        self
    }

    /// The translations to use; all built-in ones by default.
    pub fn registry(mut self, registry: Registry) -> Self {
        self.registry = registry;
        self
    }

    /// Functions in ONNX's textual syntax, as translations of the ops that they are called after
    /// ([`Registry::add_functions`]); may be called several times.
    ///
    /// # Errors
    /// Where the text is wrong.
    pub fn functions(mut self, text: &str) -> Result<Self, ParseError> {
        self.registry.add_functions(text)?;
        Ok(self)
    }

    /// What becomes of ops that cannot be translated; [`Operators::Onnx`] by default: an error.
    pub fn operators(mut self, operators: Operators) -> Self {
        self.operators = operators;
        self
    }

    /// The version at which the model imports a domain other than ONNX's own; 1 by default. Of equal domains the last holds.
    pub fn custom_opset(mut self, domain: impl Into<String>, version: u32) -> Self {
        self.custom_opsets.push((domain.into(), version));
        self
    }

    /// How much the model tells of the program it comes from; [`Detail::Full`] by default.
    pub fn metadata(mut self, metadata: Detail) -> Self {
        self.metadata = metadata;
        self
    }

    /// Whether stack traces in metadata tell files without their folders; false by default.
    pub fn strip_paths(mut self, strip_paths: bool) -> Self {
        self.strip_paths = strip_paths;
        self
    }

    /// Adds an entry to the model's `metadata_props`; of equal keys the last holds.
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        let (key, value) = (key.into(), value.into());
        self.head.metadata.retain(|(k, _)| *k != key);
        self.head.metadata.push((key, value));
        self
    }

    /// The model's `doc_string`; none by default.
    pub fn doc_string(mut self, text: impl Into<String>) -> Self {
        self.head.doc_string = Some(text.into());
        self
    }

    /// The model's `model_version`; none by default.
    pub fn model_version(mut self, version: i64) -> Self {
        self.head.model_version = Some(version);
        self
    }

    /// The model's `producer_name`; by default `pt2onnx`, with its version.
    pub fn producer(mut self, name: impl Into<String>) -> Self {
        self.head.producer = Some(name.into());
        self
    }

    /// Whether nodes tell the lines of the user's source that they come from in `doc_string`; false by default.
    pub fn source_lines(mut self, source_lines: bool) -> Self {
        self.head.source_lines = source_lines;
        self
    }

    /// Whether warnings are errors: there is no model then where there would be any; false by default.
    pub fn warnings_as_errors(mut self, errors: bool) -> Self {
        self.warnings_as_errors = errors;
        self
    }

    /// Names of the inputs, in order; those behind the last name keep the program's.
    pub fn input_names(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.names.inputs = names.into_iter().map(Into::into).collect();
        self
    }

    /// Names of the outputs; by default the program's.
    pub fn output_names(mut self, names: OutputNames) -> Self {
        self.names.outputs = names;
        self
    }

    /// Gives the value `old` another name; it may be any value of the model that is written.
    pub fn rename(mut self, old: impl Into<String>, new: impl Into<String>) -> Self {
        self.names.renames.push((old.into(), new.into()));
        self
    }

    /// Names a dynamic dimension: `target` is its symbol in the program (`s77`) or an axis of a value (`x.0`). It has
    /// that name wherever it occurs, also in expressions: `2*batch`. To give two dimensions one name says that they are
    /// equal whenever the model runs.
    pub fn dim(mut self, target: impl Into<String>, name: impl Into<String>) -> Self {
        self.dims.names.push((target.into(), name.into()));
        self
    }

    /// Names axes of inputs and outputs. The first name of a dimension is its name everywhere; an axis that is to have
    /// another one has it alone. No axis becomes dynamic that the program has not so.
    pub fn dynamic_axes(mut self, axes: DynamicAxes) -> Self {
        self.dims.axes = axes;
        self
    }

    /// Makes a dynamic dimension static: a symbol, a name given to one, or an axis of a value.
    pub fn fix(mut self, target: impl Into<String>, size: i64) -> Self {
        self.dims.fixed.push((target.into(), size));
        self
    }

    /// Reads an archive and translates its program. The file is mapped for as long as the result lives, and must not
    /// change meanwhile.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn export(&self, archive: impl AsRef<Path>) -> Result<OnnxProgram, Error> {
        self.attempt(archive).map_err(|failed| failed.error)
    }

    /// Translates a program that has been read already.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn export_program(&self, program: ExportedProgram) -> Result<OnnxProgram, Error> {
        self.attempt_program(program).map_err(|failed| failed.error)
    }

    /// As [`export_program`](Self::export_program); an error comes with a [`Report`], which a program has too.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn attempt_program(&self, program: ExportedProgram) -> Result<OnnxProgram, Failed> {
        let mut report = Report::new(self.settings());
        let made = self.translate(program, &mut report);
        self.close(made, report)
    }

    /// As [`export`](Self::export); an error comes with a [`Report`], which a program has too.
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
        let mut report = Report::new(self.settings());
        report.read(archive.as_ref());
        let program = report.stage("read", || archive::read(archive));
        let made = program
            .map_err(Error::Archive)
            .and_then(|program| self.translate(program, &mut report));
        self.close(made, report)
    }

    fn close(
        &self,
        made: Result<Translated, Error>,
        mut report: Report,
    ) -> Result<OnnxProgram, Failed> {
        let made =
            made.and_then(|made| match self.warnings_as_errors && !made.warnings.is_empty() {
                true => Err(Error::Warnings(made.warnings)),
                false => Ok(made),
            });
        match made {
            Ok(made) => {
                report.done(&made.model, &made.warnings);
                let save = self.save.clone();
                let program = OnnxProgram::new(made.model, report, save, made.untouched);
                Ok(program.of(made.source))
            }
            Err(error) => {
                report.failed(&error);
                let report = Box::new(report);
                Err(Failed { error, report })
            }
        }
    }

    /// The options as a report tells them.
    fn settings(&self) -> BTreeMap<String, String> {
        let list = |pairs: &[(String, String)]| {
            let pairs = pairs.iter().map(|(a, b)| format!("{a}={b}"));
            pairs.collect::<Vec<_>>().join(", ")
        };
        let fixed = self.dims.fixed.iter();
        let fixed: Vec<_> = fixed.map(|(t, n)| (t.clone(), n.to_string())).collect();
        let opsets = self.custom_opsets.iter();
        let opsets: Vec<_> = opsets.map(|(d, n)| (d.clone(), n.to_string())).collect();
        let level = self.optimize.level as u8;
        let standard = pt2onnx_opt::Passes::standard();
        let left_out = standard.iter().filter(|p| self.optimize.passes.get(p.name).is_err());
        let skipped: Vec<&str> = left_out.map(|p| p.name).collect();
        let axes = self.dims.axes.pairs();
        let options = [
            ("opset", self.opset.to_string()),
            ("ir_version", self.ir_version.map_or_else(String::new, |v| v.to_string())),
            ("weights", word(&self.save.weights)),
            ("weights_file", self.save.data_file.clone().unwrap_or_default()),
            ("keep_initializers_as_inputs", self.weights_as_inputs.to_string()),
            ("target", self.target.to_string()),
            ("state", word(&self.state)),
            ("metadata", word(&self.metadata)),
            ("optimize", level.to_string()),
            ("skip_pass", skipped.join(", ")),
            ("fold_limit", self.optimize.max_folded_bytes.to_string()),
            ("merge_weights", self.optimize.merge_weights.to_string()),
            ("operators", word(&self.operators)),
            ("custom_opset", list(&opsets)),
            ("strip_paths", self.strip_paths.to_string()),
            ("warnings_as_errors", self.warnings_as_errors.to_string()),
            ("seed", self.seed.map_or_else(String::new, |s| s.to_string())),
            ("input_names", self.names.inputs.join(", ")),
            ("output_names", self.names.outputs.to_string()),
            ("rename", list(&self.names.renames)),
            ("dim", list(&self.dims.names)),
            ("dynamic_axes", list(&axes)),
            ("fix", list(&fixed)),
        ];
        let given = options.into_iter().filter(|(_, v)| !v.is_empty());
        given.map(|(k, v)| (k.to_owned(), v)).collect()
    }

    /// The way of the data.
    fn translate(
        &self,
        mut program: ExportedProgram,
        report: &mut Report,
    ) -> Result<Translated, Error> {
        if !OPSETS.contains(&self.opset) {
            return Err(Error::Opset(self.opset));
        }
        self.target.reads(self.opset)?;
        report.program(&program);
        let archived = program.clone();
        for (name, pass) in passes::PASSES {
            if report.stage(name, || pass(&mut program)).is_err() {
                return Err(self.obstacles(archived, report));
            }
        }
        if let Some(summary) = &mut report.program {
            summary.writes(&program.mutations);
        }
        let (fake, all) = weights::without_values(&program);
        let hollow = self.save.weights == Weights::None || fake > 0;
        // Copying is as fast as the disk, transposing is not, and a link can only show what the archive has.
        let bytes = program.state.values().map(|t| t.nbytes() as u64).sum();
        let copied = self.save.weights == Weights::Link
            || pt2onnx_writer::goes_external(&self.save, bytes).is_ok_and(|external| external);
        // Behind the passes, which look at what memory the weights share.
        let taken = match hollow || self.weights_as_inputs {
            true => weights::leave_out(&mut program),
            false => FxHashMap::default(),
        };
        if self.state == State::Drop {
            report.stage("drop state", || drop_state(&mut program));
        }
        let lowered = report.stage("lower", || {
            let options = pt2onnx_aten::Options {
                state: self.state,
                operators: self.operators,
                metadata: self.metadata,
                strip_paths: self.strip_paths,
                archived: (self.metadata == Detail::Full).then_some(&archived.graph),
            };
            pt2onnx_aten::lower(&program, &self.registry, options)
        });
        let pt2onnx_aten::Lowering { mut model, mut warnings } =
            lowered.map_err(|error| self.not_lowered(&program, error, report))?;
        if fake > 0 && self.save.weights == Weights::Auto {
            warnings.push(format!(
                "the archive has no values for {fake} of {all} weights: the model is written without weights; \
                 `pt2onnx apply-weights` completes it"
            ));
        }
        let taken = weights::taken_from(&model, taken);
        report.ops = report::ops(&program, &self.registry, &emitted(&model), &[]);
        self.head.write(&mut model);
        report.stage("interface", || naming::name(&mut model, &program, &self.names))?;
        report.stage("dimensions", || dims::apply(&mut model, &program.constraints, &self.dims))?;
        // The passes can have its memory.
        drop(program);
        report.stage("optimise", || {
            let mut options = self.optimize.clone();
            options.opset = self.opset;
            options.replace_weights &= !copied;
            options.target = self.target;
            pt2onnx_opt::optimize(&mut model, &options);
        });
        report.stage("seed", || random::seed(&mut model, self.seed, &mut warnings));
        self.registry.copy_functions(&mut model);
        report
            .stage("domains", || domains::import(&mut model, &self.custom_opsets, &mut warnings))?;
        report
            .stage("legalise", || pt2onnx_opt::legalise_for(&mut model, self.opset, self.target))?;
        domains::functions(&mut model)?;
        warnings.extend(report.stage("target", || pt2onnx_opt::fit(&mut model, self.target))?);
        if let Some(version) = self.ir_version {
            ir_version::set(&mut model, version)?;
        }
        report.stage("names", || naming::finish(&mut model, &self.names))?;
        if !hollow {
            weights::restore(&mut model, &taken);
        }
        let untouched = taken.into_iter().map(|(value, _)| value);
        let untouched = match self.weights_as_inputs {
            true => {
                weights::as_inputs(&mut model, untouched);
                FxHashSet::default()
            }
            false => untouched.collect(),
        };
        { report.stage("verify", || pt2onnx_ir::verify(&model)) }.map_err(Error::Verify)?;
        Ok(Translated { model, source: archived, warnings, untouched })
    }

    /// All that is in the way of a program that the passes refuse: also what could not be lowered then.
    fn obstacles(&self, program: ExportedProgram, report: &mut Report) -> Error {
        let (program, errors) = passes::prepare_all(program);
        let mut failures = Vec::new();
        for failure in error::of_passes(errors) {
            match failure {
                Ok(failure) => failures.push(failure),
                Err(error) => return Error::Archive(error),
            }
        }
        if let Some(program) = program {
            let options = pt2onnx_aten::Options {
                state: self.state,
                operators: self.operators,
                metadata: Detail::None,
                strip_paths: self.strip_paths,
                archived: None,
            };
            let emitted = match pt2onnx_aten::lower(&program, &self.registry, options) {
                Ok(lowering) => emitted(&lowering.model),
                Err(mut error) => {
                    let emitted = std::mem::take(&mut error.emitted);
                    failures.extend(error::of_lowering(error));
                    emitted
                }
            };
            report.ops = report::ops(&program, &self.registry, &emitted, &failures);
        }
        Error::Program(failures)
    }

    fn not_lowered(
        &self,
        program: &ExportedProgram,
        mut error: pt2onnx_aten::Error,
        report: &mut Report,
    ) -> Error {
        let emitted = std::mem::take(&mut error.emitted);
        let failures: Vec<Failure> = error::of_lowering(error).collect();
        report.ops = report::ops(program, &self.registry, &emitted, &failures);
        Error::Program(failures)
    }
}

/// The name of an option's value as the command line has it: `OrtCpu` is `ort-cpu`.
fn word(value: &impl std::fmt::Debug) -> String {
    let mut word = String::new();
    for c in format!("{value:?}").chars() {
        if c.is_uppercase() && !word.is_empty() {
            word.push('-');
        }
        word.extend(c.to_lowercase());
    }
    word
}

/// Removes what only computes new state; what is written into is still told.
fn drop_state(program: &mut ExportedProgram) {
    if program.mutations.is_empty() {
        return;
    }
    let mutations = std::mem::take(&mut program.mutations);
    passes::dead::remove_dead(program);
    program.mutations = mutations;
}
