//! Files of `torch.save`: a zip with a pickle, and one record for each storage.
//! Tensors are views of those.

use super::{
    pickle::{Id, Pickle, Rules, Value},
    records::Records,
    stored_tensor::StoredTensor,
};
use crate::{
    element_types::{element_type, storage_type},
    error::{Error, NotAnArchive, PickleProblem as Problem, Place, Result},
};
use indexmap::IndexMap;
use pt2onnx_tensor::{DType, Storage, Tensor, TensorError};
use std::path::Path;

/// Reads the tensors that `torch.save(model.state_dict(), path)` wrote, by name. They are mapped,
/// as those of archives are, and nothing is executed.
///
/// # Errors
/// If the file is not a dict of tensors, or PyTorch before 1.6 wrote it.
pub fn state_dict(path: impl AsRef<Path>) -> Result<IndexMap<String, Tensor>> {
    let records = Records::open(path.as_ref()).map_err(not_saved)?;
    Saved::open(records)?.tensors()
}

/// The same error, of a file that should have been one of `torch.save`.
fn not_saved(error: Error) -> Error {
    match error {
        Error::Layout { place, found } => Error::Saved { place, found },
        error => error,
    }
}

/// Names that pickles of tensors may use.
const RULES: Rules = Rules { allowed, objects: false };

/// Classes and functions that a pickle may name, besides element types and storage types
/// ([`allowed`]).
const GLOBALS: &[&str] = &[
    "collections.OrderedDict",
    "torch.Size",
    "torch.device",
    "torch._tensor._rebuild_from_type_v2",
    "torch._utils._rebuild_tensor",
    "torch._utils._rebuild_tensor_v2",
    "torch._utils._rebuild_tensor_v3",
    "torch._utils._rebuild_parameter",
    "torch._utils._rebuild_parameter_with_state",
    "torch._utils._rebuild_meta_tensor_no_storage",
    "torch.serialization._get_layout",
    "torch.Tensor",
    "torch.nn.parameter.Parameter",
    "torch.nn.parameter.Buffer",
];

/// Whether a pickle may name this class or function.
fn allowed(name: &str) -> bool {
    GLOBALS.contains(&name) || element_type(name).is_some() || storage_type(name).is_some()
}

/// A value that `torch.save` wrote.
pub(super) struct Saved {
    records: Records,
    pub(super) pickle: Pickle,
    place: Place,
}

impl Saved {
    /// Reads the bytes of a zip.
    pub(super) fn new(place: Place, bytes: Storage) -> Result<Self> {
        Self::open(Records::new(place, bytes).map_err(not_saved)?)
    }

    fn open(records: Records) -> Result<Self> {
        if !records.has("data.pkl") {
            return Err(Error::Saved {
                found: NotAnArchive::NoPickle(records.summary()),
                place: records.place,
            });
        }
        let records = records.stored()?;
        let place = records.place.within("data.pkl");
        let order = records.get("byteorder");
        if order.is_some_and(|order| &**order.bytes() == b"big") {
            let problem = Problem::BigEndian;
            return Err(Error::Pickle { place, problem });
        }
        let pickle = records.pickle("data.pkl", &RULES, usize::MAX)?;
        Ok(Self { records, pickle, place })
    }

    /// The tensors of a dict from names to tensors.
    pub(super) fn tensors(&self) -> Result<IndexMap<String, Tensor>> {
        let Value::Dict(entries) = self.pickle.root() else {
            return Err(self.problem(Problem::NoDict(self.pickle.root().kind().to_owned())));
        };
        let mut tensors = IndexMap::with_capacity(entries.len());
        for &(key, value) in entries {
            let Value::Text(name) = self.pickle.get(key) else {
                let kind = self.pickle.get(key).kind();
                return Err(self.problem(Problem::Key(kind.to_owned())));
            };
            tensors.insert(name.to_string(), self.tensor(name, value)?);
        }
        Ok(tensors)
    }

