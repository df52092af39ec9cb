//! The zip container: maps a file and finds the bytes of each record. A zip within a zip is a view
//! of the same mapping.

use super::{
    headers::Headers,
    pickle::{self, Pickle, Rules},
    sniff::other_file,
};
use crate::error::{Error, Place, RecordProblem, Result};
use bytes::Bytes;
use indexmap::IndexMap;
use miniz_oxide::inflate::TINFLStatus;
use pt2onnx_tensor::Storage;
use std::{
    io::{Cursor, Read, Seek},
    ops::Range,
    path::Path,
    sync::Arc,
};
use zip::{
    CompressionMethod, ZipArchive,
    read::{ArchiveOffset, Config},
};

/// Records of as many bytes are mapped separately to be parsed.
const LARGE: usize = 1 << 20;
/// The memory that the values of a pickle may take: so many times the bytes of the zip, and `SMALL`
/// more.
const EXPANSION: usize = 20;
const SMALL: usize = 48 << 20;

/// The records of a zip: of a mapped file, of a record of one, or of bytes in memory.
#[derive(Clone, Debug)]
pub struct Records {
    /// The zip: a file, or a record of one.
    pub(super) place: Place,
    bytes: Storage,
    /// By name, mostly without the folder that PyTorch puts all records in.
    entries: Arc<IndexMap<String, Entry>>,
    /// Records that are in other memory, by name.
    lent: Arc<IndexMap<String, Storage>>,
}

/// A record.
#[derive(Clone, Debug)]
struct Entry {
    /// Within the zip's bytes.
    range: Range<usize>,
    /// Checksum; 0 where none was computed, as `torch.serialization.set_crc32_options` has it.
    crc: u32,
    /// How many bytes it is when inflated, if it is deflated.
    inflated: Option<u64>,
}

impl Records {
    /// Maps a file.
    ///
    /// # Errors
    /// The file cannot be read, or is not a zip file that can be used.
    pub fn open(path: &Path) -> Result<Self> {
        Self::mapped(path, folder)
    }

