//! Translates ops that reshape, broadcast and permute tensors.

use crate::math::shape::{axes_of, to_recorded};
use crate::meta::{self, broadcast, fresh, sized, unknown};
use crate::{
    AtenOp, Complex, Cx, LowerError, Lowered,
    args::Ignored,
    checks,
    cx::{Outputs, axis_of},
    op,
};
use pt2onnx_ir::{Type, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_reshape_alias, reshape, parts, meta = meta_view),
    op!(aten::_reshape_alias_copy, reshape, parts, meta = meta_view),
    op!(aten::_reshape_copy, reshape, parts, meta = meta_view),
    op!(aten::_reshape_from_tensor, reshape_from_tensor, parts, meta = meta_reshape_from_tensor),
    op!(aten::_unsafe_view, reshape, parts, meta = meta_view),
    op!(aten::adjoint, swap_last, complex = adjoint),
    op!(aten::atleast_1d, to_recorded, parts, meta = meta::at_least::<1>),
    op!(aten::atleast_1d_Sequence, all_to_recorded, parts, meta = meta::all_at_least::<1>),
    op!(aten::atleast_2d, to_recorded, parts, meta = meta::at_least::<2>),
    op!(aten::atleast_2d_Sequence, all_to_recorded, parts, meta = meta::all_at_least::<2>),
    op!(aten::atleast_3d, to_recorded, parts, meta = meta::at_least::<3>),
    op!(aten::atleast_3d_Sequence, all_to_recorded, parts, meta = meta::all_at_least::<3>),
    op!(aten::broadcast_tensors, broadcast_tensors, parts, meta = meta_broadcast_tensors),
    op!(aten::broadcast_to, expand, parts, meta = meta_expand),
    op!(aten::expand, expand, parts, meta = meta_expand),
    op!(aten::expand_as, expand, complex = expand_as_complex, meta = meta::like_other),
    op!(aten::expand_copy, expand, parts, meta = meta_expand),
    op!(aten::flatten_using_ints, reshape, parts, meta = meta_flatten),
    op!(aten::mH, swap_last, complex = adjoint),
    op!(aten::mT, swap_last, parts),
    op!(aten::matrix_H, swap_last, complex = adjoint),
    op!(aten::moveaxis_int, movedim, parts),
    op!(aten::moveaxis_intlist, movedim, parts),
    op!(aten::movedim_int, movedim, parts),
    op!(aten::movedim_intlist, movedim, parts),
    op!(aten::numpy_T, reverse, parts),
    op!(aten::permute, permute, parts),
    op!(aten::permute_copy, permute, parts),
    op!(aten::ravel, to_recorded, parts, meta = meta_ravel),
    op!(aten::reshape, reshape, parts, meta = meta_view),
    op!(aten::reshape_as, reshape, parts, meta = meta::like_other),
    op!(aten::squeeze, squeeze, parts, meta = meta_squeeze),
    op!(aten::squeeze_dim, squeeze, parts, meta = meta_squeeze),
    op!(aten::squeeze_dims, squeeze, parts, meta = meta_squeeze),
    op!(aten::squeeze_copy, squeeze, parts, meta = meta_squeeze),
    op!(aten::squeeze_copy_dim, squeeze, parts, meta = meta_squeeze),
    op!(aten::squeeze_copy_dims, squeeze, parts, meta = meta_squeeze),
    op!(aten::swapaxes, transpose, parts),
    op!(aten::swapdims, transpose, parts),
    op!(aten::t, t, parts),
    op!(aten::t_copy, t, parts),
    op!(aten::transpose_int, transpose, parts),
    op!(aten::transpose_copy_int, transpose, parts),
    op!(aten::unflatten_int, reshape, parts, meta = meta_unflatten),
    op!(aten::unsqueeze, unsqueeze, parts),
    op!(aten::unsqueeze_copy, unsqueeze, parts),
    op!(aten::view, reshape, parts, meta = meta_view),
    op!(aten::view_as, reshape, parts, meta = meta::like_other),
    op!(aten::view_copy, reshape, parts, meta = meta_view),
];

/// `Reshape` to the recorded sizes, which PyTorch computed from the parameters.
fn reshape(cx: &Cx, x: Value, _sizes: Ignored, _more: Ignored) -> Lowered {
    to_recorded(cx, x)
}

/// `Reshape` to sizes that are a tensor.
fn reshape_from_tensor(cx: &Cx, x: Value, sizes: Value) -> Lowered {
    let result = cx.reshape_op(x, cx.cast(sizes, DType::I64), attrs::Reshape { allowzero: true });
    cx.set_type(result, Type::tensor(cx.dtype(x), cx.out_shape()?));
    cx.bind_dims(result);
    Ok(result)
}

