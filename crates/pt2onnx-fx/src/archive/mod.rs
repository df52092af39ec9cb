//! `.pt2` archives. The one module that touches files: records are found through the zip's central directory and
//! mapped, never read; tensors are views of the mapping. Nothing is executed or unpickled.

mod payload;
mod zip_map;

use crate::{
    error::{Error, NotAnArchive, Place, RecordProblem, Result},
    graph::{Constant, ExportedProgram, InputSpec, build},
};
use bytes::Bytes;
use indexmap::IndexMap;
use payload::Payload;
use pt2onnx_tensor::{FileRange, Storage, Tensor};
use rustc_hash::FxHashSet;
use std::{
    fs::File,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Opens an archive and reads its program: the only one, or the one called "model".
///
/// The file is mapped for as long as the program or any of its tensors lives; it must not change meanwhile.
pub fn read(path: impl AsRef<Path>) -> Result<ExportedProgram> {
    Archive::open(path)?.program(None)
}

/// Reads a program's JSON (`models/NAME.json` of an archive) together with tensors that are already in memory:
/// `state` and `constants` by qualified name, as [`ExportedProgram`] has them.
pub fn from_json(
    json: &[u8],
    state: IndexMap<String, Tensor>,
    constants: IndexMap<String, Constant>,
) -> Result<ExportedProgram> {
    let program = build::program(json, &Place::Memory)?;
    finish(program, state, constants, &Place::Memory)
}

/// An open archive.
#[derive(Clone, Debug)]
pub struct Archive {
    path: Arc<PathBuf>,
    file: Arc<File>,
    bytes: Bytes,
    /// Records by name without the archive's folder, each within `bytes`.
    records: IndexMap<String, Range<usize>>,
}

impl Archive {
    /// Opens and maps an archive. Fails with [`Error::Layout`] where it is something else, naming what.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = Arc::new(path.as_ref().to_path_buf());
        let io = |source| Error::Io {
            path: path.clone(),
            source,
        };
        let file = File::open(&*path).map_err(io)?;
        let bytes = zip_map::map(&file).map_err(io)?;
        let records = zip_map::records(&path, &bytes)?;
        let archive = Self {
            file: Arc::new(file),
            bytes,
            records,
            path,
        };
        match archive.refusal() {
            Some(found) => Err(Error::Layout {
                path: archive.path,
                found,
            }),
            None => Ok(archive),
        }
    }

    /// Path the archive was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Names of all records, without the archive's folder, in the directory's order.
    pub fn records(&self) -> impl Iterator<Item = &str> {
        self.records.keys().map(String::as_str)
    }

    /// The bytes of a record, without the archive's folder in its name: `extra/notes.txt`.
    pub fn record(&self, name: &str) -> Option<Storage> {
        let range = self.records.get(name)?.clone();
        let source = FileRange {
            path: self.path.clone(),
            file: self.file.clone(),
            offset: range.start as u64,
        };
        Some(Storage::mapped(self.bytes.slice(range), source))
    }

    /// Names of the models in the archive.
    pub fn models(&self) -> impl Iterator<Item = &str> {
        self.records().filter_map(model_name)
    }

    /// Reads a model's program and maps its tensors. Without a name: the only model, or the one called "model".
    pub fn program(&self, model: Option<&str>) -> Result<ExportedProgram> {
        let models: Vec<&str> = self.models().collect();
        let owned = || models.iter().map(|m| m.to_string()).collect();
        let model = match (model, models.as_slice()) {
            (Some(name), _) if models.contains(&name) => name,
            (Some(name), _) => {
                return Err(Error::NoModel {
                    path: self.path.clone(),
                    model: name.to_owned(),
                    models: owned(),
                });
            }
            (None, [only]) => only,
            (None, _) if models.contains(&"model") => "model",
            (None, _) => {
                return Err(Error::WhichModel {
                    path: self.path.clone(),
                    models: owned(),
                });
            }
        };
        let (json, place) = self.required(&format!("models/{model}.json"))?;
        let program = build::program(json.bytes(), &place)?;

        // Only what the program uses must be readable: unused pickles do no harm.
        let used: FxHashSet<&str> = program.signature.inputs.iter().filter_map(target).collect();
        let state = self.payload("weight", "data/weights/", "weights", model, &used)?;
        let state = state
            .into_iter()
            .filter_map(|(name, payload)| match payload {
                Payload::Tensor(tensor) => Some((name, tensor)),
                Payload::Opaque { .. } => None,
            });
        let state = state.collect();
        let constants = self.payload("constant", "data/constants/", "constants", model, &used)?;
        let constants = constants.into_iter().map(|(name, payload)| match payload {
            Payload::Tensor(tensor) => (name, Constant::Tensor(tensor)),
            Payload::Opaque { record } => (name, Constant::Opaque { record }),
        });
        let constants = constants.collect();
        finish(program, state, constants, &place)
    }

    fn required(&self, name: &str) -> Result<(Storage, Place)> {
        let storage = self.record(name).ok_or_else(|| Error::Record {
            path: self.path.clone(),
            record: name.to_owned(),
            problem: RecordProblem::Missing,
        })?;
        Ok((storage, Place::Record(self.path.clone(), name.to_owned())))
    }

    /// Why this zip file is not an archive that can be read, if so.
    fn refusal(&self) -> Option<NotAnArchive> {
        let has = |name: &str| self.records.contains_key(name);
        let holds = |start: &str| self.records().any(|r| r.starts_with(start));
        let text = |name: &str| {
            let record = self.record(name)?;
            let text = String::from_utf8_lossy(record.bytes()).trim().to_owned();
            Some(text)
        };
        if has("serialized_exported_program.json") || holds("serialized_state_dict") {
            return Some(NotAnArchive::Before28);
        }
        if self.models().next().is_none() {
            return Some(if holds("data/aotinductor/") {
                NotAnArchive::AotInductor
            } else if holds("code/") && has("data.pkl") {
                NotAnArchive::TorchScript
            } else if has("data.pkl") {
                NotAnArchive::TorchSave
            } else {
                let mut names: Vec<&str> = self.records().take(5).collect();
                if self.records.len() > names.len() {
                    names.push("...");
                }
                NotAnArchive::NoProgram(match names.is_empty() {
                    true => "nothing".to_owned(),
                    false => names.join(", "),
                })
            });
        }
        let (format, version) = (text("archive_format"), text("archive_version"));
        let (format, version) = (
            format.unwrap_or("pt2".into()),
            version.unwrap_or("0".into()),
        );
        if (format.as_str(), version.as_str()) != ("pt2", "0") {
            return Some(NotAnArchive::Format(format, version));
        }
        if text("byteorder").is_some_and(|order| order == "big") {
            return Some(NotAnArchive::BigEndian);
        }
        None
    }
}

