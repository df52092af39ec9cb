//! Translates ops that join tensors along a dimension.

use crate::math::shape::{pad_to, set_recorded};
use crate::meta::{self, sized, typed, with_size};
use crate::{AtenOp, Cx, LowerError, Lowered, checks, cx::axis_of, op};
use pt2onnx_ir::Value;
use pt2onnx_symbolic::Expr;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_chunk_cat, chunk_cat, parts),
    op!(aten::_stack, stack, parts, meta = meta_stack),
    op!(aten::cat, cat, parts, meta = meta_cat),
    op!(aten::column_stack, column_stack, parts, meta = meta_column_stack),
    op!(aten::concat, cat, parts, meta = meta_cat),
    op!(aten::concatenate, cat, parts, meta = meta_cat),
    op!(aten::dstack, dstack, parts, meta = meta_stacked::<3, 2>),
    op!(aten::flatten_dense_tensors, flatten_dense_tensors, parts, meta = meta_flattened_all),
    op!(aten::hstack, hstack, parts, meta = meta_stacked::<1, 1>),
    op!(aten::row_stack, vstack, parts, meta = meta_stacked::<2, 0>),
    op!(aten::stack, stack, parts, meta = meta_stack),
    op!(aten::vstack, vstack, parts, meta = meta_stacked::<2, 0>),
];

/// `Concat` in the tensors' common type. As in PyTorch, empty vectors are left out, whatever the
/// rank of the others.
fn cat(cx: &Cx, tensors: Vec<Value>, dim: i64) -> Lowered {
    let empty = |t: &Value| cx.known_shape(*t).is_some_and(|s| s == [Expr::int(0)]);
    let rank = cx.out_shape()?.len();
    let kept: Vec<Value> = tensors.iter().filter(|t| rank == 1 || !empty(t)).copied().collect();
    match kept.as_slice() {
        [] => joined(cx, &tensors[..tensors.len().min(1)], 0),
        _ => joined(cx, &kept, axis_of(rank, dim)?),
    }
}

/// `Concat` of tensors in the recorded type.
fn joined(cx: &Cx, tensors: &[Value], axis: usize) -> Lowered {
    if tensors.is_empty() {
        return Err(LowerError::unsupported("the list of tensors to join is empty"));
    }
    let dtype = cx.out_dtype()?;
    let cast: Vec<Value> = tensors.iter().map(|&t| cx.cast(t, dtype)).collect();
    match cast[..] {
        [only] => Ok(only),
        _ => set_recorded(cx, cx.concat(&cast, axis)),
    }
}

/// `Concat` of the tensors, each with a new dimension.
fn stack(cx: &Cx, tensors: Vec<Value>, dim: i64) -> Lowered {
    let axis = axis_of(cx.out_shape()?.len(), dim)?;
    let pieces: Vec<Value> = tensors.iter().map(|&t| cx.unsqueeze(t, &[axis])).collect();
    joined(cx, &pieces, axis)
}

/// Joined along the second dimension; 0-d tensors and vectors along the first.
fn hstack(cx: &Cx, tensors: Vec<Value>) -> Lowered {
    let rank = cx.out_shape()?.len();
    joined(cx, &at_least(cx, tensors, 1, |_| &[0]), usize::from(rank > 1))
}

/// Joined along the first dimension; 0-d tensors and vectors are rows.
fn vstack(cx: &Cx, tensors: Vec<Value>) -> Lowered {
    let lead = |rank| if rank == 0 { &[0, 1][..] } else { &[0] };
    joined(cx, &at_least(cx, tensors, 2, lead), 0)
}

/// Joined along the third dimension.
fn dstack(cx: &Cx, tensors: Vec<Value>) -> Lowered {
    let lead = |rank| match rank {
        0 => &[0, 1, 2][..],
        1 => &[0, 2],
        _ => &[2],
    };
    joined(cx, &at_least(cx, tensors, 3, lead), 2)
}

/// Joined along the second dimension; 0-d tensors and vectors are columns.
fn column_stack(cx: &Cx, tensors: Vec<Value>) -> Lowered {
    let lead = |rank| if rank == 0 { &[0, 1][..] } else { &[1] };
    joined(cx, &at_least(cx, tensors, 2, lead), 1)
}

/// Each tensor of fewer than `rank` dimensions with the new dimensions that `new` gives for its
/// rank.
fn at_least(
    cx: &Cx,
    tensors: Vec<Value>,
    rank: usize,
    new: impl Fn(usize) -> &'static [usize],
) -> Vec<Value> {
    let widened = |x| match cx.rank(x) {
        given if given < rank => cx.unsqueeze(x, new(given)),
        _ => x,
    };
    tensors.into_iter().map(widened).collect()
}

