//! Parts of tensors: ranges, single elements, diagonals and windows.

use crate::math::shape::{
    SPELLED_OUT, axes_of, broadcast_along, constant, counted, diagonal, set_recorded, vector,
};
use crate::meta::{self, fresh, sized, unknown, with_size};
use crate::{AtenOp, Complex, Cx, LowerError, Lowered, checks, cx::axis_of, op};
use pt2onnx_ir::{Type, Value};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::diagonal, diagonal, parts, meta = meta_diagonal),
    op!(aten::diagonal_copy, diagonal, parts, meta = meta_diagonal),
    op!(aten::flip, flip, parts),
    op!(aten::fliplr, flip, parts, dims = 1),
    op!(aten::flipud, flip, parts, dims = 0),
    op!(aten::linalg_diagonal, diagonal, parts, meta = meta_diagonal),
    op!(aten::narrow, narrow, parts, meta = meta_narrow),
    op!(aten::narrow_Tensor, narrow_at, meta = meta_narrow_at),
    op!(aten::narrow_copy, narrow, parts, meta = meta_narrow),
    op!(aten::roll, roll, parts),
    op!(aten::rot90, rot90, parts),
    op!(aten::select_int, select, parts),
    op!(aten::select_copy_int, select, parts),
    op!(aten::slice_Tensor, slice, parts, meta = meta_slice),
    op!(aten::slice_copy_Tensor, slice, parts, meta = meta_slice),
    op!(aten::unfold, unfold, parts, meta = meta_unfold),
    op!(aten::unfold_copy, unfold, parts, meta = meta_unfold),
];

/// `Gather` of one element along `dim`. Negative indices count from the end in PyTorch and ONNX.
fn select(cx: &Cx, x: Value, dim: i64, index: Expr) -> Lowered {
    Ok(cx.take(x, cx.axis(x, dim)?, &index))
}

/// `Slice`. Negative and out-of-range bounds mean the same in PyTorch and ONNX.
fn slice(
    cx: &Cx,
    x: Value,
    dim: i64,
    start: Option<Expr>,
    end: Option<Expr>,
    step: Expr,
) -> Lowered {
    let axis = cx.axis(x, dim)?;
    let stepped = step != Expr::int(1);
    if cx.out_shape()? == cx.shape(x) && !stepped {
        return Ok(x);
    }
    let bound = |e: Option<Expr>, open: i64| cx.sizes(&[e.unwrap_or(Expr::int(open))]);
    let (start, end) = (bound(start, 0), bound(end, i64::MAX));
    let step = stepped.then(|| cx.sizes(&[step]));
    let result = cx.slice_op(x, start, end, cx.ints(&[axis as i64]), step);
    set_recorded(cx, result)
}

/// `length` elements from `start` on; a negative `start` counts from the end.
fn narrow(cx: &Cx, x: Value, dim: i64, start: Expr, length: Expr) -> Lowered {
    let axis = cx.axis(x, dim)?;
    let start = match start.as_int() {
        Some(known) if known < 0 => cx.dim(x, axis as i64) + start,
        _ => start,
    };
    if cx.out_shape()? == cx.shape(x) {
        return Ok(x);
    }
    let result = cx.slice(x, axis, &start, &(&start + length), 1);
    set_recorded(cx, result)
}

/// `length` elements from `start` on, a 0-d tensor.
fn narrow_at(cx: &Cx, x: Complex, dim: i64, start: Value, length: Expr) -> Lowered {
    let axis = cx.axis(x.re, dim)?;
    let start = cx.reshape(cx.cast(start, DType::I64), &[Expr::int(1)]);
    let from_end = cx.add(start, cx.sizes(&[cx.dim(x.re, axis as i64)]));
    let start = cx.select(cx.less(start, 0), from_end, start);
    let end = cx.add(start, cx.sizes(&[length]));
    let axes = cx.ints(&[axis as i64]);
    let narrowed = x.try_map(|x| set_recorded(cx, cx.slice_op(x, start, end, axes, None)));
    Ok(narrowed?.value(cx))
}

/// The elements in reverse order along each of `dims`.
fn flip(cx: &Cx, x: Value, dims: Vec<i64>) -> Lowered {
    Ok(flipped(cx, x, &axes_of(cx.rank(x), &dims)?))
}

