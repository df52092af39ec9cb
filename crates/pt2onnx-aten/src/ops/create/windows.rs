//! Window functions: constants if their lengths are known at export, otherwise formulas.

use crate::math::{bessel, precision::compute_type, shape::floats};
use crate::meta::typed;
use crate::{AtenOp, Cx, LowerError, Lowered, args::Ignored, arguments, checks, op};
use pt2onnx_ir::Value;
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;
use std::f64::consts::PI;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::bartlett_window, bartlett, meta = meta_window, periodic = true),
    op!(aten::bartlett_window_periodic, bartlett, meta = meta_window),
    op!(aten::blackman_window, blackman, meta = meta_window, periodic = true),
    op!(aten::blackman_window_periodic, blackman, meta = meta_window),
    op!(aten::hamming_window, hamming, meta = meta_window, periodic = true),
    op!(aten::hamming_window_periodic, hamming, meta = meta_window),
    op!(aten::hamming_window_periodic_alpha, hamming, meta = meta_window),
    op!(aten::hamming_window_periodic_alpha_beta, hamming, meta = meta_window),
    op!(aten::hann_window, hann, meta = meta_window, periodic = true),
    op!(aten::hann_window_periodic, hann, meta = meta_window),
    op!(aten::kaiser_window, kaiser, meta = meta_window, periodic = true),
    op!(aten::kaiser_window_beta, kaiser, meta = meta_window),
    op!(aten::kaiser_window_periodic, kaiser, meta = meta_window),
];

arguments! {
    /// Arguments of window functions. `alpha` and `beta` are their parameters.
    struct WindowArgs {
        window_length: Expr,
        periodic: bool,
        alpha: Option<f64>,
        beta: Option<f64>,
        dtype: Ignored,
    }
}

fn bartlett(cx: &Cx, args: WindowArgs) -> Lowered {
    let shape = |i: i64, last: i64, r: Rounding| {
        let t = r(i as f64 * r(2.0 / last as f64));
        if i <= last / 2 { t } else { r(2.0 - t) }
    };
    window(cx, &args, shape, |t| cx.sub(1.0, cx.abs(cx.sub(cx.mul(t, 2.0), 1.0))))
}

fn blackman(cx: &Cx, args: WindowArgs) -> Lowered {
    let shape = |i: i64, last: i64, r: Rounding| {
        let t = r(i as f64 * r(PI / last as f64));
        let cos = |turns: f64, factor: f64| r(r(r(t * turns).cos()) * r(factor));
        r(r(cos(4.0, 0.08) - cos(2.0, 0.5)) + r(0.42))
    };
    window(cx, &args, shape, |t| {
        let cos = |turns: f64| cx.cos(cx.mul(t, 2.0 * PI * turns));
        cx.add(cx.sub(0.42, cx.mul(cos(1.0), 0.5)), cx.mul(cos(2.0), 0.08))
    })
}

fn hamming(cx: &Cx, args: WindowArgs) -> Lowered {
    raised_cosine(cx, &args, args.alpha.unwrap_or(0.54), args.beta.unwrap_or(0.46))
}

fn hann(cx: &Cx, args: WindowArgs) -> Lowered {
    raised_cosine(cx, &args, 0.5, 0.5)
}

/// `alpha - beta cos(2 pi t)`.
fn raised_cosine(cx: &Cx, args: &WindowArgs, alpha: f64, beta: f64) -> Lowered {
    let shape = |i: i64, last: i64, r: Rounding| {
        let cos = r(r(i as f64 * r(2.0 * PI / last as f64)).cos());
        r(r(cos * r(-beta)) + r(alpha))
    };
    window(cx, args, shape, |t| cx.sub(alpha, cx.mul(cx.cos(cx.mul(t, 2.0 * PI)), beta)))
}

/// `I0(beta sqrt(1 - (2t - 1)^2)) / I0(beta)`.
fn kaiser(cx: &Cx, args: WindowArgs) -> Lowered {
    let beta = args.beta.unwrap_or(12.0);
    window(
        cx,
        &args,
        |i, last, _| {
            let off = 2.0 * (i as f64 / last as f64) - 1.0;
            bessel_i0(beta * (1.0 - off * off).max(0.0).sqrt()) / bessel_i0(beta)
        },
        |t| {
            let off = cx.sub(cx.mul(t, 2.0), 1.0);
            let room = cx.maximum(cx.sub(1.0, cx.mul(off, off)), 0.0);
            cx.div(bessel::i0(cx, cx.mul(cx.sqrt(room), beta)), bessel_i0(beta))
        },
    )
}

/// Rounds to the type of the window's elements, as PyTorch does after each step. Its cosine may
/// differ in the last bit.
type Rounding = fn(f64) -> f64;

/// The window with the elements `shape(i, last)`, from 0 to `last`, which a periodic window leaves
/// out. `formula` is the same as nodes, of `i / last`.
fn window(
    cx: &Cx,
    args: &WindowArgs,
    shape: impl Fn(i64, i64, Rounding) -> f64,
    formula: impl Fn(Value) -> Value,
) -> Lowered {
    let Some(n) = args.window_length.as_int() else {
        let (n, dtype) = (&args.window_length, cx.out_dtype()?);
        let wide = compute_type(cx, dtype);
        let last = if args.periodic { n.clone() } else { n - 1 };
        let t = cx.div(cx.cast(cx.iota(n), wide), cx.cast(cx.size(&last), wide));
        let elements = cx.select(cx.equal(cx.size(n), 1), 1.0, formula(t));
        return Ok(cx.cast(elements, dtype));
    };
    if !(0..=1 << 24).contains(&n) {
        return Err(LowerError::unsupported(format!(
            "a window must have from 0 to 16 million elements, but has {n}"
        )));
    }
    let last = if args.periodic { n } else { n - 1 };
    let dtype = cx.out_dtype()?;
    let rounding: Rounding = match dtype {
        DType::F64 => |e| e,
        _ => |e| f64::from(e as f32),
    };
    let at = |i: i64| if n == 1 { 1.0 } else { shape(i, last, rounding) };
    let elements: Vec<f64> = (0..n).map(at).collect();
    Ok(floats(cx, &[n], &elements, dtype))
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

arguments! {
    struct MetaWindow { window_length: Expr, dtype: Option<DType> }
}

fn meta_window(cx: &Cx, args: MetaWindow) -> Lowered {
    Ok(typed(cx, args.dtype.unwrap_or_else(|| cx.default_float()), &[args.window_length]))
}

checks! {
    // Computed at export.
    "aten.hann_window(4) -> f32[4]" => "=> [0.0, 0.5, 1.0, 0.5]";
    // Steps are rounded: the second and the last element differ, as in PyTorch.
    "aten.hann_window(5) -> f32[5]" => "=> [0.0, 0.34549153, 0.90450853, 0.9045085, 0.34549144]";
    "aten.hamming_window.periodic_alpha(4, False, 0.5, dtype = torch.float64) -> f64[4]" => "
    hamming_window = double[4] {0.03999999999999998, 0.7299999999999999, 0.7300000000000002, 0.03999999999999998}
    => hamming_window
    ";
}
