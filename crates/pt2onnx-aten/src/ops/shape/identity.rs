//! Ops whose result has the values of their input: ONNX has neither aliases, gradients, devices nor memory formats.

use crate::math::shape::{flat, pad_to, to_recorded};
use crate::{AtenOp, Cx, Lowered, args::Ignored, registry::aten};
use pt2onnx_ir::Value;
use pt2onnx_symbolic::Expr;

pub(crate) static OPS: &[AtenOp] = &[
    aten!(
        "aten::_fw_primal(Tensor(a) self, int level) -> Tensor(a)",
        |_: &Cx, x: Value, _: Ignored| -> Lowered { Ok(x) },
        parts
    ),
    aten!("aten::_lazy_clone(Tensor self) -> Tensor", identity, complex: identity),
    aten!(
        "aten::_to_cpu(Tensor[] tensors) -> Tensor[]",
        |_: &Cx, tensors: Vec<Value>| -> Lowered<Vec<Value>> { Ok(tensors) },
        parts
    ),
    aten!("aten::alias(Tensor(a) self) -> Tensor(a)", identity, complex: identity),
    aten!("aten::alias_copy(Tensor self) -> Tensor", identity, complex: identity),
    aten!(
        "aten::clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
        identity,
        complex: identity
    ),
    aten!(
        "aten::contiguous(Tensor(a) self, *, MemoryFormat memory_format=0) -> Tensor(a)",
        identity,
        complex: identity
    ),
    aten!("aten::detach(Tensor(a) self) -> Tensor(a)", identity, complex: identity),
    aten!("aten::detach_copy(Tensor self) -> Tensor", identity, complex: identity),
    aten!("aten::lift(Tensor self) -> Tensor", identity, complex: identity),
    aten!(
        "aten::lift_fresh_copy(Tensor self) -> Tensor",
        identity,
        complex: identity
    ),
    aten!(
        "aten::resize(Tensor self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor",
        resize,
        parts
    ),
    aten!(
        "aten::resize_as(Tensor self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor",
        resize,
        parts
    ),
];

fn identity(_: &Cx, x: Value) -> Lowered {
    Ok(x)
}

/// The first elements in other sizes. PyTorch leaves what is missing uninitialised; here it is zero.
fn resize(cx: &Cx, x: Value, _: Ignored) -> Lowered {
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
