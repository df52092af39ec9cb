//! Activations, element by element and along one dimension.

use crate::math::arcs::softplus_of;
use crate::math::elementary::expm1_of;
use crate::math::erf::ndtr_of;
use crate::math::precision::in_range;
use crate::math::reduce::{all_hidden, log_softmax_of};
use crate::math::shape::vector;
use crate::meta;
use crate::{AtenOp, Complex, Cx, LowerError, Lowered, Number, checks, op};
use pt2onnx_ir::{Reduction, Value, attrs};
use pt2onnx_tensor::{DType, Scalar};
use std::f64::consts::PI;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_log_softmax, wider_softmax, logarithm = true),
    op!(aten::_prelu_kernel, prelu),
    op!(aten::_safe_softmax, safe_softmax),
    op!(aten::_softmax, wider_softmax, logarithm = false),
    op!(aten::celu, celu),
    op!(aten::elu, elu),
    op!(aten::gelu, gelu),
    op!(aten::glu, glu),
    op!(aten::hardshrink, hardshrink),
    op!(aten::hardsigmoid, hardsigmoid),
    op!(aten::hardswish, hardswish),
    op!(aten::hardtanh, hardtanh),
    op!(aten::leaky_relu, leaky_relu),
    op!(aten::log_sigmoid, log_sigmoid),
    op!(aten::log_sigmoid_forward, log_sigmoid_forward),
    op!(aten::log_softmax_int, softmax, meta = meta::made, logarithm = true),
    op!(aten::mish, mish),
    op!(aten::prelu, prelu),
    op!(aten::relu, relu),
    op!(aten::relu6, hardtanh, min_val = 0, max_val = 6),
    op!(aten::rrelu, rrelu),
    op!(aten::rrelu_with_noise_functional, rrelu_with_noise),
    op!(aten::selu, selu),
    op!(aten::silu, silu, complex = silu_complex),
    op!(aten::softmax_int, softmax, meta = meta::made, logarithm = false),
    op!(aten::softplus, softplus),
    op!(aten::softshrink, softshrink),
    op!(aten::special_log_softmax, softmax, meta = meta::made, logarithm = true),
    op!(aten::special_softmax, softmax, meta = meta::made, logarithm = false),
    op!(aten::threshold, threshold),
];

/// `x Phi(x)` with the normal distribution function `Phi`, or its approximation by `tanh`. Runtimes
/// have no float64 `Erf`: there the formulas are spelled out.
fn gelu(cx: &Cx, x: Value, approximate: String) -> Lowered {
    let is_double = cx.dtype(x) == DType::F64;
    Ok(match approximate.as_str() {
        "none" if is_double => cx.mul(x, ndtr_of(cx, x)),
        "tanh" if is_double => {
            let cube = cx.mul(cx.mul(cx.mul(x, x), x), 0.044715);
            let curve = cx.tanh(cx.mul(cx.add(x, cube), (2.0 / PI).sqrt()));
            cx.mul(cx.mul(x, 0.5), cx.add(curve, 1))
        }
        "none" => cx.gelu(x, attrs::Gelu { approximate: "none" }),
        "tanh" => cx.gelu(x, attrs::Gelu { approximate: "tanh" }),
        other => return Err(LowerError::unknown("gelu approximation", other)),
    })
}

/// `max(0, x)`. Runtimes have `Relu` of int64 in float64 only, if at all.
fn relu(cx: &Cx, x: Value) -> Lowered {
    Ok(match cx.dtype(x) {
        DType::I64 => cx.select(cx.greater(x, 0), x, 0),
        _ => cx.relu(x),
    })
}

/// `x tanh(log(1 + e^x))`.
fn mish(cx: &Cx, x: Value) -> Lowered {
    Ok(cx.mish(x))
}

/// `x relu6(x + 3) / 6`.
fn hardswish(cx: &Cx, x: Value) -> Lowered {
    Ok(cx.hard_swish(x))
}

/// `relu6(x + 3) / 6`.
fn hardsigmoid(cx: &Cx, x: Value) -> Lowered {
    Ok(cx.hard_sigmoid(x, attrs::HardSigmoid { alpha: 1.0 / 6.0, beta: 0.5 }))
}

fn hardtanh(cx: &Cx, x: Value, min: Number, max: Number) -> Lowered {
    let (Number::Known(min), Number::Known(max)) = (min, max) else {
        return Ok(cx.minimum(cx.maximum(x, min), max));
    };
    let [min, max] = [min, max].map(|b| Some(in_range(b, cx.dtype(x))));
    Ok(cx.clamp(x, min, max))
}

