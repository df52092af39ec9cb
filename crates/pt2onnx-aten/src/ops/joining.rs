//! Tensors joined, and taken apart.

use crate::{AtenOp, Cx, LowerError, Lowered, TensorOrScalar, cx::Outputs, registry::aten};
use pt2onnx_ir::Value;
use pt2onnx_symbolic::Expr;

pub(super) static OPS: &[AtenOp] = &[
    aten!(
        "aten::cat(Tensor[] tensors, int dim=0) -> Tensor",
        cat,
        parts
    ),
    aten!(
        "aten::chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]",
        |cx: &Cx, x: Value, _chunks: i64, dim: i64| split(cx, x, dim),
        parts
    ),
    aten!(
        "aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]",
        |cx: &Cx, x: Value, _size: Expr, dim: i64| split(cx, x, dim),
        parts
    ),
    aten!(
        "aten::split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]",
        |cx: &Cx, x: Value, _sizes: Vec<Expr>, dim: i64| split(cx, x, dim),
        parts
    ),
    aten!(
        "aten::stack(Tensor[] tensors, int dim=0) -> Tensor",
        stack,
        parts
    ),
    aten!(
        "aten::unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]",
        unbind,
        parts
    ),
];

/// `Concat` in the tensors' common type. Empty vectors join anything, by an old habit of PyTorch's.
fn cat(cx: &Cx, tensors: Vec<Value>, dim: i64) -> Lowered {
    let operands: Vec<TensorOrScalar> = tensors.iter().map(|&t| t.into()).collect();
    let dtype = cx.result_type(&operands);
    let empty = |t: &Value| cx.known_shape(*t).is_some_and(|s| s == [Expr::int(0)]);
    let rank = cx.out_shape()?.len();
    let kept: Vec<Value> = tensors
        .iter()
        .filter(|t| rank == 1 || !empty(t))
        .map(|&t| cx.cast(t, dtype))
        .collect();
    match (kept.first(), tensors.first()) {
        (Some(&first), _) => Ok(cx.concat(&kept, cx.axis(first, dim)?)),
        (None, Some(&first)) => Ok(cx.cast(first, dtype)),
        (None, None) => Err(LowerError::unsupported("nothing to concatenate")),
    }
}

/// `Concat` of the tensors, each with a new dimension.
fn stack(cx: &Cx, tensors: Vec<Value>, dim: i64) -> Lowered {
    let operands: Vec<TensorOrScalar> = tensors.iter().map(|&t| t.into()).collect();
    let dtype = cx.result_type(&operands);
    let axis = crate::cx::axis_of(cx.out_shape()?.len(), dim)?;
    let pieces: Vec<Value> = tensors
        .iter()
        .map(|&t| cx.unsqueeze(cx.cast(t, dtype), &[axis]))
        .collect();
    Ok(cx.concat(&pieces, axis))
}

/// `Split` into pieces of the recorded sizes.
fn split(cx: &Cx, x: Value, dim: i64) -> Lowered<Vec<Value>> {
    let axis = cx.axis(x, dim)?;
    let size = |i: usize| cx.recorded(i).and_then(|m| m.sizes.get(axis).cloned());
    let sizes: Option<Vec<Expr>> = (0..cx.recorded_len()).map(size).collect();
    let sizes = sizes.ok_or_else(|| {
        LowerError::unsupported("the archive does not tell the sizes of its pieces")
    })?;
    Ok(cx.split(x, axis, &sizes))
}

/// One `Gather` for each element that somebody uses.
fn unbind(cx: &Cx, x: Value, dim: i64) -> Lowered<Outputs> {
    let axis = cx.axis(x, dim)?;
    let element = |i: usize| {
        cx.recorded(i)
            .map(|_| cx.take(x, axis, &Expr::int(i as i64)))
    };
    Ok(Outputs((0..cx.recorded_len()).map(element).collect()))
}
