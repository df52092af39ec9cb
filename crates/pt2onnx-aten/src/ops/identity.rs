//! Ops whose result has the values of their input: ONNX has neither aliases, gradients nor memory formats.

use crate::{AtenOp, Cx, Lowered, registry::aten};
use pt2onnx_ir::Value;

pub(super) static OPS: &[AtenOp] = &[
    aten!("aten::alias(Tensor(a) self) -> Tensor(a)", identity, parts),
    aten!(
        "aten::clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
        identity,
        parts
    ),
    aten!(
        "aten::contiguous(Tensor(a) self, *, MemoryFormat memory_format=0) -> Tensor(a)",
        identity,
        parts
    ),
    aten!("aten::detach(Tensor(a) self) -> Tensor(a)", identity, parts),
    aten!(
        "aten::lift_fresh_copy(Tensor self) -> Tensor",
        identity,
        parts
    ),
];

fn identity(_: &Cx, x: Value) -> Lowered {
    Ok(x)
}
