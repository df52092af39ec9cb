//! Tensors from nothing but sizes and numbers.

use crate::{AtenOp, Cx, LowerError, Lowered, TensorOrScalar, registry::aten};
use pt2onnx_ir::Value;
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Scalar};

pub(super) static OPS: &[AtenOp] = &[
    aten!(
        "aten::arange(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |cx: &Cx, end: TensorOrScalar, dtype: Option<DType>| {
            arange(cx, Scalar::Int(0).into(), end, Scalar::Int(1).into(), dtype)
        },
        parts
    ),
    aten!(
        "aten::arange.start(Scalar start, Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |cx: &Cx, start: TensorOrScalar, end: TensorOrScalar, dtype: Option<DType>| {
            arange(cx, start, end, Scalar::Int(1).into(), dtype)
        },
        parts
    ),
    aten!(
        "aten::arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        arange,
        parts
    ),
    aten!(
        "aten::full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        full,
        parts
    ),
    aten!(
        "aten::full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
        full_like,
        parts
    ),
    aten!(
        "aten::new_full(Tensor self, SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |cx: &Cx, _: Value, size: Vec<Expr>, value: TensorOrScalar, dtype: Option<DType>| {
            full(cx, size, value, dtype)
        },
        parts
    ),
    aten!(
        "aten::new_ones(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |cx: &Cx, _: Value, size: Vec<Expr>, dtype: Option<DType>| filled(cx, size, dtype, 1),
        parts
    ),
    aten!(
        "aten::new_zeros(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |cx: &Cx, _: Value, size: Vec<Expr>, dtype: Option<DType>| filled(cx, size, dtype, 0),
        parts
    ),
    aten!(
        "aten::ones(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |cx: &Cx, size: Vec<Expr>, dtype: Option<DType>| filled(cx, size, dtype, 1),
        parts
    ),
    aten!(
        "aten::ones_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
        |cx: &Cx, x: Value, _: Option<DType>| -> Lowered {
            Ok(cx.full(&cx.shape(x), 1, cx.out_dtype()?))
        },
        parts
    ),
    aten!(
        "aten::scalar_tensor(Scalar s, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |cx: &Cx, value: TensorOrScalar, dtype: Option<DType>| full(cx, vec![], value, dtype),
        parts
    ),
    aten!(
        "aten::zeros(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        |cx: &Cx, size: Vec<Expr>, dtype: Option<DType>| filled(cx, size, dtype, 0),
        parts
    ),
    aten!(
        "aten::zeros_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
        |cx: &Cx, x: Value, _: Option<DType>| -> Lowered {
            Ok(cx.full(&cx.shape(x), 0, cx.out_dtype()?))
        },
        parts
    ),
];

/// The recorded type says what a missing `dtype` stands for: the default, or that of another tensor.
fn filled(cx: &Cx, size: Vec<Expr>, _: Option<DType>, value: i64) -> Lowered {
    Ok(cx.full(&size, value, cx.out_dtype()?))
}

fn full(cx: &Cx, size: Vec<Expr>, value: TensorOrScalar, _: Option<DType>) -> Lowered {
    Ok(cx.expand(cx.as_tensor(&value, cx.out_dtype()?), &size))
}

fn full_like(cx: &Cx, x: Value, value: TensorOrScalar, _: Option<DType>) -> Lowered {
    Ok(cx.expand(cx.as_tensor(&value, cx.out_dtype()?), &cx.shape(x)))
}

/// `start + step * i` for each `i` below the length. ONNX's `Range` adds up floats, so those are computed from integers.
fn arange(
    cx: &Cx,
    start: TensorOrScalar,
    end: TensorOrScalar,
    step: TensorOrScalar,
    _: Option<DType>,
) -> Lowered {
    let dtype = cx.out_dtype()?;
    let whole = |t: &TensorOrScalar| {
        matches!(
            t,
            TensorOrScalar::Scalar(Scalar::Int(_)) | TensorOrScalar::SymInt(_)
        )
    };
    let int = |t: &TensorOrScalar| cx.as_tensor(t, DType::I64);
    if [&start, &end, &step].into_iter().all(whole) {
        return Ok(cx.cast(cx.range(int(&start), int(&end), int(&step)), dtype));
    }
    let length = cx
        .out_shape()?
        .pop()
        .ok_or_else(|| LowerError::unsupported("a range is a vector"))?;
    let index = cx.range(
        cx.scalar(0, DType::I64),
        cx.size(&length),
        cx.scalar(1, DType::I64),
    );
    let (wide, start, step) = (
        DType::F64,
        cx.as_tensor(&start, DType::F64),
        cx.as_tensor(&step, DType::F64),
    );
    Ok(cx.cast(cx.add(start, cx.mul(cx.cast(index, wide), step)), dtype))
}
