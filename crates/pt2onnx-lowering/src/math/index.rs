//! Indices: converts masks to coordinates, and several indices to one.

use crate::math::shape::{as_index, flat, vector};
use crate::{Cx, LowerError, Lowered};
use pt2onnx_ir::{Type, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

/// The coordinates of the true elements, `(rank, count)`: `NonZero`. A 0-d tensor counts as a
/// vector.
pub fn non_zero(cx: &Cx, mask: Value) -> Value {
    let mask = vector(cx, mask);
    let mask = if cx.dtype(mask) == DType::U8 { cx.cast(mask, DType::Bool) } else { mask };
    let found = cx.non_zero(mask);
    cx.bind_dims(found);
    found
}

/// For each dimension of `mask`, the true elements' coordinates along it.
pub fn coordinates(cx: &Cx, mask: Value) -> Vec<Value> {
    let found = non_zero(cx, mask);
    (0..cx.rank(mask).max(1)).map(|i| cx.take(found, 0, &Expr::int(i as i64))).collect()
}

/// The elements of `x` where `mask` is true: `Compress`. The mask covers dimensions from `axis` on,
/// which become one.
pub fn mask_select(cx: &Cx, x: Value, axis: usize, mask: Value) -> Lowered {
    let covered = cx.rank(mask);
    let mask = flat(cx, cx.cast(mask, DType::Bool));
    if covered == cx.rank(x) && covered > 0 {
        return Ok(cx.compress(x, mask, attrs::Compress::default()));
    }
    let mut shape = cx.shape(x);
    let masked = shape.get(axis..axis + covered);
    let merged = masked.map(|dims| Expr::product(dims.to_vec()));
    let merged = merged
        .ok_or_else(|| LowerError::unsupported("the mask has more dimensions than the tensor"))?;
    shape.splice(axis..axis + covered, [merged]);
    let options = attrs::Compress { axis: Some(axis as i64) };
    Ok(cx.compress(cx.reshape(x, &shape), mask, options))
}

/// Indices, each with the dimension that it indexes.
pub type ByAxis = Vec<(usize, Value)>;

/// `indices` with their dimensions. A mask is replaced by the coordinates of its true elements.
pub fn by_axis(cx: &Cx, indices: &[Option<Value>]) -> Lowered<ByAxis> {
    let mut by_axis = Vec::new();
    let mut axis = 0;
    for index in indices {
        match *index {
            None => axis += 1,
            Some(mask) if is_mask(cx, mask) => {
                if cx.rank(mask) == 0 {
                    return Err(LowerError::unsupported(
                        "a 0-d mask together with other indices is not supported",
                    ));
                }
                let along = coordinates(cx, mask).into_iter();
                by_axis.extend(along.enumerate().map(|(i, c)| (axis + i, c)));
                axis += cx.rank(mask);
            }
            Some(index) => {
                by_axis.push((axis, as_index(cx, index)));
                axis += 1;
            }
        }
    }
    Ok(by_axis)
}

/// Whether an index is a mask: bool, or (deprecated in PyTorch) uint8.
pub fn is_mask(cx: &Cx, index: Value) -> bool {
    matches!(cx.dtype(index), DType::Bool | DType::U8)
}

/// The dimension where a mask begins and the mask, if it is the only index.
pub fn only_mask(cx: &Cx, indices: &[Option<Value>]) -> Option<(usize, Value)> {
    let mut given = indices.iter().enumerate().filter_map(|(i, v)| Some((i, (*v)?)));
    let first = given.next().filter(|(_, v)| is_mask(cx, *v))?;
    given.next().is_none().then_some(first)
}

/// How dimensions are permuted so that the indexed ones come first.
pub struct Order {
    /// The indexed dimensions, then the others.
    pub perm: Vec<usize>,
    /// How many of the others come before the indices' dimensions in the result.
    pub before: usize,
}

impl Order {
    /// The order for a tensor of that rank. Returns an error if it has too few dimensions.
    pub fn new(rank: usize, by_axis: &ByAxis) -> Lowered<Self> {
        let axes: Vec<usize> = by_axis.iter().map(|(axis, _)| *axis).collect();
        if axes.iter().any(|&a| a >= rank) {
            return Err(LowerError::unsupported(format!(
                "{} indices are too many for a tensor of rank {rank}",
                axes.len()
            )));
        }
        let adjacent = axes.windows(2).all(|w| w[1] == w[0] + 1);
        let before = if adjacent { axes[0] } else { 0 };
        let others = (0..rank).filter(|a| !axes.contains(a));
        let perm = axes.iter().copied().chain(others).collect();
        Ok(Self { perm, before })
    }

    /// `x` permuted from (`k` dimensions of the indices, others) to (others before, dimensions of
    /// the indices, others after).
    pub fn indices_to_place(&self, cx: &Cx, x: Value, k: usize) -> Value {
        let rank = cx.rank(x);
        let order: Vec<usize> =
            (k..k + self.before).chain(0..k).chain(k + self.before..rank).collect();
        cx.transpose(x, &order)
    }
}

/// The indices broadcast together and stacked along a new last dimension, as int64; and their
/// common rank.
pub fn stacked(cx: &Cx, by_axis: &ByAxis) -> (Value, usize) {
    let values: Vec<Value> = by_axis.iter().map(|(_, v)| cx.cast(*v, DType::I64)).collect();
    let shapes = || values.iter().map(|&v| cx.shape(v));
    let shape = shapes().fold(vec![], |all, shape| cx.broadcast_shapes(&all, &shape));
    let rank = shape.len();
    let wide: Vec<Value> = if shape.iter().all(|d| shapes().any(|s| s.contains(d))) {
        values.iter().map(|&v| cx.expand(v, &shape)).collect()
    } else {
        // Sizes that are known to be equal at run time only, such as those of two masks.
        let sum = values.iter().copied().reduce(|sum, v| cx.add(sum, v));
        let sizes = cx.shape_op(sum.unwrap_or(values[0]), Default::default());
        let expand = |&v: &Value| {
            let wide = cx.expand_op(v, sizes);
            cx.set_type(wide, Type::tensor(DType::I64, shape.clone()));
            cx.bind_dims(wide);
            wide
        };
        values.iter().map(expand).collect()
    };
    let columns: Vec<Value> = wide.iter().map(|&v| cx.unsqueeze(v, &[rank])).collect();
    (cx.concat(&columns, rank), rank)
}

/// Each index clamped to `-size..size` of its dimension.
pub fn held(cx: &Cx, x: Value, indices: Vec<Option<Value>>) -> Vec<Option<Value>> {
    let hold = |(axis, index): (usize, Option<Value>)| {
        let index = cx.cast(index?, DType::I64);
        let size = cx.dim(x, axis as i64);
        let bound = |e: Expr| match (e.as_int(), cx.rank(index)) {
            (None, 1..) => cx.sizes(&[e]),
            _ => cx.size(&e),
        };
        let (min, max) = (bound(-&size), bound(&size - 1));
        Some(cx.maximum(cx.minimum(index, max), min))
    };
    indices.into_iter().enumerate().map(hold).collect()
}
