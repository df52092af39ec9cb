//! Activations, pointwise and over one dimension.

use super::{comparison::in_range, complex_math as math};
use crate::{AtenOp, Complex, Cx, LowerError, Lowered, registry::aten};
use pt2onnx_ir::{Reduction, Value, attrs};
use pt2onnx_tensor::{DType, Scalar};
use std::f64::consts::PI;

pub(super) static OPS: &[AtenOp] = &[
    aten!(
        "aten::_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
        half_to_float_log_softmax
    ),
    aten!("aten::_prelu_kernel(Tensor self, Tensor weight) -> Tensor", prelu),
    aten!(
        "aten::_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
        safe_softmax
    ),
    aten!(
        "aten::_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
        half_to_float_softmax
    ),
    aten!("aten::celu(Tensor self, Scalar alpha=1.) -> Tensor", celu),
    aten!(
        "aten::elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
        elu
    ),
    aten!("aten::gelu(Tensor self, *, str approximate=\"none\") -> Tensor", gelu),
    aten!("aten::glu(Tensor self, int dim=-1) -> Tensor", glu),
    aten!("aten::hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor", hardshrink),
    aten!("aten::hardsigmoid(Tensor self) -> Tensor", hardsigmoid),
    aten!("aten::hardswish(Tensor self) -> Tensor", |cx: &Cx, x: Value| -> Lowered {
        Ok(cx.hard_swish(x))
    }),
    aten!("aten::hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor", hardtanh),
    aten!("aten::leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor", leaky_relu),
    aten!("aten::log_sigmoid(Tensor self) -> Tensor", log_sigmoid),
    aten!(
        "aten::log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)",
        |cx: &Cx, x: Value| -> Lowered<[Value; 2]> {
            Ok([log_sigmoid(cx, x)?, cx.exp(cx.neg(cx.abs(x)))])
        }
    ),
    aten!("aten::log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", log_softmax, complex: |cx: &Cx, x: Complex, dim: i64, _: Option<DType>| softmax_complex(cx, x, dim, true)),
    aten!("aten::mish(Tensor self) -> Tensor", |cx: &Cx, x: Value| -> Lowered { Ok(cx.mish(x)) }),
    aten!("aten::prelu(Tensor self, Tensor weight) -> Tensor", prelu),
    aten!("aten::relu(Tensor self) -> Tensor", |cx: &Cx, x: Value| -> Lowered { Ok(cx.relu(x)) }),
    aten!("aten::relu6(Tensor self) -> Tensor", |cx: &Cx, x: Value| {
        hardtanh(cx, x, Scalar::Int(0), Scalar::Int(6))
    }),
    aten!(
        "aten::rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False, Generator? generator=None) -> Tensor",
        rrelu
    ),
    aten!(
        "aten::rrelu_with_noise_functional(Tensor self, Tensor noise, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False, Generator? generator=None) -> (Tensor, Tensor noise_out)",
        rrelu_with_noise
    ),
    aten!("aten::selu(Tensor self) -> Tensor", selu),
    aten!("aten::silu(Tensor self) -> Tensor", silu, complex: silu_complex),
    aten!("aten::softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", softmax, complex: |cx: &Cx, x: Complex, dim: i64, _: Option<DType>| softmax_complex(cx, x, dim, false)),
    aten!("aten::softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor", softplus),
    aten!("aten::softshrink(Tensor self, Scalar lambd=0.5) -> Tensor", softshrink),
    aten!("aten::special_log_softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", log_softmax, complex: |cx: &Cx, x: Complex, dim: i64, _: Option<DType>| softmax_complex(cx, x, dim, true)),
    aten!("aten::special_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", softmax, complex: |cx: &Cx, x: Complex, dim: i64, _: Option<DType>| softmax_complex(cx, x, dim, false)),
    aten!("aten::threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor", threshold),
];

/// `Gelu`, exact or by tanh; of float64, for which runtimes have no error function, by our own one.
fn gelu(cx: &Cx, x: Value, approximate: String) -> Lowered {
    let approximate = match approximate.as_str() {
        "none" if cx.dtype(x) == DType::F64 => {
            return Ok(cx.mul(x, super::special::ndtr_of(cx, x)));
        }
        "tanh" if cx.dtype(x) == DType::F64 => {
            let cube = cx.mul(cx.mul(cx.mul(x, x), x), 0.044715);
            let curve = cx.tanh(cx.mul(cx.add(x, cube), (2.0 / PI).sqrt()));
            return Ok(cx.mul(cx.mul(x, 0.5), cx.add(curve, 1)));
        }
        "none" => "none",
        "tanh" => "tanh",
        other => {
            return Err(LowerError::unsupported(format!("there is no gelu approximation {other}")));
        }
    };
    Ok(cx.gelu(x, attrs::Gelu { approximate }))
}

