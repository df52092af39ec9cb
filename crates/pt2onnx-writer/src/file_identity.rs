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
