//! Translates reads at indices: along one dimension, along several, from the flattened tensor.

use crate::math::index::{ByAxis, Order, by_axis, held, mask_select, only_mask, stacked};
use crate::math::shape::{as_index, counted, flat, has_no_elements, set_recorded, settled, vector};
use crate::meta::{self, broadcast, fresh, sized, typed, unknown, with_size};
use crate::{AtenOp, Cx, Lowered, TensorOrScalar, arguments, checks, op};
use pt2onnx_ir::{Reduction, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_unsafe_index_Tensor, index, parts, meta = meta_index),
    op!(aten::_unsafe_masked_index, masked_index, parts, meta = meta_index),
    op!(aten::embedding, embedding, parts),
    op!(aten::gather, gather, parts, meta = meta_gather),
    op!(aten::index_Tensor, index, parts, meta = meta_index),
    op!(aten::index_Tensor_hacked_twin, index, parts, meta = meta_index),
    op!(aten::index_select, index_select, parts, meta = meta_index_select),
    op!(aten::one_hot, one_hot, meta = meta_one_hot),
    op!(aten::take, take, parts, meta = meta::like_other),
    op!(aten::take_along_dim, take_along_dim, parts, meta = meta_take_along_dim),
];

/// Rows of `weight`. The padding index only matters for gradients.
fn embedding(cx: &Cx, weight: Value, indices: Value, _padding_idx: Expr) -> Lowered {
    Ok(cx.gather(weight, as_index(cx, indices), 0))
}

/// `x[index[i]]` along `dim`: `GatherElements`. A 0-d tensor has one element to read.
fn gather(cx: &Cx, x: Value, dim: i64, index: Value) -> Lowered {
    let axis = cx.axis(x, dim)? as i64;
    if has_no_elements(&cx.shape(index)) {
        return Ok(cx.full(&cx.out_shape()?, 0, cx.dtype(x)));
    }
    if cx.rank(x) == 0 {
        return Ok(cx.expand(x, &cx.out_shape()?));
    }
    let index = as_index(cx, index);
    let options = attrs::GatherElements { axis };
    settled(cx, cx.gather_elements(vector(cx, x), vector(cx, index), options))
}

/// `Gather` along `dim`. A 0-d `x` or `index` counts as a vector.
fn index_select(cx: &Cx, x: Value, dim: i64, index: Value) -> Lowered {
    let axis = cx.axis(x, dim)?;
    let index = vector(cx, as_index(cx, index));
    settled(cx, cx.gather(vector(cx, x), index, axis))
}

/// `Gather` from the flattened tensor.
fn take(cx: &Cx, x: Value, index: Value) -> Lowered {
    Ok(cx.gather(flat(cx, x), as_index(cx, index), 0))
}

/// `GatherElements` along `dim`, with the other dimensions broadcast together; without `dim`, of
/// both flattened.
fn take_along_dim(cx: &Cx, x: Value, indices: Value, dim: Option<i64>) -> Lowered {
    let indices = as_index(cx, indices);
    let Some(dim) = dim else {
        let options = attrs::GatherElements { axis: 0 };
        return set_recorded(cx, cx.gather_elements(flat(cx, x), flat(cx, indices), options));
    };
    let axis = cx.axis(x, dim)?;
    let sizes = cx.out_shape()?;
    if sizes.is_empty() {
        return Ok(x);
    }
    let mut from = sizes.clone();
    from[axis] = cx.dim(x, axis as i64);
    let options = attrs::GatherElements { axis: axis as i64 };
    set_recorded(cx, cx.gather_elements(cx.expand(x, &from), cx.expand(indices, &sizes), options))
}

/// `class == column` as 0 or 1, a row for each class. A number of -1 means that the largest class
/// is the last column.
fn one_hot(cx: &Cx, x: Value, classes: Expr) -> Lowered {
    let columns = match classes.as_int() {
        Some(-1) => {
            let end = cx.add(cx.reduce(Reduction::Max, x, &[], false), 1);
            cx.range(cx.scalar(0, DType::I64), end, cx.scalar(1, DType::I64))
        }
        _ => counted(cx, &Expr::int(0), &classes, 1),
    };
    let hot = cx.equal(cx.unsqueeze(x, &[cx.rank(x)]), columns);
    set_recorded(cx, cx.cast(hot, DType::I64))
}

/// `x[i, :, j]`: the indices are broadcast together. Their dimensions replace the indexed ones if
/// these are adjacent, else they come first.
fn index(cx: &Cx, x: Value, indices: Vec<Option<Value>>) -> Lowered {
    if let Some((axis, mask)) = only_mask(cx, &indices) {
        return set_recorded(cx, mask_select(cx, x, axis, mask)?);
    }
    set_recorded(cx, index_by_axis(cx, x, by_axis(cx, &indices)?)?)
}

/// `x` indexed along each dimension of `by_axis`: a `Gather` for each, or a `GatherND`.
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

