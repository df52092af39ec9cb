//! What the families about shapes and indices share: recorded sizes, counted vectors, crops.

use crate::{Cx, FromArg, Lowered, cx::axis_of};
use pt2onnx_fx::graph::Argument;
use pt2onnx_ir::{Type, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Tensor};

/// Index tensors up to this many elements are spelled out as constants; longer ones are computed at run time.
pub(super) const SPELLED_OUT: i64 = 4096;

/// An argument that the recorded sizes say more of.
pub(super) struct Implied;

impl FromArg for Implied {
    fn from_arg(_: &Cx, _: &Argument) -> Result<Self, String> {
        Ok(Implied)
    }
}

/// `x` with the recorded sizes, in which every -1 is worked out.
pub(super) fn to_recorded(cx: &Cx, x: Value) -> Lowered {
    Ok(cx.reshape(x, &cx.out_shape()?))
}

/// Says that `x` has the recorded sizes: of ops whose result's size inference does not see.
pub(super) fn recorded(cx: &Cx, x: Value) -> Lowered {
    cx.set_type(x, Type::tensor(cx.dtype(x), cx.out_shape()?));
    Ok(x)
}

/// A 0-d tensor as a vector.
pub(super) fn vector(cx: &Cx, x: Value) -> Value {
    match cx.rank(x) {
        0 => cx.unsqueeze(x, &[0]),
        _ => x,
    }
}

/// All elements in a row.
pub(super) fn flat(cx: &Cx, x: Value) -> Value {
    cx.reshape(x, &[cx.numel(x)])
}

/// `dims` of a tensor of that rank counted from the front; a 0-d tensor has one to name, and none to work on.
pub(super) fn axes_of(rank: usize, dims: &[i64]) -> Lowered<Vec<usize>> {
    let axes: Vec<usize> = dims.iter().map(|&d| axis_of(rank.max(1), d)).collect::<Lowered<_>>()?;
    Ok(if rank == 0 { Vec::new() } else { axes })
}

/// Whether nothing is in it, by sizes known now.
pub(super) fn is_empty(shape: &[Expr]) -> bool {
    shape.iter().any(|d| d.as_int() == Some(0))
}

/// `start`, `start + step`, ...: `length` numbers, int64.
pub(super) fn counted(cx: &Cx, start: &Expr, length: &Expr, step: i64) -> Value {
    match (start.as_int(), length.as_int()) {
        (Some(start), Some(length)) if length <= SPELLED_OUT => {
            let number = |i: i64| start.saturating_add(i.saturating_mul(step));
            let numbers: Vec<i64> = (0..length).map(number).collect();
            cx.ints(&numbers)
        }
        _ => {
            let end = start + length * step;
            let range = cx.range(cx.size(start), cx.size(&end), cx.scalar(step, DType::I64));
            cx.set_type(range, Type::tensor(DType::I64, [length.clone()]));
            range
        }
    }
}

/// An int64 constant.
pub(super) fn constant(cx: &Cx, shape: &[i64], elements: &[i64]) -> Value {
    let shape: Vec<usize> = shape.iter().map(|&d| d.max(0) as usize).collect();
    match Tensor::from_slice(shape, elements) {
        Ok(tensor) => cx.constant(tensor),
        Err(error) => {
            cx.report(error.to_string());
            cx.ints(&[])
        }
    }
}

/// The first elements along each dimension, so many as `shape` says.
pub(super) fn crop(cx: &Cx, x: Value, shape: &[Expr]) -> Value {
    let from = cx.shape(x);
    let axes: Vec<usize> =
        (0..from.len().min(shape.len())).filter(|&i| from[i] != shape[i]).collect();
    if axes.is_empty() {
        return x;
    }
    let zeros = vec![0; axes.len()];
    let ends: Vec<Expr> = axes.iter().map(|&a| shape[a].clone()).collect();
    let given: Vec<i64> = axes.iter().map(|&a| a as i64).collect();
    let result = cx.slice_op(x, cx.ints(&zeros), cx.sizes(&ends), cx.ints(&given), None);
    cx.set_type(result, Type::tensor(cx.dtype(x), shape));
    result
}

/// Zeros (or another number) behind `x` along `axis`, until it is `size` long.
pub(super) fn pad_to(cx: &Cx, x: Value, axis: usize, size: &Expr) -> Value {
    let mut shape = cx.shape(x);
    let Some(dim) = shape.get_mut(axis).filter(|dim| *dim != size) else {
        return x;
    };
    let missing = size - &*dim;
    *dim = size.clone();
    let pads = cx.sizes(&[Expr::int(0), missing]);
    let result = cx.pad(x, pads, None, cx.ints(&[axis as i64]), attrs::Pad::default());
    cx.set_type(result, Type::tensor(cx.dtype(x), shape));
    result
}

/// `x` as an index: int64 or int32.
pub(super) fn as_index(cx: &Cx, x: Value) -> Value {
    match cx.dtype(x) {
        DType::I32 => x,
        _ => cx.cast(x, DType::I64),
    }
}

/// A vector laid along dimension `axis` of a tensor of that rank, for what broadcasts: dimensions before it are left out.
pub(super) fn along(cx: &Cx, x: Value, axis: usize, rank: usize) -> Value {
    let behind: Vec<usize> = (1..rank.saturating_sub(axis)).collect();
    cx.unsqueeze(x, &behind)
}

/// Says that `x` has the recorded sizes, but for a leading one that a 0-d tensor got to count as a vector.
pub(super) fn settled(cx: &Cx, x: Value) -> Lowered {
    let extra = cx.rank(x).saturating_sub(cx.out_shape()?.len());
    let axes: Vec<usize> = (0..extra).collect();
    recorded(cx, cx.squeeze(x, &axes))
}

/// Both broadcast to the shape that they have in common.
pub(super) fn together(cx: &Cx, a: Value, b: Value) -> (Value, Value) {
    let (from_a, from_b) = (cx.shape(a), cx.shape(b));
    let shape = cx.broadcast_shapes(&from_a, &from_b);
    if shape.iter().all(|d| from_a.contains(d) || from_b.contains(d)) {
        return (cx.expand(a, &shape), cx.expand(b, &shape));
    }
    // Sizes that only run time tells to be the same. `Expand` broadcasts both ways.
    let to = |x: Value, like: Value| {
        let wide = cx.expand_op(x, cx.shape_op(like, Default::default()));
        cx.set_type(wide, Type::tensor(cx.dtype(x), shape.clone()));
        wide
    };
    let a = to(a, b);
    cx.bind_dims(a);
    (a, to(b, a))
}
