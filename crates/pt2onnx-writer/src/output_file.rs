//! New files: they have no name until they are complete, and then replace existing files.

use crate::{
    error::Error,
    file_identity::{Identity, folder, real},
    moored::Kept,
};
use std::{
    collections::BTreeSet,
    fs::{self, File, Metadata},
    io::{self, IsTerminal},
    path::{Path, PathBuf},
};
use tempfile::{NamedTempFile, TempPath};

/// Where a file is written to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Output {
    /// The file at a path. Symbolic links are followed and stay. A device or pipe is written to,
    /// and not replaced.
    File(PathBuf),
    /// Standard output, which has no place for data files.
    Stdout,
}

impl<P: AsRef<Path>> From<P> for Output {
    fn from(path: P) -> Self {
        Self::File(path.as_ref().to_owned())
    }
}

/// Where a file is written to, and how.
pub(crate) enum Destination {
    File(OutputFile),
    Device(Device),
}

impl Destination {
    pub fn new(to: &Output) -> Result<Self, Error> {
        let Output::File(path) = to else {
            return Ok(Self::Device(Device::Stdout));
        };
        let end = follow(path);
        if STDOUT.iter().any(|name| end == Path::new(name)) {
            return Ok(Self::Device(Device::Stdout));
        }
        let target = OutputFile::new(path, end)?;
        Ok(match &target.old {
            Some(old) if !old.is_file() => Self::Device(Device::Path(path.clone())),
            _ => Self::File(target),
        })
    }

    /// The path as it was given, and which file it is.
    pub fn identity(&self) -> (PathBuf, Identity) {
        match self {
            Self::File(target) => (target.path.clone(), Identity::of(&target.file)),
            Self::Device(device) => {
                let path = device.path();
                let identity = match device {
                    Device::Path(_) => Identity::of(&path),
                    Device::Stdout => stdout().map_or_else(
                        |_| Identity::of(&path),
                        |file| Identity::of_open(&file, &path),
                    ),
                };
                (path, identity)
            }
        }
    }
}

/// The names of standard output.
const STDOUT: [&str; 3] = ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];

/// Where the symbolic links lead to that a path is, if they lead anywhere; standard output is where
/// they end.
fn follow(path: &Path) -> PathBuf {
    let mut at = path.to_owned();
    for _ in 0..40 {
        let next = fs::read_link(&at).ok();
        match next.filter(|_| !STDOUT.iter().any(|name| at == Path::new(name))) {
            Some(next) => at = folder(&at).join(next),
            None => break,
        }
    }
    at
}

/// An output that is not replaced: a device, a pipe, standard output.
pub(crate) enum Device {
    Path(PathBuf),
    Stdout,
}

impl Device {
    pub fn path(&self) -> PathBuf {
        match self {
            Self::Path(path) => path.clone(),
            Self::Stdout => "standard output".into(),
        }
    }

    /// Opening a pipe waits for a reader.
    fn open(&self) -> io::Result<File> {
        match self {
            Self::Path(path) => File::options().write(true).open(path),
            Self::Stdout => stdout(),
        }
    }

    pub fn write(&self, content: impl FnOnce(&File) -> io::Result<()>) -> Result<(), Error> {
        let error = |error| Error::Io { path: self.path(), doing: "write to this", error };
        let file = self.open().map_err(error)?;
        if file.is_terminal() {
            let what =
                "is a terminal, and the model is binary: redirect it, or give the name of a file";
            return Err(Error::Target { path: self.path(), what });
        }
        content(&file).map_err(|e| match e.kind() {
            io::ErrorKind::InvalidData => Error::weight(e),
            _ => error(e),
        })
    }
}

#[cfg(unix)]
fn stdout() -> io::Result<File> {
    use std::os::fd::AsFd;
    io::stdout().as_fd().try_clone_to_owned().map(File::from)
}

#[cfg(windows)]
fn stdout() -> io::Result<File> {
    use std::os::windows::io::AsHandle;
    io::stdout().as_handle().try_clone_to_owned().map(File::from)
}

/// A file to be written.
pub(crate) struct OutputFile {
    /// As it was given.
    path: PathBuf,
    /// The file itself, to which links lead.
    file: PathBuf,
    /// The file that is there.
    old: Option<Metadata>,
}

