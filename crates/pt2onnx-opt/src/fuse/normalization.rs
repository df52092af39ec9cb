//! Fuses formulas of normalizations.

use crate::{
    analysis::{every, tensor_type},
    eval,
    fusion::Fusion,
    pattern::{Match, PatternError},
};
use pt2onnx_ir::{Builder, Model, Node, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

/// `x / sqrt(mean(x²) + epsilon) * scale` in float32, also with a cast before the scale.
pub(crate) fn rms_norm_fusions() -> Result<Vec<Fusion>, PatternError> {
    Ok(vec![Fusion::new(
        "Mul({n:Mul(x, Reciprocal(Sqrt(Add(m:ReduceMean({Mul(x, x) | Pow(x, 2)}), epsilon)))) \
                  | n:Div(x, Sqrt(Add(m:ReduceMean({Mul(x, x) | Pow(x, 2)}), epsilon))) \
                  | c:Cast(n:Mul(x, Reciprocal(Sqrt(Add(m:ReduceMean({Mul(x, x) | Pow(x, 2)}), epsilon))))) \
                  | c:Cast(n:Div(x, Sqrt(Add(m:ReduceMean({Mul(x, x) | Pow(x, 2)}), epsilon))))}, scale)",
        |cx, found| {
            let (x, axis, epsilon) = normalised(cx, found)?;
            let scale = found.value("scale")?;
            fits(cx, scale, x, axis).then(|| {
                let options = attrs::RMSNormalization { axis, epsilon, ..Default::default() };
                cx.rms_normalization(x, scale, options)
            })
        },
    )?])
}

/// `(x - mean) / sqrt(variance + epsilon) * scale + bias` in float32, also with a cast before the
/// scale.
pub(crate) fn layer_norm_fusions() -> Result<Vec<Fusion>, PatternError> {
    Ok(vec![
        Fusion::new(
            "Mul({n:Div(d:Sub(x, a:ReduceMean(x)), Sqrt(Add(m:ReduceMean({Mul(d, d) | Pow(d, 2)}), epsilon))) \
                      | n:Mul(d:Sub(x, a:ReduceMean(x)), Reciprocal(Sqrt(Add(m:ReduceMean({Mul(d, d) | Pow(d, 2)}), epsilon)))) \
                      | c:Cast(n:Div(d:Sub(x, a:ReduceMean(x)), Sqrt(Add(m:ReduceMean({Mul(d, d) | Pow(d, 2)}), epsilon)))) \
                      | c:Cast(n:Mul(d:Sub(x, a:ReduceMean(x)), Reciprocal(Sqrt(Add(m:ReduceMean({Mul(d, d) | Pow(d, 2)}), epsilon)))))}, scale)",
            |cx, found| {
                let (x, axis, epsilon) = normalised(cx, found)?;
                let scale = found.value("scale")?;
                let (mean, of_squares) = (found.node(cx, "a")?, found.node(cx, "m")?);
                let same = reduced(&cx.model(), &mean) == reduced(&cx.model(), &of_squares);
                (same && fits(cx, scale, x, axis)).then(|| {
                    let options = attrs::LayerNormalization { axis, epsilon, ..Default::default() };
                    cx.layer_normalization(x, scale, None, options)
                })
            },
        )?,
        Fusion::new("Mul(l:LayerNormalization(x, ones), scale)", |cx, found| {
            let (node, x, scale) = (found.node(cx, "l")?, found.value("x")?, found.value("scale")?);
            let axis = attrs::LayerNormalization::read(&node).ok()?.axis;
            // A weight stays, whatever its values are now.
            let plain = {
                let data = &cx.model()[found.value("ones")?];
                data.name.is_none() && data.constant().is_some_and(|t| every(t, |e| e == 1.0))
            };
            if node.inputs().len() > 2 || !plain || !fits(cx, scale, x, axis) {
                return None;
            }
            let inputs = [node.input(0), Some(scale)];
            Some(cx.emit1("LayerNormalization", &inputs, node.attributes))
        })?,
        Fusion::new("Add(l:LayerNormalization(x, scale), bias)", |cx, found| {
            let (node, x, bias) = (found.node(cx, "l")?, found.value("x")?, found.value("bias")?);
            let axis = attrs::LayerNormalization::read(&node).ok()?.axis;
            if node.inputs().len() > 2 || !fits(cx, bias, x, axis) {
                return None;
            }
            let inputs = [node.input(0), node.input(1), Some(bias)];
            Some(cx.emit1("LayerNormalization", &inputs, node.attributes))
        })?,
    ])
}

/// Instance normalization of a batch that is reshaped to channels of a single item, as PyTorch
/// decomposes it.
pub(crate) fn instance_norm_fusions() -> Result<Vec<Fusion>, PatternError> {
    Ok(vec![
        Fusion::new(
            "Reshape(i:InstanceNormalization(r:Reshape(x), Tile(scale), Tile(bias)))",
            |cx, found| {
                let channels = [batched(cx, found)?];
                let of_channels = |value| cx.known_shape(value).is_some_and(|s| *s == channels);
                let (scale, bias) = (found.value("scale")?, found.value("bias")?);
                (of_channels(scale) && of_channels(bias))
                    .then(|| instances(cx, found, scale, bias))?
            },
        )?,
        Fusion::new(
            "Reshape(i:InstanceNormalization(r:Reshape(x), Expand(scale), Expand(bias)))",
            |cx, found| {
                let channels = [batched(cx, found)?];
                let (dtype, _) = tensor_type(&cx.model(), found.value("x")?)?;
                let all = |name| Some(cx.full(&channels, found.number(cx, name)?, dtype));
                instances(cx, found, all("scale")?, all("bias")?)
            },
        )?,
    ])
}

/// The number of channels of `x`, if it is known, `r` moves the batch into the channels, and the
/// result has the shape of `x`.
fn batched(cx: &Builder, found: &Match) -> Option<Expr> {
    let x = found.value("x")?;
    let (given, laid) = (cx.known_shape(x)?, cx.known_shape(found.value("r")?)?);
    let [_, channels, spatial @ ..] = given.as_slice() else {
        return None;
    };
    let [one, _, same @ ..] = laid.as_slice() else {
        return None;
    };
    let fits = *one == Expr::int(1) && same == spatial && channels.is_static();
    (fits && !spatial.is_empty() && found.keeps_shape(cx, x)).then(|| channels.clone())
}

fn instances(cx: &Builder, found: &Match, scale: Value, bias: Value) -> Option<Value> {
    let options = attrs::InstanceNormalization::read(&found.node(cx, "i")?).ok()?;
    Some(cx.instance_normalization(found.value("x")?, scale, bias, options))
}

/// Input, first axis and epsilon of a normalization over the last dimensions. `n` normalizes `x` by
/// the mean `m`; `c`, if found, casts back to the type that `x` was cast from.
fn normalised(cx: &Builder, found: &Match) -> Option<(Value, i64, f32)> {
    let x = found.value("x")?;
    let epsilon = found.number(cx, "epsilon")? as f32;
    let mean = found.node(cx, "m")?;
    let model = cx.model();
    let (dtype, shape) = tensor_type(&model, x)?;
    let (axes, keeps) = reduced(&model, &mean)?;
    let first = shape.len().checked_sub(axes.len())?;
    let last = axes.iter().copied().eq(first..shape.len());
    if dtype != DType::F32 || !last || !keeps || axes.is_empty() {
        return None;
    }
    let (n, _) = tensor_type(&model, found.value("n")?)?;
    if n != DType::F32 {
        return None;
    }
    let source = match found.value("c") {
        None => x,
        Some(cast) => {
            let (to, _) = tensor_type(&model, cast)?;
            let before = &model[model.producer(x)?];
            let source = before.input(0).filter(|_| before.is("Cast"))?;
            let (from, _) = tensor_type(&model, source)?;
            (from == to && matches!(from, DType::F16 | DType::BF16)).then_some(source)?
        }
    };
    Some((source, -(axes.len() as i64), epsilon))
}

/// Axes of a reduction, in order, and whether they are kept. Older forms have the axes as an
/// attribute.
fn reduced(model: &Model, node: &Node) -> Option<(Vec<usize>, bool)> {
    let (_, shape) = tensor_type(model, node.input(0)?)?;
    let given = match node.input(1) {
        Some(axes) => model[axes].constant()?.to_vec::<i64>()?,
        None => node.read("axes").ok()??,
    };
    let front = |a: i64| pt2onnx_symbolic::axis(a, shape.len());
    let mut axes: Vec<usize> = given.into_iter().map(front).collect::<Option<_>>()?;
    axes.sort_unstable();
    Some((axes, attrs::ReduceMean::read(node).ok()?.keepdims))
}

/// Whether scale or bias has the type of `x`, and exactly the known sizes of the normalized
/// dimensions.
fn fits(cx: &Builder, scale: Value, x: Value, axis: i64) -> bool {
    let model = cx.model();
    let types = tensor_type(&model, scale).zip(tensor_type(&model, x));
    types.is_some_and(|((a, scale), (b, x))| {
        let normalised = eval::axis(axis, x.len()).and_then(|first| x.get(first..));
        a == b && normalised == Some(scale) && scale.iter().all(Expr::is_static)
    })
}
