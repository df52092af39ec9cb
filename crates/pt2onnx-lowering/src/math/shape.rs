//! Shapes and sizes: recorded ones, vectors of consecutive numbers, crops, padding, diagonals.

use crate::{Cx, LowerError, Lowered, cx::axis_of};
use pt2onnx_ir::{Type, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Element, Tensor};

/// Index tensors of up to this many elements are constants; longer ones are computed at run time.
pub const SPELLED_OUT: i64 = 4096;

/// `x` reshaped to the recorded sizes.
pub fn to_recorded(cx: &Cx, x: Value) -> Lowered {
    Ok(cx.reshape(x, &cx.out_shape()?))
}

/// `x` in the type and sizes that are recorded for output `i`, if any are.
pub fn as_recorded(cx: &Cx, i: usize, x: Value) -> Value {
    match cx.recorded(i) {
        Some(meta) => cx.reshape(cx.cast(x, meta.dtype), &meta.sizes),
        None => x,
    }
}

/// `x` with its type set to the recorded sizes, where inference cannot see them. Returns an error
/// if the first output is not a tensor.
pub fn set_recorded(cx: &Cx, x: Value) -> Lowered {
    cx.set_type(x, Type::tensor(cx.dtype(x), cx.out_shape()?));
    Ok(x)
}

/// `x`, or a vector of one element if `x` is 0-d.
pub fn vector(cx: &Cx, x: Value) -> Value {
    match cx.rank(x) {
        0 => cx.unsqueeze(x, &[0]),
        _ => x,
    }
}

/// All elements as one vector.
pub fn flat(cx: &Cx, x: Value) -> Value {
    cx.reshape(x, &[cx.numel(x)])
}

/// `dims` of a tensor of that rank, counted from the front. In PyTorch a 0-d tensor has a dimension
/// 0; here the result is empty.
pub fn axes_of(rank: usize, dims: &[i64]) -> Lowered<Vec<usize>> {
    let axes: Vec<usize> = dims.iter().map(|&d| axis_of(rank.max(1), d)).collect::<Lowered<_>>()?;
    Ok(if rank == 0 { Vec::new() } else { axes })
}

/// Whether a size is known to be 0.
pub fn has_no_elements(shape: &[Expr]) -> bool {
    shape.iter().any(|d| d.as_int() == Some(0))
}

/// The int64 vector `start, start + step, ..` of `length` numbers.
pub fn counted(cx: &Cx, start: &Expr, length: &Expr, step: impl Into<Expr>) -> Value {
    let step = step.into();
    match (start.as_int(), length.as_int(), step.as_int()) {
        (Some(start), Some(length), Some(step)) if length <= SPELLED_OUT => {
            let number = |i: i64| start.saturating_add(i.saturating_mul(step));
            let numbers: Vec<i64> = (0..length).map(number).collect();
            cx.ints(&numbers)
        }
        _ => {
            let end = start + length * &step;
            let range = cx.range(cx.size(start), cx.size(&end), cx.size(&step));
            cx.set_type(range, Type::tensor(DType::I64, [length.clone()]));
            range
        }
    }
}

/// An int64 constant of that shape.
pub fn constant<T: Element>(cx: &Cx, shape: &[i64], elements: &[T]) -> Value {
    let shape: Vec<usize> = shape.iter().map(|&d| d.max(0) as usize).collect();
    match Tensor::from_slice(shape, elements) {
        Ok(tensor) => cx.constant(tensor),
        Err(error) => {
            cx.report(error.to_string());
            cx.ints(&[])
        }
    }
}

/// A constant of floats. They are rounded once, to float32 or float64.
pub fn floats(cx: &Cx, shape: &[i64], elements: &[f64], dtype: DType) -> Value {
    let single = || elements.iter().map(|&e| e as f32).collect::<Vec<_>>();
    match dtype {
        DType::F64 => constant(cx, shape, elements),
        _ => cx.cast(constant(cx, shape, &single()), dtype),
    }
}

/// `x` cropped to `shape`: the first elements along each dimension.
pub fn crop(cx: &Cx, x: Value, shape: &[Expr]) -> Value {
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

/// ONNX's name of a padding mode, given PyTorch's.
pub fn pad_mode(name: &str) -> Lowered<&'static str> {
    match name {
        "constant" => Ok("constant"),
        "reflect" => Ok("reflect"),
        "replicate" => Ok("edge"),
        "circular" => Ok("wrap"),
        other => Err(LowerError::unknown("padding mode", other)),
    }
}

