//! Gradients of activations, which programs of training have as ops.

use crate::math::arcs::softplus_of;
use crate::math::precision::{in_wide2, wide2};
use crate::{AtenOp, Cx, Lowered, Number, arguments, checks, op};
use pt2onnx_ir::{Reduction, Value};
use pt2onnx_tensor::DType;
use std::f64::consts::{FRAC_1_SQRT_2, PI};

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_log_softmax_backward_data, log_softmax_backward),
    op!(aten::_prelu_kernel_backward, prelu_backward),
    op!(aten::_softmax_backward_data, softmax_backward),
    op!(aten::elu_backward, elu_backward),
    op!(aten::gelu_backward, gelu_backward),
    op!(aten::glu_backward, glu_backward),
    op!(aten::hardshrink_backward, shrink_backward),
    op!(aten::hardsigmoid_backward, hardsigmoid_backward),
    op!(aten::hardswish_backward, hardswish_backward),
    op!(aten::hardtanh_backward, hardtanh_backward),
    op!(aten::infinitely_differentiable_gelu_backward, exact_gelu_backward),
    op!(aten::leaky_relu_backward, leaky_relu_backward),
    op!(aten::log_sigmoid_backward, log_sigmoid_backward),
    op!(aten::logit_backward, logit_backward),
    op!(aten::mish_backward, in_wide2(mish_backward)),
    op!(aten::native_dropout_backward, native_dropout_backward),
    op!(aten::rrelu_with_noise_backward, rrelu_backward),
    op!(aten::sigmoid_backward, in_wide2(sigmoid_backward)),
    op!(aten::silu_backward, in_wide2(silu_backward)),
    op!(aten::softplus_backward, softplus_backward),
    op!(aten::softshrink_backward, shrink_backward),
    op!(aten::tanh_backward, in_wide2(tanh_backward)),
    op!(aten::threshold_backward, threshold_backward),
];

/// `grad` where `condition` is true, otherwise 0.
fn pass(cx: &Cx, condition: Value, grad: Value) -> Lowered {
    Ok(cx.select(condition, grad, 0))
}

fn threshold_backward(cx: &Cx, grad: Value, x: Value, threshold: Number) -> Lowered {
    let below = cx.less_or_equal(x, threshold);
    Ok(cx.select(below, 0, grad))
}

fn hardtanh_backward(cx: &Cx, grad: Value, x: Value, min: Number, max: Number) -> Lowered {
    let inside = cx.and(cx.greater(x, min), cx.less(x, max));
    pass(cx, inside, grad)
}

/// `grad`, and 0 where `|x| <= lambd`.
fn shrink_backward(cx: &Cx, grad: Value, x: Value, lambd: Number) -> Lowered {
    let inside = cx.less_or_equal(cx.abs(x), lambd);
    Ok(cx.select(inside, 0, grad))
}

fn hardsigmoid_backward(cx: &Cx, grad: Value, x: Value) -> Lowered {
    let inside = cx.less(cx.abs(x), 3.0);
    pass(cx, inside, cx.div(grad, 6.0))
}

/// The slope is 0 below -3, 1 above 3, and `x / 3 + 1/2` between.
fn hardswish_backward(cx: &Cx, grad: Value, x: Value) -> Lowered {
    let slope = cx.add(cx.div(x, 3.0), 0.5);
    let inner = cx.select(cx.less_or_equal(x, -3.0), 0.0, slope);
    let slope = cx.select(cx.greater_or_equal(x, 3.0), 1.0, inner);
    Ok(cx.mul(grad, slope))
}

/// The slope is 1 for positive `x`, otherwise `slope`. The flag means that `x` is the op's output,
/// which has the same sign.
fn leaky_relu_backward(cx: &Cx, grad: Value, x: Value, slope: Number, _: bool) -> Lowered {
    Ok(cx.select(cx.greater(x, 0.0), grad, cx.mul(grad, slope)))
}

arguments! {
    /// Arguments of the gradient of `rrelu`.
    struct RreluBackwardArgs {
        grad_output: Value,
        input: Value,
        noise: Value,
        lower: f64,
        upper: f64,
        training: bool,
        self_is_result: bool,
    }
}

