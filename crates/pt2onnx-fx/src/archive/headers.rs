//! Reads headers of a zip file: few bytes in many places. Were they mapped, the pages around all of
//! them would count as memory.

use pt2onnx_tensor::FileRange;
use std::io::{self, Read, Seek, SeekFrom};

/// So many bytes are read at a new place: a header of a record.
const FEW: usize = 64;

/// So many bytes are read at most where one read follows another, as in the directory.
const MANY: usize = 1 << 16;

/// Reads a range of a file.
pub(super) struct Headers<'a> {
    file: &'a FileRange,
    length: u64,
    at: u64,
    /// The bytes that were read last, and their position.
    window: Vec<u8>,
    start: u64,
}

impl<'a> Headers<'a> {
    /// Reads a range of `length` bytes.
    pub fn new(file: &'a FileRange, length: u64) -> Self {
        Self { file, length, at: 0, window: Vec::new(), start: 0 }
    }

    /// The bytes of the window from the position on.
    fn ahead(&self) -> &[u8] {
        let skipped = self.at.checked_sub(self.start).and_then(|n| usize::try_from(n).ok());
        skipped.and_then(|n| self.window.get(n..)).unwrap_or_default()
    }

    /// Moves the window to the position. It grows if it follows the last one.
    fn fill(&mut self) -> io::Result<()> {
        let follows = self.at == self.start + self.window.len() as u64;
        let wanted = if follows { (2 * self.window.len()).clamp(FEW, MANY) } else { FEW };
        let left = usize::try_from(self.length.saturating_sub(self.at)).unwrap_or(usize::MAX);
        self.window.resize(wanted.min(left), 0);
        self.start = self.at;
        let read = self.file.read_exact_at(&mut self.window, self.start);
        read.inspect_err(|_| self.window.clear())
    }
}

impl Read for Headers<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.ahead().is_empty() {
            self.fill()?;
        }
        let read = self.ahead().read(out)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Seek for Headers<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.length.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs::File, io::Write, path::Path, sync::Arc};

    /// Reads in and across windows, before, behind and at the end of the range, as a cursor does.
    #[test]
    fn bytes_are_those_of_the_range() {
        let content: Vec<u8> = (0..=250).cycle().take(300_000).collect();
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"before").unwrap();
        file.write_all(&content).unwrap();
        let file = Arc::new(File::open(file.path()).unwrap());
        let range = FileRange { path: Arc::new(Path::new("zip").into()), file, offset: 6 };
        let length = content.len() as u64 - 9;
        let mut headers = Headers::new(&range, length);
        let mut cursor = io::Cursor::new(&content[..content.len() - 9]);
        for (to, bytes) in [
            (SeekFrom::Start(0), 30),
            (SeekFrom::Current(5), 100),
            (SeekFrom::Current(-7), 200_000),
            (SeekFrom::Start(1000), FEW),
            (SeekFrom::Start(999), FEW + 2),
            (SeekFrom::End(-40), 40),
            (SeekFrom::End(0), 0),
            (SeekFrom::End(7), 0),
            (SeekFrom::Start(length - MANY as u64), MANY),
        ] {
            let at = headers.seek(to).unwrap();
            assert_eq!(at, cursor.seek(to).unwrap());
            let (mut ours, mut theirs) = (vec![0; bytes], vec![0; bytes]);
            headers.read_exact(&mut ours).unwrap();
            cursor.read_exact(&mut theirs).unwrap();
            assert!(ours == theirs, "{bytes} bytes at {at}");
        }
        headers.seek(SeekFrom::End(-1)).unwrap();
        assert_eq!(headers.read_to_end(&mut Vec::new()).unwrap(), 1);
        assert!(headers.seek(SeekFrom::Current(i64::MIN)).is_err());
    }
}
