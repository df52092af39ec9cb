//! Which file a path or an open file is: one file can have several names.

use std::{
    fs::{self, File, Metadata},
    path::{Path, PathBuf},
};

/// Equal for two names of one file: hard links, symbolic links, other spellings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Identity {
    /// Device and inode.
    #[cfg(unix)]
    Inode(u64, u64),
    /// Where there are none, or no file yet: the path with all links followed.
    Path(PathBuf),
}

impl Identity {
    /// The file that a path leads to, which need not exist yet.
    pub fn of(path: &Path) -> Self {
        let there = fs::metadata(path).ok();
        there.and_then(|m| Self::from_metadata(&m)).unwrap_or_else(|| Self::Path(real(path)))
    }

    /// An open file, which was opened with this path.
    pub fn of_open(file: &File, path: &Path) -> Self {
        let there = file.metadata().ok();
        there.and_then(|m| Self::from_metadata(&m)).unwrap_or_else(|| Self::Path(real(path)))
    }

    #[cfg(unix)]
    fn from_metadata(metadata: &Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        Some(Self::Inode(metadata.dev(), metadata.ino()))
    }

    #[cfg(not(unix))]
    fn from_metadata(_: &Metadata) -> Option<Self> {
        None
    }
}

/// The path with all links followed; if there is no such file, those of its folder.
pub(crate) fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| {
        let folder = fs::canonicalize(folder(path)).unwrap_or_else(|_| folder(path).to_owned());
        folder.join(path.file_name().unwrap_or_default())
    })
}

/// The folder of a file.
pub(crate) fn folder(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The most files among which hard links are looked for.
#[cfg(unix)]
const MAX_SEARCHED: usize = 10_000;

/// Whether a file has hard links that are not in a folder or below it, among the first
/// [`MAX_SEARCHED`] files there. Symbolic links are not followed.
#[cfg(unix)]
pub(crate) fn has_names_outside(file: &Path, folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let Ok(there) = fs::metadata(file) else { return false };
    let mut names = there.nlink();
    if names <= 1 {
        return false;
    }
    let (mut folders, mut searched) = (vec![folder.to_owned()], 0);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            searched += 1;
            if searched > MAX_SEARCHED || names == 0 {
                return names > 0;
            }
            match entry.metadata() {
                Ok(inner) if inner.is_dir() => folders.push(entry.path()),
                Ok(inner) if (inner.dev(), inner.ino()) == (there.dev(), there.ino()) => names -= 1,
                _ => {}
            }
        }
    }
    names > 0
}

#[cfg(not(unix))]
pub(crate) fn has_names_outside(_: &Path, _: &Path) -> bool {
    false
}
