//! Evaluates elementwise arithmetic: two operands broadcast, one operand, functions on floats,
//! `Clip`, `Pow`.

use super::{
    Call, Eval, Row, array, broadcast, by_number, dim,
    number::{Binary, Number, Real, Unary},
    of_elements, shaped, tensor,
};
use ndarray::ArrayD;
use pt2onnx_ir::attrs;
use pt2onnx_tensor::{DType, Tensor};
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_PI};

pub(super) static OPS: &[Row] = &[
    ("Add", Eval::One(|c| chain(c, Binary::Add))),
    ("Sub", Eval::One(|c| chain(c, Binary::Sub))),
    ("Mul", Eval::One(|c| chain(c, Binary::Mul))),
    ("Div", Eval::One(|c| chain(c, Binary::Div))),
    ("Min", Eval::One(|c| chain(c, Binary::Min))),
    ("Max", Eval::One(|c| chain(c, Binary::Max))),
    ("Sum", Eval::One(|c| chain(c, Binary::Add))),
    (
        "Mod",
        Eval::One(|c| {
            chain(c, if attrs::Mod::read(c.node).ok()?.fmod { Binary::Fmod } else { Binary::Mod })
        }),
    ),
    ("Pow", Eval::One(pow)),
    ("Clip", Eval::One(clip)),
    ("Neg", Eval::One(|c| unary(c, Unary::Neg))),
    ("Abs", Eval::One(|c| unary(c, Unary::Abs))),
    ("Sign", Eval::One(|c| unary(c, Unary::Sign))),
    ("Relu", Eval::One(|c| unary(c, Unary::Relu))),
    ("Sqrt", Eval::One(|c| real(c, (f32::sqrt, f64::sqrt)))),
    ("Reciprocal", Eval::One(|c| real(c, (f32::recip, f64::recip)))),
    ("Exp", Eval::One(|c| real(c, (f32::exp, f64::exp)))),
    ("Log", Eval::One(|c| real(c, (f32::ln, f64::ln)))),
    ("Sin", Eval::One(|c| real(c, (f32::sin, f64::sin)))),
    ("Cos", Eval::One(|c| real(c, (f32::cos, f64::cos)))),
    ("Tan", Eval::One(|c| real(c, (f32::tan, f64::tan)))),
    ("Tanh", Eval::One(|c| real(c, (f32::tanh, f64::tanh)))),
    (
        "Sigmoid",
        Eval::One(|c| real(c, (|x| 1.0 / (1.0 + (-x).exp()), |x| 1.0 / (1.0 + (-x).exp())))),
    ),
    ("Softplus", Eval::One(|c| smooth(c, |x| x.max(0.0) + (-x.abs()).exp().ln_1p()))),
    ("Softsign", Eval::One(|c| smooth(c, |x| x / (1.0 + x.abs())))),
    ("Sinh", Eval::One(|c| smooth(c, f64::sinh))),
    ("Cosh", Eval::One(|c| smooth(c, f64::cosh))),
    ("Asin", Eval::One(|c| smooth(c, f64::asin))),
    ("Acos", Eval::One(|c| smooth(c, f64::acos))),
    ("Atan", Eval::One(|c| smooth(c, f64::atan))),
    ("Erf", Eval::One(|c| smooth(c, libm::erf))),
    (
        "Gelu",
        Eval::One(|c| {
            let exact = attrs::Gelu::read(c.node).ok()?.approximate == "none";
            smooth(c, move |x| if exact { gelu(x) } else { gelu_of_tanh(x) })
        }),
    ),
    ("HardSwish", Eval::One(|c| smooth(c, |x| x * (x / 6.0 + 0.5).clamp(0.0, 1.0)))),
    (
        "HardSigmoid",
        Eval::One(|c| {
            let given = attrs::HardSigmoid::read(c.node).ok()?;
            let (alpha, beta) = (f64::from(given.alpha), f64::from(given.beta));
            smooth(c, move |x| (alpha * x + beta).clamp(0.0, 1.0))
        }),
    ),
    (
        "Elu",
        Eval::One(|c| {
            let alpha = f64::from(attrs::Elu::read(c.node).ok()?.alpha);
            smooth(c, |x| if x < 0.0 { alpha * x.exp_m1() } else { x })
        }),
    ),
    (
        "LeakyRelu",
        Eval::One(|c| {
            let alpha = f64::from(attrs::LeakyRelu::read(c.node).ok()?.alpha);
            smooth(c, |x| if x < 0.0 { alpha * x } else { x })
        }),
    ),
    ("Floor", Eval::One(|c| real(c, (f32::floor, f64::floor)))),
    ("Ceil", Eval::One(|c| real(c, (f32::ceil, f64::ceil)))),
    ("Round", Eval::One(|c| real(c, (f32::round_ties_even, f64::round_ties_even)))),
];