/// `relu6(x + 3) / 6`.
fn hardsigmoid(cx: &Cx, x: Value) -> Lowered {
    Ok(cx.hard_sigmoid(x, attrs::HardSigmoid { alpha: 1.0 / 6.0, beta: 0.5 }))
}

fn hardtanh(cx: &Cx, x: Value, min: Scalar, max: Scalar) -> Lowered {
    let [min, max] = [min, max].map(|b| Some(in_range(b, cx.dtype(x))));
    Ok(cx.clamp(x, min, max))
}

/// `x * sigmoid(x)`.
fn silu(cx: &Cx, x: Value) -> Lowered {
    Ok(cx.mul(x, cx.sigmoid(x)))
}

fn silu_complex(cx: &Cx, x: Complex) -> Lowered {
    Ok(cx.pairs(math::mul(cx, x, math::sigmoid(cx, x))))
}

/// `scale * x` of positive `x`, else `scale * alpha * (exp(input_scale * x) - 1)`. The operator's attributes are float32, so
/// that float64 takes the formula.
fn elu(cx: &Cx, x: Value, alpha: Scalar, scale: Scalar, input_scale: Scalar) -> Lowered {
    let (alpha, scale, input_scale) = (alpha.to_f64(), scale.to_f64(), input_scale.to_f64());
    if input_scale == 1.0 && cx.dtype(x) != DType::F64 {
        let elu = cx.elu(x, attrs::Elu { alpha: alpha as f32 });
        return Ok(cx.mul(elu, scale));
    }
    let curve = cx.mul(super::unary::expm1_of(cx, cx.mul(x, input_scale)), alpha);
    Ok(cx.mul(cx.select(cx.greater(x, 0.0), x, curve), scale))
}

fn selu(cx: &Cx, x: Value) -> Lowered {
    const ALPHA: Scalar = Scalar::Float(1.673_263_242_354_377_2);
    const SCALE: Scalar = Scalar::Float(1.050_700_987_355_480_5);
    match cx.dtype(x) {
        DType::F64 => elu(cx, x, ALPHA, SCALE, Scalar::Int(1)),
        _ => Ok(cx.selu(x, attrs::Selu::default())),
    }
}

/// `max(0, x) + min(0, alpha * (exp(x / alpha) - 1))`.
fn celu(cx: &Cx, x: Value, alpha: Scalar) -> Lowered {
    if cx.dtype(x) == DType::F64 {
        let inverse = Scalar::Float(1.0 / alpha.to_f64());
        return elu(cx, x, alpha, Scalar::Int(1), inverse);
    }
    let alpha = alpha.to_f64() as f32;
    Ok(cx.celu(x, attrs::Celu { alpha }))
}

/// One half of `x` along `dim` times the sigmoid of the other.
fn glu(cx: &Cx, x: Value, dim: i64) -> Lowered {
    let axis = cx.axis(x, dim)?;
    let [a, b] = cx.halves(x, axis);
    Ok(cx.mul(a, cx.sigmoid(b)))
}

/// 0 within `lambd` of 0; NaN stays.
fn hardshrink(cx: &Cx, x: Value, lambd: Scalar) -> Lowered {
    let inside = cx.less_or_equal(cx.abs(x), lambd);
    Ok(cx.select(inside, 0.0, x))
}

/// Nearer to 0 by `lambd`: what `x` has beyond `-lambd..lambd`.
fn softshrink(cx: &Cx, x: Value, lambd: Scalar) -> Lowered {
    let lambd = lambd.to_f64();
    let bound = |b: f64| Some(Scalar::Float(b));
    let inside = cx.clamp(x, bound(-lambd), bound(lambd));
    Ok(cx.sub(x, inside))
}

fn leaky_relu(cx: &Cx, x: Value, slope: Scalar) -> Lowered {
    let alpha = slope.to_f64() as f32;
    Ok(cx.leaky_relu(x, attrs::LeakyRelu { alpha }))
}

/// The slope is one number or one per channel, dimension 1.
fn prelu(cx: &Cx, x: Value, slope: Value) -> Lowered {
    let (rank, axes) = (cx.rank(x), cx.rank(slope));
    let slope = match (rank, axes) {
        (0, 1) => cx.squeeze(slope, &[0]),
        (3.., 1) => cx.unsqueeze(slope, &(1..rank - 1).collect::<Vec<_>>()),
        _ => slope,
    };
    Ok(cx.prelu(x, slope))
}

/// One slope per element, out of the range.
fn random_slope(cx: &Cx, x: Value, lower: Scalar, upper: Scalar) -> Value {
    let like = cx.full(&cx.shape(x), 0, DType::F32);
    let range = attrs::RandomUniformLike {
        low: lower.to_f64() as f32,
        high: upper.to_f64() as f32,
        ..Default::default()
    };
    cx.cast(cx.random_uniform_like(like, range), cx.dtype(x))
}

