//! Copies bytes between files: in the kernel where that works, otherwise through a buffer.

use pt2onnx_tensor::FileRange;
use std::{
    fs::File,
    io::{self, Write},
};

/// The most bytes of a read or write. For larger writes, Linux looks for larger pages, which is
/// slow if memory is fragmented.
pub(crate) const PIECE: usize = 64 << 10;

/// Appends `length` bytes of a file, from byte `start` of the range. Returns how many of them the
/// kernel copied.
#[cfg(target_os = "linux")]
pub(crate) fn copy(source: &FileRange, start: u64, length: u64, mut out: &File) -> io::Result<u64> {
    let (mut at, end) = (source.offset + start, source.offset + start + length);
    while at < end {
        let left = usize::try_from(end - at).unwrap_or(usize::MAX);
        match rustix::fs::copy_file_range(&source.file, Some(&mut at), out, None, left) {
            // The file has ended, which reading reports, or the kernel cannot copy between these
            // two files.
            Ok(0) => break,
            Ok(_) => {}
            Err(e) if e == rustix::io::Errno::INTR => {}
            Err(e) if unable(e) => break,
            Err(e) => return Err(e.into()),
        }
    }
    let copied = at - source.offset - start;
    through_memory(source, start + copied, length - copied, &mut out)?;
    Ok(copied)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn copy(source: &FileRange, start: u64, length: u64, mut out: &File) -> io::Result<u64> {
    through_memory(source, start, length, &mut out)?;
    Ok(0)
}

/// Whether the kernel or the file systems do not support this.
#[cfg(target_os = "linux")]
fn unable(error: rustix::io::Errno) -> bool {
    use rustix::io::Errno;
    // A file that is open for appending is a bad one.
    [Errno::XDEV, Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP, Errno::PERM, Errno::BADF]
        .contains(&error)
}

/// Reads `length` bytes of a file, from byte `start` of the range, and writes them.
pub(crate) fn through_memory(
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
