//! Gradients of activations, which exported training graphs hold as ops.

use super::precision::wide2;
use crate::{AtenOp, Cx, Lowered, registry::aten};
use pt2onnx_ir::{Reduction, Value};
use pt2onnx_tensor::{DType, Scalar};
use std::f64::consts::{FRAC_1_SQRT_2, PI};

pub(super) static OPS: &[AtenOp] = &[
    aten!(
        "aten::_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
        log_softmax_backward
    ),
    aten!(
        "aten::_prelu_kernel_backward(Tensor grad_output, Tensor self, Tensor weight) -> (Tensor, Tensor)",
        prelu_backward
    ),
    aten!(
        "aten::_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
        softmax_backward
    ),
    aten!(
        "aten::elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result, Tensor self_or_result) -> Tensor",
        elu_backward
    ),
    aten!(
        "aten::gelu_backward(Tensor grad_output, Tensor self, *, str approximate=\"none\") -> Tensor",
        gelu_backward
    ),
    aten!("aten::glu_backward(Tensor grad_output, Tensor self, int dim) -> Tensor", glu_backward),
    aten!(
        "aten::hardshrink_backward(Tensor grad_out, Tensor self, Scalar lambd) -> Tensor",
        shrink_backward
    ),
    aten!(
        "aten::hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor",
        hardsigmoid_backward
    ),
    aten!(
        "aten::hardswish_backward(Tensor grad_output, Tensor self) -> Tensor",
        hardswish_backward
    ),
    aten!(
        "aten::hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> Tensor",
        hardtanh_backward
    ),
    aten!(
        "aten::infinitely_differentiable_gelu_backward(Tensor grad, Tensor self) -> Tensor",
        exact_gelu_backward
    ),
    aten!(
        "aten::leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, bool self_is_result) -> Tensor",
        leaky_relu_backward
    ),
    aten!(
        "aten::log_sigmoid_backward(Tensor grad_output, Tensor self, Tensor buffer) -> Tensor",
        log_sigmoid_backward
    ),
    aten!(
        "aten::logit_backward(Tensor grad_output, Tensor self, float? eps=None) -> Tensor",
        logit_backward
    ),
    aten!("aten::mish_backward(Tensor grad_output, Tensor self) -> Tensor", mish_backward),
    aten!(
        "aten::native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor",
        native_dropout_backward
    ),
    aten!(
        "aten::rrelu_with_noise_backward(Tensor grad_output, Tensor self, Tensor noise, Scalar lower, Scalar upper, bool training, bool self_is_result) -> Tensor",
        rrelu_backward
    ),
    aten!("aten::sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor", sigmoid_backward),
    aten!("aten::silu_backward(Tensor grad_output, Tensor self) -> Tensor", silu_backward),
    aten!(
        "aten::softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor",
        softplus_backward
    ),
    aten!(
        "aten::softshrink_backward(Tensor grad_output, Tensor self, Scalar lambd) -> Tensor",
        shrink_backward
    ),
    aten!("aten::tanh_backward(Tensor grad_output, Tensor output) -> Tensor", tanh_backward),
    aten!(
        "aten::threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor",
        threshold_backward
    ),
];

/// `grad` where `condition`, else 0.
fn pass(cx: &Cx, condition: Value, grad: Value) -> Lowered {
    Ok(cx.select(condition, grad, 0))
}

fn threshold_backward(cx: &Cx, grad: Value, x: Value, threshold: Scalar) -> Lowered {
    let below = cx.less_or_equal(x, threshold);
    Ok(cx.select(below, 0, grad))
}

fn hardtanh_backward(cx: &Cx, grad: Value, x: Value, min: Scalar, max: Scalar) -> Lowered {
    let inside = cx.and(cx.greater(x, min), cx.less(x, max));
    pass(cx, inside, grad)
}

/// 0 within `lambd` of 0.
fn shrink_backward(cx: &Cx, grad: Value, x: Value, lambd: Scalar) -> Lowered {
    let inside = cx.less_or_equal(cx.abs(x), lambd);
    Ok(cx.select(inside, 0, grad))
}

fn hardsigmoid_backward(cx: &Cx, grad: Value, x: Value) -> Lowered {
    let inside = cx.less(cx.abs(x), 3.0);
    pass(cx, inside, cx.div(grad, 6.0))
}

/// 0 up to -3, 1 from 3 on, `x / 3 + 1/2` between.
fn hardswish_backward(cx: &Cx, grad: Value, x: Value) -> Lowered {
    let slope = cx.add(cx.div(x, 3.0), 0.5);
    let inner = cx.select(cx.less_or_equal(x, -3.0), 0.0, slope);
    let slope = cx.select(cx.greater_or_equal(x, 3.0), 1.0, inner);
    Ok(cx.mul(grad, slope))
}