/// In evaluation the slope is the middle of the range, in training a random one.
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

/// `-softplus(-x)`.
fn log_sigmoid(cx: &Cx, x: Value) -> Lowered {
    Ok(cx.neg(cx.softplus(cx.neg(x))))
}

/// `softplus(beta * x) / beta`, and `x` where `beta * x` is above the threshold. Without the threshold nothing changes from
/// 20 on but the last digit.
fn softplus(cx: &Cx, x: Value, beta: Scalar, threshold: Scalar) -> Lowered {
    let scaled = cx.mul(x, beta);
    let curve = cx.softplus(scaled);
    let curve = if beta.to_f64() == 1.0 { curve } else { cx.div(curve, beta) };
    Ok(match threshold.to_f64() {
        20.0.. => curve,
        threshold => cx.select(cx.greater(scaled, threshold), x, curve),
    })
}

/// `x` above the threshold, else `value`.
fn threshold(cx: &Cx, x: Value, threshold: Scalar, value: Scalar) -> Lowered {
    let dtype = cx.dtype(x);
    // Written so that NaN stays.
    let below = cx.less_or_equal(x, cx.scalar(threshold, dtype));
    Ok(cx.select(below, value, x))
}

/// `Softmax` along `dim`, computed in `dtype` where one is given. ONNX has none for 0-d: there it is 1.
fn softmax(cx: &Cx, x: Value, dim: i64, dtype: Option<DType>) -> Lowered {
    let x = cx.cast(x, dtype.unwrap_or_else(|| cx.dtype(x)));
    let axis = cx.axis(x, dim)? as i64;
    let over = |x| cx.softmax(x, attrs::Softmax { axis });
    Ok(at_least_1d(cx, x, over))
}

fn log_softmax(cx: &Cx, x: Value, dim: i64, dtype: Option<DType>) -> Lowered {
    let x = cx.cast(x, dtype.unwrap_or_else(|| cx.dtype(x)));
    let axis = cx.axis(x, dim)? as i64;
    let over = |x| cx.log_softmax(x, attrs::LogSoftmax { axis });
    Ok(at_least_1d(cx, x, over))
}

/// `exp(x - m) / sum(exp(x - m))`, `m` the largest real part; of the logarithm, `x - m` less the logarithm of the sum.
fn softmax_complex(cx: &Cx, x: Complex, dim: i64, logarithm: bool) -> Lowered {
    let dtype = cx.out_dtype()?;
    let x = math::map(x, |v| cx.cast(v, dtype));
    // Computed in a real type where one is given.
    if !cx.recorded(0).is_some_and(|m| m.dtype.is_complex()) {
        let f = if logarithm { log_softmax } else { softmax };
        return f(cx, x.re, dim, None);
    }
    let axes = match cx.rank(x.re) {
        0 => Vec::new(),
        _ => vec![cx.axis(x.re, dim)?],
    };
    let along = |op, v| match axes[..] {
        [] => v,
        _ => cx.reduce(op, v, &axes, true),
    };
    let re = cx.sub(x.re, along(Reduction::Max, x.re));
    let im = cx.expand(x.im, &cx.shape(x.re));
    let x = Complex { re, im };
    let e = math::exp(cx, x);
    let sum = math::map(e, |v| along(Reduction::Sum, v));
    Ok(cx.pairs(match logarithm {
        true => math::sub(cx, x, math::log(cx, sum)),
        false => math::div(cx, e, sum),
    }))
}

/// `Softmax`, and 0 along slices of nothing but `-inf`.
fn safe_softmax(cx: &Cx, x: Value, dim: i64, dtype: Option<DType>) -> Lowered {
    let x = cx.cast(x, dtype.unwrap_or_else(|| cx.dtype(x)));
    let soft = softmax(cx, x, dim, None)?;
    let largest = match cx.rank(x) {
        0 => x,
        _ => cx.reduce(Reduction::Max, x, &[cx.axis(x, dim)?], true),
    };
    let masked = cx.equal(largest, f64::NEG_INFINITY);
    Ok(cx.select(masked, 0.0, soft))
}

/// The decomposed forms name their type by a flag: whether float16 becomes float32.
fn half_to_float_softmax(cx: &Cx, x: Value, dim: i64, half_to_float: bool) -> Lowered {
    softmax(cx, x, dim, half_to_float.then_some(DType::F32))
}

fn half_to_float_log_softmax(cx: &Cx, x: Value, dim: i64, half_to_float: bool) -> Lowered {
    log_softmax(cx, x, dim, half_to_float.then_some(DType::F32))
}

/// `op` on `x`, a 0-d `x` taken as a vector of one element.
fn at_least_1d(cx: &Cx, x: Value, op: impl Fn(Value) -> Value) -> Value {
    match cx.rank(x) {
        0 => cx.squeeze(op(cx.unsqueeze(x, &[0])), &[0]),
        _ => op(x),
    }
}
