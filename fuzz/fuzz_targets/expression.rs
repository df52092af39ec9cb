//! Expressions over sizes. What is printed reads as the same expression.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pt2onnx_symbolic::{Expr, View};

/// Whether numbers stand side by side that do not fit into one: there the order of operations shows.
fn has_overflow(expr: &Expr) -> bool {
    let loose = match expr.view() {
        View::Mul([_, rest @ ..]) => rest.iter().any(Expr::is_static),
        View::Add([.., a, b]) => a.is_static() && b.is_static(),
        View::Pow(base, _) => base.is_static(),
        _ => false,
    };
    loose || expr.children().any(has_overflow)
}

fuzz_target!(|text: &str| {
    if let Ok(expr) = Expr::parse(text)
        && !has_overflow(&expr)
        && let Ok(again) = Expr::parse(&expr.to_string())
    {
        assert_eq!(expr, again, "{text} is printed as {expr}");
    }
});
