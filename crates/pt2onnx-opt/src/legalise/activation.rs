//! Activation functions by their formulas.

use super::{Done, replace};
use pt2onnx_ir::{Attribute, Model, NodeId};

/// `0.5 x (1 + erf(x / sqrt(2)))`, or the approximation by `tanh`.
pub(super) fn gelu(model: &mut Model, id: NodeId) -> Result<Done, String> {
    replace(model, id, |cx, node| {
        let x = node.input(0).ok_or("it has no input")?;
        let tanh =
            matches!(node.attribute("approximate"), Some(Attribute::String(s)) if s == "tanh");
        let curve = if tanh {
            let cubed = cx.mul(cx.mul(x, x), x);
            let inner = cx.add(x, cx.mul(cubed, 0.044715));
            cx.tanh(cx.mul(inner, (2.0 / std::f64::consts::PI).sqrt()))
        } else {
            cx.erf(cx.div(x, std::f64::consts::SQRT_2))
        };
        Ok(vec![cx.mul(cx.mul(x, 0.5), cx.add(curve, 1.0))])
    })
}

/// `x sigmoid(alpha x)`.
pub(super) fn swish(model: &mut Model, id: NodeId) -> Result<Done, String> {
    replace(model, id, |cx, node| {
        let x = node.input(0).ok_or("it has no input")?;
        let alpha = match node.attribute("alpha") {
            Some(Attribute::Float(alpha)) => f64::from(*alpha),
            _ => 1.0,
        };
        Ok(vec![cx.mul(x, cx.sigmoid(cx.mul(x, alpha)))])
    })
}
