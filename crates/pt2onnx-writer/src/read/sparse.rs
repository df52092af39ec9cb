//! Sparse tensors are read as dense ones.

use super::{
    error::{Invalid, ReadError},
    files::Files,
    tensor::tensor,
};
use pt2onnx_proto::SparseTensorProto;
use pt2onnx_tensor::Tensor;

/// A dense tensor takes at most this many bytes.
const MAX_BYTES: usize = 1 << 28;

/// The dense tensor with the elements of a sparse one, and zeros.
pub(super) fn dense(
    files: &mut Files,
    proto: SparseTensorProto,
    place: &str,
) -> Result<Tensor, ReadError> {
    let values = tensor(files, proto.values.unwrap_or_default(), place)?;
    let indices = tensor(files, proto.indices.unwrap_or_default(), place)?;
    filled(&values, &indices, &proto.dims).ok_or_else(|| Invalid::Sparse.at(place))
}

/// `None` if an index is outside, or the sizes do not fit each other.
fn filled(values: &Tensor, indices: &Tensor, dims: &[i64]) -> Option<Tensor> {
    let sizes: Vec<usize> = dims.iter().map(|&d| usize::try_from(d).ok()).collect::<Option<_>>()?;
    let width = values.dtype().bits() / 8;
    let count = sizes.iter().try_fold(1usize, |n, &s| n.checked_mul(s))?;
    let bytes = count.checked_mul(width).filter(|&b| b <= MAX_BYTES)?;
    if !values.dtype().bits().is_multiple_of(8) || width == 0 || values.rank() != 1 {
        return None;
    }
    let all = indices.to_vec::<i64>()?;
    let places: Vec<usize> = match indices.rank() {
        1 => all.iter().map(|&i| usize::try_from(i).ok()).collect::<Option<_>>()?,
        _ if sizes.is_empty() => return None,
        _ => all.chunks(sizes.len()).map(|row| place(row, &sizes)).collect::<Option<_>>()?,
    };
    if places.len() != values.numel() {
        return None;
    }
    let mut dense = vec![0u8; bytes];
    for (&at, element) in places.iter().zip(values.to_bytes().chunks_exact(width)) {
        let start = at.checked_mul(width)?;
        dense.get_mut(start..start.checked_add(width)?)?.copy_from_slice(element);
    }
    Tensor::new(values.dtype(), sizes, dense).ok()
}

/// The position of an element in a dense tensor.
fn place(row: &[i64], sizes: &[usize]) -> Option<usize> {
    row.iter().zip(sizes).try_fold(0usize, |at, (&i, &size)| {
        let i = usize::try_from(i).ok().filter(|&i| i < size)?;
        at.checked_mul(size)?.checked_add(i)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_put_at_their_places() {
        let values = Tensor::vector(&[1f32, 2.0]);
        let flat = Tensor::vector(&[1i64, 5]);
        let pairs = Tensor::from_slice([2, 2], &[0i64, 1, 1, 2]).unwrap();
        for indices in [&flat, &pairs] {
            let dense = filled(&values, indices, &[2, 3]).unwrap();
            assert_eq!(dense.to_vec::<f32>().unwrap(), [0.0, 1.0, 0.0, 0.0, 0.0, 2.0]);
        }
        assert!(filled(&values, &Tensor::vector(&[1i64, 6]), &[2, 3]).is_none());
        assert!(filled(&values, &Tensor::vector(&[1i64]), &[2, 3]).is_none());
        assert!(filled(&values, &flat, &[i64::MAX, 3]).is_none());
    }
}
