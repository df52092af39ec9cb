//! Where the order of operations shows, of which the fuzz target knows as well.

use pt2onnx_symbolic::{Expr, View};

/// Whether numbers stand side by side that do not fit into one, or sums in a product that would be too large multiplied
/// out ([`MAX_TERMS`](pt2onnx_symbolic::MAX_TERMS)).
pub fn depends_on_order(expr: &Expr) -> bool {
    let number = |e: &Expr| matches!(e.view(), View::Int(_) | View::Rational(..));
    let sum = |e: &Expr| match e.view() {
        View::Pow(base, _) => matches!(base.view(), View::Add(_)),
        view => matches!(view, View::Add(_)),
    };
    let loose = match expr.view() {
        View::Mul(factors @ [_, rest @ ..]) => rest.iter().any(number) || factors.iter().any(sum),
        View::Add([.., a, b]) => number(a) && number(b),
        View::Pow(base, _) => number(base),
        _ => false,
    };
    loose || expr.children().any(depends_on_order)
}
