//! Reads tensors from the field or file with their elements.

use super::{
    error::{Invalid, Result},
    files::Files,
    types::dtype,
};
use bytes::Bytes;
use pt2onnx_proto::{TensorProto, tensor_proto::DataLocation};
use pt2onnx_symbolic::MAX_RANK;
use pt2onnx_tensor::{DType, Element, Storage, Tensor};

/// The tensor; without values if there is no data.
pub(super) fn tensor(files: &mut Files, proto: TensorProto, place: &str) -> Result<Tensor> {
    let invalid = |what: Invalid| what.at(place);
    if proto.segment.is_some() {
        return Err(invalid(Invalid::Segment));
    }
    let dtype = dtype(proto.data_type(), place)?;
    if proto.dims.len() > MAX_RANK {
        return Err(invalid(Invalid::Rank(proto.dims.len())));
    }
    let size = |&s: &i64| usize::try_from(s).map_err(|_| invalid(Invalid::Size(s)));
    let shape: Vec<usize> = proto.dims.iter().map(size).collect::<Result<_>>()?;
    let absent = Tensor::absent(dtype, shape.clone()).map_err(|e| invalid(Invalid::Tensor(e)))?;
    let (wanted, needed) = (absent.numel(), absent.nbytes());

    if proto.data_location() == DataLocation::External && files.ignores_external() {
        return Ok(absent);
    }
    if proto.data_location() == DataLocation::External {
        if dtype == DType::String {
            return Err(invalid(Invalid::ExternalStrings));
        }
        let storage = files.external(&proto.external_data, needed, place)?;
        return Tensor::whole(dtype, shape, storage).map_err(|e| invalid(Invalid::Tensor(e)));
    }
    if dtype == DType::String {
        let strings: Vec<Bytes> = proto.string_data.into_iter().map(Bytes::from).collect();
        return if strings.is_empty() && wanted > 0 {
            Ok(absent)
        } else {
            Tensor::strings(shape, strings).map_err(|e| invalid(Invalid::Tensor(e)))
        };
    }
    let storage = match &proto.raw_data {
        Some(raw) if !raw.is_empty() => files.own(raw.clone()),
        _ => match unpacked(&proto, dtype, wanted, needed).map_err(invalid)? {
            Some(bytes) => Storage::new(bytes),
            None if needed > 0 => return Ok(absent),
            None => Storage::new(Bytes::new()),
        },
    };
    Tensor::whole(dtype, shape, storage).map_err(|e| invalid(Invalid::Tensor(e)))
}

/// The elements, from the list for the type, as bytes; `None` if the list is empty.
fn unpacked(
    t: &TensorProto,
    dtype: DType,
    wanted: usize,
    needed: usize,
) -> std::result::Result<Option<Bytes>, Invalid> {
    use DType::*;
    let numbers = &t.int32_data;
    match dtype {
        F32 => list(dtype, &t.float_data, wanted, same),
        C64 => list(dtype, &t.float_data, wanted.saturating_mul(2), same),
        F64 => list(dtype, &t.double_data, wanted, same),
        C128 => list(dtype, &t.double_data, wanted.saturating_mul(2), same),
        I64 => list(dtype, &t.int64_data, wanted, same),
        U64 => list(dtype, &t.uint64_data, wanted, same),
        U32 => list(dtype, &t.uint64_data, wanted, |v| u32::try_from(v).ok()),
        I32 => list(dtype, numbers, wanted, same),
        I16 => list(dtype, numbers, wanted, |v| i16::try_from(v).ok()),
        I8 => list(dtype, numbers, wanted, |v| i8::try_from(v).ok()),
        Bool => list(dtype, numbers, wanted, |v| Some(v != 0)),
        U16 | F16 | BF16 => list(dtype, numbers, wanted, |v| u16::try_from(v).ok()),
        U8 | F8E4M3FN | F8E4M3FNUZ | F8E5M2 | F8E5M2FNUZ | F8E8M0 => {
            list(dtype, numbers, wanted, |v| u8::try_from(v).ok())
        }
        // Each entry is a byte with several elements.
        I4 | U4 | F4E2M1 | I2 | U2 => list(dtype, numbers, needed, |v| u8::try_from(v).ok()),
        C32 | String => Ok(None),
    }
}

fn same<T>(v: T) -> Option<T> {
    Some(v)
}

fn list<T: Copy + ToString, E: Element>(
    dtype: DType,
    entries: &[T],
    wanted: usize,
    element: impl Fn(T) -> Option<E>,
) -> std::result::Result<Option<Bytes>, Invalid> {
    let found = entries.len();
    if found == 0 {
        return Ok(None);
    }
    if found != wanted {
        return Err(Invalid::Entries { dtype, found, wanted });
    }
    let mut bytes = Vec::with_capacity(size_of::<E>().saturating_mul(found));
    for &entry in entries {
        let element =
            element(entry).ok_or_else(|| Invalid::Entry { dtype, value: entry.to_string() })?;
        element.push_le(&mut bytes);
    }
    Ok(Some(bytes.into()))
}
