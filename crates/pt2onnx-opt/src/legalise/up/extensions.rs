//! Operators that their opset lacks but runtimes know: the experiments of opsets 1 to 9, and ONNX
//! Runtime's additions.

use crate::legalise::{Outcome, Reason, Rewritten, attributes, input, replace};
use pt2onnx_ir::{Builder, Model, Node, NodeId, Value, schema};
use pt2onnx_tensor::{DType, Scalar, Tensor};

/// Replaces a node of such an operator, or keeps it if its form is that of a later opset.
///
/// # Errors
/// Any other operator, or too little is known of the node.
pub(crate) fn upgrade(model: &mut Model, id: NodeId, written: u32) -> Outcome {
    let op = model[id].op();
    let unknown = || Reason(format!("opset {written} has no operator {op}"));
    if !schema::is_extension(op, written) {
        return Err(unknown());
    }
    let emit: fn(&Builder, &Node) -> Result<Value, Reason> = match op {
        // `alpha * x + beta`.
        "Affine" => |cx, node| {
            let [alpha, beta] = [number(node, "alpha", 1.0)?, number(node, "beta", 0.0)?];
            Ok(cx.add(cx.mul(input(node, 0)?, alpha), beta))
        },
        "ConstantFill" => filled,
        "Crop" => crop,
        // The standard has these since opset 10, the last one by another name since opset 23.
        "DynamicSlice" => |cx, node| Ok(cx.emit1("Slice", node.inputs(), attributes([]))),
        "ThresholdedRelu" => |cx, node| Ok(again(cx, node, "ThresholdedRelu")),
        "SimplifiedLayerNormalization" => |cx, node| Ok(again(cx, node, "RMSNormalization")),
        "ImageScaler" => image_scaler,
        "LayerNormalization" => return Ok(Rewritten::InPlace),
        "MeanVarianceNormalization" => normalised,
        // `alpha * log(1 + exp(beta * x))`.
        "ParametricSoftplus" => |cx, node| {
            let [alpha, beta] = both(node)?;
            let steep = cx.mul(input(node, 0)?, beta);
            Ok(cx.mul(cx.emit1("Softplus", &[Some(steep)], attributes([])), alpha))
        },
        "Scale" => |cx, node| Ok(cx.mul(input(node, 0)?, number(node, "scale", 1.0)?)),
        // `alpha * tanh(beta * x)`.
        "ScaledTanh" => |cx, node| {
            let [alpha, beta] = both(node)?;
            Ok(cx.mul(cx.tanh(cx.mul(input(node, 0)?, beta)), alpha))
        },
        _ => return Err(unknown()),
    };
    replace(model, id, |cx, node| Ok(vec![emit(cx, node)?]))
}

/// An operator with the inputs and attributes of a node.
fn again(cx: &Builder, node: &Node, op: &'static str) -> Value {
    cx.emit1(op, node.inputs(), node.attributes.clone())
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

/// Removes a border from the last two of four dimensions, and all beyond a height and width.
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

/// Sizes of an attribute or of the input, its own or its elements, filled with a number.
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

fn number(node: &Node, name: &'static str, default: f32) -> Result<f64, Reason> {
    Ok(f64::from(node.read::<f32>(name)?.unwrap_or(default)))
}

/// `alpha` and `beta`, which have no default values.
fn both(node: &Node) -> Result<[f64; 2], Reason> {
    let read = |name| Ok::<_, Reason>(f64::from(node.read_required::<f32>(name)?));
    Ok([read("alpha")?, read("beta")?])
}
