//! Opening an archive: which kind of file it is, and its records.

use super::records::Records;
use crate::error::{Error, NotAnArchive, Result};
use bytes::Bytes;
use pt2onnx_tensor::Storage;
use std::path::Path;

/// An open archive.
#[derive(Clone, Debug)]
pub struct Archive {
    pub(super) records: Records,
}

/// The program of an archive of torch 2.1 to 2.7, which holds one.
pub(super) const FLAT_PROGRAM: &str = "serialized_exported_program.json";

impl Archive {
    /// Opens and maps an archive.
    ///
    /// # Errors
    /// [`Error::Layout`], which names what the file is, if it is not an archive; others if it
    /// cannot be read.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::new(Records::open(path.as_ref())?)
    }

    /// Reads an archive in memory. Nothing is copied.
    ///
    /// # Errors
    /// Those of [`open`](Self::open), except of files.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Result<Self> {
        Self::new(Records::from_bytes(bytes.into())?)
    }

    /// The archive that these records are.
    ///
    /// # Errors
    /// They are those of something else, or compressed.
    pub fn new(records: Records) -> Result<Self> {
        let archive = Self { records };
        match archive.refusal() {
            Some(found) => Err(Error::Layout { place: archive.records.place, found }),
            None => Ok(Self { records: archive.records.stored()? }),
        }
    }

    /// Names of all records, without the archive's folder, in the directory's order.
    pub fn records(&self) -> impl Iterator<Item = &str> {
        self.records.names()
    }

    /// The bytes of a record, without the archive's folder in its name: `extra/notes.txt`.
    pub fn record(&self, name: &str) -> Option<Storage> {
        self.records.get(name)
    }

    /// Names of the models in the archive.
    pub fn models(&self) -> impl Iterator<Item = &str> {
        self.records().filter_map(model_name)
    }

    /// Why this zip file is not an archive that can be read; `None` if it is one.
    fn refusal(&self) -> Option<NotAnArchive> {
        let holds = |start: &str| self.records().any(|r| r.starts_with(start));
        let text = |name: &str| {
            let record = self.record(name)?;
            let text = String::from_utf8_lossy(record.bytes()).trim().to_owned();
            Some(text)
        };
        if self.models().next().is_none() {
            return Some(if holds("data/aotinductor/") {
                NotAnArchive::AotInductor
            } else if (holds("code/") && self.records.has("data.pkl"))
                || self.records.has("pt2onnx/graph")
                || self.records.has("bytecode.pkl")
                || self.records.has("model.json")
            {
                NotAnArchive::TorchScript
            } else if self.records.has("data.pkl") {
                NotAnArchive::TorchSave
            } else {
                NotAnArchive::NoProgram(self.records.summary())
            });
        }
        let (format, version) = (text("archive_format"), text("archive_version"));
        let (format, version) = (format.unwrap_or("pt2".into()), version.unwrap_or("0".into()));
        if (format.as_str(), version.as_str()) != ("pt2", "0") {
            return Some(NotAnArchive::Format(format, version));
        }
        if text("byteorder").is_some_and(|order| order == "big") {
            return Some(NotAnArchive::BigEndian);
        }
        None
    }
}

/// NAME of `models/NAME.json`; the only program of a flat archive goes by "model".
fn model_name(record: &str) -> Option<&str> {
    if record == FLAT_PROGRAM {
        return Some("model");
    }
    record.strip_prefix("models/")?.strip_suffix(".json")
}
