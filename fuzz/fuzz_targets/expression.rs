//! Expressions over sizes: printed ones are read as the same expression.

#![no_main]

#[path = "../../crates/pt2onnx-symbolic/tests/order/mod.rs"]
mod order;

use libfuzzer_sys::fuzz_target;
use order::depends_on_order;
use pt2onnx_symbolic::Expr;

fuzz_target!(|text: &str| {
    if let Ok(expr) = Expr::parse(text)
        && !depends_on_order(&expr)
        && let Ok(again) = Expr::parse(&expr.to_string())
    {
        assert_eq!(expr, again, "{text} is printed as {expr}");
    }
});
