//! Reading a program: its JSON joined with its tensors.

use super::{
    open::{Archive, FLAT_PROGRAM},
    payload::{Payload, Payloads},
    torch_save::Saved,
};
use crate::{
    error::{Error, PickleProblem, Place, Result},
    graph::{Constant, ExportedProgram, InputSpec, TensorMeta, ValueMeta, build},
    threads::{LONG, both},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use indexmap::IndexMap;
use pt2onnx_tensor::{Storage, Tensor};
use rustc_hash::FxHashSet;
use std::path::Path;

/// Opens an archive and reads its program: the only one, or the one called "model".
///
/// The file stays mapped as long as the program or one of its tensors exists, and must not change
/// meanwhile.
///
/// # Errors
/// If the file cannot be read, is not an archive, or is damaged.
pub fn read(path: impl AsRef<Path>) -> Result<ExportedProgram> {
    Archive::open(path)?.program(None)
}

/// Reads the program of an archive in memory, as [`read`] does. Its tensors are views of the bytes.
///
/// # Errors
/// If the bytes are not an archive, or a damaged one.
pub fn read_bytes(bytes: impl Into<Bytes>) -> Result<ExportedProgram> {
    Archive::from_bytes(bytes)?.program(None)
}

/// Reads a program from its JSON (`models/NAME.json` of an archive) and tensors that are already in
/// memory: `state` and `constants` by qualified name, as in [`ExportedProgram`].
///
/// # Errors
/// If the JSON is not a program, or a tensor that it uses is missing.
pub fn from_json(
    json: &[u8],
    state: IndexMap<String, Tensor>,
    constants: IndexMap<String, Constant>,
) -> Result<ExportedProgram> {
    let parsed = build::program(json, &Place::Memory)?;
    finish(parsed, state, constants, &Place::Memory)
}

/// The most bytes by which all tensors together may be larger than their records. Views with
/// strides of 0, which `expand` makes, repeat bytes: with them a small archive could fill a disk.
const MAX_REPEATED: usize = 1 << 30;

impl Archive {
    /// Reads a program and maps its tensors. Without a name: the only program, or the one called
    /// "model".
    ///
    /// # Errors
    /// If there is no such program, or the archive is damaged.
    pub fn program(&self, model: Option<&str>) -> Result<ExportedProgram> {
        let models: Vec<&str> = self.models().collect();
        let owned = || models.iter().map(|m| m.to_string()).collect();
        let place = || self.records.place.clone();
        let model = match (model, models.as_slice()) {
            (Some(name), _) if models.contains(&name) => name,
            (Some(name), _) => {
                return Err(Error::NoModel {
                    place: place(),
                    model: name.to_owned(),
                    models: owned(),
                });
            }
            (None, [only]) => only,
            (None, _) if models.contains(&"model") => "model",
            (None, _) => {
                return Err(Error::WhichModel { place: place(), models: owned() });
            }
        };
        let flat = self.records.has(FLAT_PROGRAM);
        let json = if flat { FLAT_PROGRAM.to_owned() } else { format!("models/{model}.json") };
        let (text, place) = self.records.to_parse(&json)?;
        let stored = || self.records.check(&json, &text).map(|()| self.stored(model, flat));
        let parse = || build::program(text.bytes(), &place);
        let (parsed, stored) = both(text.bytes().len() >= LONG, parse, stored);
        let stored = stored?;
        let parsed = parsed?;
        let (weights, constants) = stored?;
        drop(text);

        // Only what the program uses must be readable: unused pickles do no harm.
        let inputs = &parsed.program.signature.inputs;
        let used: FxHashSet<&str> =
            inputs.iter().filter_map(InputSpec::target).map(|target| &**target).collect();
        let (mut state, mut kept) = (IndexMap::new(), IndexMap::new());
        for (name, weight) in weights {
            match weight {
                Payload::Tensor(tensor) => _ = state.insert(name, tensor),
                Payload::Unread(error) if used.contains(&*name) => return Err(error),
                Payload::Opaque { .. } | Payload::Unread(_) => {}
            }
        }
        for (name, constant) in constants {
            match constant {
                Payload::Tensor(tensor) => _ = kept.insert(name, Constant::Tensor(tensor)),
                Payload::Opaque { record } => _ = kept.insert(name, Constant::Opaque { record }),
                Payload::Unread(error) if used.contains(&*name) => return Err(error),
                Payload::Unread(_) => {}
            }
        }
        finish(parsed, state, kept, &place)
    }

    /// The weights and the constants of a program.
    fn stored(&self, model: &str, flat: bool) -> Result<(Payloads, Payloads)> {
        Ok(if flat {
            (
                self.flat_payload("serialized_state_dict")?,
                self.flat_payload("serialized_constants")?,
            )
        } else {
            (
                self.payload("weight", "data/weights/", "weights", model)?,
                self.payload("constant", "data/constants/", "constants", model)?,
            )
        })
    }
}

/// Joins a program and its tensors, and checks that all tensors that the signature names exist.
fn finish(
    parsed: build::Parsed,
    state: IndexMap<String, Tensor>,
    constants: IndexMap<String, Constant>,
    place: &Place,
) -> Result<ExportedProgram> {
    let mut program = parsed.program;
    (program.state, program.constants) = (state, constants);
    for (name, blob) in parsed.constants {
        let tensor = inline_constant(&name, &blob, place)?;
        // Such constants became inputs: the program says nothing of them.
        let meta = ValueMeta::from(TensorMeta::of(&tensor));
        program.graph.values_mut().insert(name.as_str().into(), meta);
        program.constants.insert(name, Constant::Tensor(tensor));
    }
    let constants = program.constants.values().filter_map(|c| match c {
        Constant::Tensor(tensor) => Some(tensor),
        Constant::Opaque { .. } => None,
    });
    let tensors = program.state.values().chain(constants);
    let repeated = tensors.filter_map(|tensor| {
        let held = tensor.storage()?.bytes().len();
        Some(tensor.nbytes().saturating_sub(held))
    });
    let bytes = repeated.fold(0, usize::saturating_add);
    if bytes > MAX_REPEATED {
        return Err(Error::Repeated { place: place.clone(), bytes, limit: MAX_REPEATED });
    }
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

/// A tensor that torch 2.1 wrote into the JSON.
fn inline_constant(name: &str, blob: &str, place: &Place) -> Result<Tensor> {
    let bytes = BASE64_STANDARD.decode(blob).map_err(|_| Error::Pickle {
        place: place.clone(),
        problem: PickleProblem::Base64(name.to_owned()),
    })?;
    Saved::new(place.clone(), Storage::new(bytes))?.only_tensor(name)
}
