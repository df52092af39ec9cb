//! Tensors as pickles describe them: views of storages that are kept outside of the pickle.

use super::{
    pickle::{Id, Pickle, Value},
    records::Records,
};
use pt2onnx_tensor::{DType, Storage, Tensor, TensorError};
use std::sync::Arc;

/// A view of a storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTensor {
    /// The class of the storage: `torch.FloatStorage`.
    pub class: Arc<str>,
    /// The name of its record.
    pub record: Arc<str>,
    /// Elements before the first one.
    pub offset: usize,
    /// Sizes of the dimensions.
    pub sizes: Vec<usize>,
    /// Strides of the dimensions, in elements.
    pub strides: Vec<usize>,
}

impl StoredTensor {
    /// The tensor of arguments of `_rebuild_tensor_v2`: storage, offset, sizes, strides; `None` if
    /// they are others.
    pub fn of(pickle: &Pickle, arguments: &[Id]) -> Option<Self> {
        let &[storage, offset, sizes, strides, ..] = arguments else {
            return None;
        };
        let Value::Persistent(id) = pickle.get(storage) else {
            return None;
        };
        // "storage", its class, its record, the device, how many elements.
        let &[_, class, record, ..] = pickle.tuple(*id)? else {
            return None;
        };
        let Value::Global(class) = pickle.get(class) else {
            return None;
        };
        Some(Self {
            class: class.clone(),
            record: pickle.text(record)?.clone(),
            offset: pickle.size(offset)?,
            sizes: pickle.sizes(sizes)?,
            strides: pickle.sizes(strides)?,
        })
    }

    /// The view, with this element type. `None` if there is no such record.
    pub fn view(
        self,
        records: &Records,
        folder: &str,
        dtype: DType,
    ) -> Option<Result<Tensor, TensorError>> {
        let storage = records.get(&format!("{folder}/{}", self.record))?;
        Some(stored(dtype, self.sizes, self.strides, self.offset, storage))
    }
}

/// A view of a storage. One of no bytes is that of a tensor without values, as FakeTensorMode saves
/// it.
pub(super) fn stored(
    dtype: DType,
    sizes: Vec<usize>,
    strides: Vec<usize>,
    offset: usize,
    storage: Storage,
) -> Result<Tensor, TensorError> {
    if storage.bytes().is_empty() && !sizes.contains(&0) {
        Tensor::absent(dtype, sizes)
    } else {
        Tensor::strided(dtype, sizes, strides, offset, storage)
    }
}