/// Of `result`, the op's output, where the flag says so.
fn leaky_relu_backward(cx: &Cx, grad: Value, x: Value, slope: Scalar, _: bool) -> Lowered {
    Ok(cx.select(cx.greater(x, 0.0), grad, cx.mul(grad, slope)))
}

fn elu_backward(
    cx: &Cx,
    grad: Value,
    alpha: Scalar,
    scale: Scalar,
    input_scale: Scalar,
    is_result: bool,
    x: Value,
) -> Lowered {
    let (alpha, scale, input_scale) = (alpha.to_f64(), scale.to_f64(), input_scale.to_f64());
    let negative = match is_result {
        true => cx.mul(cx.add(x, alpha * scale), input_scale),
        false => cx.mul(cx.exp(cx.mul(x, input_scale)), input_scale * alpha * scale),
    };
    let negative = cx.mul(grad, negative);
    let inside = cx.less_or_equal(x, 0.0);
    Ok(cx.select(inside, negative, cx.mul(grad, scale)))
}

/// `y (1 - y)` of the output.
fn sigmoid_backward(cx: &Cx, grad: Value, y: Value) -> Lowered {
    wide2(cx, grad.into(), y.into(), |grad, y| cx.mul(grad, cx.mul(y, cx.sub(1, y))))
}

/// `1 - y^2` of the output.
fn tanh_backward(cx: &Cx, grad: Value, y: Value) -> Lowered {
    wide2(cx, grad.into(), y.into(), |grad, y| cx.mul(grad, cx.sub(1, cx.mul(y, y))))
}

/// `s (1 + x (1 - s))`, `s` the sigmoid.
fn silu_backward(cx: &Cx, grad: Value, x: Value) -> Lowered {
    wide2(cx, grad.into(), x.into(), |grad, x| {
        let s = cx.sigmoid(x);
        let rest = cx.mul(x, cx.sub(1, s));
        cx.mul(grad, cx.mul(s, cx.add(rest, 1)))
    })
}

/// With `t = tanh(softplus(x))`: `t + x sigmoid(x) (1 - t^2)`.
fn mish_backward(cx: &Cx, grad: Value, x: Value) -> Lowered {
    wide2(cx, grad.into(), x.into(), |grad, x| {
        let t = cx.tanh(cx.softplus(x));
        let slope = cx.mul(cx.mul(x, cx.sigmoid(x)), cx.sub(1, cx.mul(t, t)));
        cx.mul(grad, cx.add(t, slope))
    })
}

/// `sigmoid(-x)`.
fn log_sigmoid_backward(cx: &Cx, grad: Value, x: Value, _buffer: Value) -> Lowered {
    Ok(cx.mul(grad, cx.sigmoid(cx.neg(x))))
}

fn softplus_backward(cx: &Cx, grad: Value, x: Value, beta: Scalar, threshold: Scalar) -> Lowered {
    let scaled = cx.mul(x, beta);
    let slope = cx.mul(grad, cx.sigmoid(scaled));
    Ok(cx.select(cx.greater(scaled, threshold), grad, slope))
}

/// `Phi(x) + x phi(x)`; by tanh, the derivative of that formula.
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

/// In training by the slopes that were drawn, else by their middle.
#[expect(clippy::too_many_arguments, reason = "the schema has as many")]
fn rrelu_backward(
    cx: &Cx,
    grad: Value,
    x: Value,
    noise: Value,
    lower: Scalar,
    upper: Scalar,
    training: bool,
    self_is_result: bool,
) -> Lowered {
    if training && upper.to_f64() - lower.to_f64() > 1e-6 {
        return Ok(cx.mul(grad, noise));
    }
    let middle = (lower.to_f64() + upper.to_f64()) / 2.0;
    leaky_relu_backward(cx, grad, x, middle.into(), self_is_result)
}

/// Of `a sigmoid(b)`: `sigmoid(b)` and `a sigmoid(b) (1 - sigmoid(b))`, one behind the other.
fn glu_backward(cx: &Cx, grad: Value, x: Value, dim: i64) -> Lowered {
    let axis = cx.axis(x, dim)?;
    let [a, b] = cx.halves(x, axis);
    let s = cx.sigmoid(b);
    let first = cx.mul(grad, s);
    let second = cx.mul(cx.mul(first, a), cx.sub(1, s));
    Ok(cx.concat(&[first, second], axis))
}

/// `1 / (x (1 - x))` inside of `eps .. 1 - eps`, else 0; without `eps`, NaN outside of `0 .. 1`.
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

/// `y (grad - sum(grad y))`.
fn softmax_backward(cx: &Cx, grad: Value, y: Value, dim: i64, dtype: DType) -> Lowered {
    let weighted = cx.mul(grad, y);
    let sum = sum_along(cx, weighted, dim)?;
    Ok(cx.cast(cx.sub(weighted, cx.mul(y, sum)), dtype))
}

/// `grad - exp(y) sum(grad)`.
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