    /// Maps a zip that PyTorch did not write: names keep their folders.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub fn open_plain(path: &Path) -> Result<Self> {
        Self::mapped(path, |_| String::new())
    }

    fn mapped(path: &Path, folder: Folder) -> Result<Self> {
        let path = Arc::new(path.to_path_buf());
        let io = |error| Error::Io { path: path.clone(), error };
        let file = pt2onnx_tensor::open(&path).map_err(io)?;
        let bytes = Storage::map(file, &*path).map_err(io)?;
        Self::with_folder(Place::File(path), bytes, folder)
    }

    /// Those of a zip in memory. Messages name it `<bytes>`.
    ///
    /// # Errors
    /// Those of [`open`](Self::open), except of files.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Result<Self> {
        Self::new(Place::File(Arc::new("<bytes>".into())), Storage::new(bytes.into()))
    }

    /// Finds the records of a zip in these bytes.
    pub(super) fn new(place: Place, bytes: Storage) -> Result<Self> {
        Self::with_folder(place, bytes, folder)
    }

    fn with_folder(place: Place, bytes: Storage, folder: Folder) -> Result<Self> {
        let all = bytes.bytes();
        if !all.starts_with(b"PK") {
            return Err(Error::Layout { place, found: other_file(all) });
        }
        let length = all.len() as u64;
        let entries = match bytes.source() {
            Some(file) => entries(&place, Headers::new(file, length), length, folder)?,
            None => entries(&place, Cursor::new(all), length, folder)?,
        };
        Ok(Self { place, bytes, entries: Arc::new(entries), lent: Arc::default() })
    }

    /// The records of a module that torch.package's serialiser wrote, under the names that
    /// `torch.jit.save` gives them. `storages` are those that are not in the zip: `0.storage`.
    #[must_use]
    pub fn of_package(self, storages: impl IntoIterator<Item = (String, Storage)>) -> Self {
        const POOLS: [&str; 2] = ["data", "constants"];
        let mut entries = IndexMap::with_capacity(self.entries.len());
        for (name, entry) in &*self.entries {
            if let Some(name) = name.strip_prefix(".data/ts_code/0/") {
                entries.insert(name.to_owned(), entry.clone());
            } else if let Some(name) = name.strip_prefix(".data/") {
                entries.extend(POOLS.map(|pool| (format!("{pool}/{name}"), entry.clone())));
            }
            entries.insert(name.clone(), entry.clone());
        }
        let lent = storages.into_iter().flat_map(|(name, storage)| {
            POOLS.map(|pool| (format!("{pool}/{name}"), storage.clone()))
        });
        Self { entries: Arc::new(entries), lent: Arc::new(lent.collect()), ..self }
    }

    /// The zip, for messages.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// The same records, if none of them is compressed.
    pub(super) fn stored(self) -> Result<Self> {
        match self.entries.iter().find(|(_, entry)| entry.inflated.is_some()) {
            Some((name, _)) => Err(self.place.record(name, RecordProblem::Compressed)),
            None => Ok(self),
        }
    }

    /// Names of all records, in the directory's order, without the folder that PyTorch puts them
    /// in.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// The first few names, for messages.
    pub(super) fn summary(&self) -> String {
        let mut names: Vec<&str> = self.names().take(5).collect();
        if self.entries.len() > names.len() {
            names.push("...");
        }
        if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
    }

    /// Whether there is a record of this name.
    pub fn has(&self, name: &str) -> bool {
        self.entries.contains_key(name)
    }

    /// The bytes of a record, if it is there and not compressed.
    pub fn get(&self, name: &str) -> Option<Storage> {
        let entry = || self.entries.get(name).filter(|entry| entry.inflated.is_none());
        self.lent.get(name).cloned().or_else(|| self.bytes.slice(entry()?.range.clone()))
    }

    /// The bytes of a record to parse, inflated if it is deflated, with its checksum verified.
    ///
    /// # Errors
    /// The record is missing or damaged, or has more than `limit` bytes.
    pub fn read(&self, name: &str, limit: usize) -> Result<Storage> {
        let problem = |problem| self.place.record(name, problem);
        let entry = self.entries.get(name).ok_or_else(|| problem(RecordProblem::Missing))?;
        let Some(size) = entry.inflated else {
            return Ok(self.checked(name)?.0);
        };
        let size = usize::try_from(size).ok().filter(|&size| size <= limit);
        let size = size.ok_or_else(|| problem(RecordProblem::Large { limit }))?;
        let deflated = self.bytes.bytes().get(entry.range.clone()).unwrap_or_default();
        let bytes = miniz_oxide::inflate::decompress_to_vec_with_limit(deflated, size);
        let bytes = bytes.map_err(|_| problem(RecordProblem::Deflate))?;
        if bytes.len() != size || (entry.crc != 0 && entry.crc != crc32fast::hash(&bytes)) {
            return Err(problem(RecordProblem::Checksum));
        }
        Ok(Storage::new(bytes))
    }

    /// A record that is a pickle, of at most `limit` bytes. Its values, and its bytes if they are
    /// deflated, take at most 20 times the bytes of the zip, and 48 MiB, of memory; its bytes a
    /// third of that.
    ///
    /// # Errors
    /// Those of [`read`](Self::read), and those of pickles.
    pub fn pickle(&self, name: &str, rules: &Rules, limit: usize) -> Result<Pickle> {
        let most = self.bytes.bytes().len().saturating_mul(EXPANSION).saturating_add(SMALL);
        let bytes = self.read(name, limit.min(most / 3))?;
        let is_inflated = self.entries.get(name).is_some_and(|entry| entry.inflated.is_some());
        let inflated = if is_inflated { bytes.bytes().len() } else { 0 };
        pickle::read(bytes.bytes(), rules, most, inflated).map_err(|problem| {
            let place = self.place.within(name);
            Error::Pickle { place, problem }
        })
    }

    /// The first bytes of a record, `most` at most, inflated if it is deflated; and how many it has
    /// in all.
    ///
    /// # Errors
    /// The record is missing or damaged.
    pub fn start(&self, name: &str, most: usize) -> Result<(Bytes, u64)> {
        let problem = |problem| self.place.record(name, problem);
        let entry = self.entries.get(name).ok_or_else(|| problem(RecordProblem::Missing))?;
        let range = entry.range.clone();
        let bytes = self.bytes.slice(range).map(|s| s.bytes().clone()).unwrap_or_default();
        let Some(size) = entry.inflated else {
            return Ok((bytes.slice(..bytes.len().min(most)), bytes.len() as u64));
        };
        let start = match miniz_oxide::inflate::decompress_to_vec_with_limit(&bytes, most) {
            Ok(all) => all,
            Err(e) if e.status == TINFLStatus::HasMoreOutput => e.output,
            Err(_) => return Err(problem(RecordProblem::Deflate)),
        };
        Ok((start.into(), size))
    }

    /// A record to parse, with its checksum verified. Checksums of tensors are not verified,
    /// because tensors are not read.
    pub(super) fn checked(&self, name: &str) -> Result<(Storage, Place)> {
        let (storage, place) = self.to_parse(name)?;
        self.check(name, &storage)?;
        Ok((storage, place))
    }

    /// A record to parse, before its checksum is verified.
    pub(super) fn to_parse(&self, name: &str) -> Result<(Storage, Place)> {
        let (storage, place) = self.required(name)?;
        let storage = match storage.source() {
            Some(source) if storage.bytes().len() >= LARGE => {
                let io = |error| Error::Io { path: source.path.clone(), error };
                storage.to_read_through().map_err(io)?
            }
            _ => storage,
        };
        Ok((storage, place))
    }

    /// Verifies the checksum of a record.
    pub(super) fn check(&self, name: &str, storage: &Storage) -> Result<()> {
        let crc = self.entries.get(name).map_or(0, |entry| entry.crc);
        if crc != 0 && crc != crc32fast::hash(storage.bytes()) {
            Err(self.place.record(name, RecordProblem::Checksum))
        } else {
            Ok(())
        }
    }

    pub(super) fn required(&self, name: &str) -> Result<(Storage, Place)> {
        let missing = || self.place.record(name, RecordProblem::Missing);
        Ok((self.get(name).ok_or_else(missing)?, self.place.within(name)))
    }
}