/// The slope is `scale` of positive `x`, otherwise `scale * alpha * input_scale * exp(input_scale *
/// x)`, which is `input_scale * (y + alpha * scale)` of the output `y`.
fn elu_backward(
    cx: &Cx,
    grad: Value,
    alpha: f64,
    scale: f64,
    input_scale: f64,
    is_result: bool,
    x: Value,
) -> Lowered {
    let negative = if is_result {
        cx.mul(cx.add(x, alpha * scale), input_scale)
    } else {
        cx.mul(cx.exp(cx.mul(x, input_scale)), input_scale * alpha * scale)
    };
    let negative = cx.mul(grad, negative);
    let inside = cx.less_or_equal(x, 0.0);
    Ok(cx.select(inside, negative, cx.mul(grad, scale)))
}

/// The slope is `y (1 - y)` of the output `y`.
fn sigmoid_backward(cx: &Cx, grad: Value, y: Value) -> Value {
    cx.mul(grad, cx.mul(y, cx.sub(1, y)))
}

/// The slope is `1 - y^2` of the output `y`.
fn tanh_backward(cx: &Cx, grad: Value, y: Value) -> Value {
    cx.mul(grad, cx.sub(1, cx.mul(y, y)))
}

/// The slope is `s (1 + x (1 - s))` with `s = sigmoid(x)`.
fn silu_backward(cx: &Cx, grad: Value, x: Value) -> Value {
    let s = cx.sigmoid(x);
    let rest = cx.mul(x, cx.sub(1, s));
    cx.mul(grad, cx.mul(s, cx.add(rest, 1)))
}

/// The slope is `t + x sigmoid(x) (1 - t^2)` with `t = tanh(softplus(x))`.
fn mish_backward(cx: &Cx, grad: Value, x: Value) -> Value {
    let t = cx.tanh(softplus_of(cx, x));
    let slope = cx.mul(cx.mul(x, cx.sigmoid(x)), cx.sub(1, cx.mul(t, t)));
    cx.mul(grad, cx.add(t, slope))
}

/// The slope is `sigmoid(-x)`.
fn log_sigmoid_backward(cx: &Cx, grad: Value, x: Value, _buffer: Value) -> Lowered {
    Ok(cx.mul(grad, cx.sigmoid(cx.neg(x))))
}

fn softplus_backward(cx: &Cx, grad: Value, x: Value, beta: Number, threshold: Number) -> Lowered {
    let scaled = cx.mul(x, beta);
    let slope = cx.mul(grad, cx.sigmoid(scaled));
    Ok(cx.select(cx.greater(scaled, threshold), grad, slope))
}

/// The slope is `Phi(x) + x phi(x)` with the normal distribution and its density. For the
/// approximation by `tanh`, it is the derivative of that formula.
fn gelu_backward(cx: &Cx, grad: Value, x: Value, approximate: String) -> Lowered {
    wide2(cx, grad.into(), x.into(), |grad, x| {
        let square = cx.mul(x, x);
        let slope = if approximate == "tanh" {
            let (beta, kappa) = ((2.0 / PI).sqrt(), 0.044715);
            let inner = cx.mul(cx.mul(x, beta), cx.add(cx.mul(square, kappa), 1));
            let t = cx.tanh(inner);
            let inner_slope = cx.mul(cx.add(cx.mul(square, 3.0 * kappa), 1), beta);
            let curve = cx.mul(cx.sub(1, cx.mul(t, t)), inner_slope);
            cx.mul(cx.add(cx.add(t, 1), cx.mul(x, curve)), 0.5)
        } else {
            let cdf = cx.mul(cx.add(cx.erf(cx.mul(x, FRAC_1_SQRT_2)), 1), 0.5);
            let density = cx.mul(cx.exp(cx.mul(square, -0.5)), 1.0 / (2.0 * PI).sqrt());
            cx.add(cdf, cx.mul(x, density))
        };
        cx.mul(grad, slope)
    })
}

fn exact_gelu_backward(cx: &Cx, grad: Value, x: Value) -> Lowered {
    gelu_backward(cx, grad, x, "none".to_owned())
}

