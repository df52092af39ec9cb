//! Reassociation: chains of arithmetic with constants become one node.

use super::{Because, Fusion, Match, Measure, NoFusion, Pass, Patterns, Run};
use crate::{bounded::is_small, rounding_sensitivity};
use pt2onnx_ir::{Builder, Value};
use pt2onnx_tensor::{DType, Tensor};

pub(crate) static REASSOCIATE: Pass = Pass {
    name: "reassociate",
    description: "Merges two sums, products, Max or Min with constants.",
    precondition: "Integers, or floats that change in the last digits only: the constants of sums \
                   have one sign, those of products are both above or both below 1, or the value \
                   is known to be small. Sums and products that are then rounded, compared or made \
                   integers stay. No constant of Max or Min is NaN.",
    lowers: Measure::Paths,
    run: Run::fusions(fusions),
    ..Pass::FUSION
};

/// Constants of up to this many bytes are read.
const READ: usize = 64 << 10;

/// Two sums, products or bounds with constants are one, if nothing but the last digits of a float
/// can differ, and these do not decide.
fn fusions() -> Patterns {
    let chain = |pattern: &str, how: How, op: &'static str, joined: &'static str| {
        Fusion::new(pattern, move |cx, found| merged(cx, found, how, op, joined))
    };
    Ok(vec![
        chain("Add(r:Add(x, #c), #d)", How::Sum, "Add", "Add")?,
        chain("Sub(r:Sub(x, #c), #d)", How::Sum, "Sub", "Add")?,
        chain("Mul(r:Mul(x, #c), #d)", How::Product, "Mul", "Mul")?,
        chain("Div(r:Div(x, #c), #d)", How::Quotient, "Div", "Mul")?,
        chain("Max(r:Max(x, #c), #d)", How::Bound, "Max", "Max")?,
        chain("Min(r:Min(x, #c), #d)", How::Bound, "Min", "Min")?,
    ])
}

#[derive(Clone, Copy, PartialEq)]
enum How {
    Sum,
    Product,
    Quotient,
    Bound,
}

/// `op(x, joined(c, d))`.
fn merged(
    cx: &Builder,
    found: &Match,
    how: How,
    op: &'static str,
    joined: &'static str,
) -> Result<Value, NoFusion> {
    let [x, c, d] = [found.get("x")?, found.get("c")?, found.get("d")?];
    if cx.constant_of(x).is_some() {
        return Err(NoFusion::NoMatch);
    }
    let read = |v: Value| cx.constant_of(v).filter(|t| t.has_data() && t.nbytes() <= READ);
    let (a, b) = read(c).zip(read(d)).because("a constant is large")?;
    let fits = a.shape() == b.shape() || a.numel() == 1 || b.numel() == 1;
    fits.because("the constants have different sizes")?;
    let exact = a.dtype().is_int() && how != How::Quotient;
    if !exact {
        let small = || is_small(&cx.model(), x);
        let harmless =
            harmless(&a, &b, how, small).because("the type is not float32 or float64")?;
        harmless.because("the merged constant may round, overflow or cancel otherwise")?;
        let decides =
            how != How::Bound && rounding_sensitivity::is_sensitive(&cx.model(), found.output());
        (!decides).because("the last digits decide what follows")?;
    }
    let constant = cx.emit1(joined, &[Some(c), Some(d)], Vec::new());
    Ok(cx.emit1(op, &[Some(x), Some(constant)], Vec::new()))
}

/// How many times as large the other one of two summands may be.
const ALIKE: f64 = 16.0;

/// Whether the merged constant gives the same floats up to rounding, and is infinite where the
/// chain is. `is_small` decides whether the value is far from where its products overflow.
fn harmless(a: &Tensor, b: &Tensor, how: How, is_small: impl Fn() -> bool) -> Option<bool> {
    let (a, b) = (floats(a)?, floats(b)?);
    if how == How::Bound {
        return Some(!a.iter().chain(&b).any(|v| v.is_nan()));
    }
    // Far from where sums and products overflow, in float32 as well as in float64.
    let inside = |v: &f64| (1e-9..1e9).contains(&v.abs());
    if !a.iter().chain(&b).all(inside) {
        return Some(false);
    }
    let small = |v: &[f64]| v.iter().all(|v| v.abs() <= 1.0);
    let large = |v: &[f64]| v.iter().all(|v| v.abs() >= 1.0);
    Some(match how {
        // Neither number may be lost in the other one, nor take away from it: the value itself may
        // be what takes away the other.
        How::Sum => {
            let range =
                |v: &[f64]| v.iter().fold((f64::MAX, f64::MIN), |(l, h), &v| (l.min(v), h.max(v)));
            let (low, high) = range(&[a, b].concat());
            let (least, most) = if high < 0.0 { (-high, -low) } else { (low, high) };
            least > 0.0 && most <= ALIKE * least
        }
        // The first step must not overflow where both together do not.
        How::Product => small(&a) || large(&b) || is_small(),
        How::Quotient => large(&a) || small(&b) || is_small(),
        How::Bound => true,
    })
}

fn floats(t: &Tensor) -> Option<Vec<f64>> {
    matches!(t.dtype(), DType::F32 | DType::F64).then(|| t.to_doubles())?
}
