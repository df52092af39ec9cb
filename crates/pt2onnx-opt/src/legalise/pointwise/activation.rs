//! Replaces activation functions by their formulas.

use crate::legalise::{Emitted, Outcome, Rewritten, forms, index::axes, replace};
use pt2onnx_ir::{Builder, Model, Node, NodeId, attrs};

/// `0.5 x (1 + erf(x / sqrt(2)))`, or the approximation by `tanh`.
pub(crate) fn gelu(cx: &Builder, node: &Node) -> Emitted {
    let x = node.input(0).ok_or("its input is missing")?;
    let curve = if attrs::Gelu::read(node)?.approximate == "tanh" {
        let cubed = cx.mul(cx.mul(x, x), x);
        let inner = cx.add(x, cx.mul(cubed, 0.044715));
        cx.tanh(cx.mul(inner, (2.0 / std::f64::consts::PI).sqrt()))
    } else {
        cx.erf(cx.div(x, std::f64::consts::SQRT_2))
    };
    Ok(vec![cx.mul(cx.mul(x, 0.5), cx.add(curve, 1.0))])
}

/// `x sigmoid(alpha x)`.
pub(crate) fn swish(cx: &Builder, node: &Node) -> Emitted {
    let x = node.input(0).ok_or("its input is missing")?;
    let alpha = f64::from(attrs::Swish::read(node)?.alpha);
    Ok(vec![cx.mul(x, cx.sigmoid(cx.mul(x, alpha)))])
}

/// `max(0, min(1, x / 6 + 0.5)) x`.
pub(crate) fn hard_swish(cx: &Builder, node: &Node) -> Emitted {
    let x = node.input(0).ok_or("its input is missing")?;
    let options = attrs::HardSigmoid { alpha: 1.0 / 6.0, beta: 0.5 };
    Ok(vec![cx.mul(x, cx.hard_sigmoid(x, options))])
}

/// `x tanh(softplus(x))`.
pub(crate) fn mish(cx: &Builder, node: &Node) -> Emitted {
    let x = node.input(0).ok_or("its input is missing")?;
    Ok(vec![cx.mul(x, cx.tanh(cx.softplus(x)))])
}

/// `max(0, x) + min(0, alpha (exp(x / alpha) - 1))`, which is `alpha elu(x / alpha)`.
pub(crate) fn celu(cx: &Builder, node: &Node) -> Emitted {
    let x = node.input(0).ok_or("its input is missing")?;
    let alpha = f64::from(attrs::Celu::read(node)?.alpha);
    let elu = cx.elu(cx.div(x, alpha), attrs::Elu { alpha: 1.0 });
    Ok(vec![cx.mul(elu, alpha)])
}

/// The older form flattens all dimensions from the axis on. Along the last axis that is not of size
/// 1 both mean the same, so other axes are swapped with the last one.
pub(crate) fn softmax(model: &mut Model, id: NodeId) -> Outcome {
    let axis = axes::explicit_axis(model, id)?;
    let rank = forms::rank_of(model, id, 0)?;
    let shape = model[id].input(0).and_then(|x| model.shape(x));
    let behind = shape.and_then(|s| s.get(axis + 1..)).unwrap_or_default();
    if axis + 1 + behind.len() == rank && behind.iter().all(|d| d.as_int() == Some(1)) {
        return Ok(Rewritten::InPlace);
    }
    let op: &'static str = match model[id].op() {
        "LogSoftmax" => "LogSoftmax",
        "Hardmax" => "Hardmax",
        _ => "Softmax",
    };
    replace(model, id, |cx, node| {
        let x = node.input(0).ok_or("its input is missing")?;
        let last = rank - 1;
        let attributes = forms::attributes([("axis", (last as i64).into())]);
        let found = cx.emit1(op, &[Some(cx.swap_axes(x, axis, last))], attributes);
        Ok(vec![cx.swap_axes(found, axis, last)])
    })
}
