//! Translates writes at several indices: `x[i, :, j] = v`.

use crate::math::index::{Order, by_axis, held, non_zero, only_mask, stacked};
use crate::math::shape::{broadcast_along, has_no_elements, set_recorded};
use crate::meta;
use crate::{AtenOp, Cx, Lowered, checks, op};
use pt2onnx_ir::{Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_index_put_impl, index_put, parts, meta = meta::same),
    op!(aten::_unsafe_index_put, index_put, parts, meta = meta::same),
    op!(aten::_unsafe_index_put_hacked_twin, index_put, parts, meta = meta::same),
    op!(aten::_unsafe_masked_index_put_accumulate, masked_index_put, parts, meta = meta::same),
    op!(aten::index_put, index_put, parts, meta = meta::same),
    op!(aten::index_put_hacked_twin, index_put, parts, meta = meta::same),
];

/// `x[indices] = values`, or with `accumulate` `+=`; both are broadcast.
fn index_put(
    cx: &Cx,
    x: Value,
    indices: Vec<Option<Value>>,
    values: Value,
    accumulate: bool,
) -> Lowered {
    let dtype = cx.dtype(x);
    let computed = match dtype {
        // ONNX cannot add bools. As integers, a sum is not 0 if any is true.
        DType::Bool if accumulate => DType::I32,
        DType::F16 | DType::BF16 if accumulate => DType::F32,
        _ => dtype,
    };
    let (x, values) = (cx.cast(x, computed), cx.cast(values, computed));
    let result = put(cx, x, &indices, values, accumulate)?;
    set_recorded(cx, cx.cast(result, dtype))
}

/// [`index_put`], by a `Where`, `ScatterND` or `ScatterElements`.
fn put(cx: &Cx, x: Value, indices: &[Option<Value>], values: Value, accumulate: bool) -> Lowered {
    let mask = only_mask(cx, indices);
    if let Some((axis, mask)) = mask
        && let Some(result) = put_where(cx, x, axis, mask, values, accumulate)
    {
        return Ok(result);
    }
    let reduction = if accumulate { "add" } else { "none" };
    if let Some((0, mask)) = mask.filter(|(_, mask)| cx.rank(*mask) <= cx.rank(x)) {
        let places = cx.transpose(non_zero(cx, mask), &[1, 0]);
        let mut shape = cx.shape(x)[cx.rank(mask)..].to_vec();
        shape.insert(0, rows_of(cx, values, shape.len()));
        return Ok(cx.scatter_nd(
            x,
            places,
            cx.expand(values, &shape),
            attrs::ScatterND { reduction },
        ));
    }
    let by_axis = by_axis(cx, indices)?;
    if by_axis.is_empty() {
        let all = cx.expand(values, &cx.shape(x));
        return Ok(if accumulate { cx.add(x, all) } else { all });
    }
    let order = Order::new(cx.rank(x), &by_axis)?;
    if let [(axis @ 1.., index)] = by_axis[..]
        && cx.rank(index) == 1
    {
        let mut shape = cx.shape(x);
        shape[axis] = cx.dim(index, 0);
        let options = attrs::ScatterElements { axis: axis as i64, reduction };
        let index = cx.expand(broadcast_along(cx, index, axis, cx.rank(x)), &shape);
        return Ok(cx.scatter_elements(
            x,
            index,
            cx.expand(no_more_than(cx, values, shape.len()), &shape),
            options,
        ));
    }
    let (places, k) = stacked(cx, &by_axis);
    // The shape of `x[indices]`, which `values` are broadcast to.
    let moved = cx.transpose(x, &order.perm);
    let others = cx.shape(moved).split_off(by_axis.len());
    let mut shape = cx.shape(places);
    shape.pop();
    let before = order.before;
    let target = [&others[..before], &shape, &others[before..]].concat();
    let values = cx.expand(no_more_than(cx, values, target.len()), &target);
    let perm: Vec<usize> =
        (before..before + k).chain(0..before).chain(before + k..target.len()).collect();
    let written =
        cx.scatter_nd(moved, places, cx.transpose(values, &perm), attrs::ScatterND { reduction });
    let mut back = vec![0; order.perm.len()];
    order.perm.iter().enumerate().for_each(|(i, &axis)| back[axis] = i);
    Ok(cx.transpose(written, &back))
}