impl OutputFile {
    /// A file, and where the links end that it may be.
    fn new(path: &Path, end: PathBuf) -> Result<Self, Error> {
        let refuse = |what| Err(Error::Target { path: path.to_owned(), what });
        if path.file_name().is_none() {
            return refuse("is not a file name");
        }
        let old = fs::metadata(path).ok();
        match &old {
            Some(there) if there.is_dir() => refuse("is a folder; give the name of a file in it"),
            None if path.as_os_str().as_encoded_bytes().ends_with(b"/") => {
                refuse("is a folder that does not exist; give the name of a file")
            }
            None if fs::symlink_metadata(&end).is_ok_and(|there| there.is_symlink()) => {
                refuse("is a symbolic link that leads back to itself")
            }
            // Replacing takes a folder that can be written to, and would not ask.
            Some(there) if there.is_file() && !writable(path, there) => {
                refuse("is read-only; make it writable, or give another name")
            }
            _ => Ok(Self { path: path.to_owned(), file: end, old }),
        }
    }

    /// The path as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file exists.
    pub fn exists(&self) -> bool {
        self.old.is_some()
    }

    fn error(&self, doing: &'static str) -> impl FnOnce(io::Error) -> Error {
        let path = self.path.clone();
        move |error| Error::Io { path, doing, error }
    }

    /// A new file, with mode and owner of the one that it will replace.
    pub fn temporary(&self) -> Result<Temporary, Error> {
        let folder = folder(&self.file);
        let made = nameless(folder).unwrap_or_else(|| {
            // With the permissions of any new file: `tempfile_in` would make it private and put its
            // name in the error.
            let make = |path: &Path| {
                let mut options = File::options();
                options.read(true).write(true).create_new(true).open(path)
            };
            self.hidden(make).map(Temporary::Hidden)
        });
        let made = made.map_err(|error| Error::Io {
            path: folder.to_owned(),
            doing: "create a file in this folder",
            error,
        })?;
        if let Some(old) = &self.old {
            copy_owner_and_mode(made.file(), old)
                .map_err(self.error("give the new file the owner and mode of this"))?;
        }
        Ok(made)
    }

    /// Creates a file with an unused hidden name, which is removed unless it is persisted.
    fn hidden<R>(&self, make: impl FnMut(&Path) -> io::Result<R>) -> io::Result<NamedTempFile<R>> {
        let name = self.file.file_name().unwrap_or_default().to_string_lossy();
        // A name has at most 255 bytes.
        let prefix: String = [".", &name].concat().chars().take(48).chain(['.']).collect();
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix).suffix(".tmp").make_in(folder(&self.file), make)
    }

    /// Writes the file, which does not have its name yet.
    pub fn write(&self, content: impl FnOnce(&File) -> io::Result<()>) -> Result<Temporary, Error> {
        let temporary = self.temporary()?;
        content(temporary.file()).map_err(|e| match e.kind() {
            io::ErrorKind::InvalidData => Error::weight(e),
            _ => self.error("write")(e),
        })?;
        Ok(temporary)
    }

    /// Syncs the new file to the disk.
    pub fn sync(&self, temporary: &Temporary) -> Result<(), Error> {
        temporary.file().sync_all().map_err(self.error("write"))
    }

    /// Gives the complete file a hidden name, which is removed unless it is renamed.
    pub fn name(&self, temporary: Temporary) -> Result<TempPath, Error> {
        let named = match temporary {
            Temporary::Hidden(file) => Ok(file.into_temp_path()),
            Temporary::Nameless(file) => {
                self.hidden(|path| link(&file, path)).map(NamedTempFile::into_temp_path)
            }
        };
        named.map_err(self.error("write"))
    }

    /// Gives the file its name, and replaces an existing one.
    pub fn rename(&self, named: TempPath) -> Result<(), Error> {
        let renamed = named.persist(&self.file).map_err(|e| e.error);
        renamed.map_err(self.error("rename the complete file to this"))
    }

    /// Keeps the existing file under a hidden name. It is restored unless the [`Replaced`] is
    /// committed.
    pub fn keep(&self) -> Result<Replaced, Error> {
        // Another program may have made it meanwhile.
        let kept = match fs::symlink_metadata(&self.file) {
            Err(_) => None,
            Ok(_) => {
                // A second name, where there can be one: then the first always has a file.
                let aside = self
                    .hidden(|path| fs::hard_link(&self.file, path))
                    .or_else(|_| self.hidden(|path| fs::rename(&self.file, path)));
                Some(aside.map_err(self.error("keep the old file aside"))?.into_temp_path())
            }
        };
        Ok(Replaced { path: self.file.clone(), kept, committed: false })
    }

    /// The folder that the file is in.
    pub fn folder(&self) -> &Path {
        folder(&self.file)
    }

    /// Syncs the folder. Errors are ignored: the files exist already, and not all systems can sync
    /// a folder.
    pub fn sync_folder(&self) {
        let folder = folder(&self.file);
        if let Err(e) = File::open(folder).and_then(|f| f.sync_all()) {
            tracing::debug!("{}: not synced: {e}", folder.display());
        }
    }
}

