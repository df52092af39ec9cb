//! Changes of element type. Devices, layouts and memory formats mean nothing to ONNX.

use crate::{AtenOp, Complex, Cx, Lowered, args::Ignored, op::op};

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_cast_Byte, to),
    op!(aten::_cast_Char, to),
    op!(aten::_cast_Double, to),
    op!(aten::_cast_Float, to),
    op!(aten::_cast_Half, to),
    op!(aten::_cast_Int, to),
    op!(aten::_cast_Long, to),
    op!(aten::_cast_Short, to),
    op!(aten::_to_copy, to_given),
    op!(aten::chalf, to),
    op!(aten::to_device, to_given),
    op!(aten::to_dtype, to_given),
    op!(aten::to_dtype_layout, to_given),
    op!(aten::to_other, to_given),
    op!(aten::type_as, to_given),
];

/// `x` as the recorded type, however the arguments name it; of complex numbers as a real type, the real parts.
fn to(cx: &Cx, x: Complex) -> Lowered {
    let complex = cx.recorded(0).is_some_and(|m| m.dtype.is_complex());
    let dtype = cx.out_dtype()?;
    Ok(if complex { cx.pairs(x.cast(cx, dtype)) } else { cx.cast(x.re, dtype) })
}

/// [`to`], given a type or a tensor of that type.
fn to_given(cx: &Cx, x: Complex, _: Ignored) -> Lowered {
    to(cx, x)
}
