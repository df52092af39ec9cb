//! Bytes that tensors share. They are in memory, or a part of a memory-mapped file that is read on
//! first access.

use bytes::Bytes;
use memmap2::MmapOptions;
use std::{borrow::Cow, fs::File, io, ops::Range, path::PathBuf, sync::Arc};

/// So many bytes of a file are read sooner than mapped.
const FEW: usize = 1 << 14;

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

    /// A storage of a mapped part of a file. `bytes` are the bytes of the file at `source`. Reading
    /// is an error if the file is shorter.
    pub fn mapped(bytes: Bytes, source: FileRange) -> Self {
        Self { bytes, source: Some(source) }
    }

    /// Opens and maps a file: [`map`](Self::map).
    ///
    /// # Errors
    /// The operating system refuses; it is a folder, a pipe or a device.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        Self::map(crate::file::open(&path)?, path)
    }

    /// Maps all of an open file. The bytes are read on first access. The file must not change while
    /// the storage or a view of it exists.
    ///
    /// # Errors
    /// The operating system cannot map the file.
    pub fn map(file: File, path: impl Into<PathBuf>) -> io::Result<Self> {
        let bytes = match file.metadata()?.len() {
            0 => Bytes::new(),
            _ => map(&MmapOptions::new(), &file)?,
        };
        let source = FileRange { path: Arc::new(path.into()), file: Arc::new(file), offset: 0 };
        Ok(Self::mapped(bytes, source))
    }

    /// A part of the storage, which knows its position in the file. `None` if `range` is not inside
    /// the storage.
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

    /// The same bytes, to be read from the first to the last. Those of a file get a new mapping,
    /// whose pages are mapped together and take no memory once it is dropped.
    ///
    /// # Errors
    /// The file is shorter by now, or the operating system cannot map it.
    pub fn to_read_through(&self) -> io::Result<Self> {
        let length = self.bytes.len();
        let Some(FileRange { file, offset, .. }) = self.source().filter(|_| length > 0) else {
            return Ok(self.clone());
        };
        if file.metadata()?.len() < offset.saturating_add(length as u64) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut part = MmapOptions::new();
        part.offset(*offset).len(length).populate();
        Ok(Self { bytes: map(&part, file)?, source: self.source.clone() })
    }

    /// Bytes of the storage; none if they are not inside it. Few bytes of a file are read, not
    /// mapped: Linux may map megabytes around them, which count as memory of the process.
    pub(crate) fn part(&self, range: Range<usize>) -> Cow<'_, [u8]> {
        let bytes = self.bytes.get(range.clone()).unwrap_or_default();
        let read = |file: &FileRange| {
            let mut read = vec![0; bytes.len()];
            file.read_exact_at(&mut read, range.start as u64).is_ok().then_some(read)
        };
        let file = self.source().filter(|_| bytes.len() <= FEW);
        file.and_then(read).map_or(Cow::Borrowed(bytes), Cow::Owned)
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

/// Maps a file, or a part of it, which must not be empty.
#[expect(unsafe_code, reason = "a mapping is the only way to use weights larger than memory")]
fn map(part: &MmapOptions, file: &File) -> io::Result<Bytes> {
    // SAFETY: the mapping is private and read-only. If another process truncates or rewrites the
    // file meanwhile, the bytes are unspecified, or a signal stops the process. All functions that
    // map files document that the file must not change.
    let map = unsafe { part.map(file)? };
    Ok(Bytes::from_owner(map))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_mapped_apart_unless_the_file_has_become_shorter() {
        let path = std::env::temp_dir().join(format!("pt2onnx-storage-{}", std::process::id()));
        let content: Vec<u8> = (0..=255).cycle().take(10_000).collect();
        std::fs::write(&path, &content).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        let part =
            Storage::map(file.try_clone().unwrap(), &path).unwrap().slice(4097..9000).unwrap();
        let apart = part.to_read_through().unwrap();
        assert!(apart.bytes()[..] == content[4097..9000] && !apart.same(&part));
        file.set_len(8999).unwrap();
        let error = part.to_read_through().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn few_bytes_of_a_file_are_read() {
        let path = std::env::temp_dir().join(format!("pt2onnx-few-{}", std::process::id()));
        let content: Vec<u8> = (0..=255).cycle().take(3 * FEW).collect();
        std::fs::write(&path, &content).unwrap();
        let mapped = Storage::map(File::open(&path).unwrap(), &path).unwrap();
        let slice = mapped.slice(5..3 * FEW).unwrap();
        for (storage, few) in
            [(slice, true), (Storage::new(content.clone()).slice(5..3 * FEW).unwrap(), false)]
        {
            for range in [0..0, 7..9, 1..FEW + 1, 2..FEW + 3] {
                let part = storage.part(range.clone());
                assert!(*part == content[range.start + 5..range.end + 5], "{range:?}");
                assert_eq!(matches!(part, Cow::Owned(_)), few && range.len() <= FEW);
            }
            assert!(storage.part(1..3 * FEW).is_empty());
        }
        std::fs::remove_file(path).unwrap();
    }
}
