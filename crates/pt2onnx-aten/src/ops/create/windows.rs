//! Window functions, computed here: their lengths are known at export.

use crate::{AtenOp, Cx, LowerError, Lowered, op::op};
use pt2onnx_tensor::{DType, Tensor};
use std::f64::consts::PI;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::bartlett_window, |cx: &Cx, n: i64, _: Option<DType>| window(cx, n, true, bartlett)),
    op!(
        aten::bartlett_window_periodic,
        |cx: &Cx, n: i64, periodic: bool, _: Option<DType>| window(cx, n, periodic, bartlett)
    ),
    op!(aten::blackman_window, |cx: &Cx, n: i64, _: Option<DType>| window(cx, n, true, blackman)),
    op!(
        aten::blackman_window_periodic,
        |cx: &Cx, n: i64, periodic: bool, _: Option<DType>| window(cx, n, periodic, blackman)
    ),
    op!(aten::hamming_window, |cx: &Cx, n: i64, _: Option<DType>| window(cx, n, true, |t| raised(
        t, 0.54, 0.46
    ))),
    op!(aten::hamming_window_periodic, |cx: &Cx, n: i64, periodic: bool, _: Option<DType>| {
        window(cx, n, periodic, |t| raised(t, 0.54, 0.46))
    }),
    op!(
        aten::hamming_window_periodic_alpha,
        |cx: &Cx, n: i64, periodic: bool, alpha: f64, _: Option<DType>| {
            window(cx, n, periodic, |t| raised(t, alpha, 0.46))
        }
    ),
    op!(
        aten::hamming_window_periodic_alpha_beta,
        |cx: &Cx, n: i64, periodic: bool, alpha: f64, beta: f64, _: Option<DType>| {
            window(cx, n, periodic, |t| raised(t, alpha, beta))
        }
    ),
    op!(aten::hann_window, |cx: &Cx, n: i64, _: Option<DType>| window(cx, n, true, |t| raised(
        t, 0.5, 0.5
    ))),
    op!(aten::hann_window_periodic, |cx: &Cx, n: i64, periodic: bool, _: Option<DType>| {
        window(cx, n, periodic, |t| raised(t, 0.5, 0.5))
    }),
    op!(aten::kaiser_window, |cx: &Cx, n: i64, _: Option<DType>| window(cx, n, true, |t| kaiser(
        t, 12.0
    ))),
    op!(aten::kaiser_window_beta, |cx: &Cx,
                                   n: i64,
                                   periodic: bool,
                                   beta: f64,
                                   _: Option<DType>| {
        window(cx, n, periodic, |t| kaiser(t, beta))
    }),
    op!(aten::kaiser_window_periodic, |cx: &Cx, n: i64, periodic: bool, _: Option<DType>| {
        window(cx, n, periodic, |t| kaiser(t, 12.0))
    }),
];

/// `shape(t)` at `n` places from 0 to 1, without the last one where the window is periodic.
fn window(cx: &Cx, n: i64, periodic: bool, shape: impl Fn(f64) -> f64) -> Lowered {
    if !(0..=1 << 24).contains(&n) {
        return Err(LowerError::unsupported("a window of that length"));
    }
    let last = if periodic { n } else { n - 1 };
    let at = |i: i64| {
        if n == 1 { 1.0 } else { shape(i as f64 / last as f64) }
    };
    let elements: Vec<f64> = (0..n).map(at).collect();
    let narrow = || elements.iter().map(|&e| e as f32).collect::<Vec<_>>();
    Ok(match cx.out_dtype()? {
        DType::F64 => cx.constant(Tensor::vector(&elements)),
        dtype => cx.cast(cx.constant(Tensor::vector(&narrow())), dtype),
    })
}

fn bartlett(t: f64) -> f64 {
    1.0 - (2.0 * t - 1.0).abs()
}

fn blackman(t: f64) -> f64 {
    0.42 - 0.5 * (2.0 * PI * t).cos() + 0.08 * (4.0 * PI * t).cos()
}

/// Hann's and Hamming's windows: a raised cosine.
fn raised(t: f64, alpha: f64, beta: f64) -> f64 {
    alpha - beta * (2.0 * PI * t).cos()
}

fn kaiser(t: f64, beta: f64) -> f64 {
    let off = 2.0 * t - 1.0;
    bessel_i0(beta * (1.0 - off * off).max(0.0).sqrt()) / bessel_i0(beta)
}

/// The modified Bessel function of order 0 by its power series, `sum (x^2/4)^k / k!^2`.
fn bessel_i0(x: f64) -> f64 {
    let (mut term, mut sum) = (1.0, 1.0);
    for k in 1..1000 {
        term *= (x / 2.0 / f64::from(k)).powi(2);
        sum += term;
        if term < sum * 1e-17 {
            break;
        }
    }
    sum
}
