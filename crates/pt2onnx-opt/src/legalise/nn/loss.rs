//! Replaces losses by their formulas.

use crate::legalise::{Emitted, input};
use pt2onnx_ir::{Builder, Node, Reduction, attrs};

/// `SoftmaxCrossEntropyLoss`: the loss of the softmax's logarithms, the second result.
pub(crate) fn softmax_cross_entropy(cx: &Builder, node: &Node) -> Emitted {
    let scores = cx.log_softmax(input(node, 0)?, attrs::LogSoftmax { axis: 1 });
    let inputs = [Some(scores), node.input(1), node.input(2)];
    let loss = cx.emit1("NegativeLogLikelihoodLoss", &inputs, node.attributes.clone());
    let mut made = vec![loss, scores];
    made.truncate(node.outputs().len());
    Ok(made)
}

pub(crate) fn negative_log_likelihood(cx: &Builder, node: &Node) -> Emitted {
    let (x, target) = (input(node, 0)?, input(node, 1)?);
    let kind = cx.dtype(x);
    let options = attrs::NegativeLogLikelihoodLoss::read(node)?;
    let ignored = options.ignore_index.map(|i| cx.equal(target, cx.scalar(i, cx.dtype(target))));
    let class = match ignored {
        Some(ignored) => cx.select(ignored, cx.scalar(0, cx.dtype(target)), target),
        None => target,
    };
    let picked =
        cx.gather_elements(x, cx.unsqueeze(class, &[1]), attrs::GatherElements { axis: 1 });
    let mut loss = cx.neg(cx.squeeze(picked, &[1]));
    let one = cx.scalar(1, kind);
    let mut weight = match node.input(2) {
        Some(weight) => cx.gather(weight, class, 0),
        None => cx.expand(one, &cx.shape(target)),
    };
    if node.input(2).is_some() {
        loss = cx.mul(loss, weight);
    }
    if let Some(ignored) = ignored {
        let zero = cx.scalar(0, kind);
        loss = cx.select(ignored, zero, loss);
        weight = cx.select(ignored, zero, weight);
    }
    Ok(vec![match options.reduction {
        "none" => loss,
        "sum" => cx.reduce(Reduction::Sum, loss, &[], false),
        _ => cx.div(
            cx.reduce(Reduction::Sum, loss, &[], false),
            cx.reduce(Reduction::Sum, weight, &[], false),
        ),
    }])
}
