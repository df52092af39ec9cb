//! Counts the constants that share memory.

use pt2onnx_ir::Model;
use pt2onnx_tensor::Tensor;
use rustc_hash::FxHashMap;

/// Address and length of a storage.
type Memory = (usize, usize);

/// How many used constants are views of each storage.
#[derive(Default)]
pub(super) struct StorageRefs(FxHashMap<Memory, u32>);

impl StorageRefs {
    pub fn of(model: &Model) -> Self {
        let mut storage_refs = FxHashMap::default();
        let used = model.values().filter(|(_, d)| d.uses().len() > 0);
        for memory in used.filter_map(|(_, d)| memory(d.constant()?)) {
            *storage_refs.entry(memory).or_default() += 1;
        }
        Self(storage_refs)
    }

    /// Whether no other constant is a view of the tensor's storage.
    pub fn alone(&self, tensor: &Tensor) -> bool {
        memory(tensor).is_none_or(|m| self.0.get(&m).is_none_or(|&n| n <= 1))
    }
}

fn memory(tensor: &Tensor) -> Option<Memory> {
    let bytes = tensor.storage()?.bytes();
    Some((bytes.as_ptr().addr(), bytes.len()))
}
