//! Complex tensors made, taken apart, conjugated.

use crate::{AtenOp, Complex, Cx, LowerError, Lowered, op::op};
use pt2onnx_ir::Value;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_conj, same, complex = conj),
    op!(aten::_conj_copy, same, complex = conj),
    op!(aten::_conj_physical, same, complex = conj),
    op!(aten::complex, made_of_parts, complex = made_of_parts),
    op!(aten::conj, same, complex = conj),
    op!(aten::conj_physical, same, complex = conj),
    op!(aten::imag, imag),
    op!(aten::polar, polar, complex = polar),
    op!(aten::real, real),
    op!(aten::resolve_conj, same, complex = same),
    op!(aten::resolve_neg, same, complex = same),
    op!(aten::view_as_complex, same, complex = same),
    op!(aten::view_as_complex_copy, same, complex = same),
    op!(aten::view_as_real, same, complex = same),
    op!(aten::view_as_real_copy, same, complex = same),
];

/// What does not change a value: views, and conjugates of real tensors.
fn same(_: &Cx, x: Value) -> Lowered {
    Ok(x)
}

/// The imaginary part.
fn imag(_: &Cx, x: Complex) -> Lowered {
    x.im.ok_or_else(|| LowerError::unsupported("real tensors have no imaginary parts"))
}

/// The real part.
fn real(_: &Cx, x: Complex) -> Lowered {
    Ok(x.re)
}

/// `re + i im`.
fn made_of_parts(cx: &Cx, re: Value, im: Value) -> Lowered {
    Ok(cx.pairs(Complex::new(re, im)))
}

/// `length * (cos angle + i sin angle)`.
fn polar(cx: &Cx, length: Value, angle: Value) -> Lowered {
    Ok(cx.pairs(Complex::polar(cx, length, angle)))
}

/// The complex conjugate: real/imaginary pairs times `(1, -1)`.
fn conj(cx: &Cx, pairs: Value) -> Lowered {
    let signs = cx.cast(cx.vector(&[1f32, -1.0]), cx.dtype(pairs));
    Ok(cx.mul(pairs, signs))
}
