//! Files on disk: written under temporary names, synced, then renamed over what was there.

use crate::{
    Error,
    stream::{MAX_MODEL, Stream},
};
use pt2onnx_ir::Model;
use std::{
    fs::{self, File},
    io::{self, BufWriter},
    path::{Path, PathBuf},
};
use tempfile::NamedTempFile;

/// Where weights go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weights {
    /// Into the model file, or where that would be above 2 GiB or a data file is named, as [`Weights::External`].
    #[default]
    Auto,
    /// Into the model file.
    Embed,
    /// Those of 1 KiB and more into a data file beside the model file, each at a multiple of 4096 bytes. The model file
    /// refers to it by name: the two must stay together.
    External,
    /// Nowhere: weights without values ([`Tensor::absent`](pt2onnx_tensor::Tensor::absent)) are declared by name and type,
    /// for somebody to give them values later; other constants go as with [`Weights::Auto`], which also declares weights
    /// where it finds no values.
    None,
}

/// How a model is saved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SaveOptions {
    /// Where weights go.
    pub weights: Weights,
    /// Name of the data file, which is beside the model file; `NAME.onnx.data` for `NAME.onnx` by default.
    pub data_file: Option<String>,
}

/// The defaults, for weights that go there.
impl From<Weights> for SaveOptions {
    fn from(weights: Weights) -> Self {
        Self {
            weights,
            ..Self::default()
        }
    }
}

/// What [`save`] wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    /// Bytes of the model file.
    pub bytes: u64,
    /// The data file and its bytes, if there is one.
    pub data: Option<(PathBuf, u64)>,
}

/// Writes a model, whose values must have names (`Model::assign_names`), to `path`.
///
/// Both files are complete and synced under temporary names in the target folder before the first is renamed; the model file
/// is renamed last. After an error the old files are as they were and no new ones are there; after a crash, hidden
/// temporary files (`.NAME.onnx.*.tmp`) may be. Between the two renames, for an instant, a model that was there stands
/// beside the new data.
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
    let options = options.into();
    let target = Target::new(path.as_ref())?;
    let data_path = target.data_path(&options)?;
    let stream = arranged(model, &options, || utf8(&data_path))?;
    let data = match stream.data_size() {
        0 => None,
        size => Some((Target::new(&data_path)?, size)),
    };
    let temporary_data = match &data {
        Some((data, _)) => Some(data.write(|out| stream.write_data(out))?),
        None => None,
    };
    let temporary_model = target.write(|out| stream.write(out))?;
    let replaced = match (&data, temporary_data) {
        (Some((data, _)), Some(temporary)) => Some(data.replace(temporary)?),
        _ => None,
    };
    target.rename(temporary_model)?;
    if let Some(replaced) = replaced {
        replaced.commit();
    }
    target.sync_folder();
    if data.is_none() && data_path.exists() {
        tracing::warn!(
            "{} is of an earlier export, this one does not use it",
            data_path.display()
        );
    }
    Ok(Saved {
        bytes: stream.size(),
        data: data.map(|(target, size)| (target.path, size)),
    })
}

/// Whether [`save`] could write the model: whether its weights have values and everything fits. No file is touched.
///
/// # Errors
/// See [`Error`].
pub fn check(model: &Model, options: impl Into<SaveOptions>) -> Result<(), Error> {
    arranged(model, &options.into(), || Ok("model.onnx.data".to_owned())).map(drop)
}

/// The model, each weight where it goes. The name of the data file is only asked for where there is one.
fn arranged<'a>(
    model: &'a Model,
    options: &SaveOptions,
    data_file: impl FnOnce() -> Result<String, Error>,
) -> Result<Stream<'a>, Error> {
    let mut stream = Stream::new(model)?;
    if matches!(options.weights, Weights::Embed | Weights::External) {
        stream.complete()?;
    }
    if goes_external(options, stream.size())? {
        stream.externalise(&data_file()?);
        if stream.size() > MAX_MODEL {
            return Err(Error::GraphTooLarge(stream.size()));
        }
    }
    Ok(stream)
}

/// Writes a file as [`save`] does: what was there is replaced when the new one is complete.
///
/// # Errors
/// [`Error::Io`] and [`Error::Target`].
pub fn write_file(path: impl AsRef<Path>, content: &[u8]) -> Result<(), Error> {
    let target = Target::new(path.as_ref())?;
    let temporary = target.write(|out| io::Write::write_all(out, content))?;
    target.rename(temporary)?;
    target.sync_folder();
    Ok(())
}

/// Whether [`write_file`] could write there, as far as that can be told.
///
/// # Errors
/// [`Error::Io`] and [`Error::Target`].
pub fn check_file(path: impl AsRef<Path>) -> Result<(), Error> {
    Target::new(path.as_ref())?.temporary().map(drop)
}

