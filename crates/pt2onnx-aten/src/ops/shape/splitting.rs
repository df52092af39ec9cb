//! Translates ops that split a tensor along a dimension.

use crate::meta::{self, sized, unknown, with_size};
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
    op!(aten::chunk, split, parts, meta = meta_chunk),
    op!(aten::dsplit_array, tensor_split_at, parts, meta = meta_at_indices, dim = 2),
    op!(aten::dsplit_int, split, parts, meta = meta_in_sections, dim = 2),
    op!(aten::hsplit_array, tensor_split_at, parts, meta = meta_at_indices),
    op!(aten::hsplit_int, split, parts, meta = meta_in_sections),
    op!(aten::split, split, parts, meta = meta_of_sizes),
    op!(aten::split_Tensor, split, parts, meta = meta_split),
    op!(aten::split_sizes, split, parts, meta = meta_of_sizes),
    op!(aten::split_copy_Tensor, split, parts, meta = meta_split),
    op!(aten::split_with_sizes, split, parts, meta = meta_of_sizes),
    op!(aten::split_with_sizes_copy, split, parts, meta = meta_of_sizes),
    op!(aten::tensor_split_indices, tensor_split_at, parts, meta = meta_at_indices),
    op!(aten::tensor_split_sections, split, parts, meta = meta_in_sections),
    op!(
        aten::tensor_split_tensor_indices_or_sections,
        tensor_split_by,
        parts,
        meta = meta_tensor_split
    ),
    op!(aten::unbind_int, unbind, parts, meta = meta_unbind),
    op!(aten::unbind_copy_int, unbind, parts, meta = meta_unbind),
    op!(aten::unflatten_dense_tensors, unflatten_dense_tensors, parts),
    op!(aten::unsafe_chunk, split, parts, meta = meta_chunk),
    op!(aten::unsafe_split_Tensor, split, parts, meta = meta_split),
    op!(aten::unsafe_split_with_sizes, split, parts, meta = meta_of_sizes),
    op!(aten::vsplit_array, tensor_split_at, parts, meta = meta_at_indices, dim = 0),
    op!(aten::vsplit_int, split, parts, meta = meta_in_sections, dim = 0),
];

/// `Split` into pieces of the recorded sizes, which PyTorch computed from the parameter.
fn split(cx: &Cx, x: Value, _pieces: Ignored, dim: Option<i64>) -> Lowered<Vec<Value>> {
    let axis = split_axis(cx, x, dim)?;
    Ok(cx.split(x, axis, &piece_sizes(cx, axis)?))
}

