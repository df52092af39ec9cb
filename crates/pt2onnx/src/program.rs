//! A model, ready to be written.

use crate::{
    Error, Options, SaveOptions, Saved, Unused, Warning, WarningKind, Weights, dims, domains,
    joining, naming,
    report::{Report, stage},
    weights,
};
use bytes::Bytes;
use indexmap::IndexMap;
use pt2onnx_compress::{Compressed, CompressedWeight};
use pt2onnx_fx::ExportedProgram;
use pt2onnx_ir::{Model, Value, ValueData, VerifyError, verify};
use pt2onnx_opt::Target;
use pt2onnx_symbolic::Constraints;
use pt2onnx_tensor::Tensor;
use pt2onnx_writer::{Batch, InParts, Inputs, Output, Reading};
use rustc_hash::FxHashSet;
use std::{fmt, path::Path};

/// An ONNX model, the program that it was made from, and the report about it.
pub struct OnnxProgram {
    model: Model,
    source: Option<ExportedProgram>,
    /// Whether the program has its graph.
    has_graph: bool,
    report: Report,
    save: SaveOptions,
    /// The files that it was read from.
    inputs: Inputs,
    /// Weights from which nothing was computed.
    replaceable: FxHashSet<Value>,
    /// Whether the model may have changed since it was verified.
    edited: bool,
    /// Whether it was read from a file.
    foreign: bool,
    compressed: Compressed,
    /// The model in ONNX Runtime, if it was run.
    #[cfg(feature = "ort")]
    pub(crate) session: Option<crate::Session>,
}

impl fmt::Debug for OnnxProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnnxProgram").field("report", &self.report).finish_non_exhaustive()
    }
}

impl OnnxProgram {
    pub(crate) fn new(
        model: Model,
        report: Report,
        mut save: SaveOptions,
        replaceable: FxHashSet<Value>,
    ) -> Self {
        // Weights were left out before anything was computed from them. Those that are given later are written.
        if save.weights == Weights::None {
            save.weights = Weights::Auto;
        }
        Self {
            model,
            source: None,
            has_graph: false,
            report,
            save,
            inputs: Inputs::new(),
            replaceable,
            edited: false,
            foreign: false,
            compressed: Compressed::default(),
            #[cfg(feature = "ort")]
            session: None,
        }
    }

    pub(crate) fn of(self, source: ExportedProgram, has_graph: bool, inputs: Inputs) -> Self {
        Self { source: Some(source), has_graph, inputs, ..self }
    }

    pub(crate) fn having(self, compressed: Compressed) -> Self {
        Self { compressed, ..self }
    }

