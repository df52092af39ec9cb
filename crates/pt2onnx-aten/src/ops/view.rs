//! Other sizes, strides and windows on the same elements.

use crate::{AtenOp, Cx, Lowered, cx::axis_of, registry::aten};
use pt2onnx_ir::Value;
use pt2onnx_symbolic::Expr;

pub(super) static OPS: &[AtenOp] = &[
    aten!(
        "aten::_unsafe_view(Tensor self, SymInt[] size) -> Tensor",
        |cx: &Cx, x: Value, _: Vec<Expr>| to_recorded(cx, x),
        parts
    ),
    aten!(
        "aten::expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)",
        expand,
        parts
    ),
    aten!(
        "aten::flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)",
        |cx: &Cx, x: Value, _: i64, _: i64| to_recorded(cx, x),
        parts
    ),
    aten!(
        "aten::permute(Tensor(a) self, int[] dims) -> Tensor(a)",
        permute,
        parts
    ),
    aten!(
        "aten::repeat(Tensor self, SymInt[] repeats) -> Tensor",
        repeat,
        parts
    ),
    aten!(
        "aten::reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)",
        |cx: &Cx, x: Value, _: Vec<Expr>| to_recorded(cx, x),
        parts
    ),
    aten!(
        "aten::roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor",
        roll,
        parts
    ),
    aten!(
        "aten::select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)",
        select,
        parts
    ),
    aten!(
        "aten::slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)",
        slice,
        parts
    ),
    aten!(
        "aten::squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)",
        |cx: &Cx, x: Value, _: i64| to_recorded(cx, x),
        parts
    ),
    aten!(
        "aten::squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)",
        |cx: &Cx, x: Value, _: Vec<i64>| to_recorded(cx, x),
        parts
    ),
    aten!("aten::t(Tensor(a) self) -> Tensor(a)", t, parts),
    aten!(
        "aten::transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
        transpose,
        parts
    ),
    aten!(
        "aten::unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)",
        |cx: &Cx, x: Value, _: i64, _: Vec<Expr>| to_recorded(cx, x),
        parts
    ),
    aten!(
        "aten::unsqueeze(Tensor(a) self, int dim) -> Tensor(a)",
        unsqueeze,
        parts
    ),
    aten!(
        "aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)",
        |cx: &Cx, x: Value, _: Vec<Expr>| to_recorded(cx, x),
        parts
    ),
];

/// `Reshape` to the recorded sizes, in which every -1 is worked out.
fn to_recorded(cx: &Cx, x: Value) -> Lowered {
    Ok(cx.reshape(x, &cx.out_shape()?))
}

/// `Expand` to the recorded sizes, in which every -1 is worked out.
fn expand(cx: &Cx, x: Value, _size: Vec<Expr>) -> Lowered {
    Ok(cx.expand(x, &cx.out_shape()?))
}

fn permute(cx: &Cx, x: Value, dims: Vec<i64>) -> Lowered {
    let perm: Vec<usize> = dims
        .iter()
        .map(|&d| axis_of(cx.rank(x), d))
        .collect::<Lowered<_>>()?;
    Ok(cx.transpose(x, &perm))
}

fn transpose(cx: &Cx, x: Value, a: i64, b: i64) -> Lowered {
    Ok(cx.swap_axes(x, cx.axis(x, a)?, cx.axis(x, b)?))
}

/// The transpose of a matrix; vectors and numbers stay.
fn t(cx: &Cx, x: Value) -> Lowered {
    Ok(if cx.rank(x) == 2 {
        cx.transpose(x, &[1, 0])
    } else {
        x
    })
}

fn unsqueeze(cx: &Cx, x: Value, dim: i64) -> Lowered {
    Ok(cx.unsqueeze(x, &[axis_of(cx.rank(x) + 1, dim)?]))
}

/// `Gather` of one element along `dim`; negative indices count from the end in both worlds.
fn select(cx: &Cx, x: Value, dim: i64, index: Expr) -> Lowered {
    Ok(cx.take(x, cx.axis(x, dim)?, &index))
}

/// `Slice`: bounds out of range and negative ones mean the same in both worlds.
fn slice(
    cx: &Cx,
    x: Value,
    dim: i64,
    start: Option<Expr>,
    end: Option<Expr>,
    step: i64,
) -> Lowered {
    let axis = cx.axis(x, dim)?;
    let shape = cx.out_shape()?;
    if shape == cx.shape(x) && step == 1 {
        return Ok(x);
    }
    let bound = |e: Option<Expr>, open: i64| cx.sizes(&[e.unwrap_or(Expr::int(open))]);
    let (start, end) = (bound(start, 0), bound(end, i64::MAX));
    let step = (step != 1).then(|| cx.ints(&[step]));
    let result = cx.slice_op(x, start, end, cx.ints(&[axis as i64]), step);
    cx.set_type(result, pt2onnx_ir::Type::tensor(cx.dtype(x), shape));
    Ok(result)
}

/// `Tile`, where there may be more repeats than dimensions.
fn repeat(cx: &Cx, x: Value, repeats: Vec<Expr>) -> Lowered {
    let lead: Vec<usize> = (0..repeats.len() - cx.rank(x).min(repeats.len())).collect();
    let x = cx.unsqueeze(x, &lead);
    if repeats.iter().all(|r| r.as_int() == Some(1)) {
        return Ok(x);
    }
    Ok(cx.tile_op(x, cx.sizes(&repeats)))
}

/// The end along each of `dims` moves to the front; without `dims`, that of the flattened tensor.
fn roll(cx: &Cx, x: Value, shifts: Vec<Expr>, dims: Vec<i64>) -> Lowered {
    if dims.is_empty() {
        let flat = cx.reshape(x, &[cx.numel(x)]);
        let shift = shifts.first().cloned().unwrap_or(Expr::int(0));
        return Ok(cx.reshape(roll_one(cx, flat, 0, &shift)?, &cx.shape(x)));
    }
    let mut result = x;
    for (shift, dim) in shifts.iter().zip(dims) {
        result = roll_one(cx, result, cx.axis(x, dim)?, shift)?;
    }
    Ok(result)
}

fn roll_one(cx: &Cx, x: Value, axis: usize, shift: &Expr) -> Lowered {
    let size = cx.dim(x, axis as i64);
    if size.as_int() == Some(0) {
        return Ok(x);
    }
    // Where the first element of the result is found.
    let start = (-shift).modulo(&size);
    if start.as_int() == Some(0) {
        return Ok(x);
    }
    let (head, tail) = (
        cx.slice(x, axis, &start, &size, 1),
        cx.slice(x, axis, &Expr::int(0), &start, 1),
    );
    let result = cx.concat(&[head, tail], axis);
    cx.set_type(result, pt2onnx_ir::Type::tensor(cx.dtype(x), cx.shape(x)));
    Ok(result)
}
