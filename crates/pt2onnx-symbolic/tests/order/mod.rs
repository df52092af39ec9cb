//! Differences by the order of operations, which the fuzz target knows as well.

use pt2onnx_symbolic::{Expr, View};

/// Whether limits may have been met: there are numbers so large that not all can be multiplied or
/// added, sums in a product that would be too large multiplied out
/// ([`MAX_TERMS`](pt2onnx_symbolic::MAX_TERMS)), or it is nearly too large as a whole
/// ([`MAX_SIZE`](pt2onnx_symbolic::MAX_SIZE)).
pub fn depends_on_order(expr: &Expr) -> bool {
    expr.to_string().len() > 1000
        || expr.symbols().iter().any(|s| s.starts_with("opaque_"))
        || meets_limits(expr)
}

fn meets_limits(expr: &Expr) -> bool {
    let large = |i: i64| i.unsigned_abs() >= 1 << 31;
    let number = |e: &Expr| matches!(e.view(), View::Int(_) | View::Rational(..));
    let sum = |e: &Expr| match e.view() {
        View::Pow(base, _) => matches!(base.view(), View::Add(_)),
        view => matches!(view, View::Add(_)),
    };
    let shows = match expr.view() {
        View::Int(i) => large(i),
        View::Rational(p, q) => large(p) || large(q),
        View::Pow(base, _) => number(base),
        View::Mul(factors) => factors.iter().any(sum),
        _ => false,
    };
    shows || expr.children().any(meets_limits)
}
