//! The zip container: mapping the file and finding each record's bytes in it.

use crate::error::{Error, NotAnArchive, RecordProblem, Result};
use bytes::Bytes;
use indexmap::{IndexMap, map::Entry};
use memmap2::Mmap;
use std::{
    fs::File,
    io::{self, Cursor},
    ops::Range,
    path::PathBuf,
    sync::Arc,
};
use zip::{
    CompressionMethod, ZipArchive,
    read::{ArchiveOffset, Config},
};

/// The whole file, mapped.
#[expect(
    unsafe_code,
    reason = "a mapping is the only way to use weights larger than memory"
)]
pub(super) fn map(file: &File) -> io::Result<Bytes> {
    if file.metadata()?.len() == 0 {
        return Ok(Bytes::new());
    }
    // SAFETY: the mapping is private and read-only. Should another process truncate or rewrite the file meanwhile, the bytes
    // seen are unspecified (or the process is stopped by a signal): `archive::read` says that the file must not change.
    let map = unsafe { Mmap::map(file)? };
    Ok(Bytes::from_owner(map))
}

/// Where the bytes of each record are; names without the folder that PyTorch puts all records in.
pub(super) fn records(
    path: &Arc<PathBuf>,
    bytes: &Bytes,
) -> Result<IndexMap<String, Range<usize>>> {
    let layout = |found| Error::Layout {
        path: path.clone(),
        found,
    };
    let broken = |source| Error::Zip {
        path: path.clone(),
        source,
    };
    if !bytes.starts_with(b"PK") {
        return Err(layout(sniff(bytes)));
    }
    // Nothing stands before an archive; left to look for its start, the crate takes some archives' second entry for the first.
    let archive_offset = ArchiveOffset::Known(0);
    let mut zip =
        ZipArchive::with_config(Config { archive_offset }, Cursor::new(bytes)).map_err(broken)?;
    let mut records = IndexMap::with_capacity(zip.len());
    let mut folder = None;
    let mut occupied = Vec::with_capacity(zip.len());
    for index in 0..zip.len() {
        let entry = zip.by_index_raw(index).map_err(broken)?;
        let name = entry.name().map_err(broken)?.into_owned();
        let record = |problem| Error::Record {
            path: path.clone(),
            record: name.clone(),
            problem,
        };
        if entry.is_dir() {
            continue;
        }
        if entry.encrypted() {
            return Err(record(RecordProblem::Encrypted));
        }
        if entry.compression() != CompressionMethod::Stored {
            return Err(record(RecordProblem::Compressed));
        }
        let start = entry.data_start().unwrap_or(u64::MAX);
        let end = start.saturating_add(entry.size());
        let range = usize::try_from(start)
            .ok()
            .zip(usize::try_from(end).ok())
            .filter(|&(_, end)| end <= bytes.len());
        let (start, end) = range.ok_or_else(|| {
            let len = bytes.len() as u64;
            record(RecordProblem::OutOfFile { start, end, len })
        })?;
        let folder = folder.get_or_insert_with(|| {
            let top = name.split_once('/').map_or("", |(top, _)| top);
            // torch 2.1 to 2.7 wrote no folder.
            let bare = matches!(top, "" | "extra_files" | "models" | "data");
            if bare {
                String::new()
            } else {
                format!("{top}/")
            }
        });
        let short = name.strip_prefix(folder.as_str()).unwrap_or(&name);
        match records.entry(short.to_owned()) {
            Entry::Occupied(_) => return Err(record(RecordProblem::Twice)),
            Entry::Vacant(place) => place.insert(start..end),
        };
        occupied.push((entry.header_start(), end as u64, name));
    }
    if zip.has_duplicate_names() {
        let record = "(some)".to_owned();
        let problem = RecordProblem::Twice;
        return Err(Error::Record {
            path: path.clone(),
            record,
            problem,
        });
    }
    disjoint(path, occupied)?;
    Ok(records)
}

/// Records, from header to end, that share bytes are no work of PyTorch's.
fn disjoint(path: &Arc<PathBuf>, mut occupied: Vec<(u64, u64, String)>) -> Result<()> {
    occupied.sort();
    for ((_, end, first), (start, _, second)) in occupied.iter().zip(occupied.iter().skip(1)) {
        if start < end {
            return Err(Error::Record {
                path: path.clone(),
                record: second.clone(),
                problem: RecordProblem::Overlaps(first.clone()),
            });
        }
    }
    Ok(())
}

/// What a file that is no zip looks like.
fn sniff(bytes: &[u8]) -> NotAnArchive {
    let start = bytes.get(..16).unwrap_or(bytes);
    match start {
        [] => NotAnArchive::Empty,
        [b'{', ..] => NotAnArchive::Json,
        [0x80, 2..=5, ..] => NotAnArchive::Pickle,
        [_, _, _, _, _, _, 0, 0, b'{', ..] => NotAnArchive::Safetensors,
        // ir_version, a small varint, then producer_name.
        [0x08, 1..=31, 0x12, ..] => NotAnArchive::Protobuf,
        _ => NotAnArchive::NotZip,
    }
}
