//! Changes of element type. Devices, layouts and memory formats mean nothing to ONNX.

use crate::{AtenOp, Complex, Cx, Lowered, registry::aten};
use pt2onnx_ir::Value;
use pt2onnx_tensor::DType;

pub(crate) static OPS: &[AtenOp] = &[
    aten!("aten::_cast_Byte(Tensor self, bool non_blocking=False) -> Tensor", |cx: &Cx, x: Value| to(cx, x, DType::U8), complex: to_complex),
    aten!("aten::_cast_Char(Tensor self, bool non_blocking=False) -> Tensor", |cx: &Cx, x: Value| to(cx, x, DType::I8), complex: to_complex),
    aten!("aten::_cast_Double(Tensor self, bool non_blocking=False) -> Tensor", |cx: &Cx, x: Value| to(cx, x, DType::F64), complex: to_complex),
    aten!("aten::_cast_Float(Tensor self, bool non_blocking=False) -> Tensor", |cx: &Cx, x: Value| to(cx, x, DType::F32), complex: to_complex),
    aten!("aten::_cast_Half(Tensor self, bool non_blocking=False) -> Tensor", |cx: &Cx, x: Value| to(cx, x, DType::F16), complex: to_complex),
    aten!("aten::_cast_Int(Tensor self, bool non_blocking=False) -> Tensor", |cx: &Cx, x: Value| to(cx, x, DType::I32), complex: to_complex),
    aten!("aten::_cast_Long(Tensor self, bool non_blocking=False) -> Tensor", |cx: &Cx, x: Value| to(cx, x, DType::I64), complex: to_complex),
    aten!("aten::_cast_Short(Tensor self, bool non_blocking=False) -> Tensor", |cx: &Cx, x: Value| to(cx, x, DType::I16), complex: to_complex),
    aten!("aten::_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor", to_optional, complex: |cx: &Cx, x: Complex, _: Option<DType>| to_complex(cx, x)),
    aten!("aten::chalf(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", |cx: &Cx, x: Value| to(cx, x, DType::F16), complex: to_complex),
    aten!("aten::to.device(Tensor(a) self, Device device, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)", to, complex: |cx: &Cx, x: Complex, _: DType| to_complex(cx, x)),
    aten!("aten::to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)", to, complex: |cx: &Cx, x: Complex, _: DType| to_complex(cx, x)),
    aten!("aten::to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)", to_optional, complex: |cx: &Cx, x: Complex, _: Option<DType>| to_complex(cx, x)),
    aten!("aten::to.other(Tensor(a) self, Tensor other, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)", type_as, complex: |cx: &Cx, x: Complex, _: Value| to_complex(cx, x)),
    aten!("aten::type_as(Tensor self, Tensor other) -> Tensor", type_as, complex: |cx: &Cx, x: Complex, _: Value| to_complex(cx, x)),
];

/// To a complex type, or from one: the real parts only, if the result is real.
fn to_complex(cx: &Cx, x: Complex) -> Lowered {
    let recorded = cx.recorded(0).is_some_and(|m| m.dtype.is_complex());
    let dtype = cx.out_dtype()?;
    Ok(if recorded { cx.pairs(x.cast(cx, dtype)) } else { cx.cast(x.re, dtype) })
}

fn to(cx: &Cx, x: Value, dtype: DType) -> Lowered {
    Ok(cx.cast(x, dtype))
}

fn to_optional(cx: &Cx, x: Value, dtype: Option<DType>) -> Lowered {
    Ok(cx.cast(x, dtype.unwrap_or_else(|| cx.dtype(x))))
}

fn type_as(cx: &Cx, x: Value, other: Value) -> Lowered {
    Ok(cx.cast(x, cx.dtype(other)))
}
