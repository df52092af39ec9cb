//! Folds arithmetic with constants into the weight and bias of the layer before it.

use super::{
    batch_norm::{MISFIT, as_doubles},
    lazy_scale::Real,
    per_channel::{Affine, Channels, Kind, is_double},
};
use crate::{
    fusion::{Because, Fusion, Fusions, NoFusion},
    measure::Measure,
    pass::{Level, Pass, Phase, Run},
    pattern::{Match, PatternError},
};
use pt2onnx_ir::{Builder, Traits, Value, attrs};
use pt2onnx_tensor::Tensor;

pub(crate) static FOLD_SCALE_INTO_WEIGHT: Pass = Pass {
    name: "fold-scale-into-weight",
    level: Level::Fuse,
    since: 7,
    description: "Folds Add, Sub, Mul and Div with constants into the weight and bias of \
                  the Conv, ConvTranspose, Gemm, MatMul or BatchNormalization before them.",
    precondition: "float32 or float64, one number for all or one for each channel. For Mul \
                  and Div, nothing else uses the weight.",
    lowers: Measure::Nodes,
    phase: Phase::Early,
    target: None,
    run: Run::Fusions(Fusions::new(fusions)),
};

fn fusions() -> Result<Vec<Fusion>, PatternError> {
    let mut fusions = Vec::new();
    for op in Traits::LAYER.operators() {
        for (pattern, kind) in [
            ("Add(w:LAYER(x, #weight), #c)", Kind::Add),
            ("Sub(w:LAYER(x, #weight), #c)", Kind::Sub),
            ("Sub(#c, w:LAYER(x, #weight))", Kind::SubFrom),
            ("Mul(w:LAYER(x, #weight), #c)", Kind::Mul),
            ("Div(w:LAYER(x, #weight), #c)", Kind::Div),
        ] {
            // The bias of a MatMul is a separate node.
            if op == "MatMul" && !matches!(kind, Kind::Mul | Kind::Div) {
                continue;
            }
            let pattern = pattern.replace("LAYER", op);
            fusions.push(Fusion::new(&pattern, move |cx, found| layer(cx, found, op, kind))?);
        }
    }
    for (pattern, kind) in [
        ("Add(n:BatchNormalization(x, #scale, bias, mean, variance), #c)", Kind::Add),
        ("Sub(n:BatchNormalization(x, #scale, bias, mean, variance), #c)", Kind::Sub),
        ("Sub(#c, n:BatchNormalization(x, #scale, bias, mean, variance))", Kind::SubFrom),
        ("Mul(n:BatchNormalization(x, #scale, bias, mean, variance), #c)", Kind::Mul),
        ("Div(n:BatchNormalization(x, #scale, bias, mean, variance), #c)", Kind::Div),
    ] {
        fusions.push(Fusion::new(pattern, move |cx, found| normalized(cx, found, kind))?);
    }
    for (pattern, kind) in [
        ("Mul(a:Add(w:MatMul(x, #weight), #b), #c)", Kind::Mul),
        ("Div(a:Add(w:MatMul(x, #weight), #b), #c)", Kind::Div),
    ] {
        fusions.push(Fusion::new(pattern, move |cx, found| distributed(cx, found, kind))?);
    }
    Ok(fusions)
}

fn layer(cx: &Builder, found: &Match, op: &'static str, kind: Kind) -> Result<Value, NoFusion> {
    if is_double(cx, found)? {
        layer_as::<f64>(cx, found, op, kind)
    } else {
        layer_as::<f32>(cx, found, op, kind)
    }
}

fn layer_as<T: Real>(
    cx: &Builder,
    found: &Match,
    op: &'static str,
    kind: Kind,
) -> Result<Value, NoFusion> {
    let (node, c) = (found.get_node(cx, "w")?, found.get("c")?);
    let place = Channels::of(cx, &node, op)?;
    let affine = kind.affine(place.spread::<T>(cx, c)?);
    affine.folded::<T>(cx, found, &node, &place, Some(c))
}

fn normalized(cx: &Builder, found: &Match, kind: Kind) -> Result<Value, NoFusion> {
    if is_double(cx, found)? {
        normalized_as::<f64>(cx, found, kind)
    } else {
        normalized_as::<f32>(cx, found, kind)
    }
}

/// The scale and bias of a batch normalization are those of channels.
fn normalized_as<T: Real>(cx: &Builder, found: &Match, kind: Kind) -> Result<Value, NoFusion> {
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
    let Affine { factors, summands } = kind.affine(place.spread::<T>(cx, found.get("c")?)?);
    let moved = |value: Value, summands: Option<Vec<f64>>| {
        let mut all = as_doubles::<T>(cx, value).filter(|all| all.len() == count)?;
        for (i, v) in all.iter_mut().enumerate() {
            let at = |of: &Option<Vec<f64>>| of.as_ref().and_then(|of| of.get(i).copied());
            *v = *v * at(&factors).unwrap_or(1.0) + at(&summands).unwrap_or(0.0);
        }
        let all: Vec<T> = all.into_iter().map(T::rounded).collect();
        let finite = all.iter().all(|&v| v.into().is_finite());
        finite.then(|| found.add_folded(cx, Tensor::vector(&all), Some(value)))
    };
    let mut inputs = node.inputs().to_vec();
    (inputs[1], inputs[2]) = match factors {
        Some(_) => {
            let scale = moved(scale, None).because(MISFIT)?;
            (Some(scale), Some(moved(bias, summands).because(MISFIT)?))
        }
        None => (Some(scale), Some(moved(bias, summands).because(MISFIT)?)),
    };
    Ok(cx.emit1(op, &inputs, node.attributes.clone()))
}

/// `(x w + b) c` is `x (w c) + b c`.
fn distributed(cx: &Builder, found: &Match, kind: Kind) -> Result<Value, NoFusion> {
    if is_double(cx, found)? {
        distributed_as::<f64>(cx, found, kind)
    } else {
        distributed_as::<f32>(cx, found, kind)
    }
}

fn distributed_as<T: Real>(cx: &Builder, found: &Match, kind: Kind) -> Result<Value, NoFusion> {
    let node = found.get_node(cx, "w")?;
    let place = Channels::of(cx, &node, "MatMul")?;
    let affine = kind.affine(place.spread::<T>(cx, found.get("c")?)?);
    let bias = found.get("b")?;
    let factors = affine.factors.as_ref().ok_or(NoFusion::NoMatch)?;
    let summands = place.spread::<T>(cx, bias)?;
    let moved: Vec<T> = summands.iter().zip(factors).map(|(b, f)| T::rounded(b * f)).collect();
    moved.iter().all(|&v| v.into().is_finite()).because(MISFIT)?;
    let product = affine.folded::<T>(cx, found, &node, &place, None)?;
    let bias = found.add_folded(cx, Tensor::vector(&moved), Some(bias));
    Ok(cx.emit1("Add", &[Some(product), Some(bias)], Vec::new()))
}
