//! Ops whose result has the values of their input: ONNX has neither aliases, gradients, devices nor memory formats.

use crate::math::shape::{Implied, flat, pad_to, to_recorded};
use crate::{AtenOp, Cx, Lowered, op::op};
use pt2onnx_ir::Value;
use pt2onnx_symbolic::Expr;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_fw_primal, |_: &Cx, x: Value, _: Implied| -> Lowered { Ok(x) }, parts),
    op!(aten::_lazy_clone, identity, complex = identity),
    op!(aten::_to_cpu, |_: &Cx, tensors: Vec<Value>| -> Lowered<Vec<Value>> { Ok(tensors) }, parts),
    op!(aten::alias, identity, complex = identity),
    op!(aten::alias_copy, identity, complex = identity),
    op!(aten::clone, identity, complex = identity),
    op!(aten::contiguous, identity, complex = identity),
    op!(aten::detach, identity, complex = identity),
    op!(aten::detach_copy, identity, complex = identity),
    op!(aten::lift, identity, complex = identity),
    op!(aten::lift_fresh_copy, identity, complex = identity),
    op!(aten::resize, resize, parts),
    op!(aten::resize_as, resize, parts),
];

fn identity(_: &Cx, x: Value) -> Lowered {
    Ok(x)
}

/// The first elements in other sizes. PyTorch leaves what is missing uninitialised; here it is zero.
fn resize(cx: &Cx, x: Value, _: Implied) -> Lowered {
    let numel = Expr::product(cx.out_shape()?);
    let elements = flat(cx, x);
    let length = cx.dim(elements, 0);
    let enough = cx.constraints().prove_ge(&length, &numel);
    let padded = match enough {
        true => elements,
        false => pad_to(cx, elements, 0, &Expr::max(&length, &numel)),
    };
    to_recorded(cx, cx.slice(padded, 0, &Expr::int(0), &numel, 1))
}