/// Elementwise over two operands of one type, with broadcasting.
pub(super) fn zip<T: Number, R: Clone>(
    call: &Call,
    a: &ArrayD<T>,
    b: &ArrayD<T>,
    out: DType,
    f: impl Fn(T, T) -> Option<R>,
) -> Option<ArrayD<R>> {
    let shape = broadcast(&[a.shape(), b.shape()])?;
    call.room(out, &shape)?;
    let (a, b) = (a.broadcast(dim(&shape))?, b.broadcast(dim(&shape))?);
    let elements = a.iter().zip(b.iter()).map(|(&a, &b)| f(a, b)).collect::<Option<Vec<R>>>()?;
    shaped(&shape, elements)
}

/// Over all inputs from left to right.
fn chain(call: &Call, op: Binary) -> Option<Tensor> {
    let inputs = call.all()?;
    let (first, rest) = inputs.split_first()?;
    by_number!(first.dtype(), T => {
        let mut result = array::<T>(first)?;
        for next in rest {
            if next.dtype() != first.dtype() {
                return None;
            }
            result = zip(call, &result, &array::<T>(next)?, first.dtype(), |a, b| T::binary(op, a, b))?;
        }
        tensor(first.dtype(), &result)
    })
}

fn map<T: Number>(call: &Call, x: &Tensor, f: impl Fn(T) -> Option<T>) -> Option<Tensor> {
    call.room(x.dtype(), x.shape())?;
    let elements = array::<T>(x)?.iter().map(|&v| f(v)).collect::<Option<Vec<T>>>()?;
    of_elements(x.dtype(), x.shape(), elements)
}

fn unary(call: &Call, op: Unary) -> Option<Tensor> {
    let x = call.input(0)?;
    by_number!(x.dtype(), T => map::<T>(call, x, |v| T::unary(op, v)))
}

fn real(call: &Call, f: Real) -> Option<Tensor> {
    let x = call.input(0)?;
    by_number!(x.dtype(), T => map::<T>(call, x, |v| T::real(f, v)))
}

/// A function of floats, computed in float64.
fn smooth(call: &Call, f: impl Fn(f64) -> f64) -> Option<Tensor> {
    let x = call.input(0)?;
    by_number!(x.dtype(), T => map::<T>(call, x, |v| match v.whole() {
        None => T::rounded(f(v.double())),
        Some(_) => None,
    }))
}

fn gelu(x: f64) -> f64 {
    0.5 * x * (1.0 + libm::erf(x * FRAC_1_SQRT_2))
}

/// `Gelu` with the approximation of its distribution by `Tanh`.
fn gelu_of_tanh(x: f64) -> f64 {
    0.5 * x * (1.0 + (FRAC_2_PI.sqrt() * (x + 0.044715 * x.powi(3))).tanh())
}

/// `Clip`. If the bounds cross, the upper one is taken. Results for NaN are not defined, nor is
/// whether infinities stay without a bound.
fn clip(call: &Call) -> Option<Tensor> {
    let x = call.input(0)?;
    by_number!(x.dtype(), T => {
        let bound = |i: usize| match call.input(i) {
            None => Some(None),
            Some(b) => b.to_vec::<T>().filter(|v| v.len() == 1 && !v[0].is_nan()).map(|v| Some(v[0])),
        };
        let (low, high) = (bound(1)?, bound(2)?);
        map::<T>(call, x, |v| {
            let v = if low.is_some_and(|l| v < l) { low? } else { v };
            let v = if high.is_some_and(|h| v > h) { high? } else { v };
            let kept = v.double().is_finite() || low.is_some() && high.is_some();
            (kept && !v.is_nan()).then_some(v)
        })
    })
}

/// `Pow` in the type of the base. Integer results must be exact both in integers and in float64.
fn pow(call: &Call) -> Option<Tensor> {
    let (x, y) = (call.input(0)?, call.input(1)?);
    let shape = broadcast(&[x.shape(), y.shape()])?;
    call.room(x.dtype(), &shape)?;
    let exponents: Vec<f64> = by_number!(y.dtype(), T => {
        Some(array::<T>(y)?.iter().map(|&v| v.double()).collect())
    })?;
    let exponents = shaped(y.shape(), exponents)?;
    let exponents = exponents.broadcast(dim(&shape))?;
    by_number!(x.dtype(), T => {
        let bases = array::<T>(x)?;
        let pairs = bases.broadcast(dim(&shape))?.into_iter().zip(&exponents);
        let powers = pairs.map(|(x, y)| T::rounded(x.double().powf(*y)));
        of_elements(x.dtype(), &shape, powers.collect::<Option<Vec<T>>>()?)
    })
}
