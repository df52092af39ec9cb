//! Arithmetic: the promoted element type, and the sizes to which the operands broadcast.

use super::types::{broadcast, typed, unknown};
use crate::{Cx, LowerError, Lowered, TensorOrScalar};
use pt2onnx_ir::Value;
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

/// The sizes to which all operands broadcast.
pub fn operand_sizes(cx: &Cx, operands: &[TensorOrScalar]) -> Vec<Expr> {
    let shape = |o: &TensorOrScalar| match o {
        TensorOrScalar::Tensor(v) => cx.shape(*v),
        _ => Vec::new(),
    };
    broadcast(cx, &operands.iter().map(shape).collect::<Vec<_>>())
}

/// The promoted type.
pub fn promoted(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let operands = [a, b];
    Ok(typed(cx, cx.result_type(&operands), &operand_sizes(cx, &operands)))
}

/// The promoted type; integers become floats.
pub fn promoted_to_float(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let operands = [a, b];
    let dtype = cx.float_type(cx.result_type(&operands));
    Ok(typed(cx, dtype, &operand_sizes(cx, &operands)))
}

/// The type to which the types of tensors are promoted.
pub fn common_type(cx: &Cx, tensors: &[Value]) -> Lowered<DType> {
    let operands: Vec<_> = tensors.iter().map(|&v| v.into()).collect();
    match tensors {
        [] => unknown("it joins no tensors"),
        _ => Ok(cx.result_type(&operands)),
    }
}

/// The complex type whose parts have the type `dtype`, or `dtype` if it is complex.
pub fn complex_of(dtype: DType) -> Lowered<DType> {
    let complex = [DType::C64, DType::C128, DType::C32];
    let found = complex.into_iter().find(|c| *c == dtype || c.to_real() == dtype);
    found.ok_or_else(|| LowerError::unsupported("no complex type has such parts"))
}
