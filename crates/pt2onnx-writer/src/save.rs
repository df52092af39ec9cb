//! Saves a model: its files are written completely or not at all.

use crate::{
    copy::FileSink,
    error::{Error, MAX_MODEL},
    options::{SaveOptions, Weights},
    stream::{DataFile, Stream},
    target::{Replaced, Target},
};
use pt2onnx_ir::Model;
use pt2onnx_tensor::FileRange;
use std::{
    cell::Cell,
    fs,
    path::{Component, Path, PathBuf},
};

/// What [`save`] wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    /// Bytes of the model file.
    pub bytes: u64,
    /// The data files, and the bytes of each.
    pub data: Vec<(PathBuf, u64)>,
}

/// Writes a model to `path`. All values must have names (`Model::assign_names`).
///
/// Files are written without a name first. When all are complete, each gets its name, the model file last. After an error,
/// existing files are unchanged and there are no new ones. The same holds if the process is killed, on file systems that
/// support files without names (Linux); on others, hidden files `.NAME.onnx.*.tmp` may remain. For an instant between the first
/// and the last name, an existing model is beside the new data. If files are replaced, the new ones are first synced to the
/// disk, so that after a system crash there are the old files or the new ones. Otherwise nothing is synced.
///
/// A symbolic link is replaced, not followed. A data file of an earlier export is replaced if there are external weights now;
/// otherwise it is kept, because another model may refer to it.
///
/// # Errors
/// See [`Error`].
pub fn save(
    model: &Model,
    path: impl AsRef<Path>,
    options: impl Into<SaveOptions>,
) -> Result<Saved, Error> {
    save_observed(model, path, options, &|_, _| {})
}

/// As [`save`]. `progress` is called with the bytes written so far and the total.
///
/// # Errors
/// As [`save`].
pub fn save_observed(
    model: &Model,
    path: impl AsRef<Path>,
    options: impl Into<SaveOptions>,
    progress: &dyn Fn(u64, u64),
) -> Result<Saved, Error> {
    let options = options.into();
    let target = Target::new(path.as_ref())?;
    let data_path = target.data_path(&options)?;
    let stream = arranged(model, &options, &data_path, &target)?;
    let file = |file: &DataFile| Target::new(&data_path.with_file_name(&file.name));
    let data: Vec<Target> = stream.files().iter().map(file).collect::<Result<_, _>>()?;
    let sync = data.iter().chain([&target]).any(Target::exists);

    let total = stream.size() + stream.files().iter().map(DataFile::size).sum::<u64>();
    let done = Cell::new(0);
    let advance = |bytes: u64| {
        done.set(done.get() + bytes);
        progress(done.get(), total);
    };
    let mut written = Vec::new();
    for (target, file) in data.iter().zip(stream.files()) {
        written.push(
            target.write(sync, |out| FileSink::fill(out, &advance, |sink| file.write(sink)))?,
        );
    }
    let files = stream.files().iter().map(DataFile::size);
    let files = data.iter().map(|t| t.path().to_owned()).zip(files);
    let saved = Saved { bytes: stream.size(), data: files.collect() };
    let model =
        target.write(sync, |out| FileSink::fill(out, &advance, |sink| stream.write(sink)))?;
    // If an error follows, dropping these restores the old files.
    let mut replaced = Vec::new();
    for (target, file) in data.iter().zip(written) {
        replaced.push(target.replace(file)?);
    }
    target.rename(model)?;
    replaced.into_iter().for_each(Replaced::commit);
    if sync {
        target.sync_folder();
    }
    if data.is_empty() && data_path.exists() {
        tracing::warn!("{} is of an earlier export, this one does not use it", data_path.display());
    }
    Ok(saved)
}

/// Whether [`save`] could write the model: weights have values, and all sizes are within the limits. No file is touched.
///
/// # Errors
/// See [`Error`].
pub fn check(model: &Model, options: impl Into<SaveOptions>) -> Result<(), Error> {
    let options = SaveOptions {
        // The folder of the model is not known.
        link_outside: true,
        ..options.into()
    };
    let target = Target::new(Path::new("model.onnx"))?;
    arranged(model, &options, Path::new("model.onnx.data"), &target).map(drop)
}

/// The model, with weights assigned to files.
fn arranged<'a>(
    model: &'a Model,
    options: &SaveOptions,
    data_path: &Path,
    target: &Target,
) -> Result<Stream<'a>, Error> {
    let mut stream = Stream::new(model)?;
    if !matches!(options.weights, Weights::Auto | Weights::None) {
        stream.complete()?;
    }
    if options.weights == Weights::Link {
        stream.link(options, |source| location(source, target, options))?;
    } else if goes_external(options, stream.size())? {
        stream.externalise(options, &utf8(data_path)?);
    } else {
        return Ok(stream);
    }
    match stream.size() {
        0..=MAX_MODEL => Ok(stream),
        size => Err(Error::GraphTooLarge(size)),
    }
}

/// Whether weights are written to data files, for a model of so many bytes including its weights.
///
/// # Errors
/// [`Error::TooLarge`].
pub fn goes_external(options: &SaveOptions, embedded: u64) -> Result<bool, Error> {
    match options.weights {
        Weights::External => Ok(true),
        Weights::Link => Ok(false),
        Weights::Auto | Weights::None => {
            let named = options.data_file.is_some() || options.shard_size.is_some();
            Ok(embedded > MAX_MODEL || named)
        }

        Weights::Embed if embedded > MAX_MODEL => Err(Error::TooLarge(embedded)),
        Weights::Embed => Ok(false),
    }
}

/// The name of a data file, as it is written in the model file.
fn utf8(path: &Path) -> Result<String, Error> {
    let name = path.file_name().and_then(|n| n.to_str());
    name.map(str::to_owned).ok_or_else(|| Error::Target {
        path: path.to_owned(),
        what: "has a name that is not UTF-8, so that the model file could not refer to it",
    })
}

/// The path from the model's folder to a file, with slashes, as it is written in the model file.
fn location(source: &FileRange, target: &Target, options: &SaveOptions) -> Result<String, Error> {
    let real = |path: &Path| {
        fs::canonicalize(path).map_err(|source| Error::Io {
            path: path.to_owned(),
            doing: "refer to this",
            source,
        })
    };
    let (file, folder) = (real(&source.path)?, real(target.folder())?);
    let shared = file.components().zip(folder.components());
    let shared = shared.take_while(|(a, b)| a == b).count();
    let ups = folder.components().skip(shared).map(|_| "..");
    let refuse = |what| Error::Link { path: file.clone(), what };
    if fs::canonicalize(target.path()).is_ok_and(|there| there == file) {
        return Err(refuse("is the one to be written"));
    }
    if folder.components().count() > shared && !options.link_outside {
        return Err(refuse("is not in the folder of the model or below"));
    }
    let downs = file.components().skip(shared).map(|c| match c {
        Component::Normal(name) => name.to_str(),
        _ => None,
    });
    let parts: Option<Vec<&str>> = ups.map(Some).chain(downs).collect();
    let parts =
        parts.ok_or_else(|| refuse("has no relative name in UTF-8 from the model's folder"))?;
    Ok(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_weights_go() {
        for (weights, small, large) in [
            (Weights::Auto, Some(false), Some(true)),
            (Weights::Embed, Some(false), None),
            (Weights::External, Some(true), Some(true)),
            (Weights::None, Some(false), Some(true)),
        ] {
            let options = SaveOptions::from(weights);
            assert_eq!(goes_external(&options, MAX_MODEL).ok(), small);
            assert_eq!(goes_external(&options, MAX_MODEL + 1).ok(), large);
        }
    }
}
