//! The model's file and its external data. Files are mapped, and must be in the model's folder.

use super::{
    error::{Invalid, ReadError, Result},
    reading::ExternalData,
};
use crate::{file_identity::has_names_outside, inputs::Inputs};
use bytes::Bytes;
use pt2onnx_proto::StringStringEntryProto;
use pt2onnx_tensor::Storage;
use rustc_hash::{FxHashMap, FxHashSet};
use std::path::{Component, Path, PathBuf};

/// A mapped file.
struct Mapped {
    path: PathBuf,
    whole: Storage,
}

impl Mapped {
    fn open(path: PathBuf) -> Result<Self> {
        let error = |doing| {
            let path = path.clone();
            move |error| ReadError::Io { path, doing, error }
        };
        let file = pt2onnx_tensor::open(&path).map_err(error("opened"))?;
        let whole = Storage::map(file, &path).map_err(error("mapped"))?;
        Ok(Self { path, whole })
    }

    /// The storage of bytes that are a part of the file; `None` if they are elsewhere.
    fn storage(&self, part: &Bytes) -> Option<Storage> {
        let start = self.whole.bytes().as_ptr().addr();
        let offset = part.as_ptr().addr().checked_sub(start)?;
        self.whole.slice(offset..offset.checked_add(part.len())?)
    }
}

/// The files of a model. A model in memory has none.
#[derive(Default)]
pub(super) struct Files {
    model: Option<Mapped>,
    /// By location, as it is written in the model.
    external: FxHashMap<String, Mapped>,
    /// External data in memory, by location.
    memory: FxHashMap<String, Storage>,
    ignored: bool,
}

impl Files {
    /// Maps a model's file.
    pub fn open(path: &Path, external: ExternalData) -> Result<(Self, Bytes)> {
        let model = Mapped::open(path.to_owned())?;
        let bytes = model.whole.bytes().clone();
        let files = Self {
            model: Some(model),
            ignored: external == ExternalData::Ignored,
            ..Self::default()
        };
        Ok((files, bytes))
    }

    /// The external data of a model in memory, by location.
    pub fn in_memory(data: impl IntoIterator<Item = (String, Bytes)>) -> Self {
        let memory = data.into_iter().map(|(location, bytes)| (location, Storage::new(bytes)));
        Self { memory: memory.collect(), ..Self::default() }
    }

    /// The files that were read.
    pub fn inputs(&self) -> Inputs {
        let mut inputs = Inputs::new();
        if let Some(model) = &self.model {
            inputs.add_model(&model.path);
        }
        for data in self.external.values() {
            inputs.add("data", &data.path);
        }
        inputs
    }

    /// Whether data in other files are ignored.
    pub fn ignores_external(&self) -> bool {
        self.ignored
    }

    /// The storage of bytes that were decoded from the model's file.
    pub fn own(&self, bytes: Bytes) -> Storage {
        let mapped = self.model.as_ref();
        mapped.and_then(|m| m.storage(&bytes)).unwrap_or_else(|| Storage::new(bytes))
    }

    /// The storage that external data refers to, of `needed` bytes.
    pub fn external(
        &mut self,
        entries: &[StringStringEntryProto],
        needed: usize,
        place: &str,
    ) -> Result<Storage> {
        let get = |key: &str| entries.iter().find(|e| e.key() == key).map(|e| e.value());
        let number = |key: &str| {
            let text = get(key);
            text.map(|t| t.trim().parse::<u64>()).transpose().map_err(|_| {
                Invalid::NoNumber {
                    key: key.to_owned(),
                    value: text.unwrap_or_default().to_owned(),
                }
                .at(place)
            })
        };
        // Readers differ in which of two they take.
        let mut seen = FxHashSet::default();
        if let Some(twice) = entries.iter().find(|e| !seen.insert(e.key())) {
            return Err(Invalid::TwoEntries(twice.key().to_owned()).at(place));
        }
        let location = get("location").ok_or_else(|| Invalid::NoLocation.at(place))?;
        let needed = u64::try_from(needed).unwrap_or(u64::MAX);
        let (start, length) = (number("offset")?.unwrap_or(0), number("length")?.unwrap_or(needed));
        let whole = match self.memory.get(location) {
            Some(storage) => storage,
            None => &self.mapped(location, place)?.whole,
        };
        let end = start.saturating_add(length);
        let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
        let part = range.and_then(|(start, end)| whole.slice(start..end));
        part.ok_or_else(|| {
            Invalid::OutOfFile {
                location: location.to_owned(),
                start,
                end,
                length: whole.bytes().len(),
            }
            .at(place)
        })
    }

    /// The file at a location. With all links followed, it must be in the model's folder or below.
    fn mapped(&mut self, location: &str, place: &str) -> Result<&Mapped> {
        let model = self.model.as_ref();
        let model = model.ok_or_else(|| Invalid::NoFolder.at(place))?;
        if !self.external.contains_key(location) {
            let relative = Path::new(location);
            let inside = |c: Component| matches!(c, Component::Normal(_) | Component::CurDir);
            if location.is_empty() || !relative.components().all(inside) {
                return Err(Invalid::Location(location.to_owned()).at(place));
            }
            let folder = model.path.parent().filter(|p| !p.as_os_str().is_empty());
            let folder = folder.unwrap_or(Path::new("."));
            let path = folder.join(relative);
            let real = |path: &Path| {
                path.canonicalize().map_err(|error| {
                    Invalid::Unread { location: location.to_owned(), error }.at(place)
                })
            };
            let target = real(&path)?;
            if !target.starts_with(real(folder)?) {
                return Err(Invalid::Outside(location.to_owned()).at(place));
            }
            if !target.is_file() {
                return Err(Invalid::NotAFile(location.to_owned()).at(place));
            }
            if has_names_outside(&target, folder) {
                return Err(Invalid::LinkedOutside(location.to_owned()).at(place));
            }
            self.external.insert(location.to_owned(), Mapped::open(target)?);
        }
        let mapped = self.external.get(location);
        mapped.ok_or_else(|| Invalid::NotAFile(location.to_owned()).at(place))
    }
}
