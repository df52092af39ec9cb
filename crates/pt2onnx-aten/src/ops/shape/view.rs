//! Other sizes and orders of dimensions on the same elements.

use crate::math::num::Num;
use crate::math::shape::{axes_of, to_recorded};
use crate::{
    AtenOp, Complex, Cx, LowerError, Lowered,
    args::Ignored,
    cx::{Outputs, axis_of},
    registry::aten,
};
use pt2onnx_ir::Value;
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(crate) static OPS: &[AtenOp] = &[
    aten!(
        "aten::_reshape_alias(Tensor(a) self, SymInt[] size, SymInt[] stride) -> Tensor(a)",
        reshape_2,
        parts
    ),
    aten!(
        "aten::_reshape_alias_copy(Tensor self, SymInt[] size, SymInt[] stride) -> Tensor",
        reshape_2,
        parts
    ),
    aten!("aten::_reshape_copy(Tensor self, SymInt[] size) -> Tensor", reshape_1, parts),
    aten!("aten::_unsafe_view(Tensor self, SymInt[] size) -> Tensor", reshape_1, parts),
    aten!("aten::adjoint(Tensor(a) self) -> Tensor(a)", swap_last, complex: adjoint),
    aten!("aten::atleast_1d(Tensor self) -> Tensor", to_recorded, parts),
    aten!("aten::atleast_1d.Sequence(Tensor[] tensors) -> Tensor[]", all_to_recorded, parts),
    aten!("aten::atleast_2d(Tensor self) -> Tensor", to_recorded, parts),
    aten!("aten::atleast_2d.Sequence(Tensor[] tensors) -> Tensor[]", all_to_recorded, parts),
    aten!("aten::atleast_3d(Tensor self) -> Tensor", to_recorded, parts),
    aten!("aten::atleast_3d.Sequence(Tensor[] tensors) -> Tensor[]", all_to_recorded, parts),
    aten!("aten::broadcast_tensors(Tensor[] tensors) -> Tensor[]", broadcast_tensors, parts),
    aten!("aten::broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)", expand, parts),
    aten!(
        "aten::expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)",
        expand,
        parts
    ),
    aten!(
        "aten::expand_as(Tensor(a) self, Tensor other) -> Tensor(a)",
        expand,
        complex: |cx: &Cx, x: Num, other: Num| -> Lowered {
            Ok(x.map(|part| cx.expand(part, &cx.shape(other.re))).value(cx))
        }
    ),
    aten!(
        "aten::expand_copy(Tensor self, SymInt[] size, *, bool implicit=False) -> Tensor",
        expand,
        parts
    ),
    aten!(
        "aten::flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)",
        reshape_2,
        parts
    ),
    aten!("aten::mH(Tensor(a) self) -> Tensor(a)", swap_last, complex: adjoint),
    aten!("aten::mT(Tensor(a) self) -> Tensor(a)", swap_last, parts),
    aten!("aten::matrix_H(Tensor(a) self) -> Tensor(a)", swap_last, complex: adjoint),
    aten!(
        "aten::moveaxis.int(Tensor(a) self, int source, int destination) -> Tensor(a)",
        movedim,
        parts
    ),
    aten!(
        "aten::moveaxis.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
        movedim,
        parts
    ),
    aten!(
        "aten::movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)",
        movedim,
        parts
    ),
    aten!(
        "aten::movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
        movedim,
        parts
    ),
    aten!("aten::numpy_T(Tensor(a) self) -> Tensor(a)", reverse, parts),
    aten!("aten::permute(Tensor(a) self, int[] dims) -> Tensor(a)", permute, parts),
    aten!("aten::permute_copy(Tensor self, int[] dims) -> Tensor", permute, parts),
    aten!("aten::ravel(Tensor(a) self) -> Tensor(a)", to_recorded, parts),
    aten!("aten::reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)", reshape_1, parts),
    aten!("aten::reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)", reshape_1, parts),
    aten!("aten::squeeze(Tensor(a) self) -> Tensor(a)", to_recorded, parts),
    aten!("aten::squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)", reshape_1, parts),
    aten!("aten::squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)", reshape_1, parts),
    aten!("aten::squeeze_copy(Tensor self) -> Tensor", to_recorded, parts),
    aten!("aten::squeeze_copy.dim(Tensor self, int dim) -> Tensor", reshape_1, parts),
    aten!("aten::squeeze_copy.dims(Tensor self, int[] dim) -> Tensor", reshape_1, parts),
    aten!("aten::swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)", transpose, parts),
    aten!("aten::swapdims(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", transpose, parts),
    aten!("aten::t(Tensor(a) self) -> Tensor(a)", t, parts),
    aten!("aten::t_copy(Tensor self) -> Tensor", t, parts),
    aten!("aten::transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", transpose, parts),
    aten!("aten::transpose_copy.int(Tensor self, int dim0, int dim1) -> Tensor", transpose, parts),
    aten!(
        "aten::unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)",
        reshape_2,
        parts
    ),
    aten!("aten::unsqueeze(Tensor(a) self, int dim) -> Tensor(a)", unsqueeze, parts),
    aten!("aten::unsqueeze_copy(Tensor self, int dim) -> Tensor", unsqueeze, parts),
    aten!("aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)", reshape_1, parts),
    aten!("aten::view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)", view_dtype, complex: view_complex_dtype),
    aten!("aten::view_as(Tensor(a) self, Tensor other) -> Tensor(a)", reshape_1, parts),
    aten!("aten::view_copy(Tensor self, SymInt[] size) -> Tensor", reshape_1, parts),
    aten!("aten::view_copy.dtype(Tensor self, ScalarType dtype) -> Tensor", view_dtype, complex: view_complex_dtype),
];

