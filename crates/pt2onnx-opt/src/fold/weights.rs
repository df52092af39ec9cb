//! Weights that a model fills with one number instead of saving them.

use crate::{Changed, rewrite};
use pt2onnx_ir::{Model, NodeId, Traits, Use, Value, attrs};
use pt2onnx_tensor::{DType, Tensor};

/// Most views between a weight and its user.
const MAX_VIEWS: usize = 5;

/// Weights of at most this many bytes are filled, and at most twice as many in a model.
const MAX_BYTES: usize = 512 << 20;

/// Makes the results of `ConstantOfShape` that are weights of other nodes constants. Runtimes hold
/// weights in memory anyway, and other passes read them.
pub(super) fn run(model: &mut Model, nodes: &[NodeId]) -> Changed {
    let mut changed = false;
    let mut total: Option<usize> = None;
    for &id in nodes {
        if !model.contains(id) || !model[id].is("ConstantOfShape") {
            continue;
        }
        let Some(weight) = filled(model, id) else { continue };
        let sum = total.unwrap_or_else(|| of_one_number(model)).saturating_add(weight.nbytes());
        if sum > 2 * MAX_BYTES {
            break;
        }
        total = Some(sum);
        let constant = model.add_constant(weight);
        changed |= rewrite::bypass(model, id, constant);
    }
    changed
}

fn of_one_number(model: &Model) -> usize {
    let tensors = model.values().filter_map(|(_, data)| data.constant());
    let one = |t: &&Tensor| t.rank() > 0 && t.strides().iter().all(|&s| s == 0);
    tensors.filter(one).map(Tensor::nbytes).fold(0, usize::saturating_add)
}

/// The constant: a view of one element, so it takes no memory before it is written.
fn filled(model: &Model, id: NodeId) -> Option<Tensor> {
    let node = &model[id];
    if !is_weight(model, *node.outputs().first()?, MAX_VIEWS) {
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

fn is_weight(model: &Model, value: Value, views: usize) -> bool {
    model[value].uses().len() > 0
        && model[value].uses().all(|u| {
            let Use::Input(user, at) = u else { return false };
            let user = &model[user];
            let viewed = || {
                let view = user.is("Transpose") || user.traits().contains(Traits::SHAPE_ONLY);
                let view = view && at == 0 && views > 0;
                view && user.outputs().first().is_some_and(|&v| is_weight(model, v, views - 1))
            };
            let weighted = user.traits().contains(Traits::LAYER) || user.is("BatchNormalization");
            at > 0 && weighted || viewed()
        })
}
