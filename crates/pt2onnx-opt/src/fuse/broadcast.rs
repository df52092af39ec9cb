//! Broadcasts operands that an operator does not broadcast itself.

use crate::analysis::known;
use pt2onnx_ir::{Builder, Shape, Value};
use pt2onnx_symbolic::Expr;

/// `x` broadcast to sizes; unknown sizes are computed from the inputs of the main graph.
pub(super) fn expanded(cx: &Builder, x: Value, sizes: &[Expr]) -> Value {
    if sizes.iter().any(|s| !s.is_static()) {
        let inputs = cx.model().inputs().to_vec();
        inputs.into_iter().for_each(|input| cx.bind_dims(input));
    }
    cx.expand(x, sizes)
}

/// The mask broadcast to queries and keys, the last two of the four sizes of the scores: runtimes
/// broadcast it over batch and heads only. `None` if it does not fit the scores.
pub(super) fn full_mask(cx: &Builder, mask: Value, sizes: &[Expr]) -> Option<Value> {
    let shape = cx.known_shape(mask)?;
    let fits =
        |(have, want): (&Expr, &Expr)| have.as_int() == Some(1) || (have == want && known(have));
    if shape.len() > 4 || !shape.iter().rev().zip(sizes.iter().rev()).all(fits) {
        return None;
    }
    if shape.len() >= 2 && shape.ends_with(&sizes[2..]) {
        return Some(mask);
    }
    let leading = shape.len().saturating_sub(2);
    let wide: Shape = shape[..leading].iter().chain(&sizes[2..]).cloned().collect();
    Some(expanded(cx, mask, &wide))
}
