//! A translated program: the model, ready to be written.

use crate::{
    Error, SaveOptions, Saved,
    dims::{self, Dims},
    report::{Report, stage},
    weights,
};
use bytes::Bytes;
use indexmap::IndexMap;
use pt2onnx_fx::ExportedProgram;
use pt2onnx_ir::{Model, Value, VerifyError, verify};
use pt2onnx_symbolic::Constraints;
use pt2onnx_tensor::Tensor;
use rustc_hash::FxHashSet;
use std::{collections::BTreeMap, path::Path};

/// An ONNX model with what there is to say about it.
pub struct OnnxProgram {
    model: Model,
    source: Option<ExportedProgram>,
    report: Report,
    save: SaveOptions,
    /// Weights that nothing was computed from yet.
    replaceable: FxHashSet<Value>,
    /// Whether the model may have changed since it was verified.
    edited: bool,
    /// Whether others made it.
    foreign: bool,
    /// The model in ONNX Runtime, since it was last run.
    #[cfg(feature = "ort")]
    pub(crate) session: Option<crate::Session>,
}

impl OnnxProgram {
    pub(crate) fn new(
        model: Model,
        report: Report,
        save: SaveOptions,
        replaceable: FxHashSet<Value>,
    ) -> Self {
        Self {
            model,
            source: None,
            report,
            save,
            replaceable,
            edited: false,
            foreign: false,
            #[cfg(feature = "ort")]
            session: None,
        }
    }

    pub(crate) fn of(self, source: ExportedProgram) -> Self {
        Self { source: Some(source), ..self }
    }

