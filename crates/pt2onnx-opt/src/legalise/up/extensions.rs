//! Operators that their opset lacks but runtimes know: the experiments of opsets 1 to 9, and ONNX
//! Runtime's additions.

use crate::legalise::{
    error::Reason,
    forms::{attributes, input},
    replace::{Outcome, Rewritten, replace},
};
use pt2onnx_ir::{Builder, Model, Node, NodeId, Value, schema};
use pt2onnx_tensor::{DType, Scalar, Tensor};

/// Replaces a node of such an operator, or keeps it if its form is that of a later opset.
///
/// # Errors
/// Any other operator, or too little is known of the node.
pub(crate) fn upgrade(model: &mut Model, id: NodeId, written: u32) -> Outcome {
    let emit = match model[id].op() {
        op if !schema::is_extension(op, written) => None,
        "Affine" => Some(affine as Emit),
        "ConstantFill" => Some(filled as Emit),
        "Crop" => Some(crop as Emit),
        "DynamicSlice" => Some(slice as Emit),
        "ImageScaler" => Some(image_scaler as Emit),
        "LayerNormalization" => return Ok(Rewritten::InPlace),
        "MeanVarianceNormalization" => Some(normalised as Emit),
        "ParametricSoftplus" => Some(softplus as Emit),
        "Scale" => Some(scale as Emit),
        "ScaledTanh" => Some(tanh as Emit),
        "SimplifiedLayerNormalization" => Some(rms as Emit),
        "ThresholdedRelu" => Some(thresholded as Emit),
        _ => None,
    };
    let unknown = || format!("opset {written} has no operator {}", model[id].op());
    let emit = emit.ok_or_else(unknown)?;
    replace(model, id, |cx, node| Ok(vec![emit(cx, node)?]))
}

/// Emits what the node computes.
type Emit = fn(&Builder, &Node) -> Result<Value, Reason>;

/// `alpha * x + beta`.
fn affine(cx: &Builder, node: &Node) -> Result<Value, Reason> {
    let [alpha, beta] = [number(node, "alpha", 1.0)?, number(node, "beta", 0.0)?];
    Ok(cx.add(cx.mul(input(node, 0)?, alpha), beta))
}

/// `alpha * log(1 + exp(beta * x))`.
fn softplus(cx: &Builder, node: &Node) -> Result<Value, Reason> {
    let [alpha, beta] = both(node)?;
    let steep = cx.mul(input(node, 0)?, beta);
    Ok(cx.mul(cx.emit1("Softplus", &[Some(steep)], attributes([])), alpha))
}

/// `alpha * tanh(beta * x)`.
fn tanh(cx: &Builder, node: &Node) -> Result<Value, Reason> {
    let [alpha, beta] = both(node)?;
    Ok(cx.mul(cx.tanh(cx.mul(input(node, 0)?, beta)), alpha))
}

/// `scale * x`.
fn scale(cx: &Builder, node: &Node) -> Result<Value, Reason> {
    Ok(cx.mul(input(node, 0)?, number(node, "scale", 1.0)?))
}

/// `scale * x + bias`, with a bias for each channel.
fn image_scaler(cx: &Builder, node: &Node) -> Result<Value, Reason> {
    let x = input(node, 0)?;
    let bias = node.read_required::<&[f32]>("bias")?;
    let shape = vec![bias.len(), 1, 1];
    let bias = Tensor::vector(bias).reshaped(shape).ok_or("its bias is too large")?;
    let bias = cx.cast(cx.constant(bias), cx.dtype(x));
    Ok(cx.add(cx.mul(x, number(node, "scale", 1.0)?), bias))
}

/// The elements above `alpha`; 0 for others. The standard has it since opset 10.
fn thresholded(cx: &Builder, node: &Node) -> Result<Value, Reason> {
    Ok(cx.emit1("ThresholdedRelu", node.inputs(), node.attributes.clone()))
}

