//! Folds arithmetic with constants into the weight and bias of the layer before it.

use super::{
    Because, Fusion, Match, NoFusion, Pass, Patterns, Run,
    per_channel::{Affine, Channels, Kind, MISFIT, doubles, float_type, vector},
};
use pt2onnx_ir::{Builder, Traits, Value, attrs};

pub(crate) static FOLD_SCALE_INTO_WEIGHT: Pass = Pass {
    name: "fold-scale-into-weight",
    description: "Folds Add, Sub, Mul and Div with constants into the weight and bias of the Conv, \
                  ConvTranspose, Gemm, MatMul or BatchNormalization before them, also if a \
                  Transpose, Squeeze or Unsqueeze is in between.",
    precondition: "float32 or float64, one number for all or one for each channel. For Mul and \
                   Div, nothing else uses the weight.",
    run: Run::fusions(fusions),
    ..Pass::FUSION
};

/// Views that may be between the layer and the arithmetic.
const VIEWS: [&str; 3] = ["Transpose", "Squeeze", "Unsqueeze"];

fn fusions() -> Patterns {
    let all = [
        ("Add(LAYER, #c)", Kind::Add),
        ("Sub(LAYER, #c)", Kind::Sub),
        ("Sub(#c, LAYER)", Kind::SubFrom),
        ("Mul(LAYER, #c)", Kind::Mul),
        ("Div(LAYER, #c)", Kind::Div),
    ];
    let mut fusions = Vec::new();
    for op in Traits::LAYER.operators() {
        // The bias of a MatMul is a separate node.
        let kinds = if op == "MatMul" { &all[3..] } else { &all[..] };
        for &(pattern, kind) in kinds {
            let own = format!("w:{op}(x, #weight)");
            let behind = VIEWS.map(|view| format!("v:{view}({own})")).join(" | ");
            let pattern = pattern.replace("LAYER", &format!("{{{own} | {behind}}}"));
            fusions.push(Fusion::new(&pattern, move |cx, found| layer(cx, found, op, kind))?);
        }
    }
    for (pattern, kind) in all {
        let norm = "n:BatchNormalization(x, #scale, bias, mean, variance)";
        let pattern = pattern.replace("LAYER", norm);
        fusions.push(Fusion::new(&pattern, move |cx, found| normalized(cx, found, kind))?);
    }
    for &(pattern, kind) in &all[3..] {
        let pattern = pattern.replace("LAYER", "a:Add(w:MatMul(x, #weight), #b)");
        fusions.push(Fusion::new(&pattern, move |cx, found| distributed(cx, found, kind))?);
    }
    Ok(fusions)
}

fn layer(cx: &Builder, found: &Match, op: &'static str, kind: Kind) -> Result<Value, NoFusion> {
    let dtype = float_type(cx, found)?;
    let (node, c) = (found.get_node(cx, "w")?, found.get("c")?);
    let place = Channels::of(cx, &node, op)?;
    let view = found.node(cx, "v");
    let seen = view.as_ref().map_or(Ok(place), |view| place.behind(cx, view))?;
    let affine = kind.affine(seen.spread(cx, c, dtype)?);
    let folded = affine.folded(cx, found, &node, &place, dtype, Some(c))?;
    let Some(view) = view else { return Ok(folded) };
    let op = VIEWS.into_iter().find(|op| view.is(op)).ok_or(NoFusion::NoMatch)?;
    let mut inputs = view.inputs().to_vec();
    inputs[0] = Some(folded);
    Ok(cx.emit1(op, &inputs, view.attributes))
}

/// The scale and bias of a batch normalization are those of channels.
fn normalized(cx: &Builder, found: &Match, kind: Kind) -> Result<Value, NoFusion> {
    let dtype = float_type(cx, found)?;
    let op = "BatchNormalization";
    let node = found.get_node(cx, "n")?;
    let own = attrs::BatchNormalization::read(&node).ok();
    own.is_some_and(|n| !n.training_mode).because("the normalization is in training mode")?;
    let rank = cx.known_shape(found.get("x")?).map(|s| s.len());
    let rank = rank.because("the rank is not known")?;
    let (scale, bias) = (found.get("scale")?, found.get("bias")?);
    let count = cx.constant_of(scale).ok_or(NoFusion::NoMatch)?.numel();
    let from_end = rank.checked_sub(2).ok_or(NoFusion::NoMatch)?;
    let place = Channels { op, count, from_end, rank };
    let Affine { factors, summands } = kind.affine(place.spread(cx, found.get("c")?, dtype)?);
    let moved = |value: Value, summands: Option<Vec<f64>>| {
        let all = doubles(cx, value, dtype).filter(|all| all.len() == count).because(MISFIT)?;
        let at = |of: &Option<Vec<f64>>, i: usize| of.as_ref().and_then(|of| of.get(i).copied());
        let all = all
            .into_iter()
            .enumerate()
            .map(|(i, v)| v * at(&factors, i).unwrap_or(1.0) + at(&summands, i).unwrap_or(0.0));
        Ok(found.add_folded(cx, vector(dtype, all)?, Some(value)))
    };
    let mut inputs = node.inputs().to_vec();
    if factors.is_some() {
        inputs[1] = Some(moved(scale, None)?);
    }
    inputs[2] = Some(moved(bias, summands)?);
    Ok(cx.emit1(op, &inputs, node.attributes.clone()))
}

/// `(x w + b) c` is `x (w c) + b c`.
fn distributed(cx: &Builder, found: &Match, kind: Kind) -> Result<Value, NoFusion> {
    let dtype = float_type(cx, found)?;
    let node = found.get_node(cx, "w")?;
    let place = Channels::of(cx, &node, "MatMul")?;
    let affine = kind.affine(place.spread(cx, found.get("c")?, dtype)?);
    let bias = found.get("b")?;
    let factors = affine.factors.as_ref().ok_or(NoFusion::NoMatch)?;
    let summands = place.spread(cx, bias, dtype)?;
    let moved = vector(dtype, summands.iter().zip(factors).map(|(b, f)| b * f))?;
    let product = affine.folded(cx, found, &node, &place, dtype, None)?;
    let bias = found.add_folded(cx, moved, Some(bias));
    Ok(cx.emit1("Add", &[Some(product), Some(bias)], Vec::new()))
}