    /// Reads an ONNX model, whatever made it: of any opset that is known, with bodies, functions, nodes of other domains
    /// and weights in other files, which are mapped and must not change while the result lives. What the file has that
    /// is not kept is among the warnings.
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
    /// [`Error::Read`]; [`Error::Invalid`] where it is not valid ONNX.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let mut report = Report::new(BTreeMap::new());
        report.read(path.as_ref());
        let reading = report.stage("read", || {
            pt2onnx_writer::read_with(path, pt2onnx_writer::ExternalData::Mapped)
        })?;
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
        let warnings: Vec<String> =
            lost.map(|lost| format!("the model has {lost}, which are not kept")).collect();
        report.done(&model, &warnings);
        let (save, replaceable) = (SaveOptions::default(), FxHashSet::default());
        let mut program = Self::new(model, report, save, replaceable);
        program.foreign = true;
        Ok(program)
    }

    /// The model. Its weights are views of the archive's file.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The program it was made from, as the archive has it; none for a model that was read.
    ///
    /// ```
    /// # let archive = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/archives/torch-2.15.pt2");
    /// let program = pt2onnx::Exporter::new().export(archive)?;
    /// let source = program.exported_program().map(|p| p.graph.nodes.len());
    /// assert!(source.is_some_and(|nodes| nodes > 0));
    /// # Ok::<(), pt2onnx::Error>(())
    /// ```
    pub fn exported_program(&self) -> Option<&ExportedProgram> {
        self.source.as_ref()
    }

    /// The model, to change it: it is verified once more when it is written. New values need names
    /// ([`Model::assign_names`]).
    pub fn model_mut(&mut self) -> &mut Model {
        self.changed();
        &mut self.model
    }

    /// Folds, simplifies and fuses, as [`Exporter::optimize`](crate::Exporter::optimize) says. The opset stays the model's,
    /// whatever the options say; graphs of other than the [`OPTIMISED_OPSETS`](pt2onnx_opt::OPTIMISED_OPSETS) are left alone.
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

    /// Names dynamic dimensions anew, each given as its symbol or an axis of a value (`x.0`), wherever they occur.
    ///
    /// # Errors
    /// [`Error::Dim`]; the model is then as it was.
    pub fn rename_axes<T: Into<String>, N: Into<String>>(
        &mut self,
        names: impl IntoIterator<Item = (T, N)>,
    ) -> Result<(), Error> {
        let names = names.into_iter().map(|(t, n)| (t.into(), n.into()));
        let dims = Dims { names: names.collect(), ..Dims::default() };
        #[cfg(feature = "ort")]
        self.release();
        Ok(dims::apply(&mut self.model, &Constraints::new(), &dims)?)
    }

    /// Gives values to weights that have none, because the program was exported with [`Weights::None`](crate::Weights::None)
    /// or the archive had no values for them: all of them, by their names in the program. The weights of such a program
    /// can be replaced in the same way, until [`optimize`](Self::optimize) or another change may have computed others from them.
    /// [`read_weights`](crate::read_weights) reads files.
    ///
    /// Returns the names of those that the model has no use for.
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
    /// [`Error::Weights`] tells everything that is missing or does not fit; the model is then as it was.
    pub fn apply_weights(
        &mut self,
        weights: &IndexMap<String, Tensor>,
    ) -> Result<Vec<String>, Error> {
        #[cfg(feature = "ort")]
        self.release();
        weights::apply(&mut self.model, weights, &self.replaceable).map_err(Error::Weights)
    }

    /// What the user should know, such as outputs that were left out.
    pub fn warnings(&self) -> &[String] {
        &self.report.warnings
    }

    /// What the export did. What [`save`](Self::save) wrote is not in it: [`Report::saved`] adds that.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The model in ONNX's textual syntax; large weights are shortened.
    pub fn to_text(&self) -> String {
        self.model.to_string()
    }

    /// The model as one file in memory, with all weights.
    ///
    /// # Errors
    /// [`Error::Write`] above 2 GiB and where weights have no values; [`Error::Verify`] after wrong changes.
    pub fn to_bytes(&self) -> Result<Bytes, Error> {
        self.verified()?;
        Ok(stage("write", || pt2onnx_writer::to_bytes(&self.model)).0?)
    }

    /// Writes the model to `path`, and weights to `PATH.data` where the exporter's [`Weights`](crate::Weights) say so. Files that were there
    /// are replaced when the new ones are complete, and stay as they were after an error
    /// ([`pt2onnx_writer::save`]).
    ///
    /// # Errors
    /// [`Error::Write`]; [`Error::Verify`] after wrong changes.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<Saved, Error> {
        self.save_with(path, self.save.clone())
    }

    /// As [`save`](Self::save); `progress` is told how many bytes were written so far, and of how many.
    ///
    /// # Errors
    /// As [`save`](Self::save).
    pub fn save_observed(
        &self,
        path: impl AsRef<Path>,
        progress: &dyn Fn(u64, u64),
    ) -> Result<Saved, Error> {
        self.verified()?;
        Ok(stage("write", || {
            pt2onnx_writer::save_observed(&self.model, path, self.save.clone(), progress)
        })
        .0?)
    }

    /// As [`save`](Self::save), with other options than the exporter's.
    ///
    /// # Errors
    /// As [`save`](Self::save).
    pub fn save_with(
        &self,
        path: impl AsRef<Path>,
        options: impl Into<SaveOptions>,
    ) -> Result<Saved, Error> {
        self.verified()?;
        Ok(stage("write", || pt2onnx_writer::save(&self.model, path, options)).0?)
    }

    /// Whether [`save`](Self::save) could write the model: whether its weights have values and everything fits.
    ///
    /// # Errors
    /// As [`save`](Self::save), but for files, of which none is touched.
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

    pub(crate) fn verified(&self) -> Result<(), Error> {
        if self.edited { verify(&self.model).map_err(Error::Verify) } else { Ok(()) }
    }
}

/// An output whose elements are not of the type that the model says.
fn mismatch(model: &Model, claimed: Value, typed: &Model, made: Value) -> Option<VerifyError> {
    let dtype = |model: &Model, value: Value| Some(model[value].ty.as_ref()?.as_tensor()?.dtype);
    let (says, is) = (dtype(model, claimed)?, dtype(typed, made)?);
    (says != is).then(|| VerifyError {
        place: format!("output `{}`", model[claimed].name.as_deref().unwrap_or_default()),
        what: format!("the graph says that it is {says}, its node makes {is}"),
    })
}
