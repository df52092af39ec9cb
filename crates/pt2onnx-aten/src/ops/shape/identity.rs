//! Ops that return their input, because ONNX has no aliases, gradients, devices or memory formats.

use crate::math::shape::{flat, pad_to, to_recorded};
use crate::meta;
use crate::{AtenOp, Cx, Lowered, args::Ignored, checks, op};
use pt2onnx_ir::Value;
use pt2onnx_symbolic::Expr;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_fw_primal, identity, complex = identity),
    op!(aten::_lazy_clone, identity, complex = identity),
    op!(aten::_to_cpu, identities, parts),
    op!(aten::alias, identity, complex = identity, meta = meta::same),
    op!(aten::alias_copy, identity, complex = identity, meta = meta::same),
    op!(aten::clone, identity, complex = identity, meta = meta::same),
    op!(aten::contiguous, identity, complex = identity, meta = meta::same),
    op!(aten::detach, identity, complex = identity, meta = meta::same),
    op!(aten::detach_copy, identity, complex = identity),
    op!(aten::lift, identity, complex = identity, meta = meta::same),
    op!(aten::lift_fresh, identity, complex = identity, meta = meta::same),
    op!(aten::lift_fresh_copy, identity, complex = identity, meta = meta::same),
    op!(aten::resize, resize, parts, meta = meta::resized),
    op!(aten::resize_as, resize, parts, meta = meta::like_other),
    op!(prims::copy_strided, copy_strided, parts),
];

/// The inputs themselves.
fn identities(_: &Cx, tensors: Vec<Value>) -> Lowered<Vec<Value>> {
    Ok(tensors)
}

/// The input itself.
fn identity(_: &Cx, x: Value) -> Lowered {
    Ok(x)
}

/// The input itself, whatever its strides.
fn copy_strided(_: &Cx, x: Value, _stride: Ignored) -> Lowered {
    Ok(x)
}

/// The first elements of `x`, reshaped to the recorded sizes. If there are too few, PyTorch leaves
/// the rest uninitialised; here it is zero.
fn resize(cx: &Cx, x: Value, _: Ignored) -> Lowered {
    let numel = Expr::product(cx.out_shape()?);
    let elements = flat(cx, x);
    let length = cx.dim(elements, 0);
    let enough = cx.constraints().prove_ge(&length, &numel);
    let padded =
        if enough { elements } else { pad_to(cx, elements, 0, &Expr::max(&length, &numel)) };
    to_recorded(cx, cx.slice(padded, 0, &Expr::int(0), &numel, 1))
}

checks! {
    // Missing elements are zero.
    "aten.resize(x: f32[2, 3], [3, 3]) -> f32[3, 3]" => "
    val_0 = Reshape (x, [6])
    val_1 = Pad (val_0, [0, 3])
    resize = Reshape (val_1, [3, 3])
    ";

    // Strides mean nothing.
    "prims.copy_strided(x: f32[2, 3], [1, 2]) -> f32[2, 3]" => "copy_strided = Identity (x)";
}