/// One `Gather` for each index, if they share no dimension (`x[i[:, None], j]`), else `None`.
fn one_after_another(cx: &Cx, x: Value, by_axis: &ByAxis) -> Option<Value> {
    let one = Expr::int(1);
    let rank = by_axis.iter().map(|(_, v)| cx.rank(*v)).max()?;
    // For each index, the dimensions of the common shape where its size is not 1.
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
    // From the last dimension on, so that the axes before it do not change.
    for ((axis, index), own) in by_axis.iter().zip(&own).rev() {
        let shape = cx.shape(*index);
        let lead = rank - shape.len();
        let kept: Vec<Expr> = own.iter().map(|&place| shape[place - lead].clone()).collect();
        result = cx.gather(result, cx.reshape(*index, &kept), *axis);
    }
    // Where each dimension of the indices' common shape is now; those of size 1 are gone.
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

/// `x[indices]` where `mask` is true, else `fill`. The indices are clamped to the sizes, so that
/// nothing outside is read.
fn masked_index(
    cx: &Cx,
    x: Value,
    mask: Value,
    indices: Vec<Option<Value>>,
    fill: TensorOrScalar,
) -> Lowered {
    let fill = cx.as_tensor(&fill, cx.dtype(x));
    if has_no_elements(&cx.shape(x)) {
        return Ok(cx.expand(fill, &cx.out_shape()?));
    }
    let held = held(cx, x, indices);
    let found = index_by_axis(cx, x, by_axis(cx, &held)?)?;
    set_recorded(cx, cx.select(mask, found, fill))
}

arguments! {
    struct Index { input: Value, indices: Vec<Option<Value>> }
}

fn meta_gather(cx: &Cx, x: Value, _dim: i64, index: Value) -> Lowered {
    meta::like_other(cx, x, index)
}

fn meta_index_select(cx: &Cx, x: Value, dim: i64, index: Value) -> Lowered {
    let axis = cx.axis(x, dim)?;
    Ok(sized(cx, x, &with_size(cx, x, axis, cx.numel(index))))
}

/// Both are broadcast, except for the dimension along which elements are taken.
fn meta_take_along_dim(cx: &Cx, x: Value, index: Value, dim: Option<i64>) -> Lowered {
    let Some(dim) = dim else {
        return Ok(sized(cx, x, &[cx.numel(index)]));
    };
    let axis = cx.axis(x, dim)?;
    let along = cx.dim(index, axis as i64);
    let one = |v: Value| with_size(cx, v, axis, Expr::ONE);
    let mut size = broadcast(cx, &[one(x), one(index)]);
    size[axis] = along;
    Ok(sized(cx, x, &size))
}

/// The indices broadcast. Their dimensions replace the indexed ones if these are adjacent, else
/// they come first. A mask counts as the coordinates of its true elements.
fn meta_index(cx: &Cx, args: Index) -> Lowered {
    let mut from = cx.shape(args.input).into_iter();
    let (mut before, mut shapes, mut places) = (Vec::new(), Vec::new(), Vec::new());
    let count = fresh(cx);
    let mut masks = 0;
    for (i, given) in args.indices.iter().enumerate() {
        let Some(given) = given else {
            before.extend(from.next());
            continue;
        };
        places.push((i, before.len()));
        if matches!(cx.dtype(*given), DType::Bool | DType::U8) {
            from.by_ref().take(cx.rank(*given)).for_each(drop);
            shapes.push(vec![count.clone()]);
            masks += 1;
        } else {
            from.next();
            shapes.push(cx.shape(*given));
        }
    }
    if masks > 1 || (masks == 1 && shapes.len() > 1) {
        return unknown("masks beside other indices");
    }
    let picked = broadcast(cx, &shapes);
    let adjacent = places.windows(2).all(|w| w[1].0 == w[0].0 + 1);
    let at = if adjacent { places.first().map_or(0, |p| p.1) } else { 0 };
    before.splice(at..at, picked);
    before.extend(from);
    Ok(sized(cx, args.input, &before))
}

/// The classes in a new last dimension.
fn meta_one_hot(cx: &Cx, x: Value, classes: i64) -> Lowered {
    let mut size = cx.shape(x);
    size.push(if classes < 0 { fresh(cx) } else { Expr::int(classes) });
    Ok(typed(cx, DType::I64, &size))
}

checks! {
    // Indices whose dimensions differ gather one after another.
    "aten.index.Tensor(x: b8[s0, s1], [i: i64[s0, 1, 1, 1], j: i64[s2]]) -> b8[s0, 1, 1, s2]" => "
    val_0 = Gather <axis: int = 1> (x, j)
    val_1 = Reshape (i, [0])
    val_2 = Gather <axis: int = 0> (val_0, val_1)
    index = Unsqueeze (val_2, [1, 2])
    ";

    // A mask alone compresses.
    "aten.index.Tensor(x: f32[s0, 4], [m: b8[s0]]) -> f32[u0, 4]" => "
    index = Compress <axis: int = 0> (x, m)
    ";

    // Separate indices are gathers.
    "aten.index.Tensor(x: f32[s0, 8], [i: i64[4, 1], j: i64[3]]) -> f32[4, 3]" => "
    val_0 = Gather <axis: int = 1> (x, j)
    val_1 = Reshape (i, [4])
    index = Gather <axis: int = 0> (val_0, val_1)
    ";

    // Indices that are apart come first.
    "aten.index.Tensor(x: f32[2, s0, 8], [i: i64[4], None, j: i64[4]]) -> f32[4, s0]" => "
    val_0 = Unsqueeze (i, [1])
    val_1 = Unsqueeze (j, [1])
    val_2 = Concat <axis: int = 1> (val_0, val_1)
    val_3 = Transpose <perm: ints = [0, 2, 1]> (x)
    index = GatherND (val_3, val_2)
    ";
}
