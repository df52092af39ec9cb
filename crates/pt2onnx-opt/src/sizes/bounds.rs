//! What is known of numbers that are computed from sizes: no size is negative.

use pt2onnx_symbolic::{Expr, Func, View};

/// The prefix of symbols that stand for expressions of too many parts. They may be negative.
const TOO_LARGE: &str = "opaque_";

/// A number that the expression is never below.
pub(crate) fn lowest(e: &Expr) -> Option<i64> {
    let all = |args: &[Expr]| args.iter().map(lowest).collect::<Option<Vec<i64>>>();
    let not_negative = |args: &[Expr]| all(args).filter(|v| v.iter().all(|&b| b >= 0));
    match e.view() {
        View::Int(i) => Some(i),
        View::Symbol(name) => (!name.starts_with(TOO_LARGE)).then_some(0),
        View::Add(args) => all(args)?.into_iter().try_fold(0i64, i64::checked_add),
        View::Mul(args) => not_negative(args)?.into_iter().try_fold(1i64, i64::checked_mul),
        View::Pow(base, exponent) => {
            let (base, exponent) = (lowest(base)?, lowest(exponent)?);
            (base >= 0 && exponent > 0).then_some(0)
        }
        View::Call(Func::Max, args) => args.iter().filter_map(lowest).max(),
        View::Call(Func::Min, args) => all(args)?.into_iter().min(),
        View::Call(Func::FloorDiv, [a, b]) => match b.as_int() {
            Some(b) if b > 0 => lowest(a).map(|a| a.div_euclid(b)),
            _ => (lowest(a)? >= 0 && lowest(b)? > 0).then_some(0),
        },
        _ => None,
    }
}

/// Whether two numbers are equal, if that is the same for all sizes.
pub(super) fn equal(a: &Expr, b: &Expr) -> Option<bool> {
    let apart =
        || lowest(&(a - b)).is_some_and(|d| d > 0) || lowest(&(b - a)).is_some_and(|d| d > 0);
    if a == b { Some(true) } else { apart().then_some(false) }
}

/// Whether the first number is less than the second, if that is the same for all sizes.
pub(super) fn less(a: &Expr, b: &Expr) -> Option<bool> {
    if lowest(&(b - a)).is_some_and(|d| d > 0) {
        return Some(true);
    }
    lowest(&(a - b)).is_some_and(|d| d >= 0).then_some(false)
}
