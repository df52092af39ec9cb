//! Ops whose result has the sizes of an operand, and another type.

use super::typed;
use crate::{AtenOp, Cx, Lowered, op};
use pt2onnx_ir::Value;
use pt2onnx_tensor::DType;

pub(super) static RULES: &[AtenOp] = &[
    op!(aten::to_dtype, to_dtype),
];

fn to_dtype(cx: &Cx, x: Value, dtype: Option<DType>) -> Lowered {
    Ok(typed(cx, dtype.unwrap_or(cx.dtype(x)), &cx.shape(x)))
}
