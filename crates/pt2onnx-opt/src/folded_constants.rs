//! Constants that replace weights, and the weights that may be replaced: what one run of a pass
//! knows of all values of a model.

use pt2onnx_ir::{FOLDED_FROM, Model, Name, ORIGINAL_NAME, Value};
use pt2onnx_tensor::Tensor;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::{Arc, Mutex, PoisonError};

/// Address and length of a storage.
type Memory = (usize, usize);

/// Names and storages of the values seen so far; later values are added when it is asked.
#[derive(Debug, Default)]
struct Index {
    seen: usize,
    names: FxHashSet<Name>,
    views: FxHashMap<Memory, Vec<Value>>,
}

/// An index of a model's names and storages for one pass, so that no question scans all values.
#[derive(Debug, Default)]
pub(crate) struct FoldedConstants(Mutex<Index>);

impl FoldedConstants {
    fn with<T>(&self, model: &Model, ask: impl FnOnce(&mut Index) -> T) -> T {
        let mut index = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Index { seen, names, views } = &mut *index;
        for (value, data) in model.values_from(*seen) {
            *seen += 1;
            names.extend(data.name.clone());
            if let Some(memory) = data.constant().and_then(memory) {
                views.entry(memory).or_default().push(value);
            }
        }
        ask(&mut index)
    }

    /// Adds a constant named after the one that it is computed from, `NAME_folded`: someone might
    /// load the old contents under the old name.
    pub fn add(&self, model: &mut Model, tensor: Tensor, of: Option<Value>) -> Value {
        let old = of.and_then(|v| model[v].name.clone());
        let name = old.as_ref().and_then(|old| {
            let old = old.strip_suffix("_folded").unwrap_or(old);
            // A module that is called twice has its constants folded twice.
            let numbered = (1..).map(|i| Name::from(format!("{old}_folded_{i}")));
            let mut names = std::iter::once(Name::from(format!("{old}_folded"))).chain(numbered);
            self.with(model, |index| names.find(|name| index.names.insert(name.clone())))
        });
        let value = model.add_constant(tensor);
        model[value].name = name;
        if let Some(old) = old {
            let old = Arc::<str>::from(&*old);
            let entries = [ORIGINAL_NAME, FOLDED_FROM].map(|key| (key.into(), Arc::clone(&old)));
            model[value].metadata.extend(entries);
        }
        value
    }

    /// Whether a constant has one use and shares memory with no other used constant. One number
    /// that fills a weight may be shared.
    pub fn is_unshared(&self, model: &Model, value: Value) -> bool {
        let filled = |t: &Tensor| t.rank() > 0 && t.strides().iter().all(|&s| s == 0);
        if model[value].constant().is_some_and(filled) {
            return true;
        }
        model[value].uses().len() == 1 && self.is_alone(model, value)
    }

    /// Whether no other constant that is used shares the memory of a constant.
    pub fn is_alone(&self, model: &Model, value: Value) -> bool {
        let used = |other: &Value| *other != value && model[*other].uses().len() > 0;
        model[value].constant().and_then(memory).is_none_or(|memory| {
            self.with(model, |index| !index.views.get(&memory).is_some_and(|v| v.iter().any(used)))
        })
    }
}

fn memory(tensor: &Tensor) -> Option<Memory> {
    let bytes = tensor.storage()?.bytes();
    Some((bytes.as_ptr().addr(), bytes.len()))
}