/// `x * sigmoid(x)`.
fn silu(cx: &Cx, x: Value) -> Lowered {
    Ok(cx.mul(x, cx.sigmoid(x)))
}

fn silu_complex(cx: &Cx, x: Complex) -> Lowered {
    Ok(cx.pairs(x.mul(cx, x.sigmoid(cx))))
}

/// `scale * x` of positive `x`, otherwise `scale * alpha * (exp(input_scale * x) - 1)`. The
/// attributes of `Elu` are float32, so float64 is computed by the formula.
fn elu(cx: &Cx, x: Value, alpha: Number, scale: Number, input_scale: Number) -> Lowered {
    if let Some(alpha) = alpha.known()
        && input_scale.is(1.0)
        && cx.dtype(x) != DType::F64
    {
        let elu = cx.elu(x, attrs::Elu { alpha: alpha.to_f64() as f32 });
        return Ok(cx.mul(elu, scale));
    }
    let curve = cx.mul(expm1_of(cx, cx.mul(x, input_scale)), alpha);
    Ok(cx.mul(cx.select(cx.greater(x, 0.0), x, curve), scale))
}

fn selu(cx: &Cx, x: Value) -> Lowered {
    const ALPHA: Scalar = Scalar::Float(1.673_263_242_354_377_2);
    const SCALE: Scalar = Scalar::Float(1.050_700_987_355_480_5);
    match cx.dtype(x) {
        DType::F64 => elu(cx, x, ALPHA.into(), SCALE.into(), 1.into()),
        _ => Ok(cx.selu(x, attrs::Selu::default())),
    }
}

/// `max(0, x) + min(0, alpha * (exp(x / alpha) - 1))`, which is `Elu` if `alpha` is 1.
fn celu(cx: &Cx, x: Value, alpha: Number) -> Lowered {
    let inverse = match alpha {
        Number::Known(_) if alpha.is(1.0) => 1.into(),
        Number::Known(alpha) if cx.dtype(x) != DType::F64 => {
            return Ok(cx.celu(x, attrs::Celu { alpha: alpha.to_f64() as f32 }));
        }
        Number::Known(alpha) => (1.0 / alpha.to_f64()).into(),
        Number::Computed(alpha) => Number::Computed(cx.reciprocal(cx.cast(alpha, DType::F64))),
    };
    elu(cx, x, alpha, 1.into(), inverse)
}

/// The first half of `x` along `dim`, times the sigmoid of the second half.
fn glu(cx: &Cx, x: Value, dim: i64) -> Lowered {
    let axis = cx.axis(x, dim)?;
    let [a, b] = cx.halves(x, axis);
    Ok(cx.mul(a, cx.sigmoid(b)))
}

/// `x`, and 0 where `|x| <= lambd`. NaN stays NaN.
fn hardshrink(cx: &Cx, x: Value, lambd: Number) -> Lowered {
    let inside = cx.less_or_equal(cx.abs(x), lambd);
    Ok(cx.select(inside, 0.0, x))
}

/// `x - lambd` above `lambd`, `x + lambd` below `-lambd`, 0 between.
fn softshrink(cx: &Cx, x: Value, lambd: Number) -> Lowered {
    let inside = match lambd {
        Number::Known(lambd) => {
            let bound = |b: f64| Some(Scalar::Float(b));
            cx.clamp(x, bound(-lambd.to_f64()), bound(lambd.to_f64()))
        }
        Number::Computed(_) => {
            let bound = lambd.tensor(cx, cx.dtype(x));
            cx.minimum(cx.maximum(x, cx.neg(bound)), bound)
        }
    };
    Ok(cx.sub(x, inside))
}

fn leaky_relu(cx: &Cx, x: Value, slope: Number) -> Lowered {
    Ok(match slope {
        Number::Known(slope) => cx.leaky_relu(x, attrs::LeakyRelu { alpha: slope.to_f64() as f32 }),
        Number::Computed(_) => cx.select(cx.greater(x, 0), x, cx.mul(x, slope)),
    })
}

/// `x`, times `weight` where negative. `weight` is one number, or one for each channel (dimension
/// 1).
fn prelu(cx: &Cx, x: Value, slope: Value) -> Lowered {
    let (rank, axes) = (cx.rank(x), cx.rank(slope));
    let slope = match (rank, axes) {
        (0, 1) => cx.squeeze(slope, &[0]),
        (3.., 1) => cx.unsqueeze(slope, &(1..rank - 1).collect::<Vec<_>>()),
        _ => slope,
    };
    Ok(cx.prelu(x, slope))
}