/// The folder of all records, with its slash, which their names are given without.
type Folder = fn(&[(String, Entry)]) -> String;

/// Where the bytes of each record are, in a zip of so many bytes.
fn entries(
    place: &Place,
    zip: impl Read + Seek,
    len: u64,
    folder: Folder,
) -> Result<IndexMap<String, Entry>> {
    let broken = |error| Error::Zip { place: place.clone(), error };
    // Nothing stands before an archive; left to look for its start, the crate takes some archives'
    // second entry for the first.
    let archive_offset = ArchiveOffset::Known(0);
    let mut zip = ZipArchive::with_config(Config { archive_offset }, zip).map_err(broken)?;
    let mut found: Vec<(String, Entry)> = Vec::with_capacity(zip.len());
    let mut occupied = Vec::with_capacity(zip.len());
    for index in 0..zip.len() {
        let entry = zip.by_index_raw(index).map_err(broken)?;
        let name = entry.name().map_err(broken)?.into_owned();
        if entry.is_dir() {
            continue;
        }
        if entry.encrypted() {
            return Err(place.record(&name, RecordProblem::Encrypted));
        }
        let inflated = match entry.compression() {
            CompressionMethod::Stored => None,
            CompressionMethod::DEFLATE => Some(entry.size()),
            _ => return Err(place.record(&name, RecordProblem::Compressed)),
        };
        let start = entry.data_start().unwrap_or(u64::MAX);
        let length = if inflated.is_some() { entry.compressed_size() } else { entry.size() };
        let end = start.saturating_add(length);
        let inside = usize::try_from(start).ok().zip(usize::try_from(end).ok());
        let inside = inside.filter(|_| end <= len);
        occupied.push((entry.header_start(), end, name.clone()));
        let outside = || place.record(&name, RecordProblem::OutOfFile { start, end, len });
        let (start, end) = inside.ok_or_else(outside)?;
        let (range, crc) = (start..end, entry.crc32());
        found.push((name, Entry { range, crc, inflated }));
    }
    if zip.has_duplicate_names() {
        return Err(place.record("(some)", RecordProblem::Twice));
    }
    disjoint(place, occupied)?;
    let folder = folder(&found);
    let mut entries = IndexMap::with_capacity(found.len());
    for (name, entry) in found {
        let short = name.strip_prefix(folder.as_str()).unwrap_or(&name);
        if entries.insert(short.to_owned(), entry).is_some() {
            return Err(place.record(&name, RecordProblem::Twice));
        }
    }
    Ok(entries)
}

/// The folder, with its slash, that PyTorch puts all records in; torch 2.1 to 2.7 wrote archives
/// without one.
fn folder(found: &[(String, Entry)]) -> String {
    let first = found.first().map_or("", |(name, _)| name.as_str());
    let Some((top, _)) = first.split_once('/') else {
        return String::new();
    };
    let folder = format!("{top}/");
    let bare = matches!(top, "extra_files" | "models" | "data");
    if bare && !found.iter().all(|(name, _)| name.starts_with(&folder)) {
        return String::new();
    }
    folder
}

/// Checks that no records overlap, headers included.
fn disjoint(place: &Place, mut occupied: Vec<(u64, u64, String)>) -> Result<()> {
    occupied.sort();
    for ((_, end, first), (start, _, second)) in occupied.iter().zip(occupied.iter().skip(1)) {
        if start < end {
            return Err(place.record(second, RecordProblem::Overlaps(first.clone())));
        }
    }
    Ok(())
}