/// Without those of `dims`, or of all dimensions, that have one element: `Reshape` to the recorded
/// sizes. If a size that is not known may be 1, the result may have fewer dimensions than PyTorch
/// recorded: the runtime leaves out each dimension that turns out to be 1.
fn squeeze(cx: &Cx, x: Value, dims: Option<Vec<i64>>) -> Lowered {
    let shape = cx.shape(x);
    let axes = squeezed(cx, x, dims)?;
    let unsure = |&axis: &usize| {
        let size = shape.get(axis).filter(|size| size.as_int().is_none());
        size.is_some_and(|size| !cx.constraints().prove_ge(size, &Expr::int(2)))
    };
    if !axes.iter().any(unsure) {
        return to_recorded(cx, x);
    }
    let removed = |axis| if axes.contains(&axis) { 1 } else { -1 };
    let removed: Vec<i64> = (0..shape.len()).map(removed).collect();
    let sizes = cx.sizes(&shape);
    let kept = cx.not(cx.equal(sizes, cx.ints(&removed)));
    let target = cx.compress(sizes, kept, Default::default());
    let result = cx.reshape_op(x, target, attrs::Reshape { allowzero: true });
    cx.set_type(result, Type::tensor(cx.dtype(x), cx.out_shape()?));
    Ok(result)
}

fn squeezed(cx: &Cx, x: Value, dims: Option<Vec<i64>>) -> Lowered<Vec<usize>> {
    let dims = dims.unwrap_or_else(|| (0..cx.rank(x) as i64).collect());
    dims.iter().map(|&dim| cx.axis(x, dim)).collect()
}

/// Each reshaped to its recorded sizes.
fn all_to_recorded(cx: &Cx, tensors: Vec<Value>) -> Lowered<Outputs> {
    Ok(each_recorded(cx, tensors, |x, sizes| cx.reshape(x, sizes)))
}

/// Each broadcast to its recorded sizes.
fn broadcast_tensors(cx: &Cx, tensors: Vec<Value>) -> Lowered<Outputs> {
    Ok(each_recorded(cx, tensors, |x, sizes| cx.expand(x, sizes)))
}

/// `f` of each tensor and its recorded sizes. Outputs that are not used are not computed.
fn each_recorded(cx: &Cx, tensors: Vec<Value>, f: impl Fn(Value, &[Expr]) -> Value) -> Outputs {
    let each = tensors.into_iter().enumerate();
    Outputs(each.map(|(i, x)| cx.recorded(i).map(|meta| f(x, &meta.sizes))).collect())
}

/// `Expand` to the recorded sizes.
fn expand(cx: &Cx, x: Value, _sizes: Ignored) -> Lowered {
    Ok(cx.expand(x, &cx.out_shape()?))
}

/// Both parts broadcast to the shape of `other`.
fn expand_as_complex(cx: &Cx, x: Complex, other: Complex) -> Lowered {
    Ok(x.map(|part| cx.expand(part, &cx.shape(other.re))).value(cx))
}

/// The dimensions in the order `dims`.
fn permute(cx: &Cx, x: Value, dims: Vec<i64>) -> Lowered {
    Ok(cx.transpose(x, &axes_of(cx.rank(x), &dims)?))
}

/// Dimensions `a` and `b` exchanged.
fn transpose(cx: &Cx, x: Value, a: i64, b: i64) -> Lowered {
    Ok(match (cx.axis(x, a)?, cx.axis(x, b)?) {
        // A 0-d tensor has dimension 0 for PyTorch.
        (a, b) if a == b => x,
        (a, b) => cx.swap_axes(x, a, b),
    })
}

/// The transpose of a matrix; vectors and 0-d tensors are returned unchanged.
fn t(cx: &Cx, x: Value) -> Lowered {
    Ok(if cx.rank(x) == 2 { cx.transpose(x, &[1, 0]) } else { x })
}

/// All dimensions in the opposite order.
fn reverse(cx: &Cx, x: Value) -> Lowered {
    let perm: Vec<usize> = (0..cx.rank(x)).rev().collect();
    Ok(cx.transpose(x, &perm))
}

/// The last two dimensions exchanged; tensors with fewer are returned unchanged.
fn swap_last(cx: &Cx, x: Value) -> Lowered {
    Ok(match cx.rank(x) {
        0 | 1 => x,
        rank => cx.swap_axes(x, rank - 2, rank - 1),
    })
}

/// The conjugate transpose of the last two dimensions.
fn adjoint(cx: &Cx, x: Complex) -> Lowered {
    Ok(x.try_map(|part| swap_last(cx, part))?.conj(cx).value(cx))
}

/// Dimensions `from` moved to places `to`; the others keep their order.
fn movedim(cx: &Cx, x: Value, from: Vec<i64>, to: Vec<i64>) -> Lowered {
    let rank = cx.rank(x);
    let (from, to) = (axes_of(rank, &from)?, axes_of(rank, &to)?);
    let mut perm = vec![None; rank];
    for (&from, &to) in from.iter().zip(&to) {
        perm[to] = Some(from);
    }
    let mut rest = (0..rank).filter(|axis| !from.contains(axis));
    let perm: Option<Vec<usize>> = perm.into_iter().map(|p| p.or_else(|| rest.next())).collect();
    let perm = perm.ok_or_else(|| LowerError::unsupported("the same dimension is given twice"))?;
    Ok(cx.transpose(x, &perm))
}