/// NAME of `models/NAME.json`.
fn model_name(record: &str) -> Option<&str> {
    record.strip_prefix("models/")?.strip_suffix(".json")
}

/// Name of the tensor or object that an input stands for.
fn target(input: &InputSpec) -> Option<&str> {
    match input {
        InputSpec::Parameter { target, .. }
        | InputSpec::Buffer { target, .. }
        | InputSpec::TensorConstant { target, .. }
        | InputSpec::CustomObj { target, .. } => Some(target),
        _ => None,
    }
}

/// Joins program and tensors, and sees that what the signature names is there.
fn finish(
    mut program: ExportedProgram,
    state: IndexMap<String, Tensor>,
    constants: IndexMap<String, Constant>,
    place: &Place,
) -> Result<ExportedProgram> {
    (program.state, program.constants) = (state, constants);
    for input in &program.signature.inputs {
        let (what, name) = match input {
            InputSpec::Parameter { target, .. } => ("parameter", target),
            InputSpec::Buffer { target, .. } => ("buffer", target),
            InputSpec::TensorConstant { target, .. } => ("constant", target),
            _ => continue,
        };
        if program.tensor_of(input).is_none() {
            return Err(Error::MissingTensor {
                place: place.clone(),
                what,
                name: name.to_string(),
            });
        }
    }
    Ok(program)
}