/// A random slope between `lower` and `upper` for each element.
fn random_slope(cx: &Cx, x: Value, lower: Scalar, upper: Scalar) -> Value {
    let like = cx.full(&cx.shape(x), 0, DType::F32);
    let range = attrs::RandomUniformLike {
        low: lower.to_f64() as f32,
        high: upper.to_f64() as f32,
        ..Default::default()
    };
    cx.cast(cx.random_uniform_like(like, range), cx.dtype(x))
}

/// `leaky_relu` with a random slope in training; in evaluation the slope is the middle of the
/// range.
fn rrelu(cx: &Cx, x: Value, lower: Scalar, upper: Scalar, training: bool) -> Lowered {
    if training {
        let slope = random_slope(cx, x, lower, upper);
        return Ok(cx.select(cx.less_or_equal(x, 0.0), cx.mul(x, slope), x));
    }
    let middle = (lower.to_f64() + upper.to_f64()) / 2.0;
    leaky_relu(cx, x, middle.into())
}

fn rrelu_with_noise(
    cx: &Cx,
    x: Value,
    noise: Value,
    lower: Scalar,
    upper: Scalar,
    training: bool,
) -> Lowered<[Value; 2]> {
    if !training {
        return Ok([rrelu(cx, x, lower, upper, false)?, noise]);
    }
    let inside = cx.less_or_equal(x, 0.0);
    let slope = cx.select(inside, random_slope(cx, x, lower, upper), 1.0);
    Ok([cx.mul(x, slope), slope])
}

/// `log(sigmoid(x))`, and `e^-|x|`, which the backward pass reads.
fn log_sigmoid_forward(cx: &Cx, x: Value) -> Lowered<[Value; 2]> {
    Ok([log_sigmoid(cx, x)?, cx.exp(cx.neg(cx.abs(x)))])
}

/// `-softplus(-x)`.
fn log_sigmoid(cx: &Cx, x: Value) -> Lowered {
    Ok(cx.neg(softplus_of(cx, cx.neg(x))))
}

/// `log(1 + e^(beta * x)) / beta`, and `x` where `beta * x` is above the threshold. A threshold of
/// 20 or more is left out: it changes the last digit at most.
fn softplus(cx: &Cx, x: Value, beta: Number, threshold: Number) -> Lowered {
    let scaled = cx.mul(x, beta);
    let curve = cx.div(softplus_of(cx, scaled), beta);
    Ok(match threshold.known().map(Scalar::to_f64) {
        Some(20.0..) => curve,
        _ => cx.select(cx.greater(scaled, threshold), x, curve),
    })
}

/// `x` where it is above the threshold, otherwise `value`.
fn threshold(cx: &Cx, x: Value, threshold: Number, value: Number) -> Lowered {
    // Written so that NaN stays.
    let below = cx.less_or_equal(x, threshold);
    Ok(cx.select(below, value, x))
}

/// `Softmax` along `dim`, or its logarithm, computed in `dtype` if that is given.
fn softmax(cx: &Cx, x: Complex, dim: i64, dtype: Option<DType>, logarithm: bool) -> Lowered {
    if cx.recorded(0).is_some_and(|m| m.dtype.is_complex()) {
        return softmax_of_complex(cx, x, dim, logarithm);
    }
    softmax_of(cx, cx.cast(x.re, dtype.unwrap_or_else(|| cx.dtype(x.re))), dim, logarithm)
}

/// ONNX has no `Softmax` of 0-d tensors: they count as vectors.
fn softmax_of(cx: &Cx, x: Value, dim: i64, logarithm: bool) -> Lowered {
    let (axis, long) = (cx.axis(x, dim)?, vector(cx, x));
    let soft = if logarithm {
        log_softmax_of(cx, long, axis)
    } else {
        cx.softmax(long, attrs::Softmax { axis: axis as i64 })
    };
    Ok(if cx.rank(x) == 0 { cx.squeeze(soft, &[0]) } else { soft })
}

