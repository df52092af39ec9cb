//! The weights of several models: each is stored once.

use pt2onnx_ir::{Model, Value};
use pt2onnx_tensor::{DType, Tensor};
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use std::hash::{Hash, Hasher};

/// How many parts of a tensor are hashed.
const SAMPLES: usize = 64;

/// A constant is compared with at most so many others of its type, sizes and sample.
const MAX_ALIKE: usize = 16;

/// The constants of a model by content.
#[derive(Default)]
pub(super) struct Weights {
    alike: FxHashMap<u64, Vec<Value>>,
}

impl Weights {
    /// Adds the constants of a model from a number on.
    pub fn add(&mut self, model: &Model, first: usize) {
        for (value, data) in model.values_from(first) {
            if let Some(tensor) = data.constant().filter(|t| t.has_data()) {
                self.alike.entry(sample(tensor)).or_default().push(value);
            }
        }
    }

    /// The constants of another model that a model has, with the same name first. A named constant
    /// is the same as one other, as it may get another content later.
    pub fn shared(&self, model: &Model, other: &Model) -> Vec<(Value, Value)> {
        let mut taken = FxHashSet::default();
        let mut shared = Vec::new();
        let mut left = Vec::new();
        let constants = other.values().filter(|(_, data)| data.uses().len() > 0);
        let constants = constants.filter_map(|(value, data)| Some((value, data.constant()?)));
        for (value, tensor) in constants.filter(|(_, tensor)| tensor.has_data()) {
            let Some(alike) = self.alike.get(&sample(tensor)) else { continue };
            let named =
                |v: &&Value| other[value].name.is_some() && model[**v].name == other[value].name;
            let same = alike.iter().find(named).filter(|v| is_same(model, **v, tensor));
            match same {
                Some(&same) => {
                    taken.insert(same);
                    shared.push((value, same));
                }
                None => left.push((value, tensor, alike)),
            }
        }
        for (value, tensor, alike) in left {
            let alike = alike.iter().take(MAX_ALIKE);
            let mut alike = alike.filter(|v| !taken.contains(v) || model[**v].name.is_none());
            if let Some(&same) = alike.find(|v| is_same(model, **v, tensor)) {
                taken.insert(same);
                shared.push((value, same));
            }
        }
        shared
    }
}

fn is_same(model: &Model, value: Value, tensor: &Tensor) -> bool {
    let Some(known) = model[value].constant() else { return false };
    let form = |t: &Tensor| (t.dtype(), t.nbytes());
    (form(known), known.shape()) == (form(tensor), tensor.shape())
        && (known.same(tensor) || {
            let stored = known.storage().is_some() && tensor.storage().is_some();
            stored && known.to_bytes() == tensor.to_bytes()
        })
}

/// A hash of type, sizes and some of the bytes. Elements that would have to be computed are not
/// read.
fn sample(tensor: &Tensor) -> u64 {
    let mut hash = FxHasher::default();
    let form: (DType, &[usize]) = (tensor.dtype(), tensor.shape());
    form.hash(&mut hash);
    if tensor.storage().is_none() {
        tensor.address().hash(&mut hash);
        return hash.finish();
    }
    let bytes = tensor.to_bytes();
    let step = (bytes.len() / SAMPLES).max(8);
    bytes.chunks(step).for_each(|chunk| chunk[..chunk.len().min(8)].hash(&mut hash));
    hash.finish()
}