/// The standard has it since opset 23, by another name.
fn rms(cx: &Builder, node: &Node) -> Result<Value, Reason> {
    Ok(cx.emit1("RMSNormalization", node.inputs(), node.attributes.clone()))
}

/// Removes a border from the last two of four dimensions, and all that is beyond a height and
/// width.
fn crop(cx: &Builder, node: &Node) -> Result<Value, Reason> {
    let &[left, top, right, bottom] = node.read_required::<&[i64]>("border")? else {
        return Err("its border has not four numbers".into());
    };
    let ends = match node.read::<&[i64]>("scale")? {
        None => [-bottom, -right],
        Some(&[height, width]) => [top + height, left + width],
        Some(_) => return Err("its scale has not two numbers".into()),
    };
    let end = |end: i64| if end == 0 { i64::MAX } else { end };
    let parts = [[top, left], ends.map(end), [2, 3]].map(|ints| Some(cx.ints(&ints)));
    let inputs: Vec<_> = std::iter::once(node.input(0)).chain(parts).collect();
    Ok(cx.emit1("Slice", &inputs, attributes([])))
}

/// The standard has it since opset 10.
fn slice(cx: &Builder, node: &Node) -> Result<Value, Reason> {
    Ok(cx.emit1("Slice", node.inputs(), attributes([])))
}

/// Without the mean of each channel, or of all of them, and divided by the deviation if it is asked
/// for. The standard has it since opset 9.
fn normalised(cx: &Builder, node: &Node) -> Result<Value, Reason> {
    let x = input(node, 0)?;
    let all = node.read::<i64>("across_channels")?.unwrap_or(0) != 0;
    let axes: Vec<i64> = (0..cx.rank(x) as i64).filter(|&axis| all || axis != 1).collect();
    if node.read::<i64>("normalize_variance")?.unwrap_or(1) == 0 {
        let axes = cx.ints(&axes);
        let mean = cx.emit1("ReduceMean", &[Some(x), Some(axes)], attributes([]));
        return Ok(cx.sub(x, mean));
    }
    let axes = attributes([("axes", axes.into())]);
    Ok(cx.emit1("MeanVarianceNormalization", &[Some(x)], axes))
}

/// Sizes that an attribute or the input gives, by its own sizes or its elements, filled with a
/// number.
fn filled(cx: &Builder, node: &Node) -> Result<Value, Reason> {
    let ints = |name| Ok::<_, Reason>(node.read::<&[i64]>(name)?.unwrap_or_default().to_vec());
    let elements = node.read::<i64>("input_as_shape")?.unwrap_or(0) != 0;
    let sizes = match node.input(0) {
        Some(sizes) if elements => cx.cast(sizes, DType::I64),
        Some(like) => cx.emit1("Shape", &[Some(like)], attributes([])),
        None => cx.ints(&ints("shape")?),
    };
    let more = ints("extra_shape")?;
    let sizes = if more.is_empty() { sizes } else { cx.concat(&[sizes, cx.ints(&more)], 0) };
    let dtype = schema::dtype(node.read::<i64>("dtype")?.unwrap_or(1));
    let value = Scalar::from(f64::from(node.read::<f32>("value")?.unwrap_or(0.0)));
    let value = dtype.and_then(|dtype| value.to_tensor(dtype)?.reshaped([1]));
    let value = value.ok_or("its element type has no numbers")?;
    let given = attributes([("value", value.into())]);
    Ok(cx.emit1("ConstantOfShape", &[Some(sizes)], given))
}

/// A number that an attribute gives.
fn number(node: &Node, name: &'static str, default: f32) -> Result<f64, Reason> {
    Ok(f64::from(node.read::<f32>(name)?.unwrap_or(default)))
}

/// `alpha` and `beta`, which have no default values.
fn both(node: &Node) -> Result<[f64; 2], Reason> {
    let read = |name| Ok::<_, Reason>(f64::from(node.read_required::<f32>(name)?));
    Ok([read("alpha")?, read("beta")?])
}
