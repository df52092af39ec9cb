//! Ops that change the sizes and keep the elements: views, copies, joins and padding.

use crate::stand_ins::{broadcast, fresh, sized, typed, unknown, with_size};
use pt2onnx_ir::Value;
use pt2onnx_lowering::{Args, AtenOp, Cx, Lowered, arguments, cx::axis_of, op};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, promote_types};

pub(crate) static RULES: &[AtenOp] = &[
    op!(aten::_pad_circular, pad),
    op!(aten::_pad_enum, pad),
    op!(aten::_reshape_alias, view),
    op!(aten::_reshape_alias_copy, view),
    op!(aten::_reshape_copy, view),
    op!(aten::_stack, stack),
    op!(aten::_unsafe_view, view),
    op!(aten::as_strided, strided),
    op!(aten::as_strided_copy, strided),
    op!(aten::atleast_1d, at_least, rank = 1),
    op!(aten::atleast_1d_Sequence, all_at_least, rank = 1),
    op!(aten::atleast_2d, at_least, rank = 2),
    op!(aten::atleast_2d_Sequence, all_at_least, rank = 2),
    op!(aten::atleast_3d, at_least, rank = 3),
    op!(aten::atleast_3d_Sequence, all_at_least, rank = 3),
    op!(aten::block_diag, block_diag),
    op!(aten::broadcast_tensors, broadcast_tensors),
    op!(aten::broadcast_to, expand),
    op!(aten::cartesian_prod, cartesian_prod),
    op!(aten::cat, cat),
    op!(aten::column_stack, column_stack),
    op!(aten::combinations, combinations),
    op!(aten::concat, cat),
    op!(aten::concatenate, cat),
    op!(aten::constant_pad_nd, pad),
    op!(aten::diag, diag),
    op!(aten::diag_embed, diag_embed),
    op!(aten::diagflat, diagflat),
    op!(aten::diagonal, diagonal),
    op!(aten::diagonal_copy, diagonal),
    op!(aten::dstack, stacked, rank = 3, dim = 2),
    op!(aten::expand, expand),
    op!(aten::expand_copy, expand),
    op!(aten::flatten_dense_tensors, flattened_all),
    op!(aten::flatten_using_ints, flatten),
    op!(aten::hstack, stacked, rank = 1, dim = 1),
    op!(aten::linalg_diagonal, linalg_diagonal),
    op!(aten::meshgrid, meshgrid, indexing = "ij"),
    op!(aten::meshgrid_indexing, meshgrid),
    op!(aten::narrow, narrow),
    op!(aten::narrow_Tensor, narrow_at),
    op!(aten::narrow_copy, narrow),
    op!(aten::numpy_T, reversed),
    op!(aten::pad, pad),
    op!(aten::permute, permute),
    op!(aten::permute_copy, permute),
    op!(aten::pixel_shuffle, pixel_shuffle),
    op!(aten::pixel_unshuffle, pixel_unshuffle),
    op!(aten::ravel, ravel),
    op!(aten::reflection_pad1d, pad),
    op!(aten::reflection_pad2d, pad),
    op!(aten::reflection_pad3d, pad),
    op!(aten::repeat, repeat),
    op!(aten::replication_pad1d, pad),
    op!(aten::replication_pad2d, pad),
    op!(aten::replication_pad3d, pad),
    op!(aten::reshape, view),
    op!(aten::resize, strided),
    op!(aten::resize_, strided),
    op!(aten::row_stack, stacked, rank = 2, dim = 0),
    op!(aten::select_int, select),
    op!(aten::slice_Tensor, slice),
    op!(aten::slice_copy_Tensor, slice),
    op!(aten::squeeze, squeeze),
    op!(aten::squeeze_, squeeze),
    op!(aten::squeeze__dim, squeeze_dims),
    op!(aten::squeeze__dims, squeeze_dims),
    op!(aten::squeeze_copy, squeeze),
    op!(aten::squeeze_copy_dim, squeeze_dims),
    op!(aten::squeeze_copy_dims, squeeze_dims),
    op!(aten::squeeze_dim, squeeze_dims),
    op!(aten::squeeze_dims, squeeze_dims),
    op!(aten::stack, stack),
    op!(aten::sum_to_size, sum_to_size),
    op!(aten::swapaxes_, transpose),
    op!(aten::swapdims_, transpose),
    op!(aten::t, reversed),
    op!(aten::t_, reversed),
    op!(aten::t_copy, reversed),
    op!(aten::tile, tile),
    op!(aten::transpose_, transpose),
    op!(aten::transpose_copy_int, transpose),
    op!(aten::transpose_int, transpose),
    op!(aten::unflatten_int, unflatten),
    op!(aten::unfold, unfold),
    op!(aten::unfold_copy, unfold),
    op!(aten::unsqueeze, unsqueeze),
    op!(aten::unsqueeze_, unsqueeze),
    op!(aten::unsqueeze_copy, unsqueeze),
    op!(aten::view, view),
    op!(aten::view_as_complex, view_as_complex),
    op!(aten::view_as_complex_copy, view_as_complex),
    op!(aten::view_as_real, view_as_real),
    op!(aten::view_as_real_copy, view_as_real),
    op!(aten::view_copy, view),
    op!(aten::view_dtype, view_dtype),
    op!(aten::vstack, stacked, rank = 2, dim = 0),
];

