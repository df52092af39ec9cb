//! Replaces quantization by its formula.

use crate::legalise::{LONGEST, Outcome, Reason, input, replace, without};
use pt2onnx_ir::{Builder, Model, Node, NodeId, Value, attrs, schema};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Scalar, Tensor};

/// The axis has no meaning for a single scale. With several, the formula is used.
pub(crate) fn axis(model: &mut Model, id: NodeId) -> Outcome {
    let scale = input(&model[id], 1)?;
    match model.rank(scale) {
        Some(0) => without(model, id, "axis"),
        Some(1) if model[id].op() == "QuantizeLinear" => quantize(model, id),
        Some(1) => dequantize(model, id),
        Some(_) => Err("blocked quantization needs a newer opset".into()),
        None => Err("the rank of its scale is not known".into()),
    }
}

/// A parameter, reshaped to broadcast against `x`.
fn along(cx: &Builder, node: &Node, x: Value, parameter: Value) -> Result<Value, Reason> {
    if cx.rank(parameter) == 0 {
        return Ok(parameter);
    }
    let rank = cx.rank(x);
    let mut dims = vec![Expr::int(1); rank];
    let axis = pt2onnx_symbolic::axis(attrs::DequantizeLinear::read(node)?.axis, rank);
    if let Some(dim) = axis.and_then(|axis| dims.get_mut(axis)) {
        *dim = cx.dim(parameter, 0);
    }
    Ok(cx.reshape(parameter, &dims))
}

/// `(x - zero point) * scale`.
pub(crate) fn dequantize(model: &mut Model, id: NodeId) -> Outcome {
    if attrs::DequantizeLinear::read(&model[id])?.block_size != 0 {
        return Err("blocked quantization needs a newer opset".into());
    }
    replace(model, id, |cx, node| {
        let (x, scale) = (input(node, 0)?, input(node, 1)?);
        let kind = cx.dtype(scale);
        let mut wide = cx.cast(x, kind);
        if let Some(zero) = node.input(2) {
            wide = cx.sub(wide, cx.cast(along(cx, node, x, zero)?, kind));
        }
        Ok(vec![cx.mul(wide, along(cx, node, x, scale)?)])
    })
}

/// `round(x / scale) + zero point`, clamped to the range of the type.
pub(crate) fn quantize(model: &mut Model, id: NodeId) -> Outcome {
    if attrs::DequantizeLinear::read(&model[id])?.block_size != 0 {
        return Err("blocked quantization needs a newer opset".into());
    }
    replace(model, id, |cx, node| {
        let (x, scale) = (input(node, 0)?, input(node, 1)?);
        let zero = node.input(2);
        let told = node.read::<i64>("output_dtype")?.and_then(schema::dtype);
        let to = zero.map(|z| cx.dtype(z)).or(told).unwrap_or(DType::U8);
        let (low, high) = match to {
            DType::U8 => (0.0, 255.0),
            DType::I8 => (-128.0, 127.0),
            // Half precision does not have all of these numbers.
            DType::U16 if cx.dtype(scale) == DType::F32 => (0.0, 65535.0),
            DType::I16 if cx.dtype(scale) == DType::F32 => (-32768.0, 32767.0),
            other => return Err(format!("quantizing to {other} needs a newer opset").into()),
        };
        let wide = cx.cast(x, cx.dtype(scale));
        let mut steps = cx.round(cx.div(wide, along(cx, node, x, scale)?));
        if let Some(zero) = zero {
            let zero = cx.cast(along(cx, node, x, zero)?, cx.dtype(steps));
            steps = cx.add(steps, zero);
        }
        let held = cx.minimum(cx.maximum(steps, low), high);
        Ok(vec![cx.cast(held, to)])
    })
}

/// In older forms, the output has the type of the scale.
pub(crate) fn output_dtype_of_scale(model: &mut Model, id: NodeId) -> Outcome {
    let scale = model[id].input(1).and_then(|v| model.dtype(v));
    let out = schema::dtype(attrs::DequantizeLinear::read(&model[id])?.output_dtype);
    if out.is_some_and(|out| Some(out) != scale) {
        Err("an output type other than the scale's needs a newer opset".into())
    } else {
        without(model, id, "output_dtype")
    }
}

/// In older forms, the output has the type of the zero point: zeros of that type are added. Types
/// of 16 bits need the formula.
pub(crate) fn zero_point_for_output_dtype(model: &mut Model, id: NodeId) -> Outcome {
    let options = attrs::QuantizeLinear::read(&model[id])?;
    if options.block_size != 0 {
        return Err("blocked quantization needs a newer opset".into());
    }
    let given = model[id].input(2).and_then(|zero| model.dtype(zero));
    let out = given.or(schema::dtype(options.output_dtype)).unwrap_or(DType::U8);
    if matches!(out, DType::U16 | DType::I16) {
        return quantize(model, id);
    }
    if model[id].input(2).is_none() {
        let scale = model[id].input(1).ok_or("its scale is missing")?;
        let sizes = model.shape(scale).and_then(|s| {
            s.iter().map(|d| usize::try_from(d.as_int()?).ok()).collect::<Option<Vec<_>>>()
        });
        let sizes = sizes.ok_or("the shape of the scale is not known")?;
        let count = sizes.iter().try_fold(1usize, |count, &size| count.checked_mul(size));
        let count = count
            .filter(|count| *count as u64 <= LONGEST.unsigned_abs())
            .ok_or("the scale is too large")?;
        let zero =
            Scalar::Int(0).to_tensor(out).ok_or_else(|| format!("{out} needs a newer opset"))?;
        let zeros =
            Tensor::new(out, sizes, zero.to_bytes().repeat(count)).map_err(|e| e.to_string())?;
        let zeros = model.add_constant(zeros);
        let mut inputs = model[id].inputs()[..2].to_vec();
        inputs.push(Some(zeros));
        model.set_inputs(id, &inputs);
    }
    without(model, id, "output_dtype")
}
