//! Bytes that tensors share: in memory, or a part of a mapped file whose bytes are never read unless somebody asks.

use bytes::Bytes;
use memmap2::Mmap;
use std::{fs::File, io, ops::Range, path::PathBuf, sync::Arc};

/// A place in a file.
#[derive(Clone, Debug)]
pub struct FileRange {
    /// Path the file was opened by.
    pub path: Arc<PathBuf>,
    /// The open file.
    pub file: Arc<File>,
    /// First byte.
    pub offset: u64,
}

/// Bytes that tensors are views of. Cloning shares them.
#[derive(Clone, Debug)]
pub struct Storage {
    bytes: Bytes,
    source: Option<FileRange>,
}

impl Storage {
    /// Bytes in memory.
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        Self { bytes: bytes.into(), source: None }
    }

    /// Bytes that are a mapped part of a file: `bytes` are those at `source`.
    pub fn mapped(bytes: Bytes, source: FileRange) -> Self {
        Self { bytes, source: Some(source) }
    }

    /// All of an open file, mapped: its bytes are read when somebody looks at them. The file must not change while the
    /// storage or any view of it lives.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn map(file: File, path: impl Into<PathBuf>) -> io::Result<Self> {
        let bytes = map(&file)?;
        let source = FileRange { path: Arc::new(path.into()), file: Arc::new(file), offset: 0 };
        Ok(Self::mapped(bytes, source))
    }

    /// A part of it, which still knows its place in the file; `None` where it is not inside.
    pub fn slice(&self, range: Range<usize>) -> Option<Self> {
        let inside = range.start <= range.end && range.end <= self.bytes.len();
        let start = u64::try_from(range.start).ok()?;
        inside.then(|| Self {
            bytes: self.bytes.slice(range),
            source: self
                .source
                .as_ref()
                .map(|whole| FileRange { offset: whole.offset + start, ..whole.clone() }),
        })
    }

    /// The bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Where in which file the bytes are, if in one.
    pub fn source(&self) -> Option<&FileRange> {
        self.source.as_ref()
    }

    /// Whether two storages are the same memory.
    pub fn same(&self, other: &Storage) -> bool {
        self.bytes.as_ptr() == other.bytes.as_ptr() && self.bytes.len() == other.bytes.len()
    }
}

/// The whole file, mapped.
#[expect(unsafe_code, reason = "a mapping is the only way to use weights larger than memory")]
fn map(file: &File) -> io::Result<Bytes> {
    if file.metadata()?.len() == 0 {
        return Ok(Bytes::new());
    }
    // SAFETY: the mapping is private and read-only. Should another process truncate or rewrite the file meanwhile, the bytes
    // seen are unspecified (or the process is stopped by a signal): all that map files say that these must not change.
    let map = unsafe { Mmap::map(file)? };
    Ok(Bytes::from_owner(map))
}