fn sizes(cx: &Cx, x: Value) -> Vec<Expr> {
    cx.shape(x).into_iter().collect()
}

/// A size of -1 follows from the number of elements.
fn filled(cx: &Cx, count: Expr, size: Vec<Expr>) -> Lowered<Vec<Expr>> {
    let minus = Expr::int(-1);
    let Some(place) = size.iter().position(|d| *d == minus) else {
        return Ok(size);
    };
    let others = Expr::product(size.iter().filter(|d| **d != minus).cloned());
    if others.as_int() == Some(0) {
        return unknown("-1 stands for any size, as another size is 0");
    }
    let mut size = size;
    size[place] = cx.constraints().simplify(&count.floor_div(&others));
    Ok(size)
}

fn view(cx: &Cx, args: Sized) -> Lowered {
    let size = filled(cx, cx.numel(args.input), args.size.or(args.shape).unwrap_or_default())?;
    Ok(sized(cx, args.input, &size))
}

arguments! {
    struct Sized { input: Value, size: Option<Vec<Expr>>, shape: Option<Vec<Expr>> }
    struct Diagonal { input: Value, offset: i64, dim1: i64, dim2: i64 }
    struct Pad { input: Value, pad: Option<Vec<Expr>>, padding: Option<Vec<Expr>> }
    struct Window { input: Value, dimension: i64, size: i64, step: i64 }
    struct Dims { input: Value, dim: Vec<i64> }
    struct Slice { input: Value, dim: i64, start: Option<Expr>, end: Option<Expr>, step: Expr }
    struct Swapped { input: Value, dim0: Option<i64>, dim1: Option<i64>, axis0: Option<i64>, axis1: Option<i64> }
    struct Flattened { input: Value, start_dim: i64, end_dim: i64 }
    struct Unflattened { input: Value, dim: i64, sizes: Vec<Expr> }
}

fn strided(cx: &Cx, x: Value, size: Vec<Expr>) -> Lowered {
    Ok(sized(cx, x, &size))
}

/// One element of a complex tensor is two of the view.
fn view_as_real(cx: &Cx, x: Value) -> Lowered {
    let mut size = sizes(cx, x);
    size.push(Expr::int(2));
    Ok(typed(cx, cx.dtype(x).to_real(), &size))
}

fn view_as_complex(cx: &Cx, x: Value) -> Lowered {
    let mut size = sizes(cx, x);
    size.pop();
    let dtype = crate::signal::complex_of(cx.dtype(x))?;
    Ok(typed(cx, dtype, &size))
}

/// The last size changes as the width of the elements does.
fn view_dtype(cx: &Cx, x: Value, dtype: DType) -> Lowered {
    let (from, to) = (cx.dtype(x).bits() as i64, dtype.bits() as i64);
    let mut size = sizes(cx, x);
    match size.last_mut() {
        Some(last) => *last = cx.constraints().simplify(&(&*last * from).floor_div(&Expr::int(to))),
        None if from != to => return unknown("a 0-d tensor has no size that could change"),
        None => {}
    }
    Ok(typed(cx, dtype, &size))
}

