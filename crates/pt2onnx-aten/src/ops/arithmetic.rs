//! Arithmetic element by element, with PyTorch's type promotion.

use crate::{AtenOp, Complex, Cx, LowerError, Lowered, TensorOrScalar, registry::aten};
use pt2onnx_ir::Value;
use pt2onnx_tensor::{DType, Scalar};

pub(super) static OPS: &[AtenOp] = &[
    aten!(
        "aten::__and__.Tensor(Tensor self, Tensor other) -> Tensor",
        and
    ),
    aten!("aten::abs(Tensor self) -> Tensor", |cx: &Cx,
                                               x: Value|
     -> Lowered {
        Ok(cx.abs(x))
    }),
    aten!(
        "aten::add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
        add,
        complex: add_complex
    ),
    aten!(
        "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
        add,
        complex: add_complex
    ),
    aten!(
        "aten::bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor",
        and
    ),
    aten!("aten::cos(Tensor self) -> Tensor", |cx: &Cx,
                                               x: Value|
     -> Lowered {
        Ok(cx.cos(cx.to_float(x)))
    }),
    aten!("aten::div.Scalar(Tensor self, Scalar other) -> Tensor", div, complex: div_complex),
    aten!("aten::div.Tensor(Tensor self, Tensor other) -> Tensor", div, complex: div_complex),
    aten!("aten::exp(Tensor self) -> Tensor", |cx: &Cx,
                                               x: Value|
     -> Lowered {
        Ok(cx.exp(cx.to_float(x)))
    }),
    aten!("aten::log(Tensor self) -> Tensor", |cx: &Cx,
                                               x: Value|
     -> Lowered {
        Ok(cx.log(cx.to_float(x)))
    }),
    aten!(
        "aten::logical_and(Tensor self, Tensor other) -> Tensor",
        logical_and
    ),
    aten!(
        "aten::max.other(Tensor self, Tensor other) -> Tensor",
        maximum
    ),
    aten!(
        "aten::maximum(Tensor self, Tensor other) -> Tensor",
        maximum
    ),
    aten!(
        "aten::min.other(Tensor self, Tensor other) -> Tensor",
        minimum
    ),
    aten!(
        "aten::minimum(Tensor self, Tensor other) -> Tensor",
        minimum
    ),
    aten!("aten::mul.Scalar(Tensor self, Scalar other) -> Tensor", mul, complex: mul_complex),
    aten!("aten::mul.Tensor(Tensor self, Tensor other) -> Tensor", mul, complex: mul_complex),
    aten!(
        "aten::neg(Tensor self) -> Tensor",
        |cx: &Cx, x: Value| -> Lowered { Ok(cx.neg(x)) },
        parts
    ),
    aten!(
        "aten::pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
        pow
    ),
    aten!(
        "aten::pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
        pow
    ),
    aten!("aten::reciprocal(Tensor self) -> Tensor", |cx: &Cx,
                                                      x: Value|
     -> Lowered {
        Ok(cx.reciprocal(cx.to_float(x)))
    }),
    aten!("aten::rsqrt(Tensor self) -> Tensor", |cx: &Cx,
                                                 x: Value|
     -> Lowered {
        Ok(cx.reciprocal(cx.sqrt(cx.to_float(x))))
    }),
    aten!(
        "aten::rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
        rsub
    ),
    aten!("aten::sin(Tensor self) -> Tensor", |cx: &Cx,
                                               x: Value|
     -> Lowered {
        Ok(cx.sin(cx.to_float(x)))
    }),
    aten!("aten::sqrt(Tensor self) -> Tensor", |cx: &Cx,
                                                x: Value|
     -> Lowered {
        Ok(cx.sqrt(cx.to_float(x)))
    }),
    aten!(
        "aten::sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
        sub,
        complex: sub_complex
    ),
    aten!(
        "aten::sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
        sub,
        complex: sub_complex
    ),
];

/// Both in the type that PyTorch computes in, parts apart.
fn promote_complex(cx: &Cx, a: Complex, b: Complex) -> Lowered<(Complex, Complex)> {
    let dtype = cx.out_dtype()?;
    let cast = |c: Complex| Complex {
        re: cx.cast(c.re, dtype),
        im: cx.cast(c.im, dtype),
    };
    Ok((cast(a), cast(b)))
}

fn add_complex(cx: &Cx, a: Complex, b: Complex, alpha: Scalar) -> Lowered {
    let (a, b) = promote_complex(cx, a, b)?;
    let b = scaled(cx, b, alpha);
    Ok(cx.pairs(Complex {
        re: cx.add(a.re, b.re),
        im: cx.add(a.im, b.im),
    }))
}

fn sub_complex(cx: &Cx, a: Complex, b: Complex, alpha: Scalar) -> Lowered {
    let (a, b) = promote_complex(cx, a, b)?;
    let b = scaled(cx, b, alpha);
    Ok(cx.pairs(Complex {
        re: cx.sub(a.re, b.re),
        im: cx.sub(a.im, b.im),
    }))
}

