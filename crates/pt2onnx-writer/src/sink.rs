//! Where a model is written to. A separate thread writes a file, so that the next block is computed
//! meanwhile. A new file takes parts in any order.

use crate::copy::{PIECE, copy, through_memory, wide};
use pt2onnx_tensor::FileRange;
use std::{
    fs::File,
    io::{self, Seek, SeekFrom, Write},
    mem,
    sync::mpsc::{self, Receiver, Sender, SyncSender},
    thread,
};

/// Parts of files of at least this size are copied by the thread, others are short writes.
const WORTH_A_JOB: u64 = 64 << 10;

/// Bytes of short writes that become one job.
const TOGETHER: usize = 256 << 10;

/// The most bytes that are copied before progress is reported.
const SLICE: u64 = 64 << 20;

/// Where a model is written to.
pub(crate) trait Sink: Write {
    /// Appends `length` bytes of a file, from byte `start` of the range.
    fn copy(&mut self, source: &FileRange, start: u64, length: u64) -> io::Result<()> {
        through_memory(source, start, length, self)
    }

    /// Appends the first `length` bytes of a block. Returns memory for the next block, which may be
    /// another one.
    fn block(&mut self, block: Vec<u8>, length: usize) -> io::Result<Vec<u8>> {
        self.write_all(block.get(..length).unwrap_or_default())?;
        Ok(block)
    }

    /// Whether [`rows`](Self::rows) and [`skip`](Self::skip) work: the sink takes bytes out of
    /// order.
    fn is_random(&self) -> bool {
        false
    }

    /// Writes the rows that a block begins with. The position stays. Returns memory for the next
    /// block.
    fn rows(&mut self, _block: Vec<u8>, _rows: Rows) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotSeekable.into())
    }

    /// Skips so many bytes, which are zero where nothing is written.
    fn skip(&mut self, _bytes: u64) -> io::Result<()> {
        Err(io::ErrorKind::NotSeekable.into())
    }
}

impl Sink for Vec<u8> {}

/// Where rows go that lie side by side in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows {
    /// Their number.
    pub count: usize,
    /// The bytes of each.
    pub length: usize,
    /// Bytes from the position of the sink to the first row.
    pub start: usize,
    /// Bytes from the start of a row to the start of the next.
    pub step: usize,
}

impl Rows {
    /// The rows if two bytes become one.
    pub fn halved(self) -> Self {
        let Self { count, length, start, step } = self;
        Self { count, length: length / 2, start: start / 2, step: step / 2 }
    }
}

/// A file, or what looks like one.
pub(crate) struct FileSink<'a> {
    /// Whether it takes bytes out of order.
    random: bool,
    /// The next job of the thread.
    jobs: SyncSender<Job>,
    /// Memory of blocks that are written.
    written: Receiver<Vec<u8>>,
    /// Short writes, which become one job together.
    short: Vec<u8>,
    /// Is called with the number of bytes just handed over.
    progress: &'a dyn Fn(u64),
}

/// A job of the thread.
enum Job {
    Write(Vec<u8>),
    /// Write the first bytes of a block, and give its memory back.
    Block(Vec<u8>, usize),
    /// Write the rows that a block begins with, and give its memory back. The position stays.
    Rows(Vec<u8>, Rows),
    /// Copy bytes of a file: the start in the range, and the length.
    Copy(FileRange, u64, u64),
    /// Skip bytes, which are then zero.
    Skip(i64),
}

impl<'a> FileSink<'a> {
    /// Writes `content`, of `size` bytes, to a new file. When this returns, all of it is written,
    /// or the error says why not.
    pub fn fill(
        file: &File,
        size: u64,
        progress: &'a dyn Fn(u64),
        content: impl FnOnce(&mut Self) -> io::Result<()>,
    ) -> io::Result<()> {
        reserve(file, size);
        Self::run(file, true, progress, content)
    }

    /// Does the same with a device, a pipe or any other file, which is written from start to end.
    pub fn stream(
        file: &File,
        progress: &'a dyn Fn(u64),
        content: impl FnOnce(&mut Self) -> io::Result<()>,
    ) -> io::Result<()> {
        Self::run(file, false, progress, content)
    }

