//! Numbers too large for one another, of which the fuzz target knows as well.

use pt2onnx_symbolic::{Expr, View};

/// Whether numbers stand side by side that do not fit into one: there the order of operations shows.
pub fn has_overflow(expr: &Expr) -> bool {
    let loose = match expr.view() {
        View::Mul([_, rest @ ..]) => rest.iter().any(Expr::is_static),
        View::Add([.., a, b]) => a.is_static() && b.is_static(),
        View::Pow(base, _) => base.is_static(),
        _ => false,
    };
    loose || expr.children().any(has_overflow)
}