    /// The only tensor there is.
    pub(super) fn only_tensor(&self, name: &str) -> Result<Tensor> {
        self.tensor(name, self.pickle.root_id())
    }

    fn problem(&self, problem: Problem) -> Error {
        let place = self.place.clone();
        Error::Pickle { place, problem }
    }

    pub(super) fn tensor(&self, name: &str, id: Id) -> Result<Tensor> {
        let view = self.resolve(id).map_err(|what| {
            let name = name.to_owned();
            self.problem(Problem::NoTensor { name, what })
        })?;
        let view = view.ok_or_else(|| self.problem(Problem::Malformed(name.to_owned())))?;
        view.map_err(|error| self.place.tensor("tensor", name, error))
    }

    /// The tensor that a call makes. `Err` describes another object; `None` if its arguments are
    /// wrong.
    fn resolve(&self, id: Id) -> Result<Option<Result<Tensor, TensorError>>, String> {
        let mut value = self.pickle.get(id).clone();
        // Parameters wrap tensors. A loop: a hostile pickle may wrap as often as it likes.
        loop {
            let Value::Call { global, arguments } = &value else {
                return Err(value.kind().to_owned());
            };
            let items = self.pickle.tuple(*arguments).unwrap_or_default();
            let name = global.strip_prefix("torch._utils.").unwrap_or(global);
            match (name, items) {
                ("_rebuild_parameter" | "_rebuild_parameter_with_state", [data, ..]) => {
                    value = self.pickle.get(*data).clone();
                }
                // Tensors with attributes; subclasses are not among the globals.
                ("torch._tensor._rebuild_from_type_v2", &[function, _, arguments, ..]) => {
                    let Value::Global(global) = self.pickle.get(function).clone() else {
                        return Ok(None);
                    };
                    value = Value::Call { global, arguments };
                }
                ("_rebuild_tensor", [_, _, _, _]) => return Ok(self.view(items, None)),
                // After the strides: requires_grad, hooks, and what is not in the storage.
                ("_rebuild_tensor_v2", [_, _, _, _, _, _, state @ ..]) => {
                    self.unflagged(state)?;
                    return Ok(self.view(items, None));
                }
                ("_rebuild_tensor_v3", [_, _, _, _, _, _, dtype, state @ ..]) => {
                    self.unflagged(state)?;
                    return Ok(self.view(items, Some(*dtype)));
                }
                ("_rebuild_meta_tensor_no_storage", &[dtype, sizes, ..]) => {
                    let absent = self.element_type(dtype).zip(self.pickle.sizes(sizes));
                    return Ok(absent.map(|(dtype, sizes)| Tensor::absent(dtype, sizes)));
                }
                _ => return Err(global.to_string()),
            }
        }
    }

    /// The view of a storage, as the first arguments of a call describe it.
    fn view(&self, items: &[Id], dtype: Option<Id>) -> Option<Result<Tensor, TensorError>> {
        let stored = StoredTensor::of(&self.pickle, items)?;
        let dtype = match dtype {
            Some(dtype) => self.element_type(dtype)?,
            None => storage_type(&stored.class)??,
        };
        stored.view(&self.records, "data", dtype)
    }

    fn element_type(&self, id: Id) -> Option<DType> {
        match self.pickle.get(id) {
            Value::Global(name) => element_type(name),
            _ => None,
        }
    }

    /// Checks that the values are those in the storage: neither conjugated nor negated lazily.
    fn unflagged(&self, state: &[Id]) -> Result<(), String> {
        let flags = state.first().map(|&state| self.pickle.get(state));
        match flags {
            Some(Value::Dict(flags))
                if flags
                    .iter()
                    .any(|&(_, v)| !matches!(self.pickle.get(v), Value::Bool(false))) =>
            {
                Err("a tensor that is conjugated or negated lazily (`resolve_conj()` it first)"
                    .to_owned())
            }
            _ => Ok(()),
        }
    }
}