/// In training the slopes are those of `noise`, otherwise the middle of the range.
fn rrelu_backward(cx: &Cx, args: RreluBackwardArgs) -> Lowered {
    if args.training && args.upper - args.lower > 1e-6 {
        return Ok(cx.mul(args.grad_output, args.noise));
    }
    let middle = (args.lower + args.upper) / 2.0;
    leaky_relu_backward(cx, args.grad_output, args.input, middle.into(), args.self_is_result)
}

/// The gradients of `a sigmoid(b)`, joined along `dim`: `sigmoid(b)` and `a sigmoid(b) (1 -
/// sigmoid(b))`.
fn glu_backward(cx: &Cx, grad: Value, x: Value, dim: i64) -> Lowered {
    let axis = cx.axis(x, dim)?;
    let [a, b] = cx.halves(x, axis);
    let s = cx.sigmoid(b);
    let first = cx.mul(grad, s);
    let second = cx.mul(cx.mul(first, a), cx.sub(1, s));
    Ok(cx.concat(&[first, second], axis))
}

/// The slope is `1 / (x (1 - x))` between `eps` and `1 - eps`, 0 outside. Without `eps` it is NaN
/// outside of 0 to 1.
fn logit_backward(cx: &Cx, grad: Value, x: Value, eps: Option<f64>) -> Lowered {
    wide2(cx, grad.into(), x.into(), |grad, x| {
        let low = eps.unwrap_or(0.0);
        let inside = cx.and(cx.greater_or_equal(x, low), cx.less_or_equal(x, 1.0 - low));
        let slope = cx.div(grad, cx.mul(x, cx.sub(1, x)));
        let outside = if eps.is_some() { 0.0 } else { f64::NAN };
        cx.select(inside, slope, outside)
    })
}

fn prelu_backward(cx: &Cx, grad: Value, x: Value, weight: Value) -> Lowered<[Value; 2]> {
    let positive = cx.greater(x, 0.0);
    Ok([cx.select(positive, grad, cx.mul(weight, grad)), cx.select(positive, 0.0, cx.mul(x, grad))])
}

fn native_dropout_backward(cx: &Cx, grad: Value, mask: Value, scale: f64) -> Lowered {
    let grad = cx.to_float(grad);
    let mask = cx.cast(mask, cx.dtype(grad));
    Ok(cx.mul(cx.mul(grad, mask), scale))
}

/// `y (grad - sum(grad y))` of the output `y`.
fn softmax_backward(cx: &Cx, grad: Value, y: Value, dim: i64, dtype: DType) -> Lowered {
    let weighted = cx.mul(grad, y);
    let sum = sum_along(cx, weighted, dim)?;
    Ok(cx.cast(cx.sub(weighted, cx.mul(y, sum)), dtype))
}

/// `grad - exp(y) sum(grad)` of the output `y`.
fn log_softmax_backward(cx: &Cx, grad: Value, y: Value, dim: i64, dtype: DType) -> Lowered {
    let sum = sum_along(cx, grad, dim)?;
    Ok(cx.cast(cx.sub(grad, cx.mul(cx.exp(y), sum)), dtype))
}

fn sum_along(cx: &Cx, x: Value, dim: i64) -> Lowered {
    Ok(match cx.rank(x) {
        0 => x,
        _ => cx.reduce(Reduction::Sum, x, &[cx.axis(x, dim)?], true),
    })
}

checks! {
    // Narrow floats are computed in float32.
    "aten.tanh_backward(grad: f16[s0], y: f16[s0]) -> f16[s0]" => "
    val_0 = Cast <to: int = 1> (grad)
    val_1 = Cast <to: int = 1> (y)
    val_2 = Mul (val_1, val_1)
    val_3 = Sub (1.0, val_2)
    val_4 = Mul (val_0, val_3)
    tanh_backward = Cast <to: int = 10> (val_4)
    ";

    // Arguments are bound by name.
    "aten.elu_backward(grad: f32[s0], 0.5, 2.0, 3.0, True, y: f32[s0]) -> f32[s0]" => "
    val_0 = Add (y, 1.0)
    val_1 = Mul (val_0, 3.0)
    val_2 = Mul (grad, val_1)
    val_3 = LessOrEqual (y, 0.0)
    val_4 = Mul (grad, 2.0)
    elu_backward = Where (val_3, val_2, val_4)
    ";
}
