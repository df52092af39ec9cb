//! Layer normalization fusion: the formula, and scale and bias behind it, become
//! `LayerNormalization`.

use super::{
    Because, Fusion, NoFusion, Pass, Patterns, Run,
    normalization::{fits, normalised, reduced},
};
use crate::analysis::every;
use pt2onnx_ir::{Node, attrs};

pub(crate) static LAYER_NORM: Pass = Pass {
    name: "layer-norm",
    since: 17,
    description: "Replaces the formula of layer normalization by LayerNormalization (opset 17). \
                  Scale and bias behind one go into it.",
    precondition: "It is computed in float32 over the last dimensions, also between casts from and \
                   to float16 or bfloat16. Scale and bias have the sizes of these dimensions.",
    run: Run::fusions(fusions),
    ..Pass::FUSION
};

/// `(x - mean) / sqrt(variance + epsilon) * scale + bias` in float32, also with a cast inside.
fn fusions() -> Patterns {
    Ok(vec![
        Fusion::new(
            "Mul({n:Div(d:Sub(x, a:ReduceMean(x)), Sqrt(Add(m:ReduceMean({Mul(d, d) | Pow(d, 2)}), epsilon))) \
                      | n:Mul(d:Sub(x, a:ReduceMean(x)), Reciprocal(Sqrt(Add(m:ReduceMean({Mul(d, d) | Pow(d, 2)}), epsilon)))) \
                      | c:Cast(n:Div(d:Sub(x, a:ReduceMean(x)), Sqrt(Add(m:ReduceMean({Mul(d, d) | Pow(d, 2)}), epsilon)))) \
                      | c:Cast(n:Mul(d:Sub(x, a:ReduceMean(x)), Reciprocal(Sqrt(Add(m:ReduceMean({Mul(d, d) | Pow(d, 2)}), epsilon)))))}, scale)",
            |cx, found| {
                let (x, axis, epsilon) = normalised(cx, found)?;
                let scale = found.get("scale")?;
                let (mean, of_squares) = (found.get_node(cx, "a")?, found.get_node(cx, "m")?);
                let same = reduced(&cx.model(), &mean) == reduced(&cx.model(), &of_squares);
                same.because("mean and variance are over different dimensions")?;
                fits(cx, scale, x, axis)?;
                let options = attrs::LayerNormalization { axis, epsilon, ..Default::default() };
                Ok(cx.layer_normalization(x, scale, None, options))
            },
        )?,
        Fusion::new("Mul(l:LayerNormalization(x, ones), scale)", |cx, found| {
            let (node, x, scale) = (found.get_node(cx, "l")?, found.get("x")?, found.get("scale")?);
            // A weight stays, whatever its values are now.
            let plain = {
                let data = &cx.model()[found.get("ones")?];
                data.name.is_none() && data.constant().is_some_and(|t| every(t, |e| e == 1.0))
            };
            (node.inputs().len() <= 2 && plain).because(HAS_WEIGHTS)?;
            fits(cx, scale, x, first_axis(&node)?)?;
            let inputs = [node.input(0), Some(scale)];
            Ok(cx.emit1("LayerNormalization", &inputs, node.attributes))
        })?,
        Fusion::new("Add(l:LayerNormalization(x, scale), bias)", |cx, found| {
            let (node, x, bias) = (found.get_node(cx, "l")?, found.get("x")?, found.get("bias")?);
            (node.inputs().len() <= 2).because(HAS_WEIGHTS)?;
            fits(cx, bias, x, first_axis(&node)?)?;
            let inputs = [node.input(0), node.input(1), Some(bias)];
            Ok(cx.emit1("LayerNormalization", &inputs, node.attributes))
        })?,
    ])
}

const HAS_WEIGHTS: &str = "the normalization has a scale or bias already";

fn first_axis(node: &Node) -> Result<i64, NoFusion> {
    attrs::LayerNormalization::read(node).map(|a| a.axis).map_err(|_| NoFusion::NoMatch)
}
