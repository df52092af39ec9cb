//! Changes of element type. ONNX has no devices, layouts and memory formats.

use crate::meta::{self, sized};
use crate::{AtenOp, Complex, Cx, Lowered, args::Ignored, checks, op};
use pt2onnx_ir::Value;
use pt2onnx_tensor::DType;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_cast_Byte, to, meta = meta::made, dtype = DType::U8),
    op!(aten::_cast_Char, to, meta = meta::made, dtype = DType::I8),
    op!(aten::_cast_Double, to, meta = meta::made, dtype = DType::F64),
    op!(aten::_cast_Float, to, meta = meta::made, dtype = DType::F32),
    op!(aten::_cast_Half, to, meta = meta::made, dtype = DType::F16),
    op!(aten::_cast_Int, to, meta = meta::made, dtype = DType::I32),
    op!(aten::_cast_Long, to, meta = meta::made, dtype = DType::I64),
    op!(aten::_cast_Short, to, meta = meta::made, dtype = DType::I16),
    op!(aten::_to_copy, to, meta = meta::made),
    op!(aten::chalf, to, meta = meta::made, dtype = DType::C32),
    op!(aten::to_device, to, meta = meta::made),
    op!(aten::to_dtype, to, meta = meta::made),
    op!(aten::to_dtype_layout, to, meta = meta::made),
    op!(aten::to_other, to, meta = meta_to_other),
    op!(aten::type_as, to, meta = meta_to_other),
    op!(prims::convert_element_type, to),
];

/// `x` as the type that PyTorch recorded for the result. The argument is that type, or a tensor of
/// it.
fn to(cx: &Cx, x: Complex, _: Ignored) -> Lowered {
    let complex = cx.recorded(0).is_some_and(|m| m.dtype.is_complex());
    let converted = x.converted(cx, cx.out_dtype()?, complex);
    Ok(if complex { cx.pairs(converted) } else { converted.re })
}

/// The sizes of `x`, the type of `other`.
fn meta_to_other(cx: &Cx, x: Value, other: Value) -> Lowered {
    Ok(sized(cx, other, &cx.shape(x)))
}

checks! {
    // Complex to real keeps the real parts.
    "aten.to.dtype(x: c64[s0], torch.float64) -> f64[s0]" => "
    val_0 = Gather <axis: int = 1> (x, 0)
    val_1 = Gather <axis: int = 1> (x, 1)
    to = Cast <to: int = 11> (val_0)
    ";

    // A complex number is true if a part is not 0.
    "aten._to_copy(x: c64[s0], dtype=torch.bool) -> b8[s0]" => "
    val_0 = Gather <axis: int = 1> (x, 0)
    val_1 = Gather <axis: int = 1> (x, 1)
    val_2 = Cast <to: int = 9> (val_0)
    val_3 = Cast <to: int = 9> (val_1)
    _to_copy = Or (val_2, val_3)
    ";

    // Element types of prims.
    "prims.convert_element_type(x: f16[s0], torch.float32) -> f32[s0]" => "
    convert_element_type = Cast <to: int = 1> (x)
    ";

    // Real to complex adds zeros.
    "aten.type_as(x: i32[s0], y: c64[2]) -> c64[s0]" => "
    val_0 = Cast <to: int = 1> (x)
    val_1 = Shape <start: int = 0, end: int = 1> (x)
    val_2 = Expand (0.0, val_1)
    val_3 = Unsqueeze (val_0, [1])
    type_as = Pad (val_3, [0, 0, 0, 1])
    ";
}
