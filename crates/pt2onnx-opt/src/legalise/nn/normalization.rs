//! Normalizations by their formulas. As in the standard, stage one is computed in the type
//! `stash_type`.

use crate::legalise::{
    Emitted, LONGEST, Outcome, Reason,
    forms::{self},
    front, replace,
};
use pt2onnx_ir::{Builder, Model, Node, NodeId, Reduction, Value, attrs, schema};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Tensor};

/// The input, and the input cast to the type of stage one.
fn stashed(cx: &Builder, node: &Node) -> Result<(Value, Value), Reason> {
    let x = node.input(0).ok_or("its input is missing")?;
    Ok((x, cx.cast(x, stash_type(node)?)))
}

/// The type of stage one.
fn stash_type(node: &Node) -> Result<DType, Reason> {
    let stash = attrs::LayerNormalization::read(node)?.stash_type;
    Ok(schema::dtype(stash).ok_or("its stash_type is no type")?)
}

/// As [`stashed`], but float64 is not narrowed: runtimes do not narrow it either.
fn widest(cx: &Builder, node: &Node) -> Result<(Value, Value), Reason> {
    let (x, wide) = stashed(cx, node)?;
    Ok((x, if cx.dtype(x) == DType::F64 { x } else { wide }))
}

/// The dimensions from `axis` on.
fn normalised(cx: &Builder, node: &Node, x: Value) -> Result<Vec<usize>, Reason> {
    let shape = cx.known_shape(x).ok_or("the rank of the input is not known")?;
    let axis = attrs::LayerNormalization::read(node)?.axis;
    Ok((front(axis, shape.len())?..shape.len()).collect())
}

/// `x / sqrt(mean(x²) + epsilon) * scale` over the dimensions from `axis` on.
pub(crate) fn rms(cx: &Builder, node: &Node) -> Emitted {
    let (x, wide) = widest(cx, node)?;
    let scale = node.input(1).ok_or("its scale is missing")?;
    let axes = normalised(cx, node, x)?;
    let square = cx.reduce(Reduction::Mean, cx.mul(wide, wide), &axes, true);
    let epsilon = f64::from(attrs::RMSNormalization::read(node)?.epsilon);
    let norm = cx.div(wide, cx.sqrt(cx.add(square, epsilon)));
    Ok(vec![cx.mul(cx.cast(norm, cx.dtype(x)), cx.cast(scale, cx.dtype(x)))])
}

/// Instance normalization of the groups, then scale and bias per channel. The older form is
/// deprecated and has them per group.
pub(crate) fn group(cx: &Builder, node: &Node) -> Emitted {
    let (x, wide) = stashed(cx, node)?;
    let (scale, bias) = node.input(1).zip(node.input(2)).ok_or("its scale or bias is missing")?;
    let rank = cx.known_shape(x).ok_or("the rank of the input is not known")?.len();
    let groups = attrs::GroupNormalization::num_groups(node)?;
    let channels = cx.dim(x, 1).as_int().unwrap_or(LONGEST);
    let count = usize::try_from(groups).ok().filter(|_| (1..=channels).contains(&groups));
    let count = count.ok_or("num_groups is not between 1 and the number of channels")?;
    let vector = |value: f64| -> Result<Value, Reason> {
        let one = pt2onnx_tensor::Scalar::Float(value)
            .to_tensor(cx.dtype(wide))
            .ok_or("its stash_type is no float")?;
        let all = Tensor::new(cx.dtype(wide), [count], one.to_bytes().repeat(count))
            .map_err(|e| e.to_string())?;
        Ok(cx.constant(all))
    };
    let grouped = cx.reshape_op(wide, cx.ints(&[0, groups, -1]), attrs::Reshape::default());
    let options =
        attrs::InstanceNormalization { epsilon: attrs::GroupNormalization::read(node)?.epsilon };
    let normal = cx.instance_normalization(grouped, vector(1.0)?, vector(0.0)?, options);
    let normal =
        cx.reshape_op(normal, cx.shape_op(x, attrs::Shape::default()), attrs::Reshape::default());
    if let Some(shape) = cx.known_shape(x) {
        cx.set_type(normal, pt2onnx_ir::Type::tensor(cx.dtype(wide), shape));
    }
    let normal = cx.cast(normal, cx.dtype(x));
    let per_channel = |v: Value| -> Result<Value, Reason> {
        let channels =
            cx.known_shape(v).and_then(|s| s.first().cloned()).unwrap_or_else(|| cx.dim(x, 1));
        let mut sizes = vec![channels];
        sizes.resize(rank.max(2) - 1, Expr::int(1));
        Ok(cx.reshape(cx.cast(v, cx.dtype(x)), &sizes))
    };
    Ok(vec![cx.add(cx.mul(normal, per_channel(scale)?), per_channel(bias)?)])
}

