//! Complex tensors: construction, parts, conjugates.

use crate::meta::{self, typed};
use crate::{AtenOp, Complex, Cx, LowerError, Lowered, checks, op};
use pt2onnx_ir::Value;
use pt2onnx_symbolic::Expr;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_conj, same, complex = conj, meta = meta::same),
    op!(aten::_conj_copy, same, complex = conj, meta = meta::same),
    op!(aten::_conj_physical, same, complex = conj, meta = meta::same),
    op!(aten::complex, made_of_parts, complex = made_of_parts, meta = meta_complex),
    op!(aten::conj, same, complex = conj, meta = meta::same),
    op!(aten::conj_physical, same, complex = conj, meta = meta::same),
    op!(aten::imag, imag, meta = meta::real),
    op!(aten::polar, polar, complex = polar, meta = meta_complex),
    op!(aten::real, real, meta = meta::real),
    op!(aten::resolve_conj, same, complex = same, meta = meta::same),
    op!(aten::resolve_neg, same, complex = same, meta = meta::same),
    op!(aten::view_as_complex, same, complex = same, meta = meta_view_as_complex),
    op!(aten::view_as_complex_copy, same, complex = same, meta = meta_view_as_complex),
    op!(aten::view_as_real, same, complex = same, meta = meta_view_as_real),
    op!(aten::view_as_real_copy, same, complex = same, meta = meta_view_as_real),
];

/// `x` itself: views, and conjugates of real tensors.
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

fn meta_complex(cx: &Cx, a: Value, b: Value) -> Lowered {
    Ok(typed(cx, meta::complex_of(cx.dtype(a))?, &cx.broadcast_shapes(&cx.shape(a), &cx.shape(b))))
}

/// One element of a complex tensor is two of the view.
fn meta_view_as_real(cx: &Cx, x: Value) -> Lowered {
    let mut size = cx.shape(x);
    size.push(Expr::int(2));
    Ok(typed(cx, cx.dtype(x).to_real(), &size))
}

fn meta_view_as_complex(cx: &Cx, x: Value) -> Lowered {
    let mut size = cx.shape(x);
    size.pop();
    let dtype = meta::complex_of(cx.dtype(x))?;
    Ok(typed(cx, dtype, &size))
}

checks! {
    // Conjugates are one product.
    "aten._conj(x: c64[s0]) -> c64[s0]" => "_conj = Mul (x, [1.0, -1.0])";

    // Parts side by side.
    "aten.complex(x: f32[s0, 1], y: f32[8]) -> c64[s0, 8]" => "
    val_0 = Expand (x, [1, 8])
    val_1 = Shape <start: int = 0, end: int = 2> (x)
    val_2 = Expand (y, val_1)
    val_3 = Unsqueeze (val_0, [2])
    val_4 = Unsqueeze (val_2, [2])
    complex = Concat <axis: int = 2> (val_3, val_4)
    ";
}