/// Whether weights get a file of their own, for a model that would have so many bytes with them.
fn goes_external(options: &SaveOptions, embedded: u64) -> Result<bool, Error> {
    match options.weights {
        Weights::External => Ok(true),
        Weights::Auto | Weights::None => Ok(embedded > MAX_MODEL || options.data_file.is_some()),
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

/// A file to be written.
struct Target {
    path: PathBuf,
    folder: PathBuf,
}

impl Target {
    fn new(path: &Path) -> Result<Self, Error> {
        let refuse = |what| {
            Err(Error::Target {
                path: path.to_owned(),
                what,
            })
        };
        if path.file_name().is_none() {
            return refuse("is no name of a file");
        }
        match fs::metadata(path) {
            Ok(there) if there.is_dir() => {
                return refuse("is a folder; give the name of a file in it");
            }
            // Renaming would replace `/dev/null` itself.
            Ok(there) if !there.is_file() => {
                return refuse("is a device or pipe; give the name of a file");
            }
            _ => {}
        }
        let folder = path
            .parent()
            .filter(|p| !p.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        Ok(Self {
            path: path.to_owned(),
            folder: folder.to_owned(),
        })
    }

    fn name(&self) -> String {
        self.path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    }

    /// The data file beside it.
    fn data_path(&self, options: &SaveOptions) -> Result<PathBuf, Error> {
        let Some(name) = &options.data_file else {
            let mut name = self.path.file_name().unwrap_or_default().to_owned();
            name.push(".data");
            return Ok(self.path.with_file_name(name));
        };
        let path = self.path.with_file_name(name);
        let refuse = |what| {
            Err(Error::Target {
                path: name.into(),
                what,
            })
        };
        if Path::new(name).file_name() != Some(name.as_ref()) {
            return refuse("is not a name without folders, as that of a data file is");
        }
        match path == self.path {
            true => refuse("is the model file itself"),
            false => Ok(path),
        }
    }

    fn error(&self, doing: &'static str) -> impl FnOnce(io::Error) -> Error {
        let path = self.path.clone();
        move |source| Error::Io {
            path,
            doing,
            source,
        }
    }

    fn temporary(&self) -> Result<NamedTempFile, Error> {
        let prefix = format!(".{}.", self.name());
        // Made as any new file: `tempfile_in` would close it to others and name it in the error.
        let make = |path: &Path| {
            File::options()
                .read(true)
                .write(true)
                .create_new(true)
                .open(path)
        };
        let made = tempfile::Builder::new()
            .prefix(&prefix)
            .suffix(".tmp")
            .make_in(&self.folder, make);
        made.map_err(|source| Error::Io {
            path: self.folder.clone(),
            doing: "create a file in this folder",
            source,
        })
    }

    /// Writes and syncs under a temporary name.
    fn write(
        &self,
        content: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
    ) -> Result<NamedTempFile, Error> {
        let temporary = self.temporary()?;
        let mut out = BufWriter::with_capacity(1 << 16, temporary.as_file());
        let written =
            content(&mut out).and_then(|()| out.into_inner().map_err(io::Error::from)?.sync_all());
        written.map_err(self.error("write"))?;
        Ok(temporary)
    }

    fn rename(&self, temporary: NamedTempFile) -> Result<(), Error> {
        temporary
            .persist(&self.path)
            .map_err(|e| self.error("rename the complete file to this")(e.error))?;
        Ok(())
    }

    /// As [`rename`](Self::rename), but what was there comes back unless the [`Replaced`] is committed.
    fn replace(&self, temporary: NamedTempFile) -> Result<Replaced, Error> {
        let kept = match fs::symlink_metadata(&self.path) {
            Err(_) => None,
            Ok(_) => {
                let place = self.temporary()?.into_temp_path();
                fs::rename(&self.path, &place).map_err(self.error("move the old file aside"))?;
                Some(place)
            }
        };
        let replaced = Replaced {
            path: self.path.clone(),
            kept,
            committed: false,
        };
        self.rename(temporary)?;
        Ok(replaced)
    }

    /// Makes the renames last. Best effort: the files are there already, and not every system can sync a folder.
    fn sync_folder(&self) {
        if let Err(e) = File::open(&self.folder).and_then(|f| f.sync_all()) {
            tracing::debug!("{}: not synced: {e}", self.folder.display());
        }
    }
}

/// A file that has been replaced, for now.
struct Replaced {
    path: PathBuf,
    /// What was there, if anything.
    kept: Option<tempfile::TempPath>,
    committed: bool,
}

impl Replaced {
    fn commit(mut self) {
        self.committed = true;
    }
}

impl Drop for Replaced {
    fn drop(&mut self) {
        if self.committed {
            return;
        }
        let undone = match self.kept.take() {
            Some(kept) => kept.persist(&self.path).map_err(|e| e.error),
            None => match fs::remove_file(&self.path) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
                _ => Ok(()),
            },
        };
        if let Err(e) = undone {
            tracing::warn!("{}: could not be put back: {e}", self.path.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_file_comes_back_unless_committed() {
        let folder = tempfile::tempdir().unwrap();
        let target = Target::new(&folder.path().join("data")).unwrap();
        let replace = |content: &str| {
            let temporary = target
                .write(|out| io::Write::write_all(out, content.as_bytes()))
                .unwrap();
            target.replace(temporary).unwrap()
        };
        let content = || fs::read_to_string(&target.path).ok();
        let replaced = replace("first");
        assert_eq!(content().as_deref(), Some("first"));
        drop(replaced);
        assert_eq!(content(), None);
        replace("first").commit();
        let replaced = replace("second");
        assert_eq!(content().as_deref(), Some("second"));
        drop(replaced);
        assert_eq!(content().as_deref(), Some("first"));
        replace("second").commit();
        assert_eq!(content().as_deref(), Some("second"));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

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
