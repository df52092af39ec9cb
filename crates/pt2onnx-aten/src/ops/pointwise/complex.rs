//! Complex tensors made, taken apart, conjugated.

use crate::math::complex_math as math;
use crate::{AtenOp, Complex, Cx, LowerError, Lowered, op::op};
use pt2onnx_ir::Value;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_conj, |_: &Cx, x: Value| -> Lowered { Ok(x) }, complex = conj),
    op!(aten::_conj_copy, |_: &Cx, x: Value| -> Lowered { Ok(x) }, complex = conj),
    op!(aten::_conj_physical, |_: &Cx, x: Value| -> Lowered { Ok(x) }, complex = conj),
    op!(aten::complex, made_of_parts, complex = made_of_parts),
    op!(aten::conj, |_: &Cx, x: Value| -> Lowered { Ok(x) }, complex = conj),
    op!(aten::conj_physical, |_: &Cx, x: Value| -> Lowered { Ok(x) }, complex = conj),
    op!(aten::imag, imag_of_real, complex = |_: &Cx, x: Complex| -> Lowered { Ok(x.im) }),
    op!(aten::polar, polar, complex = polar),
    op!(
        aten::real,
        |_: &Cx, x: Value| -> Lowered { Ok(x) },
        complex = |_: &Cx, x: Complex| -> Lowered { Ok(x.re) }
    ),
    op!(aten::resolve_conj, same, complex = same),
    op!(aten::resolve_neg, same, complex = same),
    op!(
        aten::view_as_complex,
        |_: &Cx, x: Value| -> Lowered { Ok(x) },
        complex = |_: &Cx, x: Value| -> Lowered { Ok(x) }
    ),
    op!(
        aten::view_as_complex_copy,
        |_: &Cx, x: Value| -> Lowered { Ok(x) },
        complex = |_: &Cx, x: Value| -> Lowered { Ok(x) }
    ),
    op!(
        aten::view_as_real,
        |_: &Cx, x: Value| -> Lowered { Ok(x) },
        complex = |_: &Cx, x: Value| -> Lowered { Ok(x) }
    ),
    op!(
        aten::view_as_real_copy,
        |_: &Cx, x: Value| -> Lowered { Ok(x) },
        complex = |_: &Cx, x: Value| -> Lowered { Ok(x) }
    ),
];

fn same(_: &Cx, x: Value) -> Lowered {
    Ok(x)
}

fn imag_of_real(_: &Cx, _: Value) -> Lowered {
    Err(LowerError::unsupported("real tensors have no imaginary parts"))
}

fn made_of_parts(cx: &Cx, re: Value, im: Value) -> Lowered {
    Ok(cx.pairs(Complex { re, im }))
}

fn polar(cx: &Cx, length: Value, angle: Value) -> Lowered {
    Ok(cx.pairs(math::polar(cx, length, angle)))
}

/// Pairs times `(1, -1)`.
fn conj(cx: &Cx, pairs: Value) -> Lowered {
    let signs = cx.cast(cx.vector(&[1f32, -1.0]), cx.dtype(pairs));
    Ok(cx.mul(pairs, signs))
}