/// `Reshape` to the recorded sizes.
fn reshape_1(cx: &Cx, x: Value, _: Ignored) -> Lowered {
    to_recorded(cx, x)
}

/// `Reshape` to the recorded sizes.
fn reshape_2(cx: &Cx, x: Value, _: Ignored, _: Ignored) -> Lowered {
    to_recorded(cx, x)
}

/// Each reshaped to its recorded sizes.
fn all_to_recorded(cx: &Cx, tensors: Vec<Value>) -> Lowered<Outputs> {
    Ok(each_recorded(cx, tensors, |x, sizes| cx.reshape(x, sizes)))
}

/// Each broadcast to its recorded sizes.
fn broadcast_tensors(cx: &Cx, tensors: Vec<Value>) -> Lowered<Outputs> {
    Ok(each_recorded(cx, tensors, |x, sizes| cx.expand(x, sizes)))
}

fn each_recorded(cx: &Cx, tensors: Vec<Value>, f: impl Fn(Value, &[Expr]) -> Value) -> Outputs {
    let each = tensors.into_iter().enumerate();
    Outputs(each.map(|(i, x)| cx.recorded(i).map(|meta| f(x, &meta.sizes))).collect())
}

/// `Expand` to the recorded sizes.
fn expand(cx: &Cx, x: Value, _: Ignored) -> Lowered {
    Ok(cx.expand(x, &cx.out_shape()?))
}

fn permute(cx: &Cx, x: Value, dims: Vec<i64>) -> Lowered {
    Ok(cx.transpose(x, &axes_of(cx.rank(x), &dims)?))
}

fn transpose(cx: &Cx, x: Value, a: i64, b: i64) -> Lowered {
    Ok(cx.swap_axes(x, cx.axis(x, a)?, cx.axis(x, b)?))
}

/// The transpose of a matrix; vectors and numbers stay.
fn t(cx: &Cx, x: Value) -> Lowered {
    Ok(if cx.rank(x) == 2 { cx.transpose(x, &[1, 0]) } else { x })
}

/// All dimensions in the opposite order.
fn reverse(cx: &Cx, x: Value) -> Lowered {
    let perm: Vec<usize> = (0..cx.rank(x)).rev().collect();
    Ok(cx.transpose(x, &perm))
}

/// The last two dimensions exchanged; tensors with fewer stay.
fn swap_last(cx: &Cx, x: Value) -> Lowered {
    Ok(match cx.rank(x) {
        0 | 1 => x,
        rank => cx.swap_axes(x, rank - 2, rank - 1),
    })
}

/// The last two dimensions exchanged, and conjugated.
fn adjoint(cx: &Cx, x: Complex) -> Lowered {
    Ok(x.try_map(|part| swap_last(cx, part))?.conj(cx).value(cx))
}

/// Dimensions `from` go to the places `to`, the others keep their order.
fn movedim(cx: &Cx, x: Value, from: Vec<i64>, to: Vec<i64>) -> Lowered {
    let rank = cx.rank(x);
    let (from, to) = (axes_of(rank, &from)?, axes_of(rank, &to)?);
    let mut perm = vec![None; rank];
    for (&from, &to) in from.iter().zip(&to) {
        perm[to] = Some(from);
    }
    let mut rest = (0..rank).filter(|axis| !from.contains(axis));
    let perm: Option<Vec<usize>> = perm.into_iter().map(|p| p.or_else(|| rest.next())).collect();
    let perm = perm.ok_or_else(|| LowerError::unsupported("a dimension is named twice"))?;
    Ok(cx.transpose(x, &perm))
}

fn unsqueeze(cx: &Cx, x: Value, dim: i64) -> Lowered {
    Ok(cx.unsqueeze(x, &[axis_of(cx.rank(x) + 1, dim)?]))
}

/// The same bits as another type: a `Cast` where that keeps them, else `BitCast`.
fn view_dtype(cx: &Cx, x: Value, dtype: DType) -> Lowered {
    let from = cx.dtype(x);
    let whole = |d: DType| d.is_int() || d == DType::Bool;
    if from.bits() != dtype.bits() {
        return Err(LowerError::unsupported(format!("{from} seen as {dtype}, of another size")));
    }
    Ok(match from == dtype || whole(from) && whole(dtype) {
        true => cx.cast(x, dtype),
        false => cx.bit_cast(x, pt2onnx_ir::schema::data_type(dtype)),
    })
}

/// Complex numbers as pairs of real ones side by side, or the other way about.
fn view_complex_dtype(cx: &Cx, x: Value, dtype: DType) -> Lowered {
    if cx.dtype(x) != dtype.to_real() {
        return Err(LowerError::unsupported("complex numbers seen as a type of another precision"));
    }
    let mut sizes = cx.out_shape()?;
    if dtype.is_complex() {
        sizes.push(Expr::int(2));
    }
    Ok(cx.reshape(x, &sizes))
}