    fn run(
        file: &File,
        random: bool,
        progress: &'a dyn Fn(u64),
        content: impl FnOnce(&mut Self) -> io::Result<()>,
    ) -> io::Result<()> {
        let (jobs, to_do) = mpsc::sync_channel(0);
        let (free, written) = mpsc::channel();
        thread::scope(|scope| {
            let thread =
                thread::Builder::new().spawn_scoped(scope, move || work(file, &to_do, &free))?;
            let mut sink = Self { random, jobs, written, short: Vec::new(), progress };
            let filled = content(&mut sink).and_then(|()| sink.flush());
            drop(sink); // The thread ends when there are no more jobs.
            let worked = thread.join().map_err(|_| io::Error::other("the writing thread panicked"));
            // If the thread has an error, it took no more jobs, and `filled` is an error that does
            // not say why.
            let in_kernel = worked??;
            if in_kernel > 0 {
                tracing::debug!("{in_kernel} bytes of weights were copied in the kernel");
            }
            filled
        })
    }

    /// Gives the thread a job, after the short writes before it.
    fn hand_over(&mut self, job: Job) -> io::Result<()> {
        self.flush()?;
        self.send(job)
    }

    /// Waits until the thread takes the job.
    fn send(&self, job: Job) -> io::Result<()> {
        self.jobs.send(job).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

impl Write for FileSink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.short.len() >= TOGETHER {
            self.flush()?;
        }
        let piece = bytes.get(..TOGETHER - self.short.len()).unwrap_or(bytes);
        self.short.extend_from_slice(piece);
        (self.progress)(wide(piece.len()));
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.short.is_empty() {
            Ok(())
        } else {
            let short = mem::take(&mut self.short);
            self.send(Job::Write(short))
        }
    }
}

impl Sink for FileSink<'_> {
    fn copy(&mut self, source: &FileRange, start: u64, length: u64) -> io::Result<()> {
        if length < WORTH_A_JOB {
            return through_memory(source, start, length, self);
        }
        let (mut start, end) = (start, start + length);
        while start < end {
            let length = SLICE.min(end - start);
            self.hand_over(Job::Copy(source.clone(), start, length))?;
            (self.progress)(length);
            start += length;
        }
        Ok(())
    }

    fn block(&mut self, block: Vec<u8>, length: usize) -> io::Result<Vec<u8>> {
        if wide(length) < WORTH_A_JOB {
            self.write_all(block.get(..length).unwrap_or_default())?;
            return Ok(block);
        }
        self.hand_over(Job::Block(block, length))?;
        (self.progress)(wide(length));
        Ok(self.written.try_recv().unwrap_or_default())
    }

    fn is_random(&self) -> bool {
        self.random
    }

    fn rows(&mut self, block: Vec<u8>, rows: Rows) -> io::Result<Vec<u8>> {
        self.hand_over(Job::Rows(block, rows))?;
        (self.progress)(wide(rows.count * rows.length));
        Ok(self.written.try_recv().unwrap_or_default())
    }

    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        match i64::try_from(bytes).map_err(io::Error::other)? {
            0 => Ok(()),
            bytes => self.hand_over(Job::Skip(bytes)),
        }
    }
}

/// Asks for the space of a large file at once, which makes writes faster. Where that does not work,
/// writes ask for it, and report errors.
fn reserve(file: &File, size: u64) {
    #[cfg(target_os = "linux")]
    if size >= wide(TOGETHER) {
        rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, size).ok();
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (file, size);
}

