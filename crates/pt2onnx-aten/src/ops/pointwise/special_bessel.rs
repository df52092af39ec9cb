//! Bessel functions and the Airy function. Formulas are in `math/bessel.rs`.

use crate::math::bessel::{airy_ai, i0e, i1e, j0, j1, k0, k1, unscaled, y0, y1};
use crate::math::precision::double;
use crate::{AtenOp, Cx, Lowered, op::op};
use pt2onnx_ir::Value;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::i0, |cx: &Cx, x: Value| { in_double(cx, x, |cx, x| unscaled(cx, x, i0e(cx, x))) }),
    op!(aten::special_airy_ai, |cx: &Cx, x: Value| in_double(cx, x, airy_ai)),
    op!(aten::special_bessel_j0, |cx: &Cx, x: Value| in_double(cx, x, j0)),
    op!(aten::special_bessel_j1, |cx: &Cx, x: Value| in_double(cx, x, j1)),
    op!(aten::special_bessel_y0, |cx: &Cx, x: Value| in_double(cx, x, y0)),
    op!(aten::special_bessel_y1, |cx: &Cx, x: Value| in_double(cx, x, y1)),
    op!(aten::special_i0, |cx: &Cx, x: Value| in_double(cx, x, |cx, x| unscaled(
        cx,
        x,
        i0e(cx, x)
    ))),
    op!(aten::special_i0e, |cx: &Cx, x: Value| in_double(cx, x, i0e)),
    op!(aten::special_i1, |cx: &Cx, x: Value| in_double(cx, x, |cx, x| unscaled(
        cx,
        x,
        i1e(cx, x)
    ))),
    op!(aten::special_i1e, |cx: &Cx, x: Value| in_double(cx, x, i1e)),
    op!(aten::special_modified_bessel_i0, |cx: &Cx, x: Value| in_double(cx, x, |cx, x| {
        unscaled(cx, x, i0e(cx, x))
    })),
    op!(aten::special_modified_bessel_i1, |cx: &Cx, x: Value| in_double(cx, x, |cx, x| {
        unscaled(cx, x, i1e(cx, x))
    })),
    op!(aten::special_modified_bessel_k0, |cx: &Cx, x: Value| in_double(cx, x, |cx, x| k0(
        cx, x, false
    ))),
    op!(aten::special_modified_bessel_k1, |cx: &Cx, x: Value| in_double(cx, x, |cx, x| k1(
        cx, x, false
    ))),
    op!(aten::special_scaled_modified_bessel_k0, |cx: &Cx, x: Value| {
        in_double(cx, x, |cx, x| k0(cx, x, true))
    }),
    op!(aten::special_scaled_modified_bessel_k1, |cx: &Cx, x: Value| {
        in_double(cx, x, |cx, x| k1(cx, x, true))
    }),
];

fn in_double(cx: &Cx, x: Value, f: fn(&Cx, Value) -> Value) -> Lowered {
    Ok(double(cx, x, |x| f(cx, x)))
}
