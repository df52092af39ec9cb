//! Repeated elements, and combinations of the elements of several tensors.

use crate::math::reduce::running_sums;
use crate::math::shape::{
    SPELLED_OUT, broadcast_along, constant, counted, flat, set_recorded, to_recorded, vector,
};
use crate::meta::{fresh, sized, unknown, with_size};
use crate::{AtenOp, Cx, LowerError, Lowered, args::Ignored, checks, cx::Outputs, op};
use pt2onnx_ir::{Reduction, Type, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::cartesian_prod, cartesian_prod, parts, meta = meta_cartesian_prod),
    op!(aten::combinations, combinations, parts, meta = meta_combinations),
    op!(aten::meshgrid, meshgrid, parts, meta = meta_meshgrid, indexing = "ij"),
    op!(aten::meshgrid_indexing, meshgrid, parts, meta = meta_meshgrid),
    op!(aten::repeat, repeat, parts, meta = meta_repeat),
    op!(aten::repeat_interleave_Tensor, interleaved_indices, meta = meta_repeated),
    op!(
        aten::repeat_interleave_self_Tensor,
        repeat_interleave_each,
        parts,
        meta = meta_repeat_interleave
    ),
    op!(aten::repeat_interleave_self_int, repeat_interleave, parts, meta = meta_repeat_each),
    op!(aten::tile, repeat, parts, meta = meta_tile),
];

/// `Tile`. There may be more repeats than dimensions, or (in `tile`) fewer.
fn repeat(cx: &Cx, x: Value, mut repeats: Vec<Expr>) -> Lowered {
    let rank = cx.rank(x);
    let lead: Vec<usize> = (0..repeats.len().saturating_sub(rank)).collect();
    let x = cx.unsqueeze(x, &lead);
    while repeats.len() < rank {
        repeats.insert(0, Expr::int(1));
    }
    if repeats.iter().all(|r| r.as_int() == Some(1)) {
        return Ok(x);
    }
    // Where each repeated dimension is of size 1, the copies need not be made one by one.
    let shape = cx.shape(x);
    let mut ones = shape.iter().zip(&repeats);
    if ones.all(|(size, r)| size.as_int() == Some(1) || r.as_int() == Some(1)) {
        return Ok(cx.expand(x, &cx.out_shape()?));
    }
    set_recorded(cx, cx.tile_op(x, cx.sizes(&repeats)))
}

/// Each element along `dim` repeated `repeats` times, copies side by side. Without `dim`, the
/// flattened tensor.
fn repeat_interleave(cx: &Cx, x: Value, repeats: Expr, dim: Option<i64>, _: Ignored) -> Lowered {
    let (x, axis) = elements(cx, x, dim)?;
    let size = cx.dim(x, axis as i64);
    if repeats.as_int() == Some(1) {
        return Ok(x);
    }
    if let (Some(size), Some(repeats)) = (size.as_int(), repeats.as_int())
        && size.saturating_mul(repeats) <= SPELLED_OUT
    {
        let indices: Vec<i64> = (0..size * repeats).map(|i| i / repeats).collect();
        return set_recorded(cx, cx.gather(x, cx.ints(&indices), axis));
    }
    let mut wide = cx.shape(x);
    wide.insert(axis + 1, repeats);
    to_recorded(cx, cx.expand(cx.unsqueeze(x, &[axis + 1]), &wide))
}

/// Element i along `dim` repeated `repeats[i]` times. Without `dim`, the flattened tensor.
fn repeat_interleave_each(
    cx: &Cx,
    x: Value,
    repeats: Value,
    dim: Option<i64>,
    output_size: Option<Expr>,
) -> Lowered {
    let (x, axis) = elements(cx, x, dim)?;
    let repeats = cx.expand(vector(cx, repeats), &[cx.dim(x, axis as i64)]);
    let indices = interleaved(cx, repeats, output_size);
    set_recorded(cx, cx.gather(x, indices, axis))
}

/// Index i `repeats[i]` times.
fn interleaved_indices(cx: &Cx, repeats: Value, output_size: Option<Expr>) -> Lowered {
    let indices = interleaved(cx, repeats, output_size);
    set_recorded(cx, cx.cast(indices, cx.out_dtype()?))
}

/// Index i `repeats[i]` times, as int64: the running sum of a vector that has ones where the next
/// index starts. `total` is the sum of `repeats`, if known.
fn interleaved(cx: &Cx, repeats: Value, total: Option<Expr>) -> Value {
    let repeats = cx.cast(repeats, DType::I64);
    let count = cx.dim(repeats, 0);
    let sum = |v: Value| running_sums(cx, v, 0);
    let ends = sum(repeats);
    let total = match total {
        Some(total) => cx.sizes(&[total]),
        None => cx.reduce(Reduction::Sum, repeats, &[0], true),
    };
    // One place more than the result has: the last index ends there.
    let places = cx.add(total, 1);
    let starts = cx.scatter_elements(
        cx.expand_op(cx.scalar(0, DType::I64), places),
        ends,
        cx.full(&[count], 1, DType::I64),
        attrs::ScatterElements { reduction: "add", ..Default::default() },
    );
    cx.set_type(starts, Type::tensor(DType::I64, [cx.unknown_dim()]));
    let before_last = cx.slice_op(starts, cx.ints(&[0]), total, cx.ints(&[0]), None);
    sum(before_last)
}

