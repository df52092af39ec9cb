//! Saves a model: its files are written completely or not at all.

use crate::{
    arrange::arranged,
    batch::{Batch, Saved},
    error::Error,
    inputs::Inputs,
    options::SaveOptions,
};
use pt2onnx_ir::Model;
use std::path::Path;

/// Writes a model to `path`. All values must have names (`Model::assign_names`).
///
/// Files are written without a name first. When all are complete, each gets its name, the model
/// file last. After an error, existing files are unchanged and there are no new ones. The same
/// holds if the process is killed, but hidden files `.NAME.onnx.*.tmp` may remain: while a model
/// and its data are replaced, the old model refers to the old data by such a name. If files are
/// replaced, the new ones are first synced to the disk, so that after a system crash there are the
/// old files or the new ones. Otherwise nothing is synced.
///
/// An existing file keeps its mode and owner, and must be writable. Symbolic links are followed and
/// stay. A device or pipe is written to, not replaced. No file is written that the model's tensors
/// are in ([`Error::Overwrites`]); [`Batch`] knows other files that are read, and writes further
/// files together with the model. A data file of an earlier export is replaced if there are
/// external weights now; otherwise it is kept, because another model may refer to it.
///
/// # Errors
/// See [`Error`].
pub fn save(
    model: &Model,
    path: impl AsRef<Path>,
    options: impl Into<SaveOptions>,
) -> Result<Saved, Error> {
    let mut batch = Batch::new(Inputs::new());
    let saved = batch.model(model, path.as_ref(), &options.into(), &|_, _| {})?;
    batch.commit()?;
    Ok(saved)
}

/// Whether [`save`] could write the model: weights have values, and all sizes are within the
/// limits. No file is touched.
///
/// # Errors
/// See [`Error`].
pub fn check(model: &Model, options: impl Into<SaveOptions>) -> Result<(), Error> {
    let options = SaveOptions {
        // The folder of the model is not known.
        allow_external_paths: true,
        ..options.into()
    };
    arranged(model, &options, Path::new("model.onnx.data"), Path::new("model.onnx")).map(drop)
}
