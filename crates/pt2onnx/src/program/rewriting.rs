//! Changing a finished model: all that `pt2onnx optimize` does with options, and each step of it.

use crate::{
    Error, NameError, OnnxProgram, OptionError, Options, Unused, Warning, WarningKind, cuts,
    dims::{self, Scope},
    domains, joining, naming, ranges,
    report::stage,
    weights,
};
use indexmap::IndexMap;
use pt2onnx_opt::{Journal, Target};
use pt2onnx_symbolic::Constraints;
use pt2onnx_tensor::Tensor;
use pt2onnx_writer::Inputs;

impl Options {
    /// Checks what [`OnnxProgram::rewrite`] needs of options.
    ///
    /// # Errors
    /// Options of compression that cannot be, or do not fit together.
    pub fn check_rewrite(&self) -> Result<(), OptionError> {
        self.compression().check().map_err(OptionError::Compress)?;
        self.check_compression()
    }
}

impl OnnxProgram {
    /// Rewrites the model as options ask: puts the bodies of functions in the places of their
    /// calls, writes it for another opset if one is given, makes weights constants that are inputs
    /// as well ([`Options::keep_initializers_as_inputs`]), names values and fixes sizes, optimises,
    /// compresses, and fits it to the target. The options of saving and those of an export are not
    /// used, nor is [`Options::opset`]: `opset` says it. `journal` takes notes of what passes do.
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
    /// Those of [`Options::check_rewrite`], and an opset that the target does not read, before
    /// anything is changed; then those of the single steps: [`inline`](Self::inline),
    /// [`convert_opset`](Self::convert_opset), [`set_interface`](Self::set_interface),
    /// [`compress`](Self::compress), [`fit`](Self::fit).
    pub fn rewrite(
        &mut self,
        options: &Options,
        opset: Option<u32>,
        journal: Option<Journal>,
    ) -> Result<(), Error> {
        options.check_rewrite()?;
        if let Some(opset) = opset {
            options.target.reads(opset).map_err(OptionError::Target)?;
        }
        let passes = pt2onnx_opt::Options { journal, ..options.passes()? };
        if options.inline {
            self.inline()?;
        }
        if let Some(opset) = opset {
            self.convert_opset(opset)?;
        }
        if self.imported && !options.keep_initializers_as_inputs {
            self.make_weights_constants();
        }
        self.set_interface(options)?;
        self.optimize(passes);
        let lost = options.rename.iter().find(|(_, new)| self.value(new.trim()).is_none());
        if let Some((old, _)) = lost {
            return Err(NameError::Unknown(old.clone()).into());
        }
        let mut compression = options.compression();
        if !compression.is_off() {
            if !options.calibration_data.is_empty() {
                self.verified()?;
                compression.ranges = ranges::of_samples(self.model(), &compression, options)?;
            }
            self.compress(&compression)?;
        }
        // A model of another producer that stays at its opset is for any runtime as much as it was.
        if opset.is_some() || options.target != Target::Standard {
            self.fit(options.target)?;
        }
        Ok(())
    }

    /// Makes weights constants that are inputs as well, if all weights are: exporters wrote them so
    /// that followed IR version 3. Callers can then give them no other values, which is added to
    /// [`warnings`](Self::warnings).
    fn make_weights_constants(&mut self) {
        self.changed();
        let count = weights::make_constants(&mut self.model);
        if count > 0 {
            let text = format!(
                "all {count} weights are inputs as well, as older exporters wrote them: they are constants now; \
                 the option `keep-initializers-as-inputs` keeps them"
            );
            self.report.warnings.push(Warning::new(WarningKind::Inputs, text));
        }
    }

    /// Folds, simplifies and fuses. The model keeps its opset, whatever the options say. Graphs of
    /// opsets other than [`OPTIMISED_OPSETS`](pt2onnx_opt::OPTIMISED_OPSETS) are not changed.
    pub fn optimize(&mut self, options: impl Into<pt2onnx_opt::Options>) {
        self.changed();
        stage("optimise", || {
            let mut options = options.into();
            options.opset = self.model.opset;
            if self.imported {
                pt2onnx_opt::optimize_imported(&mut self.model, &options)
            } else {
                pt2onnx_opt::optimize(&mut self.model, &options)
            }
            self.model.assign_names();
        });
    }