/// The tensor and axis that `dim` means: without it, all elements in a row.
fn elements(cx: &Cx, x: Value, dim: Option<i64>) -> Lowered<(Value, usize)> {
    Ok(match dim {
        None => (flat(cx, x), 0),
        Some(dim) => (vector(cx, x), cx.axis(x, dim)?),
    })
}

/// Tensor i laid along dimension i and broadcast to all sizes. With `indexing` `xy`, the first two
/// dimensions are exchanged.
fn meshgrid(cx: &Cx, tensors: Vec<Value>, indexing: String) -> Lowered<Outputs> {
    let rank = tensors.len();
    let place = |i: usize| match i {
        0 | 1 if indexing == "xy" && rank > 1 => 1 - i,
        _ => i,
    };
    let grid = |(i, &x): (usize, &Value)| {
        let meta = cx.recorded(i)?;
        Some(cx.expand(broadcast_along(cx, vector(cx, x), place(i), rank), &meta.sizes))
    };
    Ok(Outputs(tensors.iter().enumerate().map(grid).collect()))
}

/// Every choice of one element of each vector, a row for each.
fn cartesian_prod(cx: &Cx, tensors: Vec<Value>) -> Lowered {
    if let [only] = tensors[..] {
        return Ok(only);
    }
    let rank = tensors.len();
    let dtype = cx.out_dtype()?;
    let mut shape: Vec<Expr> = tensors.iter().map(|&x| cx.numel(x)).collect();
    shape.push(Expr::int(1));
    let column = |(i, &x): (usize, &Value)| {
        cx.expand(broadcast_along(cx, vector(cx, cx.cast(x, dtype)), i, rank + 1), &shape)
    };
    let columns: Vec<Value> = tensors.iter().enumerate().map(column).collect();
    to_recorded(cx, cx.concat(&columns, rank))
}

/// Every choice of `r` elements of a vector in order, a row for each.
fn combinations(cx: &Cx, x: Value, r: i64, with_replacement: bool) -> Lowered {
    let size = cx.dim(x, 0);
    if !(0..=16).contains(&r) {
        return Err(LowerError::unsupported(format!(
            "combinations of {r} elements are not supported"
        )));
    }
    match (r, size.as_int()) {
        (0, _) => return Ok(cx.full(&[Expr::int(0)], 0, cx.dtype(x))),
        (1, _) => return Ok(cx.unsqueeze(x, &[1])),
        (_, Some(size)) => {
            if let Some(rows) = spelled_out_choices(size, r as usize, with_replacement) {
                let all: Vec<i64> = rows.iter().flatten().copied().collect();
                let indices = constant(cx, &[rows.len() as i64, r], &all);
                return set_recorded(cx, cx.gather(x, indices, 0));
            }
        }
        _ => {}
    }
    // Where on a grid of indices each is less than the next.
    let r = r as usize;
    let numbers = counted(cx, &Expr::int(0), &size, 1);
    let index = |i: usize| broadcast_along(cx, numbers, i, r);
    let ordered = |i: usize| {
        if with_replacement {
            cx.less_or_equal(index(i), index(i + 1))
        } else {
            cx.less(index(i), index(i + 1))
        }
    };
    let mask = (0..r - 1).map(ordered).reduce(|all, mask| cx.and(all, mask));
    let mask = mask
        .ok_or_else(|| LowerError::unsupported("combinations of 0 elements are not supported"))?;
    set_recorded(cx, cx.gather(x, cx.transpose(cx.non_zero(mask), &[1, 0]), 0))
}

/// All increasing rows of `r` indices below `size`, unless there are too many to spell out.
fn spelled_out_choices(size: i64, r: usize, with_replacement: bool) -> Option<Vec<Vec<i64>>> {
    let mut rows: Vec<Vec<i64>> = vec![vec![]];
    for _ in 0..r {
        let mut longer = Vec::new();
        for row in &rows {
            let from = row.last().map_or(0, |last| last + i64::from(!with_replacement));
            if longer.len() as i64 + (size - from) > SPELLED_OUT {
                return None;
            }
            longer.extend((from..size).map(|next| [&row[..], &[next]].concat()));
        }
        rows = longer;
    }
    Some(rows)
}

fn meta_repeated(cx: &Cx, repeats: Value, output_size: Option<Expr>) -> Lowered {
    let size = output_size.unwrap_or_else(|| meta_total(cx, repeats));
    Ok(sized(cx, repeats, &[size]))
}

/// The size is the sum of the repeats.
fn meta_total(cx: &Cx, repeats: Value) -> Expr {
    cx.contents(repeats).map_or_else(|| fresh(cx), Expr::sum)
}

