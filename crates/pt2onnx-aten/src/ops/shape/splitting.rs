//! Translates ops that split a tensor along a dimension.

use crate::{
    AtenOp, Cx, LowerError, Lowered,
    args::Ignored,
    checks,
    cx::{Outputs, axis_of},
    op,
};
use pt2onnx_ir::{Type, Value};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::chunk, split, parts),
    op!(aten::dsplit_array, tensor_split_at, parts, dim = 2),
    op!(aten::dsplit_int, split, parts, dim = 2),
    op!(aten::hsplit_array, hsplit_at, parts),
    op!(aten::hsplit_int, hsplit, parts),
    op!(aten::split_Tensor, split, parts),
    op!(aten::split_sizes, split, parts),
    op!(aten::split_copy_Tensor, split, parts),
    op!(aten::split_with_sizes, split, parts),
    op!(aten::split_with_sizes_copy, split, parts),
    op!(aten::tensor_split_indices, tensor_split_at, parts),
    op!(aten::tensor_split_sections, split, parts),
    op!(aten::tensor_split_tensor_indices_or_sections, tensor_split_by, parts),
    op!(aten::unbind_int, unbind, parts),
    op!(aten::unbind_copy_int, unbind, parts),
    op!(aten::unflatten_dense_tensors, unflatten_dense_tensors, parts),
    op!(aten::unsafe_chunk, split, parts),
    op!(aten::unsafe_split_Tensor, split, parts),
    op!(aten::unsafe_split_with_sizes, split, parts),
    op!(aten::vsplit_array, tensor_split_at, parts, dim = 0),
    op!(aten::vsplit_int, split, parts, dim = 0),
];

/// [`split_along`]; the number or sizes of the pieces are the recorded ones.
fn split(cx: &Cx, x: Value, _pieces: Ignored, dim: i64) -> Lowered<Vec<Value>> {
    split_along(cx, x, dim)
}

/// `Split` into pieces of the recorded sizes.
fn split_along(cx: &Cx, x: Value, dim: i64) -> Lowered<Vec<Value>> {
    let axis = axis_of(cx.rank(x), dim)?;
    Ok(cx.split(x, axis, &piece_sizes(cx, axis)?))
}

/// [`split_along`] the second dimension, or the only one of a vector.
fn hsplit(cx: &Cx, x: Value, _pieces: Ignored) -> Lowered<Vec<Value>> {
    split_along(cx, x, i64::from(cx.rank(x) > 1))
}

/// [`tensor_split_at`] along the second dimension, or the only one of a vector.
fn hsplit_at(cx: &Cx, x: Value, indices: Vec<Expr>) -> Lowered<Vec<Value>> {
    tensor_split_at(cx, x, indices, i64::from(cx.rank(x) > 1))
}

/// The recorded sizes of the pieces.
fn piece_sizes(cx: &Cx, axis: usize) -> Lowered<Vec<Expr>> {
    let size = |i: usize| cx.recorded(i).and_then(|m| m.sizes.get(axis).cloned());
    let sizes: Option<Vec<Expr>> = (0..cx.recorded_len()).map(size).collect();
    sizes.ok_or_else(|| {
        LowerError::unsupported("the archive does not record the sizes of the pieces")
    })
}

/// Pieces between indices: a `Split` where they do not overlap, else a `Slice` for each.
fn tensor_split_at(cx: &Cx, x: Value, indices: Vec<Expr>, dim: i64) -> Lowered<Vec<Value>> {
    let axis = axis_of(cx.rank(x), dim)?;
    let sizes = piece_sizes(cx, axis)?;
    let total = sizes.iter().fold(Expr::int(0), |sum, size| sum + size);
    if cx.constraints().prove_eq(&total, &cx.dim(x, axis as i64)) == Some(true) {
        return Ok(cx.split(x, axis, &sizes));
    }
    let indices: Vec<Value> = indices.iter().map(|i| cx.sizes(std::slice::from_ref(i))).collect();
    pieces_between(cx, x, axis, &indices)
}

/// Pieces between the elements of a vector; a 0-d tensor is a number of pieces.
fn tensor_split_by(cx: &Cx, x: Value, by: Value, dim: i64) -> Lowered<Vec<Value>> {
    let axis = axis_of(cx.rank(x), dim)?;
    if cx.rank(by) == 0 {
        return split_along(cx, x, dim);
    }
    if let Some(known) = cx.contents(by) {
        return tensor_split_at(cx, x, known, dim);
    }
    let ones = vec![Expr::int(1); cx.recorded_len().saturating_sub(1)];
    let indices = cx.split(cx.cast(by, DType::I64), 0, &ones);
    pieces_between(cx, x, axis, &indices)
}

/// A `Slice` from each index (a vector of one) to the next.
fn pieces_between(cx: &Cx, x: Value, axis: usize, indices: &[Value]) -> Lowered<Vec<Value>> {
    let (first, last) = (cx.ints(&[0]), cx.ints(&[i64::MAX]));
    let starts = [first].into_iter().chain(indices.iter().copied());
    let ends = indices.iter().copied().chain([last]);
    let piece = |(i, (start, end)): (usize, (Value, Value))| {
        let piece = cx.slice_op(x, start, end, cx.ints(&[axis as i64]), None);
        if let Some(meta) = cx.recorded(i) {
            cx.set_type(piece, Type::tensor(cx.dtype(x), meta.sizes.clone()));
        }
        piece
    };
    Ok(starts.zip(ends).enumerate().map(piece).collect())
}

/// One `Gather` for each element that is used.
fn unbind(cx: &Cx, x: Value, dim: i64) -> Lowered<Outputs> {
    let axis = axis_of(cx.rank(x), dim)?;
    let element = |i: usize| cx.recorded(i).map(|_| cx.take(x, axis, &Expr::int(i as i64)));
    Ok(Outputs((0..cx.recorded_len()).map(element).collect()))
}

/// A vector in pieces of the sizes and shapes of `like`.
fn unflatten_dense_tensors(cx: &Cx, x: Value, like: Vec<Value>) -> Lowered<Vec<Value>> {
    let sizes: Vec<Expr> = like.iter().map(|&v| cx.numel(v)).collect();
    let pieces = cx.split(x, 0, &sizes).into_iter().zip(like);
    Ok(pieces.map(|(piece, like)| cx.reshape(piece, &cx.shape(like))).collect())
}

checks! {
    pieces_of_the_recorded_sizes {
        "aten.split.Tensor(x: f32[7, s0], 3) -> [f32[3, s0], f32[3, s0], f32[1, s0]]" => "
        (float[7,s0] x) => (float[3,s0] split_0, float[3,s0] split_1, float[1,s0] split_2)
        <
          int64[3] val_0 = {3, 3, 1}
        >
        {
          split_0, split_1, split_2 = Split <axis: int = 0> (x, val_0)
        }
        ";
    }

    one_gather_for_each {
        "aten.unbind.int(x: f32[s0, 2], 1) -> [f32[s0], f32[s0]]" => "
        (float[s0,2] x) => (float[s0] unbind_0, float[s0] unbind_1)
        <
          int64 val_0 = {0},
          int64 val_1 = {1}
        >
        {
          unbind_0 = Gather <axis: int = 1> (x, val_0)
          unbind_1 = Gather <axis: int = 1> (x, val_1)
        }
        ";
    }
}
