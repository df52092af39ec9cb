//! Elements chosen by indices.

use super::{
    masks::{coordinates, mask_select},
    shapes::{as_index, counted, flat, is_empty, recorded, settled, vector},
};
use crate::{AtenOp, Cx, LowerError, Lowered, TensorOrScalar, registry::aten};
use pt2onnx_ir::{Reduction, Type, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(super) static OPS: &[AtenOp] = &[
    aten!("aten::_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", index, parts),
    aten!(
        "aten::_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor",
        masked_index,
        parts
    ),
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
    aten!("aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", index, parts),
    aten!("aten::index_select(Tensor self, int dim, Tensor index) -> Tensor", index_select, parts),
    aten!("aten::one_hot(Tensor self, int num_classes=-1) -> Tensor", one_hot),
    aten!("aten::take(Tensor self, Tensor index) -> Tensor", take, parts),
    aten!(
        "aten::take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor",
        take_along_dim,
        parts
    ),
];

/// Rows of `weight`; `padding_idx` and the rest only concern gradients.
fn embedding(cx: &Cx, weight: Value, indices: Value, _padding_idx: Expr) -> Lowered {
    Ok(cx.gather(weight, as_index(cx, indices), 0))
}

/// `GatherElements`; of a 0-d tensor the element itself.
fn gather(cx: &Cx, x: Value, dim: i64, index: Value) -> Lowered {
    let axis = cx.axis(x, dim)? as i64;
    if is_empty(&cx.shape(index)) {
        return Ok(cx.full(&cx.out_shape()?, 0, cx.dtype(x)));
    }
    if cx.rank(x) == 0 {
        return Ok(cx.expand(x, &cx.out_shape()?));
    }
    let index = as_index(cx, index);
    let options = attrs::GatherElements { axis };
    settled(cx, cx.gather_elements(vector(cx, x), vector(cx, index), options))
}

/// `Gather` along `dim`; a 0-d `x` counts as a vector, a 0-d `index` too.
fn index_select(cx: &Cx, x: Value, dim: i64, index: Value) -> Lowered {
    let axis = cx.axis(x, dim)?;
    let index = vector(cx, as_index(cx, index));
    settled(cx, cx.gather(vector(cx, x), index, axis))
}

/// `Gather` from the flattened tensor.
fn take(cx: &Cx, x: Value, index: Value) -> Lowered {
    Ok(cx.gather(flat(cx, x), as_index(cx, index), 0))
}

/// `GatherElements`, both broadcast together but for `dim`; without it, both flattened.
fn take_along_dim(cx: &Cx, x: Value, indices: Value, dim: Option<i64>) -> Lowered {
    let indices = as_index(cx, indices);
    let Some(dim) = dim else {
        let options = attrs::GatherElements { axis: 0 };
        return recorded(cx, cx.gather_elements(flat(cx, x), flat(cx, indices), options));
    };
    let axis = cx.axis(x, dim)?;
    let sizes = cx.out_shape()?;
    if sizes.is_empty() {
        return Ok(x);
    }
    let mut from = sizes.clone();
    from[axis] = cx.dim(x, axis as i64);
    let options = attrs::GatherElements { axis: axis as i64 };
    recorded(cx, cx.gather_elements(cx.expand(x, &from), cx.expand(indices, &sizes), options))
}

/// Whether the class is the one of its column; without a number of classes, up to the largest that occurs.
fn one_hot(cx: &Cx, x: Value, classes: Expr) -> Lowered {
    let columns = match classes.as_int() {
        Some(-1) => {
            let end = cx.add(cx.reduce(Reduction::Max, x, &[], false), 1);
            cx.range(cx.scalar(0, DType::I64), end, cx.scalar(1, DType::I64))
        }
        _ => counted(cx, &Expr::int(0), &classes, 1),
    };
    let hot = cx.equal(cx.unsqueeze(x, &[cx.rank(x)]), columns);
    recorded(cx, cx.cast(hot, DType::I64))
}

/// Indices by the dimensions they index.
pub(super) type ByAxis = Vec<(usize, Value)>;

/// What `indices` say of each dimension; a mask counts as the coordinates of its true elements.
pub(super) fn by_axis(cx: &Cx, indices: &[Option<Value>]) -> Lowered<ByAxis> {
    let mut by_axis = Vec::new();
    let mut axis = 0;
    for index in indices {
        match *index {
            None => axis += 1,
            Some(mask) if is_mask(cx, mask) => {
                if cx.rank(mask) == 0 {
                    return Err(LowerError::unsupported("a 0-d mask among other indices"));
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

/// Whether an index is a mask: bool, or by an old habit uint8.
pub(super) fn is_mask(cx: &Cx, index: Value) -> bool {
    matches!(cx.dtype(index), DType::Bool | DType::U8)
}

/// The only index, if it is a mask, and the dimension where it begins.
pub(super) fn only_mask(cx: &Cx, indices: &[Option<Value>]) -> Option<(usize, Value)> {
    let mut given = indices.iter().enumerate().filter_map(|(i, v)| Some((i, (*v)?)));
    let first = given.next().filter(|(_, v)| is_mask(cx, *v))?;
    given.next().is_none().then_some(first)
}

/// `x[i, :, j]`: the indices are broadcast together. Where the indexed dimensions are next to each other, the indices'
/// dimensions stand in their place; otherwise in front.
fn index(cx: &Cx, x: Value, indices: Vec<Option<Value>>) -> Lowered {
    if let Some((axis, mask)) = only_mask(cx, &indices) {
        return recorded(cx, mask_select(cx, x, axis, mask)?);
    }
    recorded(cx, index_by_axis(cx, x, by_axis(cx, &indices)?)?)
}

fn index_by_axis(cx: &Cx, x: Value, by_axis: ByAxis) -> Lowered {
    if by_axis.is_empty() {
        return Ok(x);
    }
    if let [(axis, index)] = by_axis[..] {
        return Ok(cx.gather(x, index, axis));
    }
    if let Some(result) = one_after_another(cx, x, &by_axis) {
        return Ok(result);
    }
    let order = Order::new(cx.rank(x), &by_axis)?;
    let (indices, rank) = stacked(cx, &by_axis);
    let result = cx.gather_nd(cx.transpose(x, &order.perm), indices, Default::default());
    Ok(order.indices_to_place(cx, result, rank))
}

/// Indices each along dimensions of its own (`x[i[:, None], j]`): one `Gather` for each.
fn one_after_another(cx: &Cx, x: Value, by_axis: &ByAxis) -> Option<Value> {
    let one = Expr::int(1);
    let rank = by_axis.iter().map(|(_, v)| cx.rank(*v)).max()?;
    // Dimension of the indices' common shape, and which index is not 1 there.
    let mut own: Vec<Vec<usize>> = Vec::new();
    for (_, index) in by_axis {
        let shape = cx.shape(*index);
        let lead = rank - shape.len();
        let wide: Vec<usize> =
            (0..shape.len()).filter(|&i| shape[i] != one).map(|i| i + lead).collect();
        if own.iter().flatten().any(|place| wide.contains(place)) {
            return None;
        }
        own.push(wide);
    }
    let order = Order::new(cx.rank(x), by_axis).ok()?;
    let mut result = x;
    // From the last dimension on, so that those before keep their numbers.
    for ((axis, index), own) in by_axis.iter().zip(&own).rev() {
        let shape = cx.shape(*index);
        let lead = rank - shape.len();
        let kept: Vec<Expr> = own.iter().map(|&place| shape[place - lead].clone()).collect();
        result = cx.gather(result, cx.reshape(*index, &kept), *axis);
    }
    // Where each dimension of the indices' common shape stands now; those of size 1 are gone.
    let mut at = 0;
    let mut axis = 0;
    let mut places: Vec<(usize, usize)> = Vec::new();
    let mut others = Vec::new();
    for (i, (indexed, _)) in by_axis.iter().enumerate() {
        others.extend((axis..*indexed).map(|_| {
            at += 1;
            at - 1
        }));
        for &place in &own[i] {
            places.push((place, at));
            at += 1;
        }
        axis = indexed + 1;
    }
    others.extend(at..cx.rank(result));
    places.sort_unstable();
    let indexed = places.iter().map(|(_, at)| *at);
    let perm: Vec<usize> = { others[..order.before].iter().copied() }
        .chain(indexed)
        .chain(others[order.before..].iter().copied())
        .collect();
    let ones: Vec<usize> = (0..rank)
        .filter(|place| !places.iter().any(|(p, _)| p == place))
        .map(|place| place + order.before)
        .collect();
    Some(cx.unsqueeze(cx.transpose(result, &perm), &ones))
}

/// How dimensions move so that the indexed ones stand in front.
pub(super) struct Order {
    /// The indexed dimensions, then the others.
    pub(super) perm: Vec<usize>,
    /// How many of the others stand before the indices' dimensions in the result.
    pub(super) before: usize,
}

impl Order {
    pub(super) fn new(rank: usize, by_axis: &ByAxis) -> Lowered<Self> {
        let axes: Vec<usize> = by_axis.iter().map(|(axis, _)| *axis).collect();
        if axes.iter().any(|&a| a >= rank) {
            return Err(LowerError::unsupported(format!(
                "{} indices for a tensor of rank {rank}",
                axes.len()
            )));
        }
        let adjacent = axes.windows(2).all(|w| w[1] == w[0] + 1);
        let before = if adjacent { axes[0] } else { 0 };
        let others = (0..rank).filter(|a| !axes.contains(a));
        let perm = axes.iter().copied().chain(others).collect();
        Ok(Self { perm, before })
    }

    /// From (`k` dimensions of the indices, others) to (others before, those of the indices, others behind).
    fn indices_to_place(&self, cx: &Cx, x: Value, k: usize) -> Value {
        let rank = cx.rank(x);
        let order: Vec<usize> =
            (k..k + self.before).chain(0..k).chain(k + self.before..rank).collect();
        cx.transpose(x, &order)
    }
}

/// The indices broadcast together, as vectors along a new last dimension; and the rank without that.
pub(super) fn stacked(cx: &Cx, by_axis: &ByAxis) -> (Value, usize) {
    let values: Vec<Value> = by_axis.iter().map(|(_, v)| cx.cast(*v, DType::I64)).collect();
    let shapes = || values.iter().map(|&v| cx.shape(v));
    let shape = shapes().fold(vec![], |all, shape| cx.broadcast_shapes(&all, &shape));
    let rank = shape.len();
    let wide: Vec<Value> = if shape.iter().all(|d| shapes().any(|s| s.contains(d))) {
        values.iter().map(|&v| cx.expand(v, &shape)).collect()
    } else {
        // Sizes that only run time tells to be the same, as of two masks.
        let sum = values.iter().copied().reduce(|sum, v| cx.add(sum, v));
        let sizes = cx.shape_op(sum.unwrap_or(values[0]), Default::default());
        let expand = |&v: &Value| {
            let wide = cx.expand_op(v, sizes);
            cx.set_type(wide, Type::tensor(DType::I64, shape.clone()));
            wide
        };
        values.iter().map(expand).collect()
    };
    let columns: Vec<Value> = wide.iter().map(|&v| cx.unsqueeze(v, &[rank])).collect();
    (cx.concat(&columns, rank), rank)
}

/// `x[indices]` where `mask`, else `fill`; the indices are held to the sizes, so that nothing outside is read.
fn masked_index(
    cx: &Cx,
    x: Value,
    mask: Value,
    indices: Vec<Option<Value>>,
    fill: TensorOrScalar,
) -> Lowered {
    let fill = cx.as_tensor(&fill, cx.dtype(x));
    if is_empty(&cx.shape(x)) {
        return Ok(cx.expand(fill, &cx.out_shape()?));
    }
    let held = held(cx, x, indices);
    let found = index_by_axis(cx, x, by_axis(cx, &held)?)?;
    recorded(cx, cx.select(mask, found, fill))
}

/// Each index held to what its dimension has, counted from either end.
pub(super) fn held(cx: &Cx, x: Value, indices: Vec<Option<Value>>) -> Vec<Option<Value>> {
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
