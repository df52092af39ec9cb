//! Complex tensors: construction, parts, conjugates.

use crate::{AtenOp, Complex, Cx, LowerError, Lowered, checks, op};
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

checks! {
    conjugates_are_one_product {
        "aten._conj(x: c64[s0]) -> c64[s0]" => "
        (float[s0,2] x) => (float[s0,2] _conj)
        <
          float[2] val_0 = {1.0, -1.0}
        >
        {
          _conj = Mul (x, val_0)
        }
        ";
    }

    parts_side_by_side {
        "aten.complex(x: f32[s0, 1], y: f32[8]) -> c64[s0, 8]" => "
        (float[s0,1] x, float[8] y) => (float[s0,8,2] complex)
        <
          int64[2] val_0 = {1, 8},
          int64[1] val_1 = {2}
        >
        {
          val_2 = Expand (x, val_0)
          val_3 = Shape <start: int = 0, end: int = 2> (x)
          val_4 = Expand (y, val_3)
          val_5 = Unsqueeze (val_2, val_1)
          val_6 = Unsqueeze (val_4, val_1)
          complex = Concat <axis: int = 2> (val_5, val_6)
        }
        ";
    }
}
