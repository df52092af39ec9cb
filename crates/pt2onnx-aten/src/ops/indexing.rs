//! Elements chosen by indices.

use crate::{AtenOp, Cx, LowerError, Lowered, registry::aten};
use pt2onnx_ir::{Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(super) static OPS: &[AtenOp] = &[
    aten!(
        "aten::embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor",
        embedding,
        parts
    ),
    aten!(
        "aten::gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
        gather,
        parts
    ),
    aten!(
        "aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
        index,
        parts
    ),
    aten!(
        "aten::index_select(Tensor self, int dim, Tensor index) -> Tensor",
        index_select,
        parts
    ),
];

/// Rows of `weight`; `padding_idx` and the rest only concern gradients.
fn embedding(cx: &Cx, weight: Value, indices: Value, _padding_idx: Expr) -> Lowered {
    Ok(cx.gather(weight, indices, 0))
}

/// `GatherElements`; of a 0-d tensor the element itself.
fn gather(cx: &Cx, x: Value, dim: i64, index: Value) -> Lowered {
    let axis = cx.axis(x, dim)? as i64;
    let vector = |v: Value| {
        if cx.rank(v) == 0 {
            cx.unsqueeze(v, &[0])
        } else {
            v
        }
    };
    let result = cx.gather_elements(vector(x), vector(index), attrs::GatherElements { axis });
    Ok(if cx.rank(index) == 0 {
        cx.squeeze(result, &[0])
    } else {
        result
    })
}

/// `Gather` along `dim`; a 0-d `x` counts as a vector, a 0-d `index` too.
fn index_select(cx: &Cx, x: Value, dim: i64, index: Value) -> Lowered {
    let axis = cx.axis(x, dim)?;
    let vector = |v: Value| {
        if cx.rank(v) == 0 {
            cx.unsqueeze(v, &[0])
        } else {
            v
        }
    };
    let result = cx.gather(vector(x), vector(index), axis);
    Ok(if cx.rank(x) == 0 {
        cx.squeeze(result, &[0])
    } else {
        result
    })
}

/// `x[i, :, j]`: the indices are broadcast together. Where the indexed dimensions are next to each other, the indices'
/// dimensions stand in their place; otherwise in front. A mask counts as its `nonzero` coordinates.
fn index(cx: &Cx, x: Value, indices: Vec<Option<Value>>) -> Lowered {
    let mut by_axis = Vec::new();
    let mut axis = 0;
    for index in indices {
        match index {
            None => axis += 1,
            Some(mask) if matches!(cx.dtype(mask), DType::Bool | DType::U8) => {
                let coordinates = nonzero_coordinates(cx, mask);
                by_axis.extend(
                    coordinates
                        .into_iter()
                        .enumerate()
                        .map(|(i, c)| (axis + i, c)),
                );
                axis += cx.rank(mask);
            }
            Some(index) => {
                by_axis.push((axis, cx.cast(index, DType::I64)));
                axis += 1;
            }
        }
    }
    match by_axis.as_slice() {
        [] => Ok(x),
        [(axis, index)] => Ok(cx.gather(x, *index, *axis)),
        _ => gather_nd(cx, x, &by_axis),
    }
}

/// For each dimension of `mask`, where along it the true elements are.
fn nonzero_coordinates(cx: &Cx, mask: Value) -> Vec<Value> {
    let rank = cx.rank(mask);
    let all = cx.non_zero(cx.cast(mask, DType::Bool));
    (0..rank)
        .map(|i| cx.take(all, 0, &Expr::int(i as i64)))
        .collect()
}

/// Several indices: the indexed dimensions move to the front, `GatherND` takes a vector of one index for each.
fn gather_nd(cx: &Cx, x: Value, by_axis: &[(usize, Value)]) -> Lowered {
    let rank = cx.rank(x);
    let axes: Vec<usize> = by_axis.iter().map(|(axis, _)| *axis).collect();
    let others = (0..rank).filter(|a| !axes.contains(a));
    let perm: Vec<usize> = axes.iter().copied().chain(others).collect();
    if perm.len() != rank {
        return Err(LowerError::unsupported(format!(
            "{} indices for a tensor of rank {rank}",
            axes.len()
        )));
    }
    let values: Vec<Value> = by_axis.iter().map(|(_, index)| *index).collect();
    let shape = values.iter().fold(vec![], |shape, v| {
        cx.broadcast_shapes(&shape, &cx.shape(*v))
    });
    let stacked: Vec<Value> = values
        .iter()
        .map(|v| cx.unsqueeze(cx.expand(*v, &shape), &[shape.len()]))
        .collect();
    let result = cx.gather_nd(
        cx.transpose(x, &perm),
        cx.concat(&stacked, shape.len()),
        Default::default(),
    );

    let adjacent = axes.windows(2).all(|w| w[1] == w[0] + 1);
    let before = if adjacent { axes[0] } else { 0 };
    // From (index dims, dims before, dims behind) to (dims before, index dims, dims behind).
    let k = shape.len();
    let order: Vec<usize> = (k..k + before)
        .chain(0..k)
        .chain(k + before..cx.rank(result))
        .collect();
    Ok(cx.transpose(result, &order))
}