/// A `Slice` with negative steps along `axes`.
fn flipped(cx: &Cx, x: Value, axes: &[usize]) -> Value {
    if axes.is_empty() {
        return x;
    }
    let bounds = |b: i64| cx.ints(&vec![b; axes.len()]);
    let given: Vec<i64> = axes.iter().map(|&a| a as i64).collect();
    let result = cx.slice_op(x, bounds(-1), bounds(i64::MIN), cx.ints(&given), bounds(-1));
    cx.set_type(result, Type::tensor(cx.dtype(x), cx.shape(x)));
    result
}

/// `x` rotated `k` times by 90 degrees in the plane of two dimensions, from the first towards the
/// second.
fn rot90(cx: &Cx, x: Value, k: i64, dims: Vec<i64>) -> Lowered {
    let axes = axes_of(cx.rank(x), &dims)?;
    let &[a, b] = axes.as_slice() else {
        return Err(LowerError::unsupported("a rotation needs exactly two dimensions"));
    };
    Ok(match k.rem_euclid(4) {
        1 => cx.swap_axes(flipped(cx, x, &[b]), a, b),
        2 => flipped(cx, x, &[a, b]),
        3 => cx.swap_axes(flipped(cx, x, &[a]), a, b),
        _ => x,
    })
}

/// Elements moved by `shifts` along `dims`; those that leave the end come back at the front.
/// Without `dims`, the flattened tensor.
fn roll(cx: &Cx, x: Value, shifts: Vec<Expr>, dims: Vec<i64>) -> Lowered {
    if dims.is_empty() {
        let flat = cx.reshape(x, &[cx.numel(x)]);
        let shift = shifts.first().cloned().unwrap_or(Expr::int(0));
        return Ok(cx.reshape(roll_one(cx, flat, 0, &shift), &cx.shape(x)));
    }
    if cx.rank(x) == 0 {
        return Ok(x);
    }
    let mut result = x;
    for (shift, axis) in shifts.iter().zip(axes_of(cx.rank(x), &dims)?) {
        result = roll_one(cx, result, axis, shift);
    }
    Ok(result)
}

/// `roll` along one dimension: a `Concat` of two pieces.
fn roll_one(cx: &Cx, x: Value, axis: usize, shift: &Expr) -> Value {
    let size = cx.dim(x, axis as i64);
    if size.as_int() == Some(0) {
        return x;
    }
    // Where the first element of the result is found; counted from the end where that saves knowing
    // the size.
    let start = match (shift.as_int(), size.as_int()) {
        (Some(shift), None)
            if cx.constraints().prove_ge(&size, &Expr::int(shift.saturating_abs())) =>
        {
            Expr::int(shift.saturating_neg())
        }
        (_, None) => (-shift).modulo(&Expr::max(&size, &Expr::int(1))),
        (_, Some(_)) => (-shift).modulo(&size),
    };
    if start.as_int() == Some(0) {
        return x;
    }
    let piece = |from: &Expr, to: &Expr| {
        let (from, to) = (cx.sizes(std::slice::from_ref(from)), cx.sizes(std::slice::from_ref(to)));
        cx.slice_op(x, from, to, cx.ints(&[axis as i64]), None)
    };
    let (head, tail) = (piece(&start, &Expr::int(i64::MAX)), piece(&Expr::int(0), &start));
    let result = cx.concat(&[head, tail], axis);
    cx.set_type(result, Type::tensor(cx.dtype(x), cx.shape(x)));
    result
}

