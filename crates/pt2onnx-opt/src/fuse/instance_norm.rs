//! Instance normalization fusion: drops the reshapes with which PyTorch moves the batch into the
//! channels.

use super::{Because, Fusion, Match, NoFusion, Pass, Patterns, Run};
use pt2onnx_ir::{Builder, Value, attrs};
use pt2onnx_symbolic::Expr;

pub(crate) static INSTANCE_NORM: Pass = Pass {
    name: "instance-norm",
    description: "Removes the reshapes around InstanceNormalization with which PyTorch moves the \
                  batch into the channels.",
    precondition: "The number of channels is known.",
    run: Run::fusions(fusions),
    ..Pass::FUSION
};

/// PyTorch decomposes it so: the batch is reshaped to channels of a single item.
fn fusions() -> Patterns {
    Ok(vec![
        Fusion::new(
            "Reshape(i:InstanceNormalization(r:Reshape(x), Tile(scale), Tile(bias)))",
            |cx, found| {
                let channels = [batched(cx, found).because(OTHERWISE)?];
                let of_channels = |value| cx.known_shape(value).is_some_and(|s| *s == channels);
                let (scale, bias) = (found.get("scale")?, found.get("bias")?);
                let fit = of_channels(scale) && of_channels(bias);
                fit.because("scale or bias is not one number for each channel")?;
                instances(cx, found, scale, bias)
            },
        )?,
        Fusion::new(
            "Reshape(i:InstanceNormalization(r:Reshape(x), Expand(scale), Expand(bias)))",
            |cx, found| {
                let channels = [batched(cx, found).because(OTHERWISE)?];
                let dtype = cx.known_dtype(found.get("x")?).ok_or(NoFusion::NoMatch)?;
                let all = |name| {
                    let number = found.number(cx, name).because("scale or bias is not a number")?;
                    Ok(cx.full(&channels, number, dtype))
                };
                instances(cx, found, all("scale")?, all("bias")?)
            },
        )?,
    ])
}

const OTHERWISE: &str = "the reshapes do not move the batch into a known number of channels";

/// The channels of `x`, if known, where `r` moves the batch into them, and back.
fn batched(cx: &Builder, found: &Match) -> Option<Expr> {
    let x = found.value("x")?;
    let (given, laid) = (cx.known_shape(x)?, cx.known_shape(found.value("r")?)?);
    let [_, channels, spatial @ ..] = given.as_slice() else { return None };
    let [one, _, same @ ..] = laid.as_slice() else { return None };
    let fits = *one == Expr::int(1) && same == spatial && channels.is_static();
    (fits && !spatial.is_empty() && found.keeps_shape(cx, x)).then(|| channels.clone())
}

fn instances(cx: &Builder, found: &Match, scale: Value, bias: Value) -> Result<Value, NoFusion> {
    let options = attrs::InstanceNormalization::read(&found.get_node(cx, "i")?);
    let options = options.map_err(|_| NoFusion::NoMatch)?;
    Ok(cx.instance_normalization(found.get("x")?, scale, bias, options))
}