/// A new dimension of size 1 at `dim`.
fn unsqueeze(cx: &Cx, x: Value, dim: i64) -> Lowered {
    Ok(cx.unsqueeze(x, &[axis_of(cx.rank(x) + 1, dim)?]))
}

/// A size of -1 follows from the number of elements.
fn meta_filled(cx: &Cx, count: Expr, size: Vec<Expr>) -> Lowered<Vec<Expr>> {
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

fn meta_view(cx: &Cx, x: Value, size: Vec<Expr>) -> Lowered {
    Ok(sized(cx, x, &meta_filled(cx, cx.numel(x), size)?))
}

fn meta_reshape_from_tensor(cx: &Cx, x: Value, sizes: Value) -> Lowered {
    let Some(rank) = cx.numel(sizes).as_int() else {
        return unknown("the number of its dimensions is dynamic");
    };
    Ok(sized(cx, x, &(0..rank).map(|_| fresh(cx)).collect::<Vec<_>>()))
}

fn meta_broadcast_tensors(cx: &Cx, tensors: Vec<Value>) -> Lowered<Vec<Value>> {
    let shapes: Vec<_> = tensors.iter().map(|&v| cx.shape(v)).collect();
    let size = broadcast(cx, &shapes);
    Ok(tensors.into_iter().map(|v| sized(cx, v, &size)).collect())
}

/// -1 keeps the size.
fn meta_expand(cx: &Cx, x: Value, size: Vec<Expr>) -> Lowered {
    let from = cx.shape(x);
    let Some(new) = size.len().checked_sub(from.len()) else {
        return unknown("it has fewer sizes than its operand");
    };
    let kept = |(i, d): (usize, &Expr)| match i.checked_sub(new) {
        Some(i) if d.as_int() == Some(-1) => from[i].clone(),
        _ => d.clone(),
    };
    Ok(sized(cx, x, &size.iter().enumerate().map(kept).collect::<Vec<_>>()))
}

fn meta_flatten(cx: &Cx, x: Value, start: i64, end: i64) -> Lowered {
    let mut size = cx.shape(x);
    if size.is_empty() {
        return Ok(sized(cx, x, &[Expr::ONE]));
    }
    let (a, b) = (axis_of(size.len(), start)?, axis_of(size.len(), end)?);
    if a > b {
        return unknown("its first dimension is behind its last one");
    }
    let merged = Expr::product(size[a..=b].iter().cloned());
    size.splice(a..=b, [merged]);
    Ok(sized(cx, x, &size))
}

fn meta_unflatten(cx: &Cx, x: Value, dim: i64, sizes: Vec<Expr>) -> Lowered {
    let mut size = cx.shape(x);
    let axis = axis_of(size.len(), dim)?;
    let parts = meta_filled(cx, size[axis].clone(), sizes)?;
    size.splice(axis..=axis, parts);
    Ok(sized(cx, x, &size))
}

fn meta_ravel(cx: &Cx, x: Value) -> Lowered {
    Ok(sized(cx, x, &[cx.numel(x)]))
}

/// A size that may be 1 counts as another one: PyTorch's symbols are never 1 where that would
/// matter.
fn meta_squeeze(cx: &Cx, x: Value, dims: Option<Vec<i64>>) -> Lowered {
    let axes = squeezed(cx, x, dims)?;
    let is_one = |d: &Expr| cx.constraints().prove_eq(d, &Expr::ONE) == Some(true);
    let size = cx.shape(x).into_iter().enumerate();
    let kept = size.filter(|(i, d)| !axes.contains(i) || !is_one(d)).map(|(_, d)| d);
    Ok(sized(cx, x, &kept.collect::<Vec<_>>()))
}

checks! {
    // One dimension is inferred.
    "aten.view(x: f32[s0, 4], [-1, 2]) -> f32[2*s0, 2]" => "view = Reshape (x, [-1, 2])";

    // Sizes that are a tensor.
    "aten._reshape_from_tensor(x: f32[s0, 4], sizes: i64[2]) -> f32[u0, u1]" => "
    _reshape_from_tensor = Reshape <allowzero: int = 1> (x, sizes)
    ";

    // A size that may be 1 may be left out.
    "aten.squeeze.dim(x: f32[u0, 3], 0) -> f32[u0, 3]" => "
    val_0 = Shape <start: int = 0, end: int = 2> (x)
    val_1 = Equal (val_0, [1, -1])
    val_2 = Not (val_1)
    val_3 = Compress (val_0, val_2)
    squeeze = Reshape <allowzero: int = 1> (x, val_3)
    ";
}