fn meta_repeat_interleave(
    cx: &Cx,
    x: Value,
    repeats: Value,
    dim: Option<i64>,
    output_size: Option<Expr>,
) -> Lowered {
    let known = cx.contents(repeats).filter(|_| cx.numel(repeats).as_int() == Some(1));
    if let (Some([each]), None) = (known.as_deref(), &output_size) {
        return meta_repeat_each(cx, x, each.clone(), dim);
    }
    let size = output_size.unwrap_or_else(|| meta_total(cx, repeats));
    meta_along(cx, x, dim, |_| size.clone())
}

fn meta_repeat_each(cx: &Cx, x: Value, repeats: Expr, dim: Option<i64>) -> Lowered {
    meta_along(cx, x, dim, |d| d * &repeats)
}

/// `x` with a changed dimension, or as a changed vector.
fn meta_along(cx: &Cx, x: Value, dim: Option<i64>, change: impl Fn(Expr) -> Expr) -> Lowered {
    let Some(dim) = dim else {
        return Ok(sized(cx, x, &[change(cx.numel(x))]));
    };
    let axis = cx.axis(x, dim)?;
    if cx.rank(x) == 0 {
        return Ok(sized(cx, x, &[change(Expr::ONE)]));
    }
    Ok(sized(cx, x, &with_size(cx, x, axis, change(cx.dim(x, axis as i64)))))
}

/// A vector for each dimension, in the grid of all.
fn meta_meshgrid(cx: &Cx, tensors: Vec<Value>, indexing: String) -> Lowered<Vec<Value>> {
    let mut size: Vec<Expr> = tensors.iter().map(|&v| cx.numel(v)).collect();
    if indexing == "xy" && size.len() > 1 {
        size.swap(0, 1);
    }
    Ok(tensors.into_iter().map(|v| sized(cx, v, &size)).collect())
}

fn meta_repeat(cx: &Cx, x: Value, repeats: Vec<Expr>) -> Lowered {
    let from = cx.shape(x);
    let Some(new) = repeats.len().checked_sub(from.len()) else {
        return unknown("it has fewer repeats than its operand has dimensions");
    };
    let old = std::iter::repeat_n(Expr::ONE, new).chain(from);
    let size: Vec<Expr> = old.zip(&repeats).map(|(d, r)| d * r).collect();
    Ok(sized(cx, x, &size))
}

/// Missing repeats are 1.
fn meta_tile(cx: &Cx, x: Value, dims: Vec<Expr>) -> Lowered {
    let missing = cx.rank(x).saturating_sub(dims.len());
    meta_repeat(cx, x, std::iter::repeat_n(Expr::ONE, missing).chain(dims).collect())
}

/// A row for each combination of elements of the vectors.
fn meta_cartesian_prod(cx: &Cx, tensors: Vec<Value>) -> Lowered {
    let count = Expr::product(tensors.iter().map(|&v| cx.numel(v)));
    match &tensors[..] {
        [] => unknown("it joins no tensors"),
        [one] => Ok(sized(cx, *one, &[count])),
        [first, ..] => Ok(sized(cx, *first, &[count, Expr::int(tensors.len() as i64)])),
    }
}

/// A row for each choice of `r` elements.
fn meta_combinations(cx: &Cx, x: Value, r: i64, with_replacement: bool) -> Lowered {
    if r == 0 {
        return Ok(sized(cx, x, &[Expr::ZERO]));
    }
    // More than 16 elements are not supported.
    let (n, steps) = (cx.numel(x), 0..r.min(16));
    let rows = match n.as_int() {
        Some(n) => {
            let n = if with_replacement { n.saturating_add(r).saturating_sub(1) } else { n };
            let choose = steps
                .fold(1_i128, |c, i| c.saturating_mul((n - i).max(0).into()) / i128::from(i + 1));
            Expr::int(i64::try_from(choose).unwrap_or(i64::MAX))
        }
        // In the order in which PyTorch multiplies.
        None => steps.fold(Expr::ONE, |rows, i| {
            let factor = if with_replacement { &n + i } else { &n - i };
            (rows * factor).floor_div(&Expr::int(i + 1))
        }),
    };
    Ok(sized(cx, x, &[rows, Expr::int(r)]))
}

checks! {
    // New dimensions broadcast.
    "aten.repeat(x: f32[1, s0], [2, 3, 1]) -> f32[2, 3, s0]" => "
    val_0 = Unsqueeze (x, [0])
    repeat = Expand (val_0, [2, 3, 1])
    ";

    // A number of copies for each.
    "aten.repeat_interleave.self_Tensor(x: f32[s0, 4], n: i64[s0], 0) -> f32[u0, 4]" => r#"
    val_0 = CumSum (n, 0)
    val_1 = ReduceSum <keepdims: int = 1> (n, [0])
    val_2 = Add (val_1, 1)
    val_3 = Expand (0, val_2)
    val_4 = Shape <start: int = 0, end: int = 1> (x)
    val_5 = Expand (1, val_4)
    val_6 = ScatterElements <reduction: string = "add"> (val_3, val_0, val_5)
    val_7 = Slice (val_6, [0], val_1, [0])
    val_8 = CumSum (val_7, 0)
    repeat_interleave = Gather <axis: int = 0> (x, val_8)
    "#;
}
