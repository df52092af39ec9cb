//! Normalisations by their formulas. Stage one is computed in the type that `stash_type` says, as the standard has it.

use super::{Done, replace};
use pt2onnx_ir::schema;
use pt2onnx_ir::{Attribute, Builder, Model, Node, NodeId, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::Tensor;

fn epsilon(node: &Node) -> f64 {
    match node.attribute("epsilon") {
        Some(Attribute::Float(e)) => f64::from(*e),
        _ => f64::from(1e-5f32),
    }
}

/// The input, as the type of stage one.
fn stashed(cx: &Builder, node: &Node) -> Result<(Value, Value), String> {
    let x = node.input(0).ok_or("it has no input")?;
    let stash =
        schema::dtype(node.int("stash_type").unwrap_or(1)).ok_or("its stash_type is no type")?;
    Ok((x, cx.cast(x, stash)))
}

/// `x / sqrt(mean(x²) + epsilon) * scale` over the dimensions from `axis` on.
pub(super) fn rms(model: &mut Model, id: NodeId) -> Result<Done, String> {
    replace(model, id, |cx, node| {
        let (x, wide) = stashed(cx, node)?;
        let scale = node.input(1).ok_or("it has no scale")?;
        let rank = cx
            .known_shape(x)
            .ok_or("the rank of the input is not known")?
            .len();
        let axis = node.int("axis").unwrap_or(-1);
        let axis = if axis < 0 { axis + rank as i64 } else { axis };
        let axes: Vec<usize> =
            (usize::try_from(axis).map_err(|_| "its axis is out of range")?..rank).collect();
        let square = cx.reduce("ReduceMean", cx.mul(wide, wide), &axes, true);
        let norm = cx.div(wide, cx.sqrt(cx.add(square, epsilon(node))));
        Ok(vec![cx.mul(
            cx.cast(norm, cx.dtype(x)),
            cx.cast(scale, cx.dtype(x)),
        )])
    })
}

/// Instance normalisation of the groups; scale and bias per channel. The older form has them per group and is deprecated.
pub(super) fn group(model: &mut Model, id: NodeId) -> Result<Done, String> {
    replace(model, id, |cx, node| {
        let (x, wide) = stashed(cx, node)?;
        let (scale, bias) = node
            .input(1)
            .zip(node.input(2))
            .ok_or("it has no scale or bias")?;
        let rank = cx
            .known_shape(x)
            .ok_or("the rank of the input is not known")?
            .len();
        let groups = node.int("num_groups").ok_or("it has no groups")?;
        let count = usize::try_from(groups).map_err(|_| "it has no groups")?;
        let vector = |value: f64| -> Result<Value, String> {
            let one = pt2onnx_tensor::Scalar::Float(value)
                .to_tensor(cx.dtype(wide))
                .ok_or("its stash_type is no float")?;
            let all = Tensor::new(cx.dtype(wide), [count], one.to_bytes().repeat(count))
                .map_err(|e| e.to_string())?;
            Ok(cx.constant(all))
        };
        let grouped = cx.reshape_op(wide, cx.ints(&[0, groups, -1]), attrs::Reshape::default());
        let options = attrs::InstanceNormalization {
            epsilon: epsilon(node) as f32,
        };
        let normal = cx.instance_normalization(grouped, vector(1.0)?, vector(0.0)?, options);
        let normal = cx.reshape_op(
            normal,
            cx.shape_op(x, attrs::Shape::default()),
            attrs::Reshape::default(),
        );
        if let Some(shape) = cx.known_shape(x) {
            cx.set_type(normal, pt2onnx_ir::Type::tensor(cx.dtype(wide), shape));
        }
        let normal = cx.cast(normal, cx.dtype(x));
        let per_channel = |v: Value| -> Result<Value, String> {
            let channels = cx
                .known_shape(v)
                .and_then(|s| s.first().cloned())
                .unwrap_or_else(|| cx.dim(x, 1));
            let mut sizes = vec![channels];
            sizes.resize(rank.max(2) - 1, Expr::int(1));
            Ok(cx.reshape(cx.cast(v, cx.dtype(x)), &sizes))
        };
        Ok(vec![cx.add(
            cx.mul(normal, per_channel(scale)?),
            per_channel(bias)?,
        )])
    })
}
