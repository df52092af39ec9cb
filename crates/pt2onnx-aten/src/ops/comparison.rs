//! Comparisons, and choices by a condition.

use crate::{AtenOp, Cx, Lowered, TensorOrScalar, registry::aten};
use pt2onnx_ir::Value;
use pt2onnx_tensor::DType;

pub(super) static OPS: &[AtenOp] = &[
    aten!(
        "aten::eq.Scalar(Tensor self, Scalar other) -> Tensor",
        equal
    ),
    aten!(
        "aten::eq.Tensor(Tensor self, Tensor other) -> Tensor",
        equal
    ),
    aten!(
        "aten::ge.Scalar(Tensor self, Scalar other) -> Tensor",
        greater_or_equal
    ),
    aten!(
        "aten::ge.Tensor(Tensor self, Tensor other) -> Tensor",
        greater_or_equal
    ),
    aten!(
        "aten::gt.Scalar(Tensor self, Scalar other) -> Tensor",
        greater
    ),
    aten!(
        "aten::gt.Tensor(Tensor self, Tensor other) -> Tensor",
        greater
    ),
    aten!(
        "aten::le.Scalar(Tensor self, Scalar other) -> Tensor",
        less_or_equal
    ),
    aten!(
        "aten::le.Tensor(Tensor self, Tensor other) -> Tensor",
        less_or_equal
    ),
    aten!("aten::logical_not(Tensor self) -> Tensor", |cx: &Cx,
                                                       x: Value|
     -> Lowered {
        Ok(cx.not(cx.cast(x, DType::Bool)))
    }),
    aten!("aten::lt.Scalar(Tensor self, Scalar other) -> Tensor", less),
    aten!("aten::lt.Tensor(Tensor self, Tensor other) -> Tensor", less),
    aten!(
        "aten::masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor",
        masked_fill
    ),
    aten!(
        "aten::masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor",
        masked_fill
    ),
    aten!(
        "aten::ne.Scalar(Tensor self, Scalar other) -> Tensor",
        not_equal
    ),
    aten!(
        "aten::ne.Tensor(Tensor self, Tensor other) -> Tensor",
        not_equal
    ),
    aten!(
        "aten::where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor",
        choose
    ),
    aten!(
        "aten::where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor",
        choose
    ),
    aten!(
        "aten::where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor",
        choose
    ),
    aten!(
        "aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
        choose,
        parts
    ),
];

/// Both in the type they are compared in; ONNX orders no bools, so those count as 0 and 1.
fn ordered(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> (Value, Value) {
    let (a, b) = cx.promote(a, b);
    match cx.dtype(a) {
        DType::Bool => (cx.cast(a, DType::I32), cx.cast(b, DType::I32)),
        _ => (a, b),
    }
}

fn equal(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let (a, b) = cx.promote(a, b);
    Ok(cx.equal(a, b))
}

fn not_equal(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    Ok(cx.not(equal(cx, a, b)?))
}

fn less(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let (a, b) = ordered(cx, a, b);
    Ok(cx.less(a, b))
}

fn less_or_equal(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let (a, b) = ordered(cx, a, b);
    Ok(cx.less_or_equal(a, b))
}

fn greater(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let (a, b) = ordered(cx, a, b);
    Ok(cx.greater(a, b))
}

fn greater_or_equal(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let (a, b) = ordered(cx, a, b);
    Ok(cx.greater_or_equal(a, b))
}

/// `value`, as `x`'s type, where `mask` is true.
fn masked_fill(cx: &Cx, x: Value, mask: Value, value: TensorOrScalar) -> Lowered {
    Ok(cx.select(mask, cx.as_tensor(&value, cx.dtype(x)), x))
}

fn choose(cx: &Cx, condition: Value, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let (a, b) = cx.promote(a, b);
    Ok(cx.select(cx.cast(condition, DType::Bool), a, b))
}
