//! How many bytes results have, and the weights that they are computed from.

use pt2onnx_ir::{Model, NodeId, Value};
use pt2onnx_tensor::{DType, Tensor};

fn used(model: &Model, id: NodeId) -> impl Iterator<Item = (usize, Value)> {
    let outputs = model[id].outputs().iter().copied().enumerate();
    outputs.filter(|&(_, v)| model[v].uses().len() > 0)
}

pub(super) fn bytes_of(model: &Model, id: NodeId, results: &[Tensor]) -> Option<usize> {
    let bytes = |(i, _)| results.get(i).map(Tensor::nbytes);
    used(model, id).try_fold(0usize, |sum, output| sum.checked_add(bytes(output)?))
}

pub(super) fn result_bytes(model: &Model, id: NodeId) -> Option<usize> {
    used(model, id).try_fold(0usize, |sum, (_, v)| {
        let (dtype, shape) = model.tensor_type(v)?;
        let sizes = shape.iter().map(|d| usize::try_from(d.as_int()?).ok());
        let bits = sizes.into_iter().try_fold(dtype.bits(), |n, s| n.checked_mul(s?))?;
        sum.checked_add(bits.div_ceil(8))
    })
}

/// Whether a constant is a weight that is stored in fewer bits than the results of a node have:
/// quantized, or as `float16`. Small ones are weights only if they are floats of more than one
/// element.
pub(super) fn is_narrow(model: &Model, weight: Value, of: NodeId, small: usize) -> bool {
    let bits = |v: Value| model.tensor_type(v).map_or(0, |(dtype, _)| dtype.bits());
    let widest = model[of].outputs().iter().map(|&v| bits(v)).max();
    let float = |t: &Tensor| matches!(t.dtype(), DType::F16 | DType::BF16) && t.numel() > 1;
    let stored = model[weight].constant().filter(|t| t.nbytes() > small || float(t));
    stored.is_some_and(|t| Some(t.dtype().bits()) < widest)
}