/// `rank` dimensions at least: a vector is a row, and a matrix has a third dimension at the end.
fn at_least(cx: &Cx, x: Value, rank: i64) -> Lowered {
    let (size, one) = (sizes(cx, x), Expr::int(1));
    let size = match (&size[..], rank) {
        ([], _) => vec![one; rank as usize],
        ([n], 2) => vec![one, n.clone()],
        ([n], 3) => vec![one.clone(), n.clone(), one],
        ([n, m], 3) => vec![n.clone(), m.clone(), one],
        _ => size,
    };
    Ok(sized(cx, x, &size))
}

fn all_at_least(cx: &Cx, tensors: Vec<Value>, rank: i64) -> Lowered<Vec<Value>> {
    tensors.into_iter().map(|x| at_least(cx, x, rank)).collect()
}

/// The type to which the types of tensors of any rank are promoted.
pub(crate) fn promoted(cx: &Cx, tensors: &[Value]) -> Lowered<DType> {
    let operands: Vec<_> = tensors.iter().map(|&v| v.into()).collect();
    match tensors {
        [] => unknown("it joins no tensors"),
        _ => Ok(cx.result_type(&operands)),
    }
}

/// Vectors without elements are left out.
fn cat(cx: &Cx, tensors: Vec<Value>, dim: i64) -> Lowered {
    let dtype = promoted(cx, &tensors)?;
    let empty = |v: &Value| cx.rank(*v) == 1 && cx.dim(*v, 0).as_int() == Some(0);
    let parts: Vec<Value> = tensors.iter().copied().filter(|v| !empty(v)).collect();
    let Some(&first) = parts.first() else {
        return Ok(typed(cx, dtype, &[Expr::ZERO]));
    };
    let axis = axis_of(cx.rank(first), dim)?;
    let total = Expr::sum(parts.iter().map(|&v| cx.dim(v, axis as i64)));
    Ok(typed(cx, dtype, &with_size(cx, first, axis, total)))
}

fn stack(cx: &Cx, tensors: Vec<Value>, dim: i64) -> Lowered {
    let dtype = promoted(cx, &tensors)?;
    let mut size = sizes(cx, tensors[0]);
    let axis = axis_of(size.len() + 1, dim)?;
    size.insert(axis, Expr::int(tensors.len() as i64));
    Ok(typed(cx, dtype, &size))
}

/// Joins tensors of `rank` dimensions at least; `hstack` joins vectors along their only dimension.
fn stacked(cx: &Cx, tensors: Vec<Value>, rank: i64, dim: i64) -> Lowered {
    let tensors = all_at_least(cx, tensors, rank)?;
    let vectors = tensors.first().is_some_and(|&v| cx.rank(v) == 1);
    cat(cx, tensors, if vectors { 0 } else { dim })
}

/// Vectors are columns.
fn column_stack(cx: &Cx, tensors: Vec<Value>) -> Lowered {
    let column = |v: Value| match cx.rank(v) {
        0 | 1 => sized(cx, v, &[cx.numel(v), Expr::int(1)]),
        _ => v,
    };
    cat(cx, tensors.into_iter().map(column).collect(), 1)
}

fn block_diag(cx: &Cx, tensors: Vec<Value>) -> Lowered {
    let dtype = tensors.iter().map(|&v| cx.dtype(v)).reduce(promote_types).unwrap_or(DType::F32);
    let matrices = all_at_least(cx, tensors, 2)?;
    let total = |axis| Expr::sum(matrices.iter().map(|&v| cx.dim(v, axis)));
    Ok(typed(cx, dtype, &[total(0), total(1)]))
}

fn broadcast_tensors(cx: &Cx, tensors: Vec<Value>) -> Lowered<Vec<Value>> {
    let shapes: Vec<_> = tensors.iter().map(|&v| sizes(cx, v)).collect();
    let size = broadcast(cx, &shapes);
    Ok(tensors.into_iter().map(|v| sized(cx, v, &size)).collect())
}

/// -1 keeps the size.
fn expand(cx: &Cx, x: Value, size: Vec<Expr>) -> Lowered {
    let from = sizes(cx, x);
    let Some(new) = size.len().checked_sub(from.len()) else {
        return unknown("it has fewer sizes than its operand");
    };
    let kept = |(i, d): (usize, &Expr)| match i.checked_sub(new) {
        Some(i) if d.as_int() == Some(-1) => from[i].clone(),
        _ => d.clone(),
    };
    Ok(sized(cx, x, &size.iter().enumerate().map(kept).collect::<Vec<_>>()))
}

