//! Which constants share memory.

use pt2onnx_ir::Model;
use pt2onnx_tensor::Tensor;
use rustc_hash::FxHashMap;

/// Address and length of a storage.
pub(super) type Memory = (usize, usize);

/// The storage of a tensor.
pub(super) fn memory(tensor: &Tensor) -> Option<Memory> {
    let bytes = tensor.storage()?.bytes();
    Some((bytes.as_ptr().addr(), bytes.len()))
}

/// How many used constants are views of each storage.
pub(super) fn sharers(model: &Model) -> FxHashMap<Memory, u32> {
    let mut sharers = FxHashMap::default();
    let used = model.values().filter(|(_, d)| d.uses().len() > 0);
    for memory in used.filter_map(|(_, d)| memory(d.constant()?)) {
        *sharers.entry(memory).or_default() += 1;
    }
    sharers
}
