//! Tensors as pickles describe them: class of the storage, record, offset, sizes and strides.

use crate::value::quantized::Kind;
use pt2onnx_fx::archive::{
    Records,
    pickle::{Id, Pickle, Value as Data},
    storage_type,
};
use pt2onnx_tensor::{DType, Tensor};
use std::sync::Arc;

/// The tensor that the arguments of `_rebuild_tensor_v2` describe; `None` if it is not a plain one.
pub(crate) fn view(
    records: &Records,
    pickle: &Pickle,
    folder: &str,
    items: &[Id],
) -> Option<Tensor> {
    let (dtype, record, offset, sizes, strides) = described(pickle, items)?;
    let storage = records.get(&format!("{folder}/{record}"))?;
    // A tensor without values is saved as no bytes.
    if storage.bytes().is_empty() && !sizes.contains(&0) {
        return Tensor::absent(dtype, sizes).ok();
    }
    Tensor::strided(dtype, sizes, strides, offset, storage).ok()
}

/// The integers of the quantised tensor that the arguments of `_rebuild_qtensor` describe, and
/// their kind.
pub(crate) fn quantized(
    records: &Records,
    pickle: &Pickle,
    folder: &str,
    items: &[Id],
) -> Option<(Kind, Tensor)> {
    let (class, record, offset, mut sizes, mut strides) = layout(pickle, items)?;
    let kind = Kind::of_storage(&class)?;
    let dtype = kind.ints();
    if kind == Kind::Quint4x2 {
        let last = sizes.last_mut().filter(|last| **last % 2 == 0)?;
        *last /= 2;
        let mut stride = 1;
        for (size, place) in sizes.iter().zip(&mut strides).rev() {
            *place = stride;
            stride *= size;
        }
    }
    let storage = records.get(&format!("{folder}/{record}"))?;
    let tensor = if storage.bytes().is_empty() && !sizes.contains(&0) {
        Tensor::absent(dtype, sizes)
    } else {
        Tensor::strided(dtype, sizes, strides, offset, storage)
    };
    Some((kind, tensor.ok()?))
}

/// Element type or class of the storage, record, offset, sizes and strides of a tensor.
type Layout<T> = (T, Arc<str>, usize, Vec<usize>, Vec<usize>);

/// Element type, record, offset, sizes and strides of a tensor.
pub(crate) type Described = Layout<DType>;

pub(crate) fn described(pickle: &Pickle, items: &[Id]) -> Option<Described> {
    let (class, record, offset, sizes, strides) = layout(pickle, items)?;
    Some((storage_type(&class)??, record, offset, sizes, strides))
}

/// The element type of the integers of a quantised tensor, and its sizes.
pub(crate) fn described_quantized(pickle: &Pickle, items: &[Id]) -> Option<(DType, Vec<usize>)> {
    let (class, _, _, sizes, _) = layout(pickle, items)?;
    Some((Kind::of_storage(&class)?.ints(), sizes))
}

/// Class of the storage, record, offset, sizes and strides of a tensor.
fn layout(pickle: &Pickle, items: &[Id]) -> Option<Layout<String>> {
    let &[storage, offset, sizes, strides, ..] = items else {
        return None;
    };
    let tuple = |id: Id| match pickle.get(id) {
        Data::Tuple(items) => Some(items.clone()),
        _ => None,
    };
    let number = |id: Id| match pickle.get(id) {
        Data::Int(i) => usize::try_from(*i).ok(),
        _ => None,
    };
    let Data::Persistent(storage) = pickle.get(storage) else {
        return None;
    };
    let storage = tuple(*storage)?;
    let &[_, class, record, ..] = &*storage else {
        return None;
    };
    let (Data::Global(class), Data::Text(record)) = (pickle.get(class), pickle.get(record)) else {
        return None;
    };
    let sizes = tuple(sizes)?.iter().map(|&id| number(id)).collect::<Option<Vec<_>>>()?;
    let strides = tuple(strides)?.iter().map(|&id| number(id)).collect::<Option<Vec<_>>>()?;
    Some((class.to_string(), record.clone(), number(offset)?, sizes, strides))
}