/// Sizes from the front and the back of each dimension, from the last one on.
fn pad(cx: &Cx, args: Pad) -> Lowered {
    let mut size = sizes(cx, args.input);
    let ends = args.pad.or(args.padding).unwrap_or_default();
    for (d, ends) in size.iter_mut().rev().zip(ends.chunks(2)) {
        *d = &*d + Expr::sum(ends.iter().cloned());
    }
    Ok(sized(cx, args.input, &size))
}

/// `rows` by `columns` has so many elements on the diagonal `offset` columns right of the main one.
fn diagonal_length(cx: &Cx, rows: &Expr, columns: &Expr, offset: i64) -> Expr {
    let (rows, columns) = if offset >= 0 {
        (rows.clone(), columns - offset)
    } else {
        (rows + offset, columns.clone())
    };
    cx.constraints().simplify(&Expr::max(&Expr::min(&rows, &columns), &Expr::ZERO))
}

fn diagonal(cx: &Cx, args: Diagonal) -> Lowered {
    let mut size = sizes(cx, args.input);
    let (a, b) = (axis_of(size.len(), args.dim1)?, axis_of(size.len(), args.dim2)?);
    let length = diagonal_length(cx, &size[a], &size[b], args.offset);
    size.remove(a.max(b));
    size.remove(a.min(b));
    size.push(length);
    Ok(sized(cx, args.input, &size))
}

/// As [`diagonal`], with another name for the operand.
fn linalg_diagonal(cx: &Cx, args: &mut Args) -> Lowered {
    let [offset, dim1, dim2] =
        [args.get(cx, "offset")?, args.get(cx, "dim1")?, args.get(cx, "dim2")?];
    diagonal(cx, Diagonal { input: args.get(cx, "A")?, offset, dim1, dim2 })
}

fn diag(cx: &Cx, x: Value, diagonal: i64) -> Lowered {
    let size = match &sizes(cx, x)[..] {
        [n] => vec![n + diagonal.abs(); 2],
        [rows, columns] => vec![diagonal_length(cx, rows, columns, diagonal)],
        _ => return unknown("it takes vectors and matrices"),
    };
    Ok(sized(cx, x, &size))
}

fn diagflat(cx: &Cx, x: Value, offset: i64) -> Lowered {
    let n = cx.numel(x) + offset.abs();
    Ok(sized(cx, x, &[n.clone(), n]))
}

fn diag_embed(cx: &Cx, x: Value, offset: i64, dim1: i64, dim2: i64) -> Lowered {
    let mut size = sizes(cx, x);
    let Some(last) = size.pop() else {
        return unknown("it takes no 0-d tensors");
    };
    let rank = size.len() + 2;
    let (a, b) = (axis_of(rank, dim1)?, axis_of(rank, dim2)?);
    let n = last + offset.abs();
    size.insert(a.min(b), n.clone());
    size.insert(a.max(b), n);
    Ok(sized(cx, x, &size))
}

fn flatten(cx: &Cx, args: Flattened) -> Lowered {
    let mut size = sizes(cx, args.input);
    if size.is_empty() {
        return Ok(sized(cx, args.input, &[Expr::int(1)]));
    }
    let (a, b) = (axis_of(size.len(), args.start_dim)?, axis_of(size.len(), args.end_dim)?);
    if a > b {
        return unknown("its first dimension is behind its last one");
    }
    let merged = Expr::product(size[a..=b].iter().cloned());
    size.splice(a..=b, [merged]);
    Ok(sized(cx, args.input, &size))
}

fn unflatten(cx: &Cx, args: Unflattened) -> Lowered {
    let mut size = sizes(cx, args.input);
    let axis = axis_of(size.len(), args.dim)?;
    let parts = filled(cx, size[axis].clone(), args.sizes)?;
    size.splice(axis..=axis, parts);
    Ok(sized(cx, args.input, &size))
}

fn ravel(cx: &Cx, x: Value) -> Lowered {
    Ok(sized(cx, x, &[cx.numel(x)]))
}

