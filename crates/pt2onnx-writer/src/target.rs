//! New files: they have no name until they are complete, and then replace existing files.

use crate::{error::Error, options::SaveOptions};
use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};
use tempfile::{NamedTempFile, TempPath};

/// Writes a file as [`save`](crate::save) does: an existing file is replaced when the new one is complete.
///
/// # Errors
/// [`Error::Io`] and [`Error::Target`].
pub fn write_file(path: impl AsRef<Path>, content: &[u8]) -> Result<(), Error> {
    let target = Target::new(path.as_ref())?;
    let temporary = target.write(target.exists(), |mut out| out.write_all(content))?;
    target.rename(temporary)
}

/// Whether [`write_file`] could write to the path, as far as this is known in advance.
///
/// # Errors
/// [`Error::Io`] and [`Error::Target`].
pub fn check_file(path: impl AsRef<Path>) -> Result<(), Error> {
    Target::new(path.as_ref())?.temporary().map(drop)
}

/// A file to be written.
pub(crate) struct Target {
    path: PathBuf,
    folder: PathBuf,
}

impl Target {
    pub fn new(path: &Path) -> Result<Self, Error> {
        let refuse = |what| Err(Error::Target { path: path.to_owned(), what });
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
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Ok(Self { path: path.to_owned(), folder: folder.to_owned() })
    }

    /// The folder of the file.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file exists.
    pub fn exists(&self) -> bool {
        fs::symlink_metadata(&self.path).is_ok()
    }

    fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The path of the data file.
    pub fn data_path(&self, options: &SaveOptions) -> Result<PathBuf, Error> {
        let Some(name) = &options.data_file else {
            let mut name = self.path.file_name().unwrap_or_default().to_owned();
            name.push(".data");
            return Ok(self.path.with_file_name(name));
        };
        let path = self.path.with_file_name(name);
        let refuse = |what| Err(Error::Target { path: name.into(), what });
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
        move |source| Error::Io { path, doing, source }
    }

    fn temporary(&self) -> Result<Temporary, Error> {
        let made = nameless(&self.folder).unwrap_or_else(|| {
            // With the permissions of any new file: `tempfile_in` would make it private and put its name in the error.
            let make = |path: &Path| {
                let mut options = File::options();
                options.read(true).write(true).create_new(true).open(path)
            };
            self.hidden(make).map(Temporary::Hidden)
        });
        made.map_err(|source| Error::Io {
            path: self.folder.clone(),
            doing: "create a file in this folder",
            source,
        })
    }

    /// Creates a file with an unused hidden name, which is removed unless it is persisted.
    fn hidden<R>(&self, make: impl FnMut(&Path) -> io::Result<R>) -> io::Result<NamedTempFile<R>> {
        let prefix = format!(".{}.", self.name());
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix).suffix(".tmp").make_in(&self.folder, make)
    }

    /// Writes the file, which has no name yet. Syncs it to the disk if `sync` is set.
    pub fn write(
        &self,
        sync: bool,
        content: impl FnOnce(&File) -> io::Result<()>,
    ) -> Result<Temporary, Error> {
        let temporary = self.temporary()?;
        let file = temporary.file();
        let written = content(file).and_then(|()| if sync { file.sync_all() } else { Ok(()) });
        written.map_err(self.error("write"))?;
        Ok(temporary)
    }

    /// Gives the file its name, and replaces an existing one.
    pub fn rename(&self, temporary: Temporary) -> Result<(), Error> {
        let named = match temporary {
            Temporary::Hidden(file) => Ok(file.into_temp_path()),
            Temporary::Nameless(file) => {
                self.hidden(|path| link(&file, path)).map(NamedTempFile::into_temp_path)
            }
        };
        let renamed = named.and_then(|path| path.persist(&self.path).map_err(|e| e.error));
        renamed.map_err(self.error("rename the complete file to this"))
    }

    /// As [`rename`](Self::rename), but the existing file is restored unless the [`Replaced`] is committed.
    pub fn replace(&self, temporary: Temporary) -> Result<Replaced, Error> {
        let kept = match fs::symlink_metadata(&self.path) {
            Err(_) => None,
            Ok(_) => {
                let aside = self.hidden(|path| fs::rename(&self.path, path));
                Some(aside.map_err(self.error("move the old file aside"))?.into_temp_path())
            }
        };
        let replaced = Replaced { path: self.path.clone(), kept, committed: false };
        self.rename(temporary)?;
        Ok(replaced)
    }

    /// Syncs the folder. Errors are ignored: the files exist already, and not all systems can sync a folder.
    pub fn sync_folder(&self) {
        if let Err(e) = File::open(&self.folder).and_then(|f| f.sync_all()) {
            tracing::debug!("{}: not synced: {e}", self.folder.display());
        }
    }
}

/// A file that does not have its name yet.
pub(crate) enum Temporary {
    /// A file without a name, which disappears with the process.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux has such files"))]
    Nameless(File),
    /// A file with a hidden name.
    Hidden(NamedTempFile<File>),
}

impl Temporary {
    fn file(&self) -> &File {
        match self {
            Self::Nameless(file) => file,
            Self::Hidden(file) => file.as_file(),
        }
    }
}

/// A file without a name in the folder; `None` if the system does not support such files.
#[cfg(target_os = "linux")]
fn nameless(folder: &Path) -> Option<io::Result<Temporary>> {
    use rustix::{fs::OFlags, io::Errno};
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = File::options();
    let flags = i32::try_from(OFlags::TMPFILE.bits()).ok()?;
    let made = options.read(true).write(true).custom_flags(flags).open(folder);
    let lacking = [Errno::OPNOTSUPP, Errno::ISDIR, Errno::NOENT, Errno::INVAL];
    match made {
        Err(e) if Errno::from_io_error(&e).is_some_and(|e| lacking.contains(&e)) => None,
        // It can get a name only through `/proc`.
        Ok(file) if !fs::exists(descriptor(&file)).unwrap_or(false) => None,
        made => Some(made.map(Temporary::Nameless)),
    }
}

#[cfg(not(target_os = "linux"))]
fn nameless(_: &Path) -> Option<io::Result<Temporary>> {
    None
}

#[cfg(target_os = "linux")]
fn descriptor(file: &File) -> PathBuf {
    use std::os::fd::AsRawFd;
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// Gives a name to a file without one.
#[cfg(target_os = "linux")]
fn link(file: &File, path: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    Ok(linkat(CWD, descriptor(file), CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

#[cfg(not(target_os = "linux"))]
fn link(_: &File, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// A file that was replaced, until it is committed.
pub(crate) struct Replaced {
    path: PathBuf,
    /// The old file, if there was one.
    kept: Option<TempPath>,
    committed: bool,
}

impl Replaced {
    pub fn commit(mut self) {
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
            let temporary =
                target.write(true, |mut out| out.write_all(content.as_bytes())).unwrap();
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
}
