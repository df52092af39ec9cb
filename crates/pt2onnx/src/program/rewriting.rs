//! Changing a finished model: all stages at once, or a single one.

use super::OnnxProgram;
use crate::{
    dims::{self, Scope},
    error::Error,
    extract,
    merge_models::merge,
    options::{OptionError, Options},
    pipeline::{self, Pipeline, StageCx},
    runtime::Loaded,
    weights::{self, Unused},
};
use indexmap::IndexMap;
use pt2onnx_ir::Model;
use pt2onnx_opt::{PassStats, Target};
use pt2onnx_report::{Report, Warning, WarningKind, stage};
use pt2onnx_symbolic::Constraints;
use pt2onnx_tensor::Tensor;
use pt2onnx_writer::Inputs;
use std::borrow::Cow;

impl Options {
    /// Checks the options that [`OnnxProgram::rewrite`] uses.
    ///
    /// # Errors
    /// Options of compression that cannot be, or do not fit together.
    pub fn check_rewrite(&self) -> Result<(), OptionError> {
        self.compression().check().map_err(OptionError::Compress)?;
        self.check_compression()
    }
}

impl OnnxProgram {
    /// Rewrites the model as options ask: replaces calls of functions by their bodies, writes the
    /// model for another opset if one is given, makes weights constants that are inputs as well
    /// ([`Options::keep_initializers_as_inputs`]), names values and fixes sizes, optimises,
    /// compresses, and fits it to the target. The options of saving and those of an export are not
    /// used, nor is [`Options::opset`], which `opset` replaces. `stats` records what passes
    /// do.
    ///
    /// ```
    /// # let archive = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/models/mlp.pt2");
    /// let mut program = pt2onnx::Exporter::new().export(archive)?;
    /// let mut options = pt2onnx::Options::default();
    /// options.fix_dim = vec![("tensor_x.0".to_owned(), 4)];
    /// program.rewrite(&options, Some(17), None)?;
    /// assert_eq!(program.model().opset, 17);
    /// # Ok::<(), pt2onnx::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Options::check_rewrite`], an opset that the target does not read, and those of
    /// the single steps: [`inline`](Self::inline), [`convert_opset`](Self::convert_opset),
    /// [`set_interface`](Self::set_interface), [`compress`](Self::compress), [`fit`](Self::fit).
    /// The program is then unchanged.
    pub fn rewrite(
        &mut self,
        options: &Options,
        opset: Option<u32>,
        stats: Option<PassStats>,
    ) -> Result<(), Error> {
        if !options.calibration_data.is_empty() {
            self.verified()?;
        }
        let model = self.model.clone();
        self.run_stages(model, options, opset, stats)
    }

    /// Does the same as [`rewrite`](Self::rewrite) without a copy of the graph: an error drops the
    /// program.
    ///
    /// # Errors
    /// Those of [`rewrite`](Self::rewrite).
    pub fn rewritten(
        mut self,
        options: &Options,
        opset: Option<u32>,
        stats: Option<PassStats>,
    ) -> Result<Self, Error> {
        let model = std::mem::replace(&mut self.model, Model::new(0));
        self.run_stages(model, options, opset, stats)?;
        Ok(self)
    }

    /// Runs the stages on a model, which becomes the program's.
    fn run_stages(
        &mut self,
        model: Model,
        options: &Options,
        opset: Option<u32>,
        stats: Option<PassStats>,
    ) -> Result<(), Error> {
        options.check_rewrite()?;
        if let Some(opset) = opset {
            options.target.reads(opset).map_err(OptionError::Target)?;
        }
        let passes = pt2onnx_opt::Options { stats, ..options.passes()? };
        let pipeline = Pipeline::Optimise;
        let mut cx = StageCx::new(pipeline, options, passes, &mut self.report, model);
        cx.source = self.source.as_ref().map(Cow::Borrowed);
        (cx.imported, cx.opset) = (self.imported, opset);
        let known = cx.report.stages.len();
        if let Err(error) = pipeline::run(&mut cx) {
            cx.report.stages.truncate(known);
            return Err(error);
        }
        let StageCx { model, warnings, compressed, .. } = cx;
        if !options.compression().is_off() {
            self.compressed = compressed;
        }
        self.report.warnings.extend(warnings);
        self.replace(model);
        Ok(())
    }

    /// Changes a copy of the model, which becomes the model if there is no error.
    fn attempt<T>(
        &mut self,
        name: &str,
        change: impl FnOnce(&mut Model) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut model = self.model.clone();
        let made = stage(name, || change(&mut model))?;
        model.assign_names();
        self.replace(model);
        Ok(made)
    }

