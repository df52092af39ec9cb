//! Bessel functions and the Airy function. Formulas are in `math/bessel.rs`.

use crate::math::bessel;
use crate::math::precision::double;
use crate::{AtenOp, Cx, Lowered, op::op};
use pt2onnx_ir::Value;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::i0, i0),
    op!(aten::special_airy_ai, airy_ai),
    op!(aten::special_bessel_j0, j0),
    op!(aten::special_bessel_j1, j1),
    op!(aten::special_bessel_y0, y0),
    op!(aten::special_bessel_y1, y1),
    op!(aten::special_i0, i0),
    op!(aten::special_i0e, i0e),
    op!(aten::special_i1, i1),
    op!(aten::special_i1e, i1e),
    op!(aten::special_modified_bessel_i0, i0),
    op!(aten::special_modified_bessel_i1, i1),
    op!(aten::special_modified_bessel_k0, k0, scaled = false),
    op!(aten::special_modified_bessel_k1, k1, scaled = false),
    op!(aten::special_scaled_modified_bessel_k0, k0, scaled = true),
    op!(aten::special_scaled_modified_bessel_k1, k1, scaled = true),
];

/// The Airy function Ai.
fn airy_ai(cx: &Cx, x: Value) -> Lowered {
    Ok(double(cx, x, |x| bessel::airy_ai(cx, x)))
}

/// The modified Bessel function of the first kind, of order 0.
fn i0(cx: &Cx, x: Value) -> Lowered {
    Ok(double(cx, x, |x| bessel::i0(cx, x)))
}

/// `e^-|x| I0(x)`.
fn i0e(cx: &Cx, x: Value) -> Lowered {
    Ok(double(cx, x, |x| bessel::i0e(cx, x)))
}

/// The modified Bessel function of the first kind, of order 1.
fn i1(cx: &Cx, x: Value) -> Lowered {
    Ok(double(cx, x, |x| bessel::i1(cx, x)))
}

/// `e^-|x| I1(x)`.
fn i1e(cx: &Cx, x: Value) -> Lowered {
    Ok(double(cx, x, |x| bessel::i1e(cx, x)))
}

/// The Bessel function of the first kind, of order 0.
fn j0(cx: &Cx, x: Value) -> Lowered {
    Ok(double(cx, x, |x| bessel::j0(cx, x)))
}

/// The Bessel function of the first kind, of order 1.
fn j1(cx: &Cx, x: Value) -> Lowered {
    Ok(double(cx, x, |x| bessel::j1(cx, x)))
}

/// The Bessel function of the second kind, of order 0.
fn y0(cx: &Cx, x: Value) -> Lowered {
    Ok(double(cx, x, |x| bessel::y0(cx, x)))
}

/// The Bessel function of the second kind, of order 1.
fn y1(cx: &Cx, x: Value) -> Lowered {
    Ok(double(cx, x, |x| bessel::y1(cx, x)))
}

/// The modified Bessel function of the second kind, of order 0; `scaled` times `e^x`.
fn k0(cx: &Cx, x: Value, scaled: bool) -> Lowered {
    Ok(double(cx, x, |x| bessel::k0(cx, x, scaled)))
}

/// The modified Bessel function of the second kind, of order 1; `scaled` times `e^x`.
fn k1(cx: &Cx, x: Value, scaled: bool) -> Lowered {
    Ok(double(cx, x, |x| bessel::k1(cx, x, scaled)))
}
