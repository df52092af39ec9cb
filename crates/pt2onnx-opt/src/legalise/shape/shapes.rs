//! Shapes, ranges, and operators that fill or rearrange a tensor.

use crate::legalise::{
    Emitted, Outcome, Reason, Rewritten, attributes, input, replace, set, without,
};
use pt2onnx_ir::{Attribute, Builder, Model, Node, NodeId, Reduction, Type, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Scalar, Tensor};

/// `Shape` with `start` and `end`: a slice of the whole shape.
pub(crate) fn shape(cx: &Builder, node: &Node) -> Emitted {
    let x = input(node, 0)?;
    let all = cx.shape_op(x, attrs::Shape::default());
    let range = attrs::Shape::read(node)?;
    let start = cx.ints(&[range.start]);
    let end = cx.ints(&[range.end.unwrap_or(i64::MAX)]);
    Ok(vec![cx.slice_op(all, start, end, cx.ints(&[0]), None)])
}

/// `Reshape` with `allowzero`: if a size may be 0, there is a branch for tensors without elements.
pub(crate) fn reshape(model: &mut Model, id: NodeId) -> Outcome {
    if !attrs::Reshape::read(&model[id])?.allowzero {
        return without(model, id, "allowzero");
    }
    let target = input(&model[id], 1)?;
    let known = model.const_ints(target);
    match known {
        Some(known) if !known.contains(&0) => without(model, id, "allowzero"),
        Some(known) if known.contains(&-1) => {
            Err("a Reshape to both 0 and -1 needs a newer opset".into())
        }
        Some(_) => replace(model, id, |cx, node| Ok(vec![empty(cx, input(node, 0)?, target)?])),
        None if copies_zeros(model, id) || has_rest(model, target) => {
            without(model, id, "allowzero")
        }
        None => replace(model, id, |cx, node| {
            let x = input(node, 0)?;
            let zeros = cx.cast(cx.equal(target, 0), DType::I64);
            let some = cx.greater(cx.reduce(Reduction::Sum, zeros, &[], false), 0);
            let mut filled = Err(Reason::from(""));
            let nothing = cx.region(&[], |_| {
                filled = empty(cx, x, target);
                filled.iter().copied().collect()
            });
            filled?;
            let reshaped =
                cx.region(&[], |_| vec![cx.reshape_op(x, target, attrs::Reshape::default())]);
            Ok(cx.if_op(1, some, nothing, reshaped).to_vec())
        }),
    }
}

/// Whether each size that may be 0 is the operand's at that place, so that 0 may stand for it.
fn copies_zeros(model: &Model, id: NodeId) -> bool {
    let node = &model[id];
    let from = node.input(0).and_then(|x| model.shape(x));
    let to = node.outputs().first().and_then(|y| model.shape(*y));
    to.is_some_and(|to| {
        let mut sizes = to.iter().enumerate();
        sizes.all(|(i, d)| {
            d.as_int().is_some_and(|d| d > 0) || from.is_some_and(|from| from.get(i) == Some(d))
        })
    })
}

/// Whether one of the sizes is -1: then none may be 0.
fn has_rest(model: &Model, target: Value) -> bool {
    let joined = model.producer(target).map(|id| &model[id]).filter(|n| n.is("Concat"));
    let parts = joined.into_iter().flat_map(|n| n.inputs().iter().flatten());
    parts.filter_map(|&part| model.const_ints(part)).any(|sizes| sizes.contains(&-1))
}

fn empty(cx: &Builder, x: Value, shape: Value) -> Result<Value, Reason> {
    let kind = cx.dtype(x);
    let zero = Scalar::Int(0).to_tensor(kind).and_then(|t| t.reshaped(vec![1]));
    let zero = zero.ok_or_else(|| format!("an empty tensor of {kind} needs a newer opset"))?;
    Ok(cx.emit1("ConstantOfShape", &[Some(shape)], attributes([("value", zero.into())])))
}

/// `Trilu`: elements are selected by comparing row and column.
pub(crate) fn trilu(cx: &Builder, node: &Node) -> Emitted {
    let x = input(node, 0)?;
    let dims = cx.shape(x);
    let [.., rows, columns] = dims.as_slice() else {
        return Err("Trilu needs two dimensions or more".into());
    };
    let row = cx.unsqueeze(cx.iota(rows), &[1]);
    let row = match node.input(1) {
        Some(k) => cx.add(row, k),
        None => row,
    };
    let column = cx.iota(columns);
    let kept = if attrs::Trilu::read(node)?.upper {
        cx.greater_or_equal(column, row)
    } else {
        cx.less_or_equal(column, row)
    };
    let zero = cx.scalar(0, cx.dtype(x));
    Ok(vec![cx.select(kept, x, zero)])
}

/// A cast to the type of the second input.
pub(crate) fn cast_like(cx: &Builder, node: &Node) -> Emitted {
    let x = input(node, 0)?;
    let to = cx.dtype(input(node, 1)?);
    let to = pt2onnx_ir::schema::data_type(to);
    Ok(vec![cx.cast_op(x, to, attrs::Cast::default())])
}