/// `exp(x - m) / sum(exp(x - m))` with the largest real part `m`; its logarithm is `x - m -
/// log(sum(exp(x - m)))`.
fn softmax_of_complex(cx: &Cx, x: Complex, dim: i64, logarithm: bool) -> Lowered {
    let x = x.cast(cx, cx.out_dtype()?);
    let axes = match cx.rank(x.re) {
        0 => Vec::new(),
        _ => vec![cx.axis(x.re, dim)?],
    };
    let along = |op, v| match axes[..] {
        [] => v,
        _ => cx.reduce(op, v, &axes, true),
    };
    let re = cx.sub(x.re, along(Reduction::Max, x.re));
    let im = cx.expand(x.imag(cx), &cx.shape(x.re));
    let x = Complex::new(re, im);
    let e = x.exp(cx);
    let sum = e.map(|v| along(Reduction::Sum, v));
    Ok(cx.pairs(if logarithm { x.sub(cx, sum.log(cx)) } else { e.div(cx, sum) }))
}

/// `Softmax`; slices whose elements are all `-inf` give 0.
fn safe_softmax(cx: &Cx, x: Value, dim: i64, dtype: Option<DType>) -> Lowered {
    let x = cx.cast(x, dtype.unwrap_or_else(|| cx.dtype(x)));
    let soft = softmax_of(cx, x, dim, false)?;
    let hidden = match cx.rank(x) {
        0 => cx.equal(x, f64::NEG_INFINITY),
        _ => all_hidden(cx, x, cx.axis(x, dim)?),
    };
    Ok(cx.select(hidden, 0.0, soft))
}

/// Decomposed programs have a flag instead of a type: whether float16 is computed in, and becomes,
/// float32.
fn wider_softmax(cx: &Cx, x: Value, dim: i64, half_to_float: bool, logarithm: bool) -> Lowered {
    let dtype = if half_to_float { DType::F32 } else { cx.dtype(x) };
    softmax_of(cx, cx.cast(x, dtype), dim, logarithm)
}

checks! {
    // Bounds are held to the type.
    "aten.relu6(x: f32[s0]) -> f32[s0]" => "relu6 = Clip (x, 0.0, 6.0)";
    "aten.hardtanh(x: u8[s0], -3, 300) -> u8[s0]" => "hardtanh = Clip (x, uint8 {0}, uint8 {255})";

    // Softmax of a number is that of a vector of one.
    "aten.softmax.int(x: f16[], -1, torch.float32) -> f32[]" => "
    val_0 = Cast <to: int = 1> (x)
    val_1 = Unsqueeze (val_0, [0])
    val_2 = Softmax <axis: int = 0> (val_1)
    softmax = Squeeze (val_2, [0])
    ";

    // NaN spreads in float64.
    "aten.log_softmax.int(x: f64[s0, 3], 1) -> f64[s0, 3]" => "
    val_0 = LogSoftmax <axis: int = 1> (x)
    val_1 = Softmax <axis: int = 1> (x)
    val_2 = Mul (val_1, double {0.0})
    log_softmax = Add (val_0, val_2)
    ";

    // `celu` of 1 is `elu`.
    "aten.celu(x: f16[s0]) -> f16[s0]" => "celu = Elu (x)";
    "aten.celu(x: f32[s0], 0.5) -> f32[s0]" => "celu = Celu <alpha: float = 0.5> (x)";

    // A slope may be computed.
    "aten.leaky_relu(x: f32[s0], n: Sym(s0)) -> f32[s0]" => "
    val_0 = Shape <start: int = 0, end: int = 1> (x)
    val_1 = Reshape (val_0, [])
    val_2 = Greater (x, 0.0)
    val_3 = Cast <to: int = 1> (val_1)
    val_4 = Mul (x, val_3)
    leaky_relu = Where (val_2, x, val_4)
    ";

    // Softplus of float64 is a formula.
    "aten.log_sigmoid(x: f64[s0]) -> f64[s0]" => "
    val_0 = Neg (x)
    val_1 = Abs (val_0)
    val_2 = Neg (val_1)
    val_3 = Exp (val_2)
    val_4 = Add (val_3, double {1.0})
    val_5 = Log (val_4)
    val_6 = Sub (val_4, double {1.0})
    val_7 = Div (val_3, val_6)
    val_8 = Mul (val_5, val_7)
    val_9 = LessOrEqual (val_3, double {1.0})
    val_10 = Where (val_9, val_8, val_5)
    val_11 = Cast <to: int = 9> (val_6)
    val_12 = Where (val_11, val_10, val_3)
    val_13 = Max (val_0, double {0.0})
    val_14 = Add (val_13, val_12)
    log_sigmoid = Neg (val_14)
    ";
}