/// The elements of all tensors as one vector.
fn flatten_dense_tensors(cx: &Cx, tensors: Vec<Value>) -> Lowered {
    let rows: Vec<Value> = tensors.iter().map(|&t| crate::math::shape::flat(cx, t)).collect();
    joined(cx, &rows, 0)
}

/// Each tensor split into `chunks` equal pieces along `dim` (zeros fill the last), each piece
/// flattened to a row, and the rows of all tensors joined.
fn chunk_cat(cx: &Cx, tensors: Vec<Value>, dim: i64, chunks: i64) -> Lowered {
    let rows = |&x: &Value| -> Lowered {
        let axis = cx.axis(x, dim)?;
        let pieces = Expr::int(chunks);
        let size = cx.dim(x, axis as i64).ceil_div(&pieces) * &pieces;
        let padded = pad_to(cx, x, axis, &size);
        let mut shape = cx.shape(padded);
        let row = Expr::product(shape.split_off(axis)).floor_div(&pieces);
        shape.extend([pieces, row]);
        Ok(cx.reshape(padded, &shape))
    };
    let rows: Vec<Value> = tensors.iter().map(rows).collect::<Lowered<_>>()?;
    match rows[..] {
        [] => Err(LowerError::unsupported("the list of tensors to join is empty")),
        [only] => Ok(only),
        [first, ..] => Ok(cx.concat(&rows, cx.rank(first).saturating_sub(1))),
    }
}

/// Vectors without elements are left out.
fn meta_cat(cx: &Cx, tensors: Vec<Value>, dim: i64) -> Lowered {
    let dtype = meta::common_type(cx, &tensors)?;
    let empty = |v: &Value| cx.rank(*v) == 1 && cx.dim(*v, 0).as_int() == Some(0);
    let parts: Vec<Value> = tensors.iter().copied().filter(|v| !empty(v)).collect();
    let Some(&first) = parts.first() else {
        return Ok(typed(cx, dtype, &[Expr::ZERO]));
    };
    let axis = axis_of(cx.rank(first), dim)?;
    let total = Expr::sum(parts.iter().map(|&v| cx.dim(v, axis as i64)));
    Ok(typed(cx, dtype, &with_size(cx, first, axis, total)))
}

fn meta_stack(cx: &Cx, tensors: Vec<Value>, dim: i64) -> Lowered {
    let dtype = meta::common_type(cx, &tensors)?;
    let mut size = cx.shape(tensors[0]);
    let axis = axis_of(size.len() + 1, dim)?;
    size.insert(axis, Expr::int(tensors.len() as i64));
    Ok(typed(cx, dtype, &size))
}

/// Joins tensors of `RANK` dimensions at least along dimension `DIM`, vectors along their only one.
fn meta_stacked<const RANK: usize, const DIM: i64>(cx: &Cx, tensors: Vec<Value>) -> Lowered {
    let tensors = meta::all_at_least::<RANK>(cx, tensors)?;
    let vectors = tensors.first().is_some_and(|&v| cx.rank(v) == 1);
    meta_cat(cx, tensors, if vectors { 0 } else { DIM })
}

/// Vectors are columns.
fn meta_column_stack(cx: &Cx, tensors: Vec<Value>) -> Lowered {
    let column = |v: Value| match cx.rank(v) {
        0 | 1 => sized(cx, v, &[cx.numel(v), Expr::ONE]),
        _ => v,
    };
    meta_cat(cx, tensors.into_iter().map(column).collect(), 1)
}

fn meta_flattened_all(cx: &Cx, tensors: Vec<Value>) -> Lowered {
    let total = Expr::sum(tensors.iter().map(|&v| cx.numel(v)));
    Ok(typed(cx, meta::common_type(cx, &tensors)?, &[total]))
}

checks! {
    // Empty vectors are left out.
    "aten.cat([x: f32[s0, 2], y: f32[0], z: i64[3, 2]]) -> f32[s0 + 3, 2]" => "
    val_0 = Cast <to: int = 1> (z)
    cat = Concat <axis: int = 0> (x, val_0)
    ";

    // Scalars are rows.
    "aten.vstack([x: f32[], y: f32[1]]) -> f32[2, 1]" => "
    val_0 = Unsqueeze (x, [0, 1])
    val_1 = Unsqueeze (y, [0])
    vstack = Concat <axis: int = 0> (val_0, val_1)
    ";
}
