//! Numbers too large for one another, of which the fuzz target knows as well.

use pt2onnx_symbolic::{Expr, View};

/// Whether numbers stand side by side that do not fit into one: there the order of operations shows.
pub fn has_overflow(expr: &Expr) -> bool {
    let number = |e: &Expr| matches!(e.view(), View::Int(_) | View::Rational(..));
    let loose = match expr.view() {
        View::Mul([_, rest @ ..]) => rest.iter().any(number),
        View::Add([.., a, b]) => number(a) && number(b),
        View::Pow(base, _) => number(base),
        _ => false,
    };
    loose || expr.children().any(has_overflow)
}