/// `(x - mean) / sqrt(variance + epsilon) * scale + bias` over the dimensions from `axis` on.
pub(crate) fn layer(cx: &Builder, node: &Node) -> Emitted {
    let (x, wide) = widest(cx, node)?;
    let (stash, count) = (stash_type(node)?, node.outputs().len());
    let scale = node.input(1).ok_or("its scale is missing")?;
    let axes = normalised(cx, node, x)?;
    let mean = cx.reduce(Reduction::Mean, wide, &axes, true);
    let centred = cx.sub(wide, mean);
    let variance = cx.reduce(Reduction::Mean, cx.mul(centred, centred), &axes, true);
    let epsilon = f64::from(attrs::LayerNormalization::read(node)?.epsilon);
    let deviation = cx.sqrt(cx.add(variance, epsilon));
    let norm = cx.cast(cx.div(centred, deviation), cx.dtype(x));
    let mut y = cx.mul(norm, cx.cast(scale, cx.dtype(x)));
    if let Some(bias) = node.input(2) {
        y = cx.add(y, cx.cast(bias, cx.dtype(x)));
    }
    let mut made = vec![y];
    if count > 1 {
        made.push(cx.cast(mean, stash));
    }
    if count > 2 {
        made.push(cx.cast(cx.reciprocal(deviation), stash));
    }
    Ok(made)
}

/// In training, the formula with the batch's own mean and variance; otherwise the node is kept.
pub(crate) fn batch_in_training(model: &mut Model, id: NodeId) -> Outcome {
    if !attrs::BatchNormalization::read(&model[id])?.training_mode {
        let types = model[id].inputs().iter().flatten().map(|&v| model.dtype(v));
        let types: Vec<_> = types.collect();
        return if types.windows(2).all(|pair| pair[0] == pair[1]) {
            forms::without(model, id, "training_mode")
        } else {
            replace(model, id, batch_of_one_type)
        };
    }
    replace(model, id, |cx, node| {
        let input = |i| forms::input(node, i);
        let (x, rank) = (input(0)?, cx.rank(input(0)?));
        let per_channel = |v: Value| {
            let others: Vec<usize> = (1..rank.max(2) - 1).collect();
            cx.unsqueeze(cx.cast(v, cx.dtype(x)), &others)
        };
        let axes: Vec<usize> = (0..rank).filter(|a| *a != 1).collect();
        let mean = cx.reduce(Reduction::Mean, x, &axes, false);
        let centred = cx.sub(x, per_channel(mean));
        let variance = cx.reduce(Reduction::Mean, cx.mul(centred, centred), &axes, false);
        let options = attrs::BatchNormalization::read(node)?;
        let deviation = cx.sqrt(cx.add(per_channel(variance), f64::from(options.epsilon)));
        let scaled = cx.mul(cx.div(centred, deviation), per_channel(input(1)?));
        let y = cx.add(scaled, per_channel(input(2)?));
        let momentum = f64::from(options.momentum);
        let running = |old: Value, new: Value| {
            let new = cx.mul(cx.cast(new, cx.dtype(old)), 1.0 - momentum);
            cx.add(cx.mul(old, momentum), new)
        };
        let mut made = vec![y];
        if node.outputs().len() > 1 {
            made.push(running(input(3)?, mean));
            made.push(running(input(4)?, variance));
        }
        made.truncate(node.outputs().len());
        Ok(made)
    })
}

/// Casts all inputs to the widest of their types: older forms have one type.
pub(crate) fn batch_of_one_type(cx: &Builder, node: &Node) -> Emitted {
    let types = node.inputs().iter().flatten().map(|&v| cx.dtype(v));
    let widest = types.max_by_key(|t| t.bits()).ok_or("its inputs are missing")?;
    let x = forms::input(node, 0)?;
    let inputs: Vec<Option<Value>> =
        node.inputs().iter().map(|v| v.map(|v| cx.cast(v, widest))).collect();
    let made =
        cx.emit("BatchNormalization", &inputs, node.attributes.clone(), node.outputs().len());
    let types = node.outputs().iter().map(|&v| cx.known_dtype(v));
    let back = made.iter().zip(types);
    Ok(back.map(|(&v, t)| cx.cast(v, t.unwrap_or(cx.dtype(x)))).collect())
}
