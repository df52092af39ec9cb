//! Complex tensors made, taken apart, conjugated.

use crate::{AtenOp, Complex, Cx, LowerError, Lowered, registry::aten};
use pt2onnx_ir::Value;

pub(crate) static OPS: &[AtenOp] = &[
    aten!("aten::_conj(Tensor(a) self) -> Tensor(a)", |_: &Cx, x: Value| -> Lowered { Ok(x) }, complex: conj),
    aten!("aten::_conj_copy(Tensor self) -> Tensor", |_: &Cx, x: Value| -> Lowered { Ok(x) }, complex: conj),
    aten!("aten::_conj_physical(Tensor self) -> Tensor", |_: &Cx, x: Value| -> Lowered { Ok(x) }, complex: conj),
    aten!("aten::complex(Tensor real, Tensor imag) -> Tensor", made_of_parts, complex: made_of_parts),
    aten!("aten::conj(Tensor(a) self) -> Tensor(a)", |_: &Cx, x: Value| -> Lowered { Ok(x) }, complex: conj),
    aten!("aten::conj_physical(Tensor self) -> Tensor", |_: &Cx, x: Value| -> Lowered { Ok(x) }, complex: conj),
    aten!("aten::imag(Tensor(a) self) -> Tensor(a)", imag_of_real, complex: |cx: &Cx, x: Complex| -> Lowered { Ok(x.imag(cx)) }),
    aten!("aten::polar(Tensor abs, Tensor angle) -> Tensor", polar, complex: polar),
    aten!("aten::real(Tensor(a) self) -> Tensor(a)", |_: &Cx, x: Value| -> Lowered { Ok(x) }, complex: |_: &Cx, x: Complex| -> Lowered { Ok(x.re) }),
    aten!("aten::resolve_conj(Tensor(a) self) -> Tensor(a)", same, complex: same),
    aten!("aten::resolve_neg(Tensor(a) self) -> Tensor(a)", same, complex: same),
    aten!("aten::view_as_complex(Tensor(a) self) -> Tensor(a)", |_: &Cx, x: Value| -> Lowered { Ok(x) }, complex: |_: &Cx, x: Value| -> Lowered { Ok(x) }),
    aten!("aten::view_as_complex_copy(Tensor self) -> Tensor", |_: &Cx, x: Value| -> Lowered { Ok(x) }, complex: |_: &Cx, x: Value| -> Lowered { Ok(x) }),
    aten!("aten::view_as_real(Tensor(a) self) -> Tensor(a)", |_: &Cx, x: Value| -> Lowered { Ok(x) }, complex: |_: &Cx, x: Value| -> Lowered { Ok(x) }),
    aten!("aten::view_as_real_copy(Tensor self) -> Tensor", |_: &Cx, x: Value| -> Lowered { Ok(x) }, complex: |_: &Cx, x: Value| -> Lowered { Ok(x) }),
];

fn same(_: &Cx, x: Value) -> Lowered {
    Ok(x)
}

fn imag_of_real(_: &Cx, _: Value) -> Lowered {
    Err(LowerError::unsupported("real tensors have no imaginary parts"))
}

fn made_of_parts(cx: &Cx, re: Value, im: Value) -> Lowered {
    Ok(cx.pairs(Complex::new(re, im)))
}

fn polar(cx: &Cx, length: Value, angle: Value) -> Lowered {
    Ok(cx.pairs(Complex::polar(cx, length, angle)))
}

/// Pairs times `(1, -1)`.
fn conj(cx: &Cx, pairs: Value) -> Lowered {
    let signs = cx.cast(cx.vector(&[1f32, -1.0]), cx.dtype(pairs));
    Ok(cx.mul(pairs, signs))
}
