//! Writing a finished model: to files, to memory, together with others.

use super::OnnxProgram;
use crate::{error::Error, weights};
use bytes::Bytes;
use pt2onnx_ir::ValueData;
use pt2onnx_report::stage;
use pt2onnx_writer::{Batch, InParts, Output, SaveOptions, Saved, Weights};
use std::path::Path;

impl OnnxProgram {
    /// The model as the bytes of one file, with all weights.
    ///
    /// # Errors
    /// [`Error::Write`] above 2 GiB, and if weights have no values; [`Error::Edited`] if the model
    /// was changed and is not valid.
    pub fn to_bytes(&self) -> Result<Bytes, Error> {
        self.verified()?;
        Ok(stage("write", || pt2onnx_writer::to_bytes_unverified(&self.model))?)
    }

    /// The model as the bytes of one file without its weights of at least `threshold` bytes, and
    /// these: for runtimes that can be given weights in memory. Nothing of these is copied.
    ///
    /// # Errors
    /// [`Error::Write`] if the rest exceeds 2 GiB, and if weights have no values; [`Error::Edited`]
    /// if the model was changed and is not valid.
    pub fn to_parts(&self, threshold: u64) -> Result<InParts, Error> {
        self.verified()?;
        Ok(stage("write", || pt2onnx_writer::to_parts_unverified(&self.model, threshold))?)
    }

    /// Writes the model to `path`, and weights to `PATH.data` if the exporter's
    /// [`Weights`](crate::Weights) ask for it. Existing files are replaced when the new ones are
    /// complete, and are unchanged after an error ([`pt2onnx_writer::save`]).
    ///
    /// # Errors
    /// [`Error::Write`]; [`Error::Edited`] if the model was changed and is not valid.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<Saved, Error> {
        self.save_with(path, self.save.clone())
    }

    /// Adds the model to files that are written together, such as a report about it. With no
    /// options, they are the exporter's. `progress` gets the bytes written so far, and in all.
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
        Ok(stage("write", || files.model(&self.model, to, &options, progress))?)
    }

    /// The options, with the constants that are weights, for a model that was verified.
    fn completed(&self, mut options: SaveOptions) -> SaveOptions {
        options.verify = false;
        let asks = options.weights == Weights::None || options.keep_initializers_as_inputs;
        if asks && options.initializers.is_none() {
            let is = |value, data: &ValueData| {
                if self.replaceable.is_empty() {
                    weights::is_initializer(data, self.source.as_ref())
                } else {
                    self.replaceable.contains(&value)
                }
            };
            let all = self.model.values().filter(|(value, data)| is(*value, data));
            options.initializers = Some(all.map(|(value, _)| value).collect());
        }
        options
    }

    /// Does the same as [`save`](Self::save), with other options than the exporter's. With
    /// [`Weights::None`](crate::Weights::None) the same graph is written without initialisers, as
    /// with `include_initializers=False` of torch.onnx: without the program's tensors and other
    /// constants of more than 16 elements, such as those that the optimiser computed. To apply
    /// other weights later, export with [`Weights::None`](crate::Weights::None) instead: then
    /// nothing is computed from weights. [`SaveOptions::keep_initializers_as_inputs`] makes weights
    /// inputs.
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
        let mut files = Batch::new(self.inputs.clone());
        let saved = self.save_in(&mut files, path.as_ref(), Some(options.into()), &|_, _| {})?;
        files.commit()?;
        Ok(saved)
    }

    /// Checks whether [`save`](Self::save) could write the model: whether its weights have values
    /// and everything fits. No file is written.
    ///
    /// # Errors
    /// The errors of [`save`](Self::save), without those of files.
    pub fn check(&self) -> Result<(), Error> {
        self.verified()?;
        let options = SaveOptions { verify: false, ..self.save.clone() };
        Ok(pt2onnx_writer::check(&self.model, options)?)
    }
}