/// The size of the dimension of `values` that runs over the true elements of a mask: the one before
/// the last `behind`.
fn rows_of(cx: &Cx, values: Value, behind: usize) -> Expr {
    let shape = cx.shape(values);
    match shape.len().checked_sub(behind + 1) {
        Some(rows) => shape[rows].clone(),
        None => Expr::int(1),
    }
}

/// `values` without the leading dimensions (of size 1) that exceed that rank.
fn no_more_than(cx: &Cx, values: Value, rank: usize) -> Value {
    let extra: Vec<usize> = (0..cx.rank(values).saturating_sub(rank)).collect();
    cx.squeeze(values, &extra)
}

/// [`put`] by a `Where`. `None` if the values differ between the elements of the mask.
fn put_where(
    cx: &Cx,
    x: Value,
    axis: usize,
    mask: Value,
    values: Value,
    accumulate: bool,
) -> Option<Value> {
    let covered = cx.rank(mask);
    let behind = cx.rank(x).checked_sub(axis + covered)?;
    // One size-1 dimension of the values stands for all that the mask covers.
    let values = match cx.rank(values).checked_sub(behind + 1) {
        None => values,
        Some(_) if rows_of(cx, values, behind).as_int() != Some(1) => return None,
        Some(rows) => {
            let mut shape = cx.shape(values);
            shape.splice(rows..=rows, vec![Expr::int(1); covered]);
            cx.reshape(values, &shape)
        }
    };
    let trailing: Vec<usize> = (covered..covered + behind).collect();
    let mask = cx.unsqueeze(cx.cast(mask, DType::Bool), &trailing);
    Some(if accumulate {
        cx.add(x, cx.select(mask, values, 0))
    } else {
        cx.select(mask, values, x)
    })
}

/// `x[indices] += values` where `mask` is true. The indices are clamped to the sizes, so that
/// nothing outside is written.
fn masked_index_put(
    cx: &Cx,
    x: Value,
    mask: Value,
    indices: Vec<Option<Value>>,
    values: Value,
) -> Lowered {
    if has_no_elements(&cx.shape(x)) {
        return Ok(x);
    }
    let held = held(cx, x, indices);
    let values = match cx.dtype(values) {
        DType::Bool => cx.and(values, mask),
        _ => cx.select(mask, values, 0),
    };
    index_put(cx, x, held, values, true)
}

checks! {
    // Values at a mask scatter.
    "aten.index_put(x: f32[s0, 4], [m: b8[s0]], v: f32[s1, 4]) -> f32[s0, 4]" => "
    val_0 = NonZero (m)
    val_1 = Transpose <perm: ints = [1, 0]> (val_0)
    index_put = ScatterND (x, val_1, v)
    ";

    // One value at a mask.
    "aten.index_put(x: f32[s0, s1, 4], [m: b8[s0, s1]], v: f32[]) -> f32[s0, s1, 4]" => "
    val_0 = Unsqueeze (m, [2])
    index_put = Where (val_0, v, x)
    ";

    // Accumulated rows.
    "aten.index_put(x: f32[s0, 8], [i: i64[3]], v: f32[3, 8], True) -> f32[s0, 8]" => r#"
    val_0 = Unsqueeze (i, [1])
    index_put = ScatterND <reduction: string = "add"> (x, val_0, v)
    "#;

    // Several masks count the same.
    "aten.index_put(x: f32[3, 4], [a: b8[3], b: b8[4]], v: f32[]) -> f32[3, 4]" => "
    val_0 = NonZero (a)
    val_1 = Gather <axis: int = 0> (val_0, 0)
    val_2 = NonZero (b)
    val_3 = Gather <axis: int = 0> (val_2, 0)
    val_4 = Add (val_1, val_3)
    val_5 = Shape (val_4)
    val_6 = Expand (val_1, val_5)
    val_7 = Expand (val_3, val_5)
    val_8 = Unsqueeze (val_6, [1])
    val_9 = Unsqueeze (val_7, [1])
    val_10 = Concat <axis: int = 1> (val_8, val_9)
    val_11 = Shape <start: int = 0, end: int = 1> (val_6)
    val_12 = Expand (v, val_11)
    index_put = ScatterND (x, val_10, val_12)
    ";
}
