//! Bessel functions and the Airy function. Formulas are in `math/bessel.rs`.

use crate::math::bessel::{airy_ai, i0e, i1e, j0, j1, k0, k1, unscaled, y0, y1};
use crate::math::precision::double;
use crate::{AtenOp, Cx, Lowered, registry::aten};
use pt2onnx_ir::Value;

pub(crate) static OPS: &[AtenOp] = &[
    aten!("aten::i0(Tensor self) -> Tensor", |cx: &Cx, x: Value| {
        in_double(cx, x, |cx, x| unscaled(cx, x, i0e(cx, x)))
    }),
    aten!("aten::special_airy_ai(Tensor x) -> Tensor", |cx: &Cx, x: Value| in_double(
        cx, x, airy_ai
    )),
    aten!("aten::special_bessel_j0(Tensor self) -> Tensor", |cx: &Cx, x: Value| in_double(
        cx, x, j0
    )),
    aten!("aten::special_bessel_j1(Tensor self) -> Tensor", |cx: &Cx, x: Value| in_double(
        cx, x, j1
    )),
    aten!("aten::special_bessel_y0(Tensor self) -> Tensor", |cx: &Cx, x: Value| in_double(
        cx, x, y0
    )),
    aten!("aten::special_bessel_y1(Tensor self) -> Tensor", |cx: &Cx, x: Value| in_double(
        cx, x, y1
    )),
    aten!("aten::special_i0(Tensor self) -> Tensor", |cx: &Cx, x: Value| in_double(
        cx,
        x,
        |cx, x| unscaled(cx, x, i0e(cx, x))
    )),
    aten!("aten::special_i0e(Tensor self) -> Tensor", |cx: &Cx, x: Value| in_double(cx, x, i0e)),
    aten!("aten::special_i1(Tensor self) -> Tensor", |cx: &Cx, x: Value| in_double(
        cx,
        x,
        |cx, x| unscaled(cx, x, i1e(cx, x))
    )),
    aten!("aten::special_i1e(Tensor self) -> Tensor", |cx: &Cx, x: Value| in_double(cx, x, i1e)),
    aten!(
        "aten::special_modified_bessel_i0(Tensor self) -> Tensor",
        |cx: &Cx, x: Value| in_double(cx, x, |cx, x| unscaled(cx, x, i0e(cx, x)))
    ),
    aten!(
        "aten::special_modified_bessel_i1(Tensor self) -> Tensor",
        |cx: &Cx, x: Value| in_double(cx, x, |cx, x| unscaled(cx, x, i1e(cx, x)))
    ),
    aten!(
        "aten::special_modified_bessel_k0(Tensor self) -> Tensor",
        |cx: &Cx, x: Value| in_double(cx, x, |cx, x| k0(cx, x, false))
    ),
    aten!(
        "aten::special_modified_bessel_k1(Tensor self) -> Tensor",
        |cx: &Cx, x: Value| in_double(cx, x, |cx, x| k1(cx, x, false))
    ),
    aten!("aten::special_scaled_modified_bessel_k0(Tensor x) -> Tensor", |cx: &Cx, x: Value| {
        in_double(cx, x, |cx, x| k0(cx, x, true))
    }),
    aten!("aten::special_scaled_modified_bessel_k1(Tensor x) -> Tensor", |cx: &Cx, x: Value| {
        in_double(cx, x, |cx, x| k1(cx, x, true))
    }),
];

fn in_double(cx: &Cx, x: Value, f: fn(&Cx, Value) -> Value) -> Lowered {
    Ok(double(cx, x, |x| f(cx, x)))
}
