//! Copies bytes between files: in the kernel where that works, otherwise through a buffer.

use pt2onnx_tensor::FileRange;
use std::{
    fs::File,
    io::{self, BufWriter, Seek, Write},
};

/// The most bytes in memory at a time. For larger writes, Linux looks for larger pages, which is slow if memory is fragmented.
const PIECE: usize = 1 << 20;

/// Parts of files of at least this size are copied in the kernel.
#[cfg(target_os = "linux")]
const IN_KERNEL: u64 = 64 << 10;

/// The most bytes that the kernel copies before progress is reported.
#[cfg(target_os = "linux")]
const SLICE: usize = 64 << 20;

/// Where a model is written to.
pub(crate) trait Sink: Write {
    /// Appends `length` bytes of a file, from byte `start` of the range.
    fn copy(&mut self, source: &FileRange, start: u64, length: u64) -> io::Result<()> {
        buffered(source, start, length, self)
    }
}

impl Sink for Vec<u8> {}

/// A new file, written from start to end.
pub(crate) struct FileSink<'a> {
    out: BufWriter<&'a File>,
    /// Is called with the number of bytes just written.
    progress: &'a dyn Fn(u64),
    /// Bytes that the kernel copied.
    in_kernel: u64,
}

impl<'a> FileSink<'a> {
    /// Writes `content` to a file and flushes the buffer: dropping the buffer would hide that the disk is full.
    pub fn fill(
        file: &'a File,
        progress: &'a dyn Fn(u64),
        content: impl FnOnce(&mut Self) -> io::Result<()>,
    ) -> io::Result<()> {
        let out = BufWriter::with_capacity(PIECE, file);
        let mut sink = Self { out, progress, in_kernel: 0 };
        content(&mut sink)?;
        if sink.in_kernel > 0 {
            tracing::debug!("{} bytes of weights were copied in the kernel", sink.in_kernel);
        }
        sink.flush()
    }

    /// Skips so many bytes, which are then zero.
    pub fn skip(&mut self, bytes: u64) -> io::Result<()> {
        match i64::try_from(bytes).map_err(io::Error::other)? {
            0 => Ok(()),
            bytes => self.out.seek_relative(bytes),
        }
    }
}

impl Write for FileSink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = bytes.get(..PIECE).unwrap_or(bytes);
        let written = self.out.write(piece)?;
        (self.progress)(wide(written));
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Sink for FileSink<'_> {
    #[cfg(target_os = "linux")]
    fn copy(&mut self, source: &FileRange, start: u64, length: u64) -> io::Result<()> {
        if length < IN_KERNEL {
            return buffered(source, start, length, self);
        }
        self.out.flush()?;
        let (mut at, end) = (source.offset + start, source.offset + start + length);
        while at < end {
            let slice = usize::try_from(end - at).map_or(SLICE, |left| left.min(SLICE));
            let into = self.out.get_ref();
            match rustix::fs::copy_file_range(&source.file, Some(&mut at), into, None, slice) {
                // The file has ended, which reading reports, or the kernel cannot copy between these two files.
                Ok(0) => break,
                Ok(copied) => {
                    self.in_kernel += wide(copied);
                    (self.progress)(wide(copied));
                }
                Err(e) if e == rustix::io::Errno::INTR => {}
                Err(e) if unable(e) => break,
                Err(e) => return Err(e.into()),
            }
        }
        buffered(source, at - source.offset, end - at, self)
    }
}

/// Whether the kernel or the file systems do not support this.
#[cfg(target_os = "linux")]
fn unable(error: rustix::io::Errno) -> bool {
    use rustix::io::Errno;
    // A file that is open for appending is a bad one.
    [Errno::XDEV, Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP, Errno::PERM, Errno::BADF]
        .contains(&error)
}

fn buffered(
    source: &FileRange,
    start: u64,
    length: u64,
    out: &mut (impl Write + ?Sized),
) -> io::Result<()> {
    let piece = usize::try_from(length).map_or(PIECE, |n| n.min(PIECE));
    let mut buffer = vec![0; piece];
    let (mut at, mut left) = (start, length);
    while left > 0 {
        let now = usize::try_from(left).map_or(piece, |n| n.min(piece));
        let part = buffer.get_mut(..now).unwrap_or_default();
        source.read_exact_at(part, at)?;
        out.write_all(part)?;
        at += wide(now);
        left -= wide(now);
    }
    Ok(())
}

/// No platform has a `usize` of more than 64 bits.
pub(crate) fn wide(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_an_error() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        for bytes in [1, PIECE, PIECE + 1] {
            let written = FileSink::fill(&full, &|_| {}, |sink| sink.write_all(&vec![0; bytes]));
            assert_eq!(written.unwrap_err().kind(), io::ErrorKind::StorageFull, "{bytes} bytes");
        }
    }
}
