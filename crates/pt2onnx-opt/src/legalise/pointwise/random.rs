//! Random masks and samples from uniform numbers.

use crate::legalise::{Emitted, Outcome, constant_numbers, input, replace};
use pt2onnx_ir::{Builder, Model, Node, NodeId, Value, attrs, schema};
use pt2onnx_tensor::DType;

fn uniform(cx: &Builder, like: Value, seed: Option<f32>) -> Value {
    let options = attrs::RandomUniformLike {
        dtype: Some(schema::data_type(DType::F32)),
        seed,
        ..Default::default()
    };
    cx.random_uniform_like(like, options)
}

/// `Dropout`: a random mask in training, otherwise nothing.
pub(crate) fn dropout(model: &mut Model, id: NodeId) -> Outcome {
    let training = match model[id].input(2) {
        None => false,
        Some(mode) => {
            let known = model[mode].constant().and_then(|t| t.to_vec::<bool>());
            let known = known.and_then(|v| v.first().copied());
            known.ok_or("a computed mode of Dropout needs a newer opset")?
        }
    };
    let ratio = match model[id].input(1) {
        None => 0.5,
        Some(ratio) => *constant_numbers(model, ratio)
            .and_then(|v| v.first().copied())
            .as_ref()
            .ok_or("a computed ratio of Dropout needs a newer opset")?,
    };
    replace(model, id, |cx, node| {
        let x = input(node, 0)?;
        if !training {
            let mut made = vec![cx.identity(x)];
            if node.outputs().len() > 1 {
                made.push(cx.expand(cx.scalar(true, DType::Bool), &cx.shape(x)));
            }
            return Ok(made);
        }
        let seed = attrs::Dropout::read(node)?.seed.map(|seed| seed as f32);
        let kept = cx.not(cx.less(uniform(cx, x, seed), ratio));
        let scaled = cx.mul(x, 1.0 / (1.0 - ratio));
        let zero = cx.scalar(0, cx.dtype(x));
        Ok(vec![cx.select(kept, scaled, zero), kept])
    })
}

/// `Bernoulli`: whether a uniform number is below the probability.
pub(crate) fn bernoulli(cx: &Builder, node: &Node) -> Emitted {
    let x = input(node, 0)?;
    let options = attrs::Bernoulli::read(node)?;
    let to = options.dtype.and_then(schema::dtype).unwrap_or(cx.dtype(x));
    let drawn = cx.cast(uniform(cx, x, options.seed), cx.dtype(x));
    Ok(vec![cx.cast(cx.less(drawn, x), to)])
}