/// Does jobs until there are no more. Returns the number of bytes that the kernel copied.
fn work(mut file: &File, jobs: &Receiver<Job>, free: &Sender<Vec<u8>>) -> io::Result<u64> {
    let mut in_kernel = 0;
    for job in jobs {
        match job {
            Job::Write(bytes) => in_pieces(file, &bytes)?,
            Job::Block(block, length) => {
                in_pieces(file, block.get(..length).unwrap_or_default())?;
                // Nobody needs the memory after the last block.
                free.send(block).ok();
            }
            Job::Rows(block, rows) => {
                let position = file.stream_position()?;
                let bytes = block.chunks_exact(rows.length.max(1)).take(rows.count);
                for (i, row) in bytes.enumerate() {
                    file.seek(SeekFrom::Start(position + wide(rows.start + i * rows.step)))?;
                    in_pieces(file, row)?;
                }
                file.seek(SeekFrom::Start(position))?;
                free.send(block).ok();
            }
            Job::Copy(source, start, length) => in_kernel += copy(&source, start, length, file)?,
            Job::Skip(bytes) => file.seek_relative(bytes)?,
        }
    }
    Ok(in_kernel)
}

fn in_pieces(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    bytes.chunks(PIECE).try_for_each(|piece| file.write_all(piece))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::{fs, path::Path, sync::Arc};

    /// A file with the bytes `0, 1, .., 250, 0, ..`, as a range.
    fn source(path: &Path, length: usize) -> io::Result<FileRange> {
        fs::write(path, (0..=250).cycle().take(length).collect::<Vec<u8>>())?;
        let (path, file) = (Arc::new(path.to_owned()), Arc::new(File::open(path)?));
        Ok(FileRange { path, file, offset: 0 })
    }

    #[test]
    fn all_kinds_of_writes_come_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let source = source(&folder.path().join("source"), 1 << 20).unwrap();
        let mut expected = Vec::new();
        let path = folder.path().join("written");
        let file = File::create(&path).unwrap();
        FileSink::fill(&file, 0, &|_| {}, |sink| {
            let mut block = Vec::new();
            for length in [1, 1000, 70_000, 3 << 20, 5] {
                let sinks: [&mut dyn Sink; 2] = [sink, &mut expected];
                for sink in sinks {
                    sink.write_all(&vec![7; length])?;
                    sink.copy(&source, 5, wide(length.min(900_000)))?;
                }
                block.resize(length.max(block.len()), 9);
                block = sink.block(block, length)?;
                expected.extend(vec![9; length]);
                sink.skip(3)?;
                expected.extend([0; 3]);
            }
            sink.write_all(b"end")?;
            expected.extend(b"end");
            Ok(())
        })
        .unwrap();
        assert!(fs::read(&path).unwrap() == expected);
    }

    #[test]
    fn reserved_space_holds_the_content_only() {
        let folder = tempfile::tempdir().unwrap();
        let content: Vec<u8> = (0..=250).cycle().take(3 * TOGETHER + 7).collect();
        let path = folder.path().join("written");
        let file = File::create(&path).unwrap();
        let size = wide(content.len());
        FileSink::fill(&file, size, &|_| {}, |sink| sink.write_all(&content)).unwrap();
        assert!(fs::read(&path).unwrap() == content);
    }

    #[test]
    fn a_full_disk_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let source = source(&folder.path().join("source"), 1 << 20).unwrap();
        let full = File::options().write(true).open("/dev/full").unwrap();
        let fill = |content: &dyn Fn(&mut FileSink) -> io::Result<()>| {
            FileSink::fill(&full, 8 << 20, &|_| {}, |sink| content(sink)).unwrap_err().kind()
        };
        for bytes in [1, PIECE, 3 * PIECE] {
            let full = io::ErrorKind::StorageFull;
            assert_eq!(fill(&|sink| sink.write_all(&vec![0; bytes])), full, "{bytes} bytes");
            assert_eq!(fill(&|sink| sink.block(vec![0; bytes], bytes).map(drop)), full);
            assert_eq!(fill(&|sink| sink.copy(&source, 0, wide(bytes.min(1 << 20)))), full);
        }
    }

    #[test]
    fn an_error_of_the_content_is_the_error() {
        let file = tempfile::tempfile().unwrap();
        let failed = FileSink::fill(&file, 0, &|_| {}, |sink| {
            sink.write_all(b"begun")?;
            Err(io::Error::other("not computed"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "not computed");
    }
}
