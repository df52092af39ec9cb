//! What becomes of a model on disk: which files there are, and that all are there or none.

use crate::{
    Error,
    copy::FileSink,
    stream::{DataFile, MAX_MODEL, Stream},
    target::{Replaced, Target},
};
use pt2onnx_ir::Model;
use pt2onnx_tensor::FileRange;
use std::{
    cell::Cell,
    fs,
    path::{Component, Path, PathBuf},
};

/// Where weights go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weights {
    /// Into the model file; as [`Weights::External`] where that would be above 2 GiB, or options are given for data files.
    #[default]
    Auto,
    /// Into the model file.
    Embed,
    /// The large ones into a data file beside the model file, or several. The model file refers to them by name: they must
    /// stay together.
    External,
    /// Nowhere: the model file refers to the files that the large ones come from, such as the archive, where they lie there
    /// in one piece. The files must stay as they are, in the same folder as the model or below.
    Link,
    /// Nowhere: weights without values ([`Tensor::absent`](pt2onnx_tensor::Tensor::absent)) are declared by name and type,
    /// for somebody to give them values later; other constants go as with [`Weights::Auto`], which also declares weights
    /// where it finds no values.
    None,
}

/// How a model is saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaveOptions {
    /// Where weights go.
    pub weights: Weights,
    /// Name of the data file, which is beside the model file; `NAME.onnx.data` for `NAME.onnx` by default.
    pub data_file: Option<String>,
    /// Tensors of fewer bytes stay in the model file; 1024 by default. Shapes and scalars are wanted there by runtimes, and would waste most
    /// of an aligned place.
    pub threshold: u64,
    /// The most bytes of a data file; a weight that is larger has one of its own. Of several, each has its number in its name,
    /// `NAME.onnx-00001-of-00002.data`.
    pub shard_size: Option<u64>,
    /// External weights begin at multiples of this; 4096 by default, a page, so that runtimes can map them. On Windows a page is 65536.
    pub alignment: u64,
    /// Whether [`Weights::Link`] may refer to files outside of the model's folder, which many runtimes refuse.
    pub link_outside: bool,
}

impl Default for SaveOptions {
    fn default() -> Self {
        Self {
            weights: Weights::Auto,
            data_file: None,
            threshold: 1024,
            shard_size: None,
            alignment: 4096,
            link_outside: false,
        }
    }
}

/// The defaults, for weights that go there.
impl From<Weights> for SaveOptions {
    fn from(weights: Weights) -> Self {
        Self { weights, ..Self::default() }
    }
}

/// What [`save`] wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    /// Bytes of the model file.
    pub bytes: u64,
    /// The data files and their bytes.
    pub data: Vec<(PathBuf, u64)>,
}

/// Writes a model, whose values must have names (`Model::assign_names`), to `path`.
///
/// All files are complete before the first gets its name; the model file gets it last. After an error the old files are as they were and no new
/// ones are there; so it is when the process is killed, where the file system has nameless files (Linux; elsewhere hidden ones,
/// `.NAME.onnx.*.tmp`, may be left). Between the first and the last name, for an instant, a model that was there stands beside the
/// new data. Where files are replaced, the new ones are on the disk (`fsync`) before: also after a crash of the system there are the old or the
/// new ones. Where there were none, that is left to the system, as `cp` does.
///
/// A symbolic link is replaced, not followed. A data file of an earlier export is replaced when this one has
/// external weights; otherwise it is left alone, as another model may refer to it.
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

/// As [`save`]; `progress` is told how many bytes were written so far, and of how many.
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
    // Dropped, and so undone, when something fails.
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

/// Whether [`save`] could write the model: whether its weights have values and everything fits. No file is touched.
///
/// # Errors
/// See [`Error`].
pub fn check(model: &Model, options: impl Into<SaveOptions>) -> Result<(), Error> {
    let options = SaveOptions {
        // The model will be somewhere; it is not known where.
        link_outside: true,
        ..options.into()
    };
    let target = Target::new(Path::new("model.onnx"))?;
    arranged(model, &options, Path::new("model.onnx.data"), &target).map(drop)
}

/// The model, each weight where it goes.
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

/// Whether weights get a file of their own, for a model that would have so many bytes with them.
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

/// Name of a data file, as the model file spells it.
fn utf8(path: &Path) -> Result<String, Error> {
    let name = path.file_name().and_then(|n| n.to_str());
    name.map(str::to_owned).ok_or_else(|| Error::Target {
        path: path.to_owned(),
        what: "has a name that is not UTF-8, so that the model file could not refer to it",
    })
}

/// The way from the model's folder to a file, as the model file spells it: with slashes.
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