/// `alpha * c`; `alpha` may be complex.
fn scaled(cx: &Cx, c: Complex, alpha: Scalar) -> Complex {
    match alpha {
        Scalar::Complex(re, im) => Complex {
            re: cx.sub(cx.mul(c.re, re), cx.mul(c.im, im)),
            im: cx.add(cx.mul(c.re, im), cx.mul(c.im, re)),
        },
        real => Complex {
            re: cx.mul(c.re, real),
            im: cx.mul(c.im, real),
        },
    }
}

fn mul_complex(cx: &Cx, a: Complex, b: Complex) -> Lowered {
    let (a, b) = promote_complex(cx, a, b)?;
    Ok(cx.pairs(product(cx, a, b)))
}

/// `a * b`.
fn product(cx: &Cx, a: Complex, b: Complex) -> Complex {
    Complex {
        re: cx.sub(cx.mul(a.re, b.re), cx.mul(a.im, b.im)),
        im: cx.add(cx.mul(a.re, b.im), cx.mul(a.im, b.re)),
    }
}

/// `a * conj(b) / |b|^2`.
fn div_complex(cx: &Cx, a: Complex, b: Complex) -> Lowered {
    let (a, b) = promote_complex(cx, a, b)?;
    let norm = cx.add(cx.mul(b.re, b.re), cx.mul(b.im, b.im));
    let top = product(
        cx,
        a,
        Complex {
            re: b.re,
            im: cx.neg(b.im),
        },
    );
    Ok(cx.pairs(Complex {
        re: cx.div(top.re, norm),
        im: cx.div(top.im, norm),
    }))
}

/// `a + alpha * b`; of bools, the disjunction.
fn add(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar, alpha: Scalar) -> Lowered {
    let (a, b) = cx.promote(a, b);
    match cx.dtype(a) {
        DType::Bool if alpha.to_bool() => Ok(cx.or(a, b)),
        DType::Bool => Ok(cx.or(a, cx.and(b, cx.scalar(false, DType::Bool)))),
        _ => Ok(cx.add(a, cx.mul(b, alpha))),
    }
}

/// `a - alpha * b`.
fn sub(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar, alpha: Scalar) -> Lowered {
    let (a, b) = cx.promote(a, b);
    Ok(cx.sub(a, cx.mul(b, alpha)))
}

/// `b - alpha * a`.
fn rsub(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar, alpha: Scalar) -> Lowered {
    sub(cx, b, a, alpha)
}

/// `a * b`; of bools, the conjunction.
fn mul(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let (a, b) = cx.promote(a, b);
    Ok(if cx.dtype(a) == DType::Bool {
        cx.and(a, b)
    } else {
        cx.mul(a, b)
    })
}

/// True division: integers become floats first.
fn div(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let (a, b) = cx.promote(a, b);
    Ok(cx.div(cx.to_float(a), cx.to_float(b)))
}

/// `a` to the power `b`, in their common type. ONNX Runtime computes integer powers through doubles: squares stay exact
/// as products.
fn pow(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let square = matches!(b, TensorOrScalar::Scalar(s) if s.to_f64() == 2.0);
    let dtype = cx.result_type(&[a.clone(), b.clone()]);
    let base = cx.as_tensor(&a, dtype);
    if square {
        return Ok(cx.mul(base, base));
    }
    if let (TensorOrScalar::Scalar(s), false) = (&b, dtype.is_float())
        && s.to_f64() < 0.0
    {
        return Err(LowerError::unsupported(
            "integers to negative integer powers are not integers",
        ));
    }
    match b {
        TensorOrScalar::Scalar(s) if dtype.is_float() && s.to_f64() == 0.5 => Ok(cx.sqrt(base)),
        b => Ok(cx.pow(base, cx.as_tensor(&b, dtype))),
    }
}

fn minimum(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let (a, b) = cx.promote(a, b);
    Ok(if cx.dtype(a) == DType::Bool {
        cx.and(a, b)
    } else {
        cx.minimum(a, b)
    })
}

fn maximum(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let (a, b) = cx.promote(a, b);
    Ok(if cx.dtype(a) == DType::Bool {
        cx.or(a, b)
    } else {
        cx.maximum(a, b)
    })
}

/// Bits of integers, truth of bools.
fn and(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let (a, b) = cx.promote(a, b);
    Ok(if cx.dtype(a) == DType::Bool {
        cx.and(a, b)
    } else {
        cx.bitwise_and(a, b)
    })
}

fn logical_and(cx: &Cx, a: Value, b: Value) -> Lowered {
    Ok(cx.and(cx.cast(a, DType::Bool), cx.cast(b, DType::Bool)))
}
