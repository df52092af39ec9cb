//! Bytes that tensors share. They are in memory, or a part of a memory-mapped file that is read on first access.

use bytes::Bytes;
use memmap2::Mmap;
use std::{fs::File, io, ops::Range, path::PathBuf, sync::Arc};

/// A position in a file.
#[derive(Clone, Debug)]
pub struct FileRange {
    /// Path with which the file was opened.
    pub path: Arc<PathBuf>,
    /// The open file.
    pub file: Arc<File>,
    /// Offset of the first byte.
    pub offset: u64,
}

/// The bytes of one or more tensors. A clone shares the bytes.
#[derive(Clone, Debug)]
pub struct Storage {
    bytes: Bytes,
    source: Option<FileRange>,
}

impl Storage {
    /// A storage of bytes in memory.
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        Self { bytes: bytes.into(), source: None }
    }

    /// A storage of a mapped part of a file. `bytes` are the bytes of the file at `source`. Reading is an error if the file is shorter.
    pub fn mapped(bytes: Bytes, source: FileRange) -> Self {
        Self { bytes, source: Some(source) }
    }

    /// Maps all of an open file. The bytes are read on first access. The file must not change while the storage or a view of
    /// it exists.
    ///
    /// # Errors
    /// The operating system cannot map the file.
    pub fn map(file: File, path: impl Into<PathBuf>) -> io::Result<Self> {
        let bytes = map(&file)?;
        let source = FileRange { path: Arc::new(path.into()), file: Arc::new(file), offset: 0 };
        Ok(Self::mapped(bytes, source))
    }

    /// A part of the storage, which knows its position in the file. `None` if `range` is not inside the storage.
    pub fn slice(&self, range: Range<usize>) -> Option<Self> {
        let inside = range.start <= range.end && range.end <= self.bytes.len();
        let start = u64::try_from(range.start).ok()?;
        inside.then(|| Self {
            bytes: self.bytes.slice(range),
            source: self.source.as_ref().map(|whole| FileRange {
                offset: whole.offset.saturating_add(start),
                ..whole.clone()
            }),
        })
    }

    /// The bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The file and the position of the bytes, if they are in a file.
    pub fn source(&self) -> Option<&FileRange> {
        self.source.as_ref()
    }

    /// Whether two storages share the same memory.
    pub fn same(&self, other: &Storage) -> bool {
        self.bytes.as_ptr() == other.bytes.as_ptr() && self.bytes.len() == other.bytes.len()
    }
}

/// Maps the whole file.
#[expect(unsafe_code, reason = "a mapping is the only way to use weights larger than memory")]
fn map(file: &File) -> io::Result<Bytes> {
    if file.metadata()?.len() == 0 {
        return Ok(Bytes::new());
    }
    // SAFETY: the mapping is private and read-only. If another process truncates or rewrites the file meanwhile, the bytes are
    // unspecified, or a signal stops the process. All functions that map files document that the file must not change.
    let map = unsafe { Mmap::map(file)? };
    Ok(Bytes::from_owner(map))
}