    /// Compresses the weights, or the whole graph ([`Options::compression`]). Nothing is computed
    /// before the model is written. That no weight was fit for it is added to
    /// [`warnings`](Self::warnings).
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
        let found = made.warnings().to_vec();
        self.report.warnings.extend(Warning::all(WarningKind::Compression, found));
        (self.model, self.compressed) = (model, made);
        Ok(())
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
    /// [`Error::Legalise`]: nodes that the opset cannot express, or functions. The model is then
    /// unchanged.
    pub fn convert_opset(&mut self, opset: u32) -> Result<(), Error> {
        stage("convert", || pt2onnx_opt::convert(&mut self.model, opset)).0?;
        self.model.assign_names();
        self.changed();
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
        let mut model = self.model.clone();
        let fit = if self.imported { pt2onnx_opt::fit_imported } else { pt2onnx_opt::fit };
        let found = stage("target", || fit(&mut model, target)).0?;
        model.assign_names();
        self.changed();
        self.model = model;
        self.report.warnings.extend(Warning::all(WarningKind::Target, found));
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
        let mut model = cuts::typed(&self.model, &[names(inputs), names(outputs)].concat());
        model.extract(&names(inputs), &names(outputs))?;
        model.assign_names();
        self.changed();
        self.model = model;
        Ok(())
    }

    /// Replaces calls of the model's functions by their bodies, and removes the functions.
    ///
    /// # Errors
    /// [`Error::Domain`]: a function calls itself, or is written for another opset. The model is
    /// then unchanged.
    pub fn inline(&mut self) -> Result<(), Error> {
        let mut model = self.model.clone();
        stage("inline", || domains::inline(&mut model)).0?;
        domains::import(&mut model, &[], &mut Vec::new())?;
        model.assign_names();
        self.changed();
        self.model = model;
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
        #[cfg(feature = "ort")]
        self.release();
        Ok(dims::apply(&mut self.model, Scope::of(self.imported), &Constraints::new(), &options)?)
    }

    /// Puts another model behind this one. Each of `links` is an output of this model and the input
    /// of the other that it becomes. Only without any, those of equal names belong together, or the
    /// only output and the only input. Other inputs and outputs are those of both. The older of
    /// both opsets is raised to the newer. Dimensions of equal names are taken to be equal only
    /// where links say so: those of the other model get new names. Metadata and documentation of
    /// both stay: a key that both models have, with different texts, gets a number.
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
        joining::join(&mut first, second, Scope::of(imported), links)?;
        self.imported = imported;
        let mut inputs = self.inputs.clone();
        inputs.extend(other.inputs());
        // What was read for a part is not replaced by the whole.
        self.inputs = Inputs::new();
        self.inputs.extend(&inputs);
        self.report.warnings.extend_from_slice(other.warnings());
        self.changed();
        self.model = first;
        Ok(())
    }

    /// Gives values and dynamic dimensions the names that `options` ask for, and dimensions the
    /// sizes: `input_names`, `output_names`, `rename`, `dim`, `dynamic_axes` and `fix`. Other
    /// options are not looked at. [`optimize`](Self::optimize) folds what follows from sizes. Input
    /// names do not go on over the weights of a model that was read from a file.
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
        let (mut model, source) = (self.model.clone(), self.source.as_ref());
        let renamed = naming::name(&mut model, source, options)?;
        let constraints = source.map(|program| program.constraints.clone());
        let scope = Scope::of(self.imported);
        dims::apply(&mut model, scope, &constraints.unwrap_or_default(), options)?;
        naming::finish(&mut model, options, &renamed)?;
        #[cfg(feature = "ort")]
        self.release();
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
    /// constants were computed from them. What the program itself does not use is ignored, if it
    /// was exported with [`Weights::None`](crate::Weights::None).
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
        #[cfg(feature = "ort")]
        self.release();
        weights::apply(&mut self.model, weights, &self.replaceable, unused).map_err(Error::Weights)
    }
}