/// Windows of `size` elements along `dim`, each `step` after the one before. The elements of a
/// window become the last dimension.
fn unfold(cx: &Cx, x: Value, dim: i64, size: i64, step: i64) -> Lowered {
    let axis = cx.axis(x, dim)?;
    if cx.rank(x) == 0 {
        let one = cx.slice(vector(cx, x), 0, &Expr::int(0), &Expr::int(size), 1);
        return set_recorded(cx, one);
    }
    let rank = cx.rank(x);
    let windows = (cx.dim(x, axis as i64) - size).floor_div(&Expr::int(step)) + 1;
    let parted = if size == step && size > 0 {
        let used = cx.slice(x, axis, &Expr::int(0), &(&windows * size), 1);
        let mut shape = cx.shape(x);
        shape.splice(axis..=axis, [windows, Expr::int(size)]);
        cx.reshape(used, &shape)
    } else {
        let starts = counted(cx, &Expr::int(0), &windows, step);
        let within = counted(cx, &Expr::int(0), &Expr::int(size), 1);
        let indices = match windows
            .as_int()
            .filter(|w| w.saturating_mul(size) <= SPELLED_OUT && *w <= SPELLED_OUT)
        {
            Some(windows) => {
                let all: Vec<i64> = (0..windows)
                    .flat_map(|w| (0..size).map(move |i| w.saturating_mul(step).saturating_add(i)))
                    .collect();
                constant(cx, &[windows, size], &all)
            }
            None => cx.add(broadcast_along(cx, starts, 0, 2), within),
        };
        cx.gather(x, indices, axis)
    };
    let order: Vec<usize> = (0..=axis).chain(axis + 2..=rank).chain([axis + 1]).collect();
    set_recorded(cx, cx.transpose(parted, &order))
}

fn meta_diagonal(cx: &Cx, x: Value, offset: i64, dim1: i64, dim2: i64) -> Lowered {
    let mut size = cx.shape(x);
    let (a, b) = (axis_of(size.len(), dim1)?, axis_of(size.len(), dim2)?);
    let length = meta::diagonal_length(cx, &size[a], &size[b], offset);
    size.remove(a.max(b));
    size.remove(a.min(b));
    size.push(length);
    Ok(sized(cx, x, &size))
}

fn meta_narrow_at(cx: &Cx, x: Value, dim: i64, _start: Value, length: Expr) -> Lowered {
    meta_narrow(cx, x, dim, None, length)
}

fn meta_narrow(cx: &Cx, x: Value, dim: i64, start: Option<Expr>, length: Expr) -> Lowered {
    let axis = cx.axis(x, dim)?;
    let (size, zero) = (cx.dim(x, dim), Expr::ZERO);
    let start = start.filter(|s| cx.constraints().prove_ge(s, &zero)).unwrap_or(zero);
    if cx.constraints().prove_gt(&(start + &length), &size) {
        return unknown("its range goes beyond the end");
    }
    Ok(sized(cx, x, &with_size(cx, x, axis, length)))
}

fn meta_slice(
    cx: &Cx,
    x: Value,
    dim: i64,
    start: Option<Expr>,
    end: Option<Expr>,
    step: Expr,
) -> Lowered {
    let axis = cx.axis(x, dim)?;
    let size = cx.dim(x, axis as i64);
    let start = start.map_or(Ok(Expr::ZERO), |at| meta::bound(cx, &at, &size));
    let end = match end {
        Some(end) if end.as_int() != Some(i64::MAX) => meta::bound(cx, &end, &size),
        _ => Ok(size.clone()),
    };
    let (Ok(start), Ok(end)) = (start, end) else {
        // Only at run time it is known whether they count from the end.
        return Ok(sized(cx, x, &with_size(cx, x, axis, fresh(cx))));
    };
    let length = cx.constraints().simplify(&Expr::max(&(&end - &start), &Expr::ZERO));
    let length = cx.constraints().simplify(&length.ceil_div(&step));
    Ok(sized(cx, x, &with_size(cx, x, axis, length)))
}

/// Windows of a dimension, in a new last one.
fn meta_unfold(cx: &Cx, x: Value, dim: i64, window: i64, step: i64) -> Lowered {
    let mut size = cx.shape(x);
    if size.is_empty() {
        return Ok(sized(cx, x, &[Expr::int(window)]));
    }
    let axis = axis_of(size.len(), dim)?;
    size[axis] = (&size[axis] - window).floor_div(&Expr::int(step)) + 1;
    size.push(Expr::int(window));
    Ok(sized(cx, x, &size))
}

checks! {
    // Bounds may be open.
    "aten.slice.Tensor(x: f32[s0, 8], 1, None, 9223372036854775807, 2) -> f32[s0, 4]" => "
    slice = Slice (x, [0], [9223372036854775807], [1], [2])
    ";

    // A rolled dynamic dimension.
    "{s0: VR[4, 9]} aten.roll(x: f32[s0], [2], [0]) -> f32[s0]" => "
    val_0 = Slice (x, [-2], [9223372036854775807], [0])
    val_1 = Slice (x, [0], [-2], [0])
    roll = Concat <axis: int = 0> (val_0, val_1)
    ";
}