/// `x` with zeros at the end of `axis`, so that its size there is `size`.
pub fn pad_to(cx: &Cx, x: Value, axis: usize, size: &Expr) -> Value {
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

/// `x` as indices: int32 stays, all other types become int64.
pub fn as_index(cx: &Cx, x: Value) -> Value {
    match cx.dtype(x) {
        DType::I32 => x,
        other => {
            if other.is_float() {
                cx.report(format!("indices must be integers, but these are {other}"));
            }
            cx.cast(x, DType::I64)
        }
    }
}

/// The number of dimensions of `x`.
///
/// # Errors
/// There are fewer than `least`, which PyTorch does not take either.
pub fn rank_from(cx: &Cx, x: Value, least: usize) -> Lowered<usize> {
    match cx.rank(x) {
        rank if rank >= least => Ok(rank),
        rank => Err(LowerError::unsupported(format!(
            "a tensor of {rank} dimensions, where it needs {least} or more,"
        ))),
    }
}

/// A vector so that it broadcasts along dimension `axis` of a tensor of that rank. It gets no
/// dimensions before `axis`.
pub fn broadcast_along(cx: &Cx, x: Value, axis: usize, rank: usize) -> Value {
    let behind: Vec<usize> = (1..rank.saturating_sub(axis)).collect();
    cx.unsqueeze(x, &behind)
}

/// [`set_recorded`] of `x` without the leading dimensions that the recorded sizes do not have: of
/// 0-d tensors that counted as vectors.
pub fn settled(cx: &Cx, x: Value) -> Lowered {
    let extra = cx.rank(x).saturating_sub(cx.out_shape()?.len());
    let axes: Vec<usize> = (0..extra).collect();
    set_recorded(cx, cx.squeeze(x, &axes))
}

/// Both tensors broadcast to their common shape.
pub fn together(cx: &Cx, a: Value, b: Value) -> (Value, Value) {
    let (from_a, from_b) = (cx.shape(a), cx.shape(b));
    let shape = cx.broadcast_shapes(&from_a, &from_b);
    if shape.iter().all(|d| from_a.contains(d) || from_b.contains(d)) {
        return (cx.expand(a, &shape), cx.expand(b, &shape));
    }
    // Sizes that are known to be equal at run time only. `Expand` broadcasts in both directions.
    let to = |x: Value, like: Value| {
        let wide = cx.expand_op(x, cx.shape_op(like, Default::default()));
        cx.set_type(wide, Type::tensor(cx.dtype(x), shape.clone()));
        wide
    };
    let a = to(a, b);
    cx.bind_dims(a);
    (a, to(b, a))
}

/// A diagonal of the matrices in dimensions `dim1` (rows) and `dim2` (columns), `offset` columns
/// right of the main one, as the last dimension: every `columns + 1`-th element of each flattened
/// matrix.
pub fn diagonal(cx: &Cx, x: Value, offset: i64, dim1: i64, dim2: i64) -> Lowered {
    let rank = cx.rank(x);
    let (a, b) = (cx.axis(x, dim1)?, cx.axis(x, dim2)?);
    if a == b {
        return Err(LowerError::unsupported(
            "the two dimensions of a diagonal must not be the same",
        ));
    }
    let sizes = cx.out_shape()?;
    let others: Vec<usize> = (0..rank).filter(|&axis| axis != a && axis != b).collect();
    let length = sizes.last().cloned().unwrap_or(Expr::int(0));
    let (below, right) = (offset.saturating_neg().max(0), offset.max(0));
    // If the matrices are the first dimensions, a `GatherND` of constant coordinates.
    if let Some(length) = length.as_int().filter(|&l| l <= SPELLED_OUT)
        && !others.iter().any(|&o| o < a.max(b))
    {
        let (from, to) = if a < b { (below, right) } else { (right, below) };
        let coordinates: Vec<i64> =
            (0..length).flat_map(|i| [i.saturating_add(from), i.saturating_add(to)]).collect();
        let found = cx.gather_nd(x, constant(cx, &[length, 2], &coordinates), Default::default());
        let order: Vec<usize> = (1..=others.len()).chain([0]).collect();
        return set_recorded(cx, cx.transpose(found, &order));
    }
    let perm: Vec<usize> = others.iter().copied().chain([a, b]).collect();
    let (rows, columns) = (cx.dim(x, a as i64), cx.dim(x, b as i64));
    let mut flat: Vec<Expr> = others.iter().map(|&o| cx.dim(x, o as i64)).collect();
    flat.push(&rows * &columns);
    let flattened = cx.reshape(cx.transpose(x, &perm), &flat);
    let start = &columns * below + right;
    let end = (length + below) * &columns;
    let result = cx.slice_op(
        flattened,
        cx.sizes(&[start]),
        cx.sizes(&[end]),
        cx.ints(&[others.len() as i64]),
        cx.sizes(&[columns + 1]),
    );
    set_recorded(cx, result)
}
