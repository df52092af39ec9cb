//! Changes of element type. Devices, layouts and memory formats mean nothing to ONNX.

use crate::{AtenOp, Complex, Cx, Lowered, op::op};
use pt2onnx_ir::Value;
use pt2onnx_tensor::DType;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_cast_Byte, |cx: &Cx, x: Value| to(cx, x, DType::U8), complex = to_complex),
    op!(aten::_cast_Char, |cx: &Cx, x: Value| to(cx, x, DType::I8), complex = to_complex),
    op!(aten::_cast_Double, |cx: &Cx, x: Value| to(cx, x, DType::F64), complex = to_complex),
    op!(aten::_cast_Float, |cx: &Cx, x: Value| to(cx, x, DType::F32), complex = to_complex),
    op!(aten::_cast_Half, |cx: &Cx, x: Value| to(cx, x, DType::F16), complex = to_complex),
    op!(aten::_cast_Int, |cx: &Cx, x: Value| to(cx, x, DType::I32), complex = to_complex),
    op!(aten::_cast_Long, |cx: &Cx, x: Value| to(cx, x, DType::I64), complex = to_complex),
    op!(aten::_cast_Short, |cx: &Cx, x: Value| to(cx, x, DType::I16), complex = to_complex),
    op!(
        aten::_to_copy,
        to_optional,
        complex = |cx: &Cx, x: Complex, _: Option<DType>| to_complex(cx, x)
    ),
    op!(aten::chalf, |cx: &Cx, x: Value| to(cx, x, DType::F16), complex = to_complex),
    op!(aten::to_device, to, complex = |cx: &Cx, x: Complex, _: DType| to_complex(cx, x)),
    op!(aten::to_dtype, to, complex = |cx: &Cx, x: Complex, _: DType| to_complex(cx, x)),
    op!(
        aten::to_dtype_layout,
        to_optional,
        complex = |cx: &Cx, x: Complex, _: Option<DType>| to_complex(cx, x)
    ),
    op!(aten::to_other, type_as, complex = |cx: &Cx, x: Complex, _: Value| to_complex(cx, x)),
    op!(aten::type_as, type_as, complex = |cx: &Cx, x: Complex, _: Value| to_complex(cx, x)),
];

/// To a complex type, or from one: the real parts only, if the result is real.
fn to_complex(cx: &Cx, x: Complex) -> Lowered {
    let recorded = cx.recorded(0).is_some_and(|m| m.dtype.is_complex());
    let dtype = cx.out_dtype()?;
    let part = |v| cx.cast(v, dtype);
    Ok(if recorded { cx.pairs(Complex { re: part(x.re), im: part(x.im) }) } else { part(x.re) })
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