    /// Reads an ONNX model of any producer and any known opset, with bodies, functions, nodes of other domains and
    /// weights in other files. Files with weights are mapped, and must not change while the result lives. A warning
    /// tells what the file has that is not kept.
    ///
    /// ```no_run
    /// use pt2onnx::{OnnxProgram, opt};
    ///
    /// let mut program = OnnxProgram::open("model.onnx")?;
    /// program.optimize(opt::Options::default());
    /// program.save("optimised.onnx")?;
    /// # Ok::<(), pt2onnx::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Read`]; [`Error::Invalid`] if it is not valid ONNX.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let mut report = Report::new(None);
        report.read(path.as_ref());
        let mapped = pt2onnx_writer::ExternalData::Mapped;
        let reading = report.stage("read", || pt2onnx_writer::read_with(path, mapped))?;
        Self::of_reading(reading, report)
    }

    /// Does the same as [`open`](Self::open) with a model in memory. Its external data are `data`, by location
    /// ([`InParts::weights`]). Nothing of these is copied.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub fn from_bytes(
        bytes: impl Into<Bytes>,
        data: impl IntoIterator<Item = (String, Bytes)>,
    ) -> Result<Self, Error> {
        let mut report = Report::new(None);
        let reading = report.stage("read", || pt2onnx_writer::read_parts(bytes, data))?;
        Self::of_reading(reading, report)
    }

    fn of_reading(reading: Reading, mut report: Report) -> Result<Self, Error> {
        let mut model = reading.model;
        // Names of nodes may clash in files, and those of values in bodies that do not see each other.
        model.assign_names();
        let checked = report.stage("verify", || {
            verify(&model)?;
            // Files need not tell the types of what nodes make.
            let mut typed = model.clone();
            pt2onnx_opt::infer_types(&mut typed);
            verify(&typed)?;
            let ends = model.output_values().zip(typed.output_values());
            let wrong = ends.filter_map(|(claimed, made)| mismatch(&model, claimed, &typed, made));
            match wrong.collect::<Vec<_>>() {
                wrong if wrong.is_empty() => Ok(()),
                wrong => Err(wrong),
            }
        });
        checked.map_err(Error::Invalid)?;
        let lost = reading.lost.iter();
        let lost = lost.map(|lost| format!("the model has {lost}, which are not kept"));
        let warnings: Vec<Warning> = Warning::all(WarningKind::NotKept, lost).collect();
        report.done(&model, &warnings);
        let (save, replaceable) = (SaveOptions::default(), FxHashSet::default());
        let mut program = Self::new(model, report, save, replaceable);
        (program.foreign, program.inputs) = (true, reading.inputs);
        Ok(program)
    }

    /// The model. Its weights are views of the archive's file.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The names of the inputs, in their order.
    ///
    /// ```
    /// # let archive = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/models/mlp.pt2");
    /// let program = pt2onnx::Exporter::new().export(archive)?;
    /// assert_eq!(program.input_names().next(), Some("tensor_x"));
    /// assert_eq!(program.output_names().collect::<Vec<_>>(), ["linear_4"]);
    /// # Ok::<(), pt2onnx::Error>(())
    /// ```
    pub fn input_names(&self) -> impl Iterator<Item = &str> {
        self.model.inputs().iter().map(|input| self.model[*input].name.as_deref().unwrap_or(""))
    }

    /// The names of the outputs, in their order.
    pub fn output_names(&self) -> impl Iterator<Item = &str> {
        self.model.output_values().map(|output| self.model[output].name.as_deref().unwrap_or(""))
    }

    /// The program that it was made from, as the archive has it; `None` for a model that was read from a file, and after
    /// [`Exporter::forget_graph`](crate::Exporter::forget_graph).
    ///
    /// ```
    /// # let archive = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/archives/torch-2.15.pt2");
    /// let program = pt2onnx::Exporter::new().export(archive)?;
    /// let source = program.exported_program().map(|p| p.graph.nodes.len());
    /// assert!(source.is_some_and(|nodes| nodes > 0));
    /// # Ok::<(), pt2onnx::Error>(())
    /// ```
    pub fn exported_program(&self) -> Option<&ExportedProgram> {
        self.source.as_ref().filter(|_| self.has_graph)
    }

    /// The model, to be changed. It is verified again before it is written. New values need names: call
    /// [`Model::assign_names`].
    pub fn model_mut(&mut self) -> &mut Model {
        self.changed();
        &mut self.model
    }

    /// Folds, simplifies and fuses. The model keeps its opset, whatever the options say. Graphs of opsets other than
    /// [`OPTIMISED_OPSETS`](pt2onnx_opt::OPTIMISED_OPSETS) are not changed.
    pub fn optimize(&mut self, options: impl Into<pt2onnx_opt::Options>) {
        self.changed();
        stage("optimise", || {
            let mut options = options.into();
            options.opset = self.model.opset;
            match self.foreign {
                true => pt2onnx_opt::optimize_foreign(&mut self.model, &options),
                false => pt2onnx_opt::optimize(&mut self.model, &options),
            }
            self.model.assign_names();
        });
    }

    /// Compresses the weights, or the whole graph ([`Options::compression`]). Nothing is computed before the model is written.
    ///
    /// # Errors
    /// [`Error::Compress`]. The model is then unchanged.
    pub fn compress(&mut self, options: &pt2onnx_compress::Options) -> Result<(), Error> {
        let mut model = self.model.clone();
        // Files need not tell the types of what nodes make.
        pt2onnx_opt::infer_types(&mut model);
        let made = stage("compress", || pt2onnx_compress::compress(&mut model, options)).0?;
        model.assign_names();
        self.changed();
        (self.model, self.compressed) = (model, made);
        Ok(())
    }

    /// The weights that were compressed. Those that were written tell how much they lost.
    pub fn compressed(&self) -> Vec<CompressedWeight> {
        self.compressed.weights()
    }

    /// Rewrites the model for another opset, older or newer, with the same meaning.
    ///
    /// ```no_run
    /// let mut program = pt2onnx::OnnxProgram::open("model.onnx")?;
    /// program.convert_opset(20)?;
    /// program.save("model-20.onnx")?;
    /// # Ok::<(), pt2onnx::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Legalise`]: nodes that the opset cannot express, or functions. The model is then unchanged.
    pub fn convert_opset(&mut self, opset: u32) -> Result<(), Error> {
        stage("convert", || pt2onnx_opt::convert(&mut self.model, opset)).0?;
        self.model.assign_names();
        self.changed();
        Ok(())
    }

    /// Changes the model so that a runtime can run it; warnings are added to [`warnings`](Self::warnings). Models of opsets other
    /// than [`OPSETS`](pt2onnx_opt::OPSETS) are not changed, which is a warning.
    ///
    /// # Errors
    /// [`Error::Target`]: the runtime does not read the opset, or does not support some nodes. The model is then unchanged.
    pub fn fit(&mut self, target: Target) -> Result<(), Error> {
        let mut model = self.model.clone();
        let fit = if self.foreign { pt2onnx_opt::fit_foreign } else { pt2onnx_opt::fit };
        let found = stage("target", || fit(&mut model, target)).0?;
        model.assign_names();
        self.changed();
        self.model = model;
        self.report.warnings.extend(Warning::all(WarningKind::Target, found));
        Ok(())
    }

    /// Keeps only the part of the model that computes some values from others, all by their names: they become its outputs and
    /// inputs.
    ///
    /// # Errors
    /// [`Error::Extract`]: there is no such value, its type is not known, or the outputs depend on other inputs too. The model is
    /// then unchanged.
    pub fn extract<T: AsRef<str>>(&mut self, inputs: &[T], outputs: &[T]) -> Result<(), Error> {
        let mut model = self.model.clone();
        pt2onnx_opt::infer_types(&mut model);
        let names = |all: &[T]| all.iter().map(|n| n.as_ref().to_owned()).collect::<Vec<_>>();
        model.extract(&names(inputs), &names(outputs))?;
        model.assign_names();
        self.changed();
        self.model = model;
        Ok(())
    }

    /// Replaces calls of the model's functions by their bodies, and removes the functions.
    ///
    /// # Errors
    /// [`Error::Domain`]: a function calls itself, or is written for another opset. The model is then unchanged.
    pub fn inline(&mut self) -> Result<(), Error> {
        let mut model = self.model.clone();
        stage("inline", || domains::inline(&mut model)).0?;
        domains::import(&mut model, &[], &mut Vec::new())?;
        model.assign_names();
        self.changed();
        self.model = model;
        Ok(())
    }

    /// Renames dynamic dimensions wherever they occur. Each is given as its symbol or an axis of a value (`x.0`).
    ///
    /// # Errors
    /// [`Error::Dim`]. The model is then unchanged.
    pub fn rename_axes<T: Into<String>, N: Into<String>>(
        &mut self,
        names: impl IntoIterator<Item = (T, N)>,
    ) -> Result<(), Error> {
        let names = names.into_iter().map(|(t, n)| (t.into(), n.into()));
        let options = Options { dim: names.collect(), ..Options::default() };
        #[cfg(feature = "ort")]
        self.release();
        Ok(dims::apply(&mut self.model, &Constraints::new(), &options)?)
    }

    /// Finds a value by its name, or an input or output by its name in the program; values in functions come last.
    pub fn value(&self, name: &str) -> Option<Value> {
        naming::find(&self.model, name)
    }

    /// Puts another model behind this one. Each of `links` is an output of this model and the input of the other that it becomes; without
    /// any, those of equal names belong together, or the only output and the only input. Other inputs and outputs are those of
    /// both. The older of both opsets is raised to the newer. Dimensions of equal names are taken to be equal only where links say so:
    /// those of the other model get new names. Metadata and documentation of both stay: a key that both models have, with different texts,
    /// gets a number.
    ///
    /// ```no_run
    /// let mut program = pt2onnx::OnnxProgram::open("encoder.onnx")?;
    /// let decoder = pt2onnx::OnnxProgram::open("decoder.onnx")?;
    /// program.join(&decoder, &[("hidden".to_owned(), "state".to_owned())])?;
    /// program.save("both.onnx")?;
    /// # Ok::<(), pt2onnx::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Join`]; [`Error::Legalise`] if the opset of one cannot be raised. The model is then unchanged.
    pub fn join(&mut self, other: &Self, links: &[(String, String)]) -> Result<(), Error> {
        let (mut first, mut second) = (self.model().clone(), other.model().clone());
        let opset = first.opset.max(second.opset);
        for model in [&mut first, &mut second] {
            if model.opset > 0 {
                pt2onnx_opt::convert(model, opset)?;
            }
            model.assign_names();
            pt2onnx_opt::infer_types(model);
        }
        first.opset = opset;
        joining::join(&mut first, second, links)?;
        let inputs = other.inputs().clone();
        self.read_also(&inputs);
        *self.model_mut() = first;
        Ok(())
    }

    /// Gives values and dynamic dimensions the names that `options` ask for, and dimensions the sizes: `input_names`, `output_names`,
    /// `rename`, `dim`, `dynamic_axes` and `fix`. Other options are not looked at. [`optimize`](Self::optimize) folds what follows from
    /// sizes. Input names do not go on over the weights of a model that was read from a file.
    ///
    /// ```
    /// use pt2onnx::{Exporter, Options};
    ///
    /// # let archive = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/models/mlp.pt2");
    /// let mut program = Exporter::new().export(archive)?;
    /// let mut options = Options::default();
    /// options.fix = vec![("tensor_x.0".to_owned(), 4)];
    /// options.rename = vec![("cat".to_owned(), "joined".to_owned())];
    /// program.set_interface(&options)?;
    /// assert!(program.value("joined").is_some());
    /// # Ok::<(), pt2onnx::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Name`] and [`Error::Dim`]. The model is then unchanged.
    pub fn set_interface(&mut self, options: &Options) -> Result<(), Error> {
        let (mut model, source) = (self.model.clone(), self.source.as_ref());
        naming::name(&mut model, source, options)?;
        let constraints = source.map(|program| program.constraints.clone());
        dims::apply(&mut model, &constraints.unwrap_or_default(), options)?;
        naming::finish(&mut model, options)?;
        #[cfg(feature = "ort")]
        self.release();
        // Constants keep their values, so that weights may still be replaced.
        (self.model, self.edited) = (model, true);
        Ok(())
    }

    /// Gives values to weights that have none, because the program was exported with
    /// [`Weights::None`](crate::Weights::None) or the archive had no values for them. All of them must be given, by
    /// their names in the program; [`read_weights`](crate::read_weights) reads files. The weights of such a program
    /// can be replaced in the same way until [`optimize`](Self::optimize) or another change is made, as other
    /// constants may be computed from them then.
    ///
    /// Weights that the model does not use are errors: they may have other names there, or other constants were computed from them.
    /// What the program itself does not use is ignored, if it was exported with [`Weights::None`](crate::Weights::None).
    ///
    /// ```
    /// use pt2onnx::{Exporter, SaveOptions, Weights, read_weights};
    ///
    /// # let archive = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/models/mlp.pt2");
    /// # let folder = tempfile::tempdir()?;
    /// # let (hollow, full) = (folder.path().join("hollow.onnx"), folder.path().join("full.onnx"));
    /// let mut program = Exporter::new().weights(Weights::None).export(archive)?;
    /// program.save(&hollow)?;
    /// program.apply_weights(&read_weights(archive)?)?;
    /// program.save(&full)?;
    /// # assert!(std::fs::metadata(&hollow)?.len() < std::fs::metadata(&full)?.len());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Weights`] lists everything that is missing, does not fit or is not used. The model is then unchanged.
    pub fn apply_weights(&mut self, weights: &IndexMap<String, Tensor>) -> Result<(), Error> {
        self.apply_weights_with(weights, Unused::Error).map(drop)
    }

    /// Does the same as [`apply_weights`](Self::apply_weights), and weights that the model does not use may be allowed. Returns their
    /// names.
    ///
    /// # Errors
    /// Those of [`apply_weights`](Self::apply_weights).
    pub fn apply_weights_with(
        &mut self,
        weights: &IndexMap<String, Tensor>,
        unused: Unused,
    ) -> Result<Vec<String>, Error> {
        #[cfg(feature = "ort")]
        self.release();
        weights::apply(&mut self.model, weights, &self.replaceable, unused).map_err(Error::Weights)
    }

    /// The warnings, for example about outputs that were left out.
    pub fn warnings(&self) -> &[Warning] {
        &self.report.warnings
    }

    /// The report of the export. It does not list the files that [`save`](Self::save) wrote: [`Report::saved`] adds
    /// them.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The model in ONNX's textual syntax; large weights are shortened.
    pub fn to_text(&self) -> String {
        self.model.to_string()
    }

    /// The model as the bytes of one file, with all weights.
    ///
    /// # Errors
    /// [`Error::Write`] above 2 GiB, and if weights have no values; [`Error::Verify`] if the model was changed and is
    /// not valid.
    pub fn to_bytes(&self) -> Result<Bytes, Error> {
        self.verified()?;
        Ok(stage("write", || pt2onnx_writer::to_bytes(&self.model)).0?)
    }

    /// The model as the bytes of one file without its weights of at least `threshold` bytes, and these: for runtimes that can be given
    /// weights in memory. Nothing of these is copied.
    ///
    /// # Errors
    /// [`Error::Write`] if the rest exceeds 2 GiB, and if weights have no values; [`Error::Verify`] if the model was
    /// changed and is not valid.
    pub fn to_parts(&self, threshold: u64) -> Result<InParts, Error> {
        self.verified()?;
        Ok(stage("write", || pt2onnx_writer::to_parts(&self.model, threshold)).0?)
    }

    /// Writes the model to `path`, and weights to `PATH.data` if the exporter's [`Weights`](crate::Weights) say so.
    /// Existing files are replaced when the new ones are complete, and are unchanged after an error
    /// ([`pt2onnx_writer::save`]).
    ///
    /// # Errors
    /// [`Error::Write`]; [`Error::Verify`] if the model was changed and is not valid.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<Saved, Error> {
        self.save_with(path, self.save.clone())
    }

    /// The files that it was read from: the archive or the model, with its data. None of them is written, under whatever name; but an
    /// ONNX model that was [opened](Self::open) may be saved under its own.
    pub fn inputs(&self) -> &Inputs {
        &self.inputs
    }

    /// Adds the model to files that are written together, such as a report about it. With no options, they are the exporter's.
    ///
    /// ```
    /// use pt2onnx::writer::{Batch, Output};
    ///
    /// # let archive = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/models/mlp.pt2");
    /// # let folder = tempfile::tempdir()?;
    /// # let (model, notes) = (folder.path().join("m.onnx"), folder.path().join("notes.md"));
    /// let program = pt2onnx::Exporter::new().export(archive)?;
    /// let mut files = Batch::new(program.inputs().clone());
    /// program.save_in(&mut files, model, None, &|_, _| {})?;
    /// files.file("report", notes, b"made today")?;
    /// files.commit()?; // both get their names, or none does
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`save`](Self::save).
    pub fn save_in<'a>(
        &'a self,
        files: &mut Batch<'a>,
        to: impl Into<Output>,
        options: Option<SaveOptions>,
        progress: &'a dyn Fn(u64, u64),
    ) -> Result<Saved, Error> {
        self.verified()?;
        let options = self.completed(options.unwrap_or_else(|| self.save.clone()));
        Ok(stage("write", || files.model(&self.model, to, &options, progress)).0?)
    }

    /// The options, with the constants that are weights.
    fn completed(&self, mut options: SaveOptions) -> SaveOptions {
        let asks = options.weights == Weights::None || options.keep_initializers_as_inputs;
        if asks && options.initializers.is_none() {
            let is = |value, data: &ValueData| match self.replaceable.is_empty() {
                true => weights::is_initializer(data, self.source.as_ref()),
                false => self.replaceable.contains(&value),
            };
            let all = self.model.values().filter(|(value, data)| is(*value, data));
            options.initializers = Some(all.map(|(value, _)| value).collect());
        }
        options
    }

    /// Does the same as [`save`](Self::save), and calls `progress` with the number of bytes written so far and in
    /// all.
    ///
    /// # Errors
    /// The errors of [`save`](Self::save).
    pub fn save_observed(
        &self,
        path: impl AsRef<Path>,
        progress: &dyn Fn(u64, u64),
    ) -> Result<Saved, Error> {
        self.write(path.as_ref(), self.save.clone(), progress)
    }

    /// Does the same as [`save`](Self::save), with other options than the exporter's. With [`Weights::None`](crate::Weights::None) the
    /// same graph is written without initialisers, as with `include_initializers=False` of torch.onnx: without the program's tensors
    /// and other constants of more than 16 elements, such as those that the optimiser computed. To apply other weights later,
    /// export with [`Weights::None`](crate::Weights::None) instead: then nothing is computed from weights.
    /// [`SaveOptions::keep_initializers_as_inputs`] makes weights inputs.
    ///
    /// ```
    /// use pt2onnx::{Exporter, SaveOptions, Weights};
    ///
    /// # let archive = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/models/mlp.pt2");
    /// # let folder = tempfile::tempdir()?;
    /// # let output = folder.path().join("m.onnx");
    /// let program = Exporter::new().export(archive)?;
    /// let options = SaveOptions { keep_initializers_as_inputs: true, ..Weights::None.into() };
    /// program.save_with(output, options)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`save`](Self::save).
    pub fn save_with(
        &self,
        path: impl AsRef<Path>,
        options: impl Into<SaveOptions>,
    ) -> Result<Saved, Error> {
        self.write(path.as_ref(), options.into(), &|_, _| {})
    }

    fn write(
        &self,
        path: &Path,
        options: SaveOptions,
        progress: &dyn Fn(u64, u64),
    ) -> Result<Saved, Error> {
        let mut files = Batch::new(self.inputs.clone());
        let saved = self.save_in(&mut files, path, Some(options), progress)?;
        files.commit()?;
        Ok(saved)
    }

    /// Checks whether [`save`](Self::save) could write the model: whether its weights have values and everything
    /// fits. No file is written.
    ///
    /// # Errors
    /// The errors of [`save`](Self::save), without those of files.
    pub fn check(&self) -> Result<(), Error> {
        self.verified()?;
        Ok(pt2onnx_writer::check(&self.model, self.save.clone())?)
    }

    fn changed(&mut self) {
        self.edited = true;
        self.replaceable.clear();
        #[cfg(feature = "ort")]
        self.release();
    }

    /// Notes that it also was made from these files.
    pub(crate) fn read_also(&mut self, files: &Inputs) {
        self.inputs.extend(files);
    }

    pub(crate) fn verified(&self) -> Result<(), Error> {
        if self.edited { verify(&self.model).map_err(Error::Verify) } else { Ok(()) }
    }
}

/// An error if the elements of an output do not have the type that the model states.
fn mismatch(model: &Model, claimed: Value, typed: &Model, made: Value) -> Option<VerifyError> {
    let dtype = |model: &Model, value: Value| Some(model[value].ty.as_ref()?.as_tensor()?.dtype);
    let (says, is) = (dtype(model, claimed)?, dtype(typed, made)?);
    (says != is).then(|| VerifyError {
        place: format!("output `{}`", model[claimed].name.as_deref().unwrap_or_default()),
        what: format!("the graph says that it is {says}, its node makes {is}"),
    })
}