/// Waits until no other program gives files their names in these folders, which it does while these
/// locks live. Errors are ignored: not all systems and file systems can lock a folder.
pub(crate) fn locked<'a>(folders: impl Iterator<Item = &'a Path>) -> Vec<File> {
    // In one order for all.
    let folders: BTreeSet<PathBuf> = folders.map(real).collect();
    let lock = |folder: PathBuf| {
        let file = File::open(&folder)?;
        file.lock()?;
        Ok(file)
    };
    let locks = folders.into_iter().map(|folder| {
        let locked: io::Result<File> = lock(folder);
        locked.inspect_err(|e| tracing::debug!("a folder is not locked: {e}"))
    });
    locks.filter_map(Result::ok).collect()
}

/// Whether a file may be written to. Its mode is looked at, too: the administrator may write to any
/// file.
fn writable(path: &Path, there: &Metadata) -> bool {
    let denied = |e: &io::Error| {
        matches!(e.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
    };
    let opened = File::options().write(true).open(path);
    !there.permissions().readonly() && !opened.is_err_and(|e| denied(&e))
}

/// Gives a new file the owner and mode of an old one.
#[cfg(unix)]
fn copy_owner_and_mode(new: &File, old: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, fchown};
    let there = new.metadata()?;
    let differs = |old, new| Some(old).filter(|old| *old != new);
    let (user, group) = (differs(old.uid(), there.uid()), differs(old.gid(), there.gid()));
    if user.or(group).is_some() {
        fchown(new, user, group)?;
    }
    new.set_permissions(old.permissions())
}

#[cfg(not(unix))]
fn copy_owner_and_mode(_: &File, _: &Metadata) -> io::Result<()> {
    Ok(())
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
    /// The file, and the path under which it is kept, if there was one.
    pub fn kept(&self) -> Option<Kept> {
        let path = self.kept.as_deref()?.to_owned();
        Some(Kept { identity: Identity::of(&self.path), path })
    }

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
            // Nothing has taken its place: renaming one name of a file to another would leave both.
            Some(kept) if Identity::of(&kept) == Identity::of(&self.path) => Ok(()),
            Some(kept) => kept.persist(&self.path).map_err(|e| e.error),
            None => match fs::remove_file(&self.path) {
                // A file that was never there, perhaps as its name cannot be, need not go.
                Err(e) if fs::symlink_metadata(&self.path).is_ok() => Err(e),
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
    use std::io::Write;

    #[test]
    fn a_replaced_file_comes_back_unless_committed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        let replace = |content: &str| {
            let target = OutputFile::new(&path, path.clone()).unwrap();
            let temporary = target.write(|mut out| out.write_all(content.as_bytes())).unwrap();
            let named = target.name(temporary).unwrap();
            let replaced = target.keep().unwrap();
            target.rename(named).unwrap();
            replaced
        };
        let content = || fs::read_to_string(&path).ok();
        let replaced = replace("first");
        assert_eq!(content().as_deref(), Some("first"));
        drop(replaced);
        assert_eq!(content(), None);
        replace("first").commit();
        let replaced = replace("second");
        assert_eq!(content().as_deref(), Some("second"));
        drop(replaced);
        assert_eq!(content().as_deref(), Some("first"));
        // A new file that cannot be renamed.
        let target = OutputFile::new(&path, path.clone()).unwrap();
        let gone = folder.path().join("gone");
        fs::write(&gone, "").unwrap();
        let named = TempPath::try_from_path(&gone).unwrap();
        fs::remove_file(&gone).unwrap();
        let replaced = target.keep().unwrap();
        assert!(target.rename(named).is_err());
        drop(replaced);
        assert_eq!(content().as_deref(), Some("first"));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        replace("second").commit();
        assert_eq!(content().as_deref(), Some("second"));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