/// A vector for each dimension, in the grid of all.
fn meshgrid(cx: &Cx, tensors: Vec<Value>, indexing: String) -> Lowered<Vec<Value>> {
    let mut size: Vec<Expr> = tensors.iter().map(|&v| cx.numel(v)).collect();
    if indexing == "xy" && size.len() > 1 {
        size.swap(0, 1);
    }
    Ok(tensors.into_iter().map(|v| sized(cx, v, &size)).collect())
}

fn narrow_at(cx: &Cx, x: Value, dim: i64, _start: Value, length: Expr) -> Lowered {
    narrow(cx, x, dim, None, length)
}

fn narrow(cx: &Cx, x: Value, dim: i64, start: Option<Expr>, length: Expr) -> Lowered {
    let axis = cx.axis(x, dim)?;
    let (size, zero) = (cx.dim(x, dim), Expr::ZERO);
    let start = start.filter(|s| cx.constraints().prove_ge(s, &zero)).unwrap_or(zero);
    if cx.constraints().prove_gt(&(start + &length), &size) {
        return unknown("its range goes beyond the end");
    }
    Ok(sized(cx, x, &with_size(cx, x, axis, length)))
}

/// A bound of a slice: counted from the end if it is negative, and within the size.
pub(crate) fn bound(cx: &Cx, at: &Expr, size: &Expr) -> Lowered<Expr> {
    let known = cx.constraints();
    let from_start = match () {
        () if known.prove_ge(at, &Expr::ZERO) => at.clone(),
        () if known.prove_gt(&Expr::ZERO, at) => at + size,
        () => return unknown("it is not known whether a bound is negative"),
    };
    Ok(known.simplify(&Expr::max(&Expr::min(&from_start, size), &Expr::ZERO)))
}

fn slice(cx: &Cx, args: Slice) -> Lowered {
    let axis = cx.axis(args.input, args.dim)?;
    let size = cx.dim(args.input, axis as i64);
    let start = args.start.map_or(Ok(Expr::ZERO), |at| bound(cx, &at, &size));
    let end = match args.end {
        Some(end) if end.as_int() != Some(i64::MAX) => bound(cx, &end, &size),
        _ => Ok(size.clone()),
    };
    let (Ok(start), Ok(end)) = (start, end) else {
        // Only at run time it is known whether they count from the end.
        return Ok(sized(cx, args.input, &with_size(cx, args.input, axis, fresh(cx))));
    };
    let length = cx.constraints().simplify(&Expr::max(&(&end - &start), &Expr::ZERO));
    let length = cx.constraints().simplify(&length.ceil_div(&args.step));
    Ok(sized(cx, args.input, &with_size(cx, args.input, axis, length)))
}

fn select(cx: &Cx, x: Value, dim: i64) -> Lowered {
    let mut size = sizes(cx, x);
    size.remove(axis_of(size.len(), dim)?);
    Ok(sized(cx, x, &size))
}

fn squeeze(cx: &Cx, x: Value) -> Lowered {
    squeeze_dims(cx, Dims { input: x, dim: (0..cx.rank(x) as i64).collect() })
}

/// A size that may be 1 counts as another one: PyTorch's symbols are never 1 where that would
/// matter.
fn squeeze_dims(cx: &Cx, args: Dims) -> Lowered {
    let one = Expr::int(1);
    let mut size = Vec::new();
    let axes = pt2onnx_lowering::math::shape::axes_of(cx.rank(args.input), &args.dim)?;
    for (i, d) in sizes(cx, args.input).into_iter().enumerate() {
        if !axes.contains(&i) || cx.constraints().prove_eq(&d, &one) != Some(true) {
            size.push(d);
        }
    }
    Ok(sized(cx, args.input, &size))
}

fn unsqueeze(cx: &Cx, x: Value, dim: i64) -> Lowered {
    let mut size = sizes(cx, x);
    size.insert(axis_of(size.len() + 1, dim)?, Expr::int(1));
    Ok(sized(cx, x, &size))
}

fn permute(cx: &Cx, x: Value, dims: Vec<i64>) -> Lowered {
    let from = sizes(cx, x);
    let size = dims.iter().map(|&d| Ok(from[axis_of(from.len(), d)?].clone()));
    Ok(sized(cx, x, &size.collect::<Lowered<Vec<_>>>()?))
}

