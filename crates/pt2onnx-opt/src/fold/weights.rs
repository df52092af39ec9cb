//! Weights that a model fills with one number instead of saving them.

use pt2onnx_ir::{Model, NodeId, Use, attrs};
use pt2onnx_tensor::{DType, Tensor};

/// Weights of at most this many bytes are filled.
const MAX_BYTES: usize = 512 << 20;

/// Operators of which all inputs but the first are weights.
const WEIGHTED: &[&str] = &["Conv", "ConvTranspose", "BatchNormalization", "Gemm", "MatMul"];

/// The result of a `ConstantOfShape` that is a weight of other nodes: a view of one element, so it takes no memory before it is
/// written. Runtimes hold weights in memory anyway, and other passes read them.
pub(super) fn filled(model: &Model, id: NodeId) -> Option<Tensor> {
    let node = &model[id];
    let output = *node.outputs().first().filter(|_| node.is("ConstantOfShape"))?;
    let is_weight = |u: Use| match u {
        Use::Input(user, at) => {
            let user = &model[user];
            at > 0 && user.domain.is_empty() && WEIGHTED.contains(&user.op())
        }
        _ => false,
    };
    if !model[output].uses().all(is_weight) {
        return None;
    }
    let sizes: Vec<usize> = { model[node.input(0)?].constant()?.to_vec::<i64>()?.into_iter() }
        .map(|s| usize::try_from(s).ok())
        .collect::<Option<_>>()?;
    let given = attrs::ConstantOfShape::read(node).ok()?.value;
    let value = given.unwrap_or_else(|| Tensor::scalar(0f32));
    let bytes = sizes.iter().try_fold(value.dtype().bits() / 8, |n, &s| n.checked_mul(s))?;
    let plain = matches!(value.dtype(), DType::F64 | DType::F32 | DType::F16 | DType::BF16);
    let strides = vec![0; sizes.len()];
    let storage = value.storage().filter(|_| plain && bytes <= MAX_BYTES)?.clone();
    Tensor::strided(value.dtype(), sizes, strides, value.offset(), storage).ok()
}