/// Without `dim` (`hsplit`), the second dimension, or the only one of a vector.
fn split_axis(cx: &Cx, x: Value, dim: Option<i64>) -> Lowered<usize> {
    axis_of(cx.rank(x), dim.unwrap_or_else(|| i64::from(cx.rank(x) > 1)))
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
fn tensor_split_at(cx: &Cx, x: Value, indices: Vec<Expr>, dim: Option<i64>) -> Lowered<Vec<Value>> {
    let axis = split_axis(cx, x, dim)?;
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
        return Ok(cx.split(x, axis, &piece_sizes(cx, axis)?));
    }
    if let Some(known) = cx.contents(by) {
        return tensor_split_at(cx, x, known, Some(dim));
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

/// The parts of those sizes along `axis`.
fn meta_parts(cx: &Cx, x: Value, axis: usize, sizes: Vec<Expr>) -> Lowered<Vec<Value>> {
    Ok(sizes.into_iter().map(|size| sized(cx, x, &with_size(cx, x, axis, size))).collect())
}

/// Parts of `size`, the last one of what is left.
fn meta_equal(cx: &Cx, x: Value, axis: usize, size: &Expr) -> Lowered<Vec<Value>> {
    let total = cx.dim(x, axis as i64);
    let count = cx.constraints().simplify(&total.ceil_div(size));
    let Some(count) = count.as_int().or_else(|| cx.constraints().range_of(&count).as_int()) else {
        return unknown("the number of its parts is not known");
    };
    if size.as_int() == Some(0) || count == 0 {
        return meta_parts(cx, x, axis, vec![total]);
    }
    meta_sized_parts(cx, x, axis, size, count)
}

fn meta_split(cx: &Cx, x: Value, size: Expr, dim: i64) -> Lowered<Vec<Value>> {
    meta_equal(cx, x, cx.axis(x, dim)?, &size)
}

/// Parts of `ceil(size / chunks)`. These are `chunks` parts if the size is larger than `(chunks -
/// 1)^2`. PyTorch gives fewer parts of some smaller sizes; a symbolic size that may be smaller
/// counts as larger, as it does in a program that takes all parts.
fn meta_chunk(cx: &Cx, x: Value, chunks: i64, dim: i64) -> Lowered<Vec<Value>> {
    let axis = cx.axis(x, dim)?;
    let total = cx.dim(x, axis as i64);
    if total.as_int() == Some(0) {
        return meta_parts(cx, x, axis, vec![total; chunks.max(0) as usize]);
    }
    let size = cx.constraints().simplify(&total.ceil_div(&Expr::int(chunks)));
    let count = cx.constraints().simplify(&total.ceil_div(&size));
    let known = count.as_int().is_some() || cx.constraints().range_of(&count).as_int().is_some();
    if known || chunks < 1 {
        return meta_equal(cx, x, axis, &size);
    }
    meta_sized_parts(cx, x, axis, &size, chunks)
}

/// Parts of `size`, and one of what is left.
fn meta_sized_parts(
    cx: &Cx,
    x: Value,
    axis: usize,
    size: &Expr,
    count: i64,
) -> Lowered<Vec<Value>> {
    let mut sizes = vec![size.clone(); (count - 1).max(0) as usize];
    let rest = cx.dim(x, axis as i64) - size * (count - 1);
    sizes.push(cx.constraints().simplify(&rest));
    meta_parts(cx, x, axis, sizes)
}

fn meta_of_sizes(cx: &Cx, x: Value, sizes: Vec<Expr>, dim: i64) -> Lowered<Vec<Value>> {
    meta_parts(cx, x, cx.axis(x, dim)?, sizes)
}

/// The first parts have one element more, if the size is not divisible.
fn meta_in_sections(cx: &Cx, x: Value, sections: i64, dim: Option<i64>) -> Lowered<Vec<Value>> {
    let axis = split_axis(cx, x, dim)?;
    let total = cx.dim(x, axis as i64);
    let size = |i: i64| (&total + (sections - 1 - i)).floor_div(&Expr::int(sections));
    let sizes = (0..sections).map(|i| cx.constraints().simplify(&size(i))).collect();
    meta_parts(cx, x, axis, sizes)
}

fn meta_at_indices(cx: &Cx, x: Value, indices: Vec<Expr>, dim: Option<i64>) -> Lowered<Vec<Value>> {
    let axis = split_axis(cx, x, dim)?;
    let total = cx.dim(x, axis as i64);
    let mut sizes = Vec::new();
    let mut start = Expr::ZERO;
    for end in indices.iter().chain([&total]) {
        let end = meta::bound(cx, end, &total)?;
        sizes.push(cx.constraints().simplify(&Expr::max(&(&end - &start), &Expr::ZERO)));
        start = end;
    }
    meta_parts(cx, x, axis, sizes)
}

fn meta_tensor_split(cx: &Cx, x: Value, at: Value, dim: i64) -> Lowered<Vec<Value>> {
    match (cx.contents(at), cx.rank(at)) {
        (Some(indices), 1) => meta_at_indices(cx, x, indices, Some(dim)),
        (Some(sections), _) => match sections.first().and_then(Expr::as_int) {
            Some(sections) => meta_in_sections(cx, x, sections, Some(dim)),
            None => unknown("the number of its parts is not known"),
        },
        (None, _) => unknown("the places of its parts are not known"),
    }
}

fn meta_unbind(cx: &Cx, x: Value, dim: i64) -> Lowered<Vec<Value>> {
    let mut sizes = cx.shape(x);
    let count = sizes.remove(axis_of(sizes.len(), dim)?);
    let Some(count) = count.as_int() else {
        return unknown("the number of its parts is not known");
    };
    Ok((0..count).map(|_| sized(cx, x, &sizes)).collect())
}

checks! {
    // Pieces of the recorded sizes.
    "aten.split.Tensor(x: f32[7, s0], 3) -> [f32[3, s0], f32[3, s0], f32[1, s0]]" => "
    split_0, split_1, split_2 = Split <axis: int = 0> (x, [3, 3, 1])
    ";

    // One gather for each.
    "aten.unbind.int(x: f32[s0, 2], 1) -> [f32[s0], f32[s0]]" => "
    unbind_0 = Gather <axis: int = 1> (x, 0)
    unbind_1 = Gather <axis: int = 1> (x, 1)
    ";
}