fn reversed(cx: &Cx, x: Value) -> Lowered {
    let size: Vec<Expr> = sizes(cx, x).into_iter().rev().collect();
    Ok(sized(cx, x, &size))
}

fn transpose(cx: &Cx, args: Swapped) -> Lowered {
    let mut size = sizes(cx, args.input);
    let (Some(a), Some(b)) = (args.dim0.or(args.axis0), args.dim1.or(args.axis1)) else {
        return unknown("it has no dimensions");
    };
    let rank = size.len().max(1);
    let (a, b) = (axis_of(rank, a)?, axis_of(rank, b)?);
    if !size.is_empty() {
        size.swap(a, b);
    }
    Ok(sized(cx, args.input, &size))
}

fn pixel_shuffle(cx: &Cx, x: Value, factor: i64) -> Lowered {
    let mut size = sizes(cx, x);
    let n = size.len();
    if n < 3 {
        return unknown("it takes images");
    }
    size[n - 3] = cx.constraints().simplify(&size[n - 3].floor_div(&Expr::int(factor * factor)));
    size[n - 2] = &size[n - 2] * factor;
    size[n - 1] = &size[n - 1] * factor;
    Ok(sized(cx, x, &size))
}

fn pixel_unshuffle(cx: &Cx, x: Value, factor: i64) -> Lowered {
    let mut size = sizes(cx, x);
    let n = size.len();
    if n < 3 {
        return unknown("it takes images");
    }
    size[n - 3] = &size[n - 3] * (factor * factor);
    for d in &mut size[n - 2..] {
        *d = cx.constraints().simplify(&d.floor_div(&Expr::int(factor)));
    }
    Ok(sized(cx, x, &size))
}

fn repeat(cx: &Cx, x: Value, repeats: Vec<Expr>) -> Lowered {
    let from = sizes(cx, x);
    let Some(new) = repeats.len().checked_sub(from.len()) else {
        return unknown("it has fewer repeats than its operand has dimensions");
    };
    let old = std::iter::repeat_n(Expr::int(1), new).chain(from);
    let size: Vec<Expr> = old.zip(&repeats).map(|(d, r)| d * r).collect();
    Ok(sized(cx, x, &size))
}

/// Missing repeats are 1.
fn tile(cx: &Cx, x: Value, dims: Vec<Expr>) -> Lowered {
    let missing = cx.rank(x).saturating_sub(dims.len());
    repeat(cx, x, std::iter::repeat_n(Expr::int(1), missing).chain(dims).collect())
}

fn sum_to_size(cx: &Cx, x: Value, size: Vec<Expr>) -> Lowered {
    Ok(typed(cx, crate::reduce::sum_type(cx, x), &size))
}

/// Windows of a dimension, in a new last one.
fn unfold(cx: &Cx, args: Window) -> Lowered {
    let mut size = sizes(cx, args.input);
    if size.is_empty() {
        return Ok(sized(cx, args.input, &[Expr::int(args.size)]));
    }
    let axis = axis_of(size.len(), args.dimension)?;
    size[axis] = (&size[axis] - args.size).floor_div(&Expr::int(args.step)) + 1;
    size.push(Expr::int(args.size));
    Ok(sized(cx, args.input, &size))
}

/// A row for each combination of elements of the vectors.
fn cartesian_prod(cx: &Cx, tensors: Vec<Value>) -> Lowered {
    let count = Expr::product(tensors.iter().map(|&v| cx.numel(v)));
    match &tensors[..] {
        [] => unknown("it joins no tensors"),
        [one] => Ok(sized(cx, *one, &[count])),
        [first, ..] => Ok(sized(cx, *first, &[count, Expr::int(tensors.len() as i64)])),
    }
}

/// A row for each choice of `r` elements.
fn combinations(cx: &Cx, x: Value, r: i64, with_replacement: bool) -> Lowered {
    if r == 0 {
        return Ok(sized(cx, x, &[Expr::int(0)]));
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

fn flattened_all(cx: &Cx, tensors: Vec<Value>) -> Lowered {
    let total = Expr::sum(tensors.iter().map(|&v| cx.numel(v)));
    Ok(typed(cx, promoted(cx, &tensors)?, &[total]))
}