/// `Range`: `start + i * delta`, for positions `i` in a tensor of ones.
pub(crate) fn range(cx: &Builder, node: &Node) -> Emitted {
    let (start, limit, delta) = (input(node, 0)?, input(node, 1)?, input(node, 2)?);
    let kind = cx.dtype(start);
    let one = cx.model().const_ints(delta).is_some_and(|d| d == [1]);
    let zero = cx.model().const_ints(start).is_some_and(|s| s == [0]);
    let span = if zero { limit } else { cx.sub(limit, start) };
    let count = if one {
        cx.cast(span, DType::I64)
    } else {
        let steps = cx.div(cx.cast(span, DType::F64), cx.cast(delta, DType::F64));
        cx.cast(cx.ceil(steps), DType::I64)
    };
    let count = cx.maximum(cx.reshape(count, &[Expr::int(1)]), 0);
    let mut numbers = cx.cast(places(cx, count), kind);
    if !one {
        numbers = cx.mul(numbers, delta);
    }
    if !zero {
        numbers = cx.add(start, numbers);
    }
    Ok(vec![numbers])
}

pub(super) fn places(cx: &Builder, count: Value) -> Value {
    let one = Tensor::vector(&[1i64]);
    let ones = cx.emit1("ConstantOfShape", &[Some(count)], attributes([("value", one.into())]));
    let dim = cx.unknown_dim();
    cx.set_type(ones, Type::tensor(DType::I64, [dim.clone()]));
    let found = cx.non_zero(ones);
    cx.set_type(found, Type::tensor(DType::I64, [Expr::int(1), dim]));
    cx.squeeze(found, &[0])
}

/// `DepthToSpace` in mode `CRD` by a transpose between reshapes. Older forms have the other mode.
pub(crate) fn depth_to_space(model: &mut Model, id: NodeId) -> Outcome {
    if attrs::DepthToSpace::read(&model[id])?.mode == "DCR" {
        return without(model, id, "mode");
    }
    replace(model, id, |cx, node| {
        let x = input(node, 0)?;
        let block = attrs::DepthToSpace::blocksize(node)?;
        let [n, c, h, w] = <[Expr; 4]>::try_from(cx.shape(x).to_vec())
            .map_err(|_| "DepthToSpace needs four dimensions")?;
        let b = Expr::int(block);
        let depth = c.floor_div(&Expr::int(block * block));
        let apart =
            cx.reshape(x, &[n.clone(), depth.clone(), b.clone(), b.clone(), h.clone(), w.clone()]);
        let mixed = cx.transpose(apart, &[0, 1, 4, 2, 5, 3]);
        let whole = cx.reshape(mixed, &[n, depth, h * b.clone(), w * b]);
        Ok(vec![if whole == x { cx.identity(x) } else { whole }])
    })
}

/// Adds a bias of zero if there is none.
pub(crate) fn gemm(model: &mut Model, id: NodeId) -> Outcome {
    let kind = input(&model[id], 0).map(|x| model.dtype(x))?;
    let zero = kind.and_then(|kind| Scalar::Int(0).to_tensor(kind));
    let zero = zero.ok_or("the type of this Gemm is not known")?;
    let zero = model.add_constant(zero);
    let mut inputs = model[id].inputs().to_vec();
    inputs.resize(2, None);
    inputs.push(Some(zero));
    model.set_inputs(id, &inputs);
    Ok(Rewritten::InPlace)
}

/// `roi` and scales that are not given become empty tensors.
pub(crate) fn resize_inputs(model: &mut Model, id: NodeId) -> Outcome {
    let mut inputs = model[id].inputs().to_vec();
    inputs.resize(inputs.len().max(3), None);
    let is_empty = |v: &Value| model[*v].constant().is_some_and(|t| t.shape() == [0]);
    let mut empty = inputs[1].filter(is_empty);
    for i in [1, 2] {
        if inputs[i].is_none() {
            let none = Tensor::from_slice(vec![0], &[] as &[f32]).map_err(|e| e.to_string())?;
            inputs[i] = Some(*empty.get_or_insert_with(|| model.add_constant(none)));
        }
    }
    model.set_inputs(id, &inputs);
    Ok(Rewritten::InPlace)
}

/// `Constant`: numbers become a tensor, the only kind of value in older forms.
pub(crate) fn constant(model: &mut Model, id: NodeId) -> Outcome {
    use Attribute::{Float, Floats, Int, Ints};
    let given = model[id].attributes.first().map(|(_, v)| v.clone());
    let tensor = match given {
        Some(Int(i)) => Tensor::scalar(i),
        Some(Float(f)) => Tensor::scalar(f),
        Some(Ints(v)) => Tensor::vector(&v),
        Some(Floats(v)) => Tensor::vector(&v),
        _ => return Err("this kind of Constant needs a newer opset".into()),
    };
    model[id].attributes.clear();
    set(model, id, "value", tensor);
    Ok(Rewritten::InPlace)
}

/// `ConstantOfShape` by `Expand` of the value.
pub(crate) fn expanded(cx: &Builder, node: &Node) -> Emitted {
    let value = match attrs::ConstantOfShape::read(node)?.value {
        Some(t) => t.reshaped(Vec::new()).ok_or("its value is no single element")?,
        None => Tensor::scalar(0f32),
    };
    let shape = node.input(0).ok_or("its shape is missing")?;
    Ok(vec![cx.emit1("Expand", &[Some(cx.constant(value)), Some(shape)], Default::default())])
}
