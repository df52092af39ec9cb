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
    /// For each name that was asked for, a number below which all are taken.
    next: FxHashMap<Name, usize>,
    views: FxHashMap<Memory, Vec<Value>>,
}

/// An index of a model's names and storages for one pass, so that no question scans all values.
#[derive(Debug)]
pub(crate) struct FoldedConstants {
    index: Mutex<Index>,
    /// Constants of more bytes are not replaced.
    most: usize,
}

impl Default for FoldedConstants {
    fn default() -> Self {
        Self { index: Mutex::default(), most: usize::MAX }
    }
}

impl FoldedConstants {
    /// Constants of more bytes than these are not replaced.
    pub fn of_at_most(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    fn with<T>(&self, model: &Model, ask: impl FnOnce(&mut Index) -> T) -> T {
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        let Index { seen, names, views, .. } = &mut *index;
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
            self.with(model, |Index { names, next, .. }| {
                let next = next.entry(old.into()).or_default();
                // A module that is called twice has its constants folded twice.
                let mut numbered = (*next..).map(|i| match i {
                    0 => Name::from(format!("{old}_folded")),
                    i => Name::from(format!("{old}_folded_{i}")),
                });
                numbered.find(|name| {
                    *next += 1;
                    names.insert(name.clone())
                })
            })
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
    /// that fills a weight may be shared. Larger constants than the most count as shared.
    pub fn is_unshared(&self, model: &Model, value: Value) -> bool {
        if model[value].constant().is_some_and(|t| t.nbytes() > self.most) {
            return false;
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Names that are taken are tried once, not for each constant again.
    #[test]
    fn numbers_go_on_where_they_ended() {
        let mut model = Model::new(20);
        let [weight, _] = ["w", "w_folded_2"].map(|name| {
            let value = model.add_constant(Tensor::scalar(1.0_f32));
            model[value].name = Some(name.into());
            value
        });
        let folded = FoldedConstants::default();
        let add = |_| folded.add(&mut model, Tensor::scalar(2.0_f32), Some(weight));
        let made: Vec<Value> = (0..4).map(add).collect();
        let names: Vec<_> = made.iter().filter_map(|&v| model[v].name.as_deref()).collect();
        assert_eq!(names, ["w_folded", "w_folded_1", "w_folded_3", "w_folded_4"]);
        let next = folded.with(&model, |index| index.next.clone());
        assert_eq!(next.into_iter().collect::<Vec<_>>(), [("w".into(), 5)]);
    }
}