    /// Runs single stages on a model, without a record of their times.
    fn run_single(
        &mut self,
        model: Model,
        stages: &'static [&'static str],
        options: &Options,
        prepare: impl FnOnce(&mut StageCx),
    ) -> Result<Model, Error> {
        let (passes, mut report) = (pt2onnx_opt::Options::default(), Report::default());
        let mut cx = StageCx::new(Pipeline::Optimise, options, passes, &mut report, model);
        cx.source = self.source.as_ref().map(Cow::Borrowed);
        (cx.imported, cx.only) = (self.imported, Some(stages));
        prepare(&mut cx);
        pipeline::run(&mut cx)?;
        let StageCx { model, warnings, .. } = cx;
        self.report.warnings.extend(warnings);
        Ok(model)
    }

    fn replace(&mut self, model: Model) {
        self.changed();
        self.model = model;
    }

    /// Folds, simplifies and fuses. The model keeps its opset, also if options have another. Graphs
    /// of opsets other than [`OPTIMISED_OPSETS`](pt2onnx_opt::OPTIMISED_OPSETS) are not changed.
    pub fn optimize(&mut self, options: impl Into<pt2onnx_opt::Options>) {
        let (model, passes) = (std::mem::replace(&mut self.model, Model::new(0)), options.into());
        // The stage has no errors.
        let optimised =
            self.run_single(model, &["optimise"], &Options::default(), |cx| cx.passes = passes);
        if let Ok(model) = optimised {
            self.replace(model);
        }
    }

    /// Compresses the weights, or the whole graph ([`Options::compression`]). Nothing is computed
    /// before the model is written. If no weight is fit for it, a warning is added to
    /// [`warnings`](Self::warnings).
    ///
    /// # Errors
    /// [`Error::Compress`]. The model is then unchanged.
    pub fn compress(&mut self, options: &pt2onnx_compress::Options) -> Result<(), Error> {
        let made = self.attempt("compress", |model| {
            // Files need not declare the types of results.
            pt2onnx_opt::infer_types(model);
            Ok(pt2onnx_compress::compress(model, options)?)
        })?;
        let found = made.warnings().to_vec();
        self.report.warnings.extend(Warning::all(WarningKind::Compression, found));
        self.compressed = made;
        Ok(())
    }

    /// Rewrites the model for another opset, older or newer, with the same meaning.
    ///
    /// # Errors
    /// [`Error::Legalise`]: nodes that the opset cannot express, or functions. The model is then
    /// unchanged.
    pub fn convert_opset(&mut self, opset: u32) -> Result<(), Error> {
        let set = |cx: &mut StageCx| cx.opset = Some(opset);
        let model = self.run_single(self.model.clone(), &["convert"], &Options::default(), set)?;
        self.replace(model);
        Ok(())
    }

    /// Changes the model so that a runtime can run it; warnings are added to
    /// [`warnings`](Self::warnings). Models of opsets other than [`OPSETS`](pt2onnx_opt::OPSETS)
    /// are not changed, which is a warning.
    ///
    /// # Errors
    /// [`Error::Target`]: the runtime does not read the opset, or does not support some nodes. The
    /// model is then unchanged.
    pub fn fit(&mut self, target: Target) -> Result<(), Error> {
        let options = Options { target, ..Options::default() };
        let model = self.run_single(self.model.clone(), &["target"], &options, |_| ())?;
        self.replace(model);
        Ok(())
    }

    /// Keeps only the part of the model that computes some values from others, all by their names:
    /// they become its outputs and inputs.
    ///
    /// # Errors
    /// [`Error::Extract`]: there is no such value, its type is not known, or the outputs depend on
    /// other inputs too. The model is then unchanged.
    pub fn extract<T: AsRef<str>>(&mut self, inputs: &[T], outputs: &[T]) -> Result<(), Error> {
        let names = |all: &[T]| all.iter().map(|n| n.as_ref().to_owned()).collect::<Vec<_>>();
        let (inputs, outputs) = (names(inputs), names(outputs));
        self.attempt("extract", |model| {
            extract::infer_types_of(model, &[&inputs[..], &outputs].concat());
            Ok(model.extract(&inputs, &outputs)?)
        })
    }

    /// Replaces calls of the model's functions by their bodies, and removes the functions.
    ///
    /// # Errors
    /// [`Error::Domain`]: a function calls itself, or is written for another opset. The model is
    /// then unchanged.
    pub fn inline(&mut self) -> Result<(), Error> {
        let options = Options::default();
        let model = self.run_single(self.model.clone(), &["inline"], &options, |_| ())?;
        self.replace(model);
        Ok(())
    }

    /// Renames dynamic dimensions wherever they occur. Each is given as its symbol or an axis of a
    /// value (`x.0`).
    ///
    /// # Errors
    /// [`Error::Dim`]. The model is then unchanged.
    pub fn rename_axes<T: Into<String>, N: Into<String>>(
        &mut self,
        names: impl IntoIterator<Item = (T, N)>,
    ) -> Result<(), Error> {
        let names = names.into_iter().map(|(t, n)| (t.into(), n.into()));
        let options = Options { rename_dim: names.collect(), ..Options::default() };
        self.session = Loaded::default();
        Ok(dims::apply(&mut self.model, Scope::of(self.imported), &Constraints::new(), &options)?)
    }

    /// Names axes of outputs, each given as the output, the axis and the name. A size that no input
    /// has gets its name wherever it occurs; otherwise only that axis gets it. Names of outputs
    /// that the model does not have are ignored.
    ///
    /// # Returns
    /// Names that an axis cannot have, as it is static, or there is none.
    pub fn name_output_axes(&mut self, names: &[(String, i64, String)]) -> Vec<String> {
        self.session = Loaded::default();
        dims::name_outputs(&mut self.model, Scope::of(self.imported), names)
    }

    /// Appends another model. Each of `links` is an output of this model and the input of the other
    /// that it feeds. Without links, outputs feed inputs of equal names, or the only output feeds
    /// the only input. Other inputs and outputs are those of both models. The older opset is raised
    /// to the newer. Dimensions of equal names are equal only where they are linked; otherwise
    /// those of the other model get new names. Metadata and documentation of both stay: a key that
    /// both models have, with different texts, gets a number.
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
    /// [`Error::Join`]; [`Error::Legalise`] if the opset of one cannot be raised. The model is then
    /// unchanged.
    pub fn join(&mut self, other: &Self, links: &[(String, String)]) -> Result<(), Error> {
        let (mut first, mut second) = (self.model().clone(), other.model().clone());
        let opset = first.opset.max(second.opset);
        for model in [&mut first, &mut second] {
            if ![0, opset].contains(&model.opset) {
                pt2onnx_opt::convert(model, opset)?;
            }
            model.assign_names();
            pt2onnx_opt::infer_types(model);
        }
        first.opset = opset;
        let imported = self.imported || other.imported;
        merge(&mut first, second, Scope::of(imported), links)?;
        self.imported = imported;
        let mut inputs = self.inputs.clone();
        inputs.extend(other.inputs());
        // The whole does not replace the file of a part.
        self.inputs = Inputs::new();
        self.inputs.extend(&inputs);
        self.report.warnings.extend_from_slice(other.warnings());
        self.changed();
        self.model = first;
        Ok(())
    }

    /// Gives values and dynamic dimensions the names that `options` ask for, and dimensions the
    /// sizes: `input_names`, `output_names`, `rename`, `rename_dim`, `dynamic_axes`, `fix_dim`.
    /// Other options are ignored. [`optimize`](Self::optimize) folds what follows from sizes. Input
    /// names do not name the weights of a model that was read from a file.
    ///
    /// ```
    /// use pt2onnx::{Exporter, Options};
    ///
    /// # let archive = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/models/mlp.pt2");
    /// let mut program = Exporter::new().export(archive)?;
    /// let mut options = Options::default();
    /// options.fix_dim = vec![("tensor_x.0".to_owned(), 4)];
    /// options.rename = vec![("cat".to_owned(), "joined".to_owned())];
    /// program.set_interface(&options)?;
    /// assert!(program.value("joined").is_some());
    /// # Ok::<(), pt2onnx::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Name`] and [`Error::Dim`]. The model is then unchanged.
    pub fn set_interface(&mut self, options: &Options) -> Result<(), Error> {
        let stages = &["interface", "dimensions", "names"];
        let model = self.run_single(self.model.clone(), stages, options, |_| ())?;
        self.session = Loaded::default();
        // Constants keep their values, so that weights may still be replaced.
        (self.model, self.edited) = (model, true);
        Ok(())
    }

    /// Gives values to weights that have none, because the program was exported with
    /// [`Weights::None`](crate::Weights::None) or the archive had no values for them. All of them
    /// must be given, by their names in the program; [`read_weights`](crate::read_weights) reads
    /// files. The weights of such a program can be replaced in the same way until
    /// [`optimize`](Self::optimize) or another change is made, as other constants may be computed
    /// from them then.
    ///
    /// Weights that the model does not use are errors: they may have other names there, or other
    /// constants were computed from them. Weights that the program itself does not use are ignored,
    /// if it was exported with [`Weights::None`](crate::Weights::None).
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
    /// [`Error::Weights`] lists everything that is missing, does not fit or is not used. The model
    /// is then unchanged.
    pub fn apply_weights(&mut self, weights: &IndexMap<String, Tensor>) -> Result<(), Error> {
        self.apply_weights_with(weights, Unused::Error).map(drop)
    }

    /// Does the same as [`apply_weights`](Self::apply_weights), and weights that the model does not
    /// use may be allowed. Returns their names.
    ///
    /// # Errors
    /// Those of [`apply_weights`](Self::apply_weights).
    pub fn apply_weights_with(
        &mut self,
        weights: &IndexMap<String, Tensor>,
        unused: Unused,
    ) -> Result<Vec<String>, Error> {
        self.session = Loaded::default();
        weights::apply(&mut self.model, weights, &self.replaceable, unused).map_err(Error::Weights)
    }
}
