//! Quantised weights that the standard's `DequantizeLinear` restores.

use crate::{
    Edit, Error, Format, NewNode, Quantised, Quantize, Scheme,
    bytes::Tensors,
    context::{Cx, swapped, swapped_axes},
    edit::Place,
    scheme::MIDDLE,
    weight_selection::{self, Axes, Weight, permutation},
    with_dtype,
};
use pt2onnx_ir::{InsertPoint, Model, NodeId, Type, Use, Value};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Scalar, Tensor};
use std::sync::Arc;

#[derive(Clone, Copy)]
pub(crate) struct Stored {
    pub codes: Value,
    pub scales: Value,
    pub zeros: Option<Value>,
}

/// Quantises a weight. All uses get the restored weight, but rows of tables are looked up first.
pub(crate) fn replace(cx: &mut Cx<'_>, weight: &Weight, axes: Axes) -> Result<(), Error> {
    let mut scheme = cx.scheme(weight);
    let block = cx.block(weight);
    check_opset(cx, &scheme, block)?;
    let opset = cx.edit.model.opset;
    let (model, rank) = (&*cx.edit.model, weight.tensor.rank());
    let mut uses = weight.uses.iter();
    let one = cx.quantize == Quantize::StaticInt8
        && uses.any(|(node, index)| weight_selection::needs_one_scale(model, *node, *index, rank));
    // `DequantizeLinear` of older opsets has one scale for all: other nodes restore the weight
    // where runtimes do not look for it. ONNX Runtime computes these once, when it loads a model.
    let older = opset < CHANNELS && block.is_none();
    let windows = weight_selection::is_of_convolutions(model, weight);
    let spelled = match cx.quantize {
        Quantize::Int8 => older,
        Quantize::DynamicInt8 => windows,
        _ => false,
    };
    let along = |axes: Axes| match block {
        Some(_) => Some(axes.sum),
        None if one || older && !spelled => None,
        None => Some(axes.channel),
    };
    if !saves(cx, weight, along(axes), block) {
        return Ok(());
    }
    let (weight, axes) = turned(cx.edit.model, weight, axes);
    let axis = along(axes);
    let by_row = block.is_none() && axis == Some(0) && scheme.symmetric;
    let looked_up = by_row && !cx.options.restored_tables && scheme.format == Format::Int8;
    let table = |(node, index): &(NodeId, usize)| {
        let own = weight_selection::axes(cx.edit.model, *node, *index, weight.tensor.rank());
        let rows = cx.edit.model[*node].is("Gather") && own.is_some();
        rows && looked_up
    };
    let (tables, others): (Vec<_>, Vec<_>) = weight.uses.iter().copied().partition(table);
    // Tables need no zero points.
    scheme.unsigned &= !others.is_empty() && !spelled;
    let feedback = cx.feedback.get(&weight.value).filter(|_| block.is_some());
    let mut made = match feedback {
        Some(feedback) => Quantised::by_rows(&weight, scheme, axes, block, feedback.clone()),
        None => Quantised::new(&weight, scheme, axis, block),
    };
    made.inputs = cx.inputs(&weight);
    let floats = matches!(cx.quantize, Quantize::Int8 | Quantize::DynamicInt8);
    if windows && floats && made.order.is_none() && made.source.is_contiguous() {
        let window = weight.tensor.shape().iter().skip(2).product();
        made.balanced = Some(if window > 1 { window } else { made.inner }).filter(|&n| n > 1);
    }
    if let Some(least) = cx.least.get(&weight.value).filter(|_| block.is_none()) {
        // Groups of a `ConvTranspose` share the scales.
        made.least = vec![0.0; made.axis];
        for least in least.chunks(made.axis.max(1)) {
            made.least.iter_mut().zip(least).for_each(|(most, least)| *most = most.max(*least));
        }
    }
    let sizes = spelled.then(|| {
        let mut sizes = vec![1; weight.tensor.rank() - axes.channel];
        sizes.first_mut().into_iter().for_each(|size| *size = weight.tensor.shape()[axes.channel]);
        sizes
    });
    let Some(stored) = store(cx, &weight, made, sizes) else {
        return Ok(());
    };
    for (node, _) in tables {
        look_up(&mut cx.edit, node, stored, weight.dtype);
    }
    if others.is_empty() {
        return Ok(());
    }
    let place = cx.edit.before(&others);
    if spelled {
        let restored = multiplied(&mut cx.edit, place, stored, &weight);
        for (node, index) in others {
            cx.edit.model.replace_input(node, index, Some(restored));
        }
        return Ok(());
    }
    let zeros = stored.zeros.or_else(|| zeros_of_signed(cx, &weight, stored.scales));
    let inputs = [Some(stored.codes), Some(stored.scales), zeros];
    let mut node = NewNode::of("DequantizeLinear", inputs);
    if let Some(axis) = axis {
        node = node.int("axis", axis);
    }
    if let Some(block) = block {
        node = node.int("block_size", block);
    }
    let ty = with_dtype(cx.edit.model, stored.codes, scheme.scale);
    let mut restored = cx.edit.add1(place, node, ty);
    if scheme.scale != weight.dtype {
        restored = cx.edit.cast(place, restored, weight.dtype);
    }
    for (node, index) in others {
        cx.edit.model.replace_input(node, index, Some(restored));
    }
    Ok(())
}

/// The first opset whose `DequantizeLinear` has scales of channels.
pub(crate) const CHANNELS: u32 = 13;

/// A weight as the product of its codes and scales, which have the sizes to broadcast.
fn multiplied(edit: &mut Edit<'_>, place: Place, stored: Stored, weight: &Weight) -> Value {
    let scale = edit.model.dtype(stored.scales).unwrap_or(DType::F32);
    let mut numbers = edit.cast(place, stored.codes, scale);
    let ty = edit.model[numbers].ty.clone();
    if let Some(zeros) = stored.zeros {
        let zeros = edit.cast(place, zeros, scale);
        numbers = edit.add1(place, NewNode::of("Sub", [numbers, zeros]), ty.clone());
    }
    let restored = edit.add1(place, NewNode::of("Mul", [numbers, stored.scales]), ty);
    if scale == weight.dtype { restored } else { edit.cast(place, restored, weight.dtype) }
}

fn check_opset(cx: &Cx<'_>, scheme: &Scheme, block: Option<usize>) -> Result<(), Error> {
    let (needs, what) = match (scheme.format, block) {
        (Format::Int4, _) => (21, "weights of int4".to_owned()),
        (_, Some(block)) => (21, format!("blocks of {block}")),
        (Format::Float8, None) => (19, "weights of float8".to_owned()),
        (Format::Int8, None) => (10, "weights of int8".to_owned()),
    };
    match cx.edit.model.opset {
        opset if opset < needs => Err(Error::Opset { what, needs, opset }),
        _ => Ok(()),
    }
}

/// A weight that only a `Transpose` uses becomes the transposed one: codes are transposed when they
/// are written, and nothing is transposed when the model runs.
pub(crate) fn turned(model: &mut Model, weight: &Weight, axes: Axes) -> (Weight, Axes) {
    let turn = |model: &Model| {
        let [(node, _)] = weight.uses.as_slice() else { return None };
        let is = model[*node].is("Transpose") && permutation(model, *node, 2)? == [1, 0];
        let tensor = swapped(&weight.tensor).filter(|_| is)?;
        let output = *model[*node].outputs().first()?;
        let uses: Vec<_> = model[output].uses().map(Use::input).collect::<Option<_>>()?;
        // The order of the graph matters only for the first: the weight stands where the
        // `Transpose` stood.
        Some((*node, Weight { tensor, uses, ..weight.clone() }))
    };
    let Some((node, turned)) = turn(model) else {
        return (weight.clone(), axes);
    };
    // Users take a constant in the meantime, which stands before all of them.
    let next = model.next(node);
    let mut uses = turned.uses.clone();
    let value = turned.value;
    for (user, index) in &uses {
        model.replace_input(*user, *index, Some(value));
    }
    model.erase(node);
    if let Some(next) = next {
        uses.sort_by_key(|(user, _)| *user != next);
    }
    (in_order(model, Weight { uses, ..turned }), swapped_axes(axes))
}

/// The weight with its uses in the order of the graph.
fn in_order(model: &Model, mut weight: Weight) -> Weight {
    if weight.uses.len() > 1 {
        let nodes = model.graph_nodes();
        weight.uses.sort_by_key(|(node, _)| nodes.iter().position(|n| n == node));
    }
    weight
}

pub(crate) fn saves(cx: &Cx, weight: &Weight, axis: Option<usize>, block: Option<usize>) -> bool {
    let made = Quantised::new(weight, cx.scheme(weight), axis, block);
    Tensors::plain(&Arc::new(made)).is_ok_and(|tensors| cx.saves(weight, &tensors))
}

/// Zero points of signed codes beside activations: 0, but ONNX Runtime makes no `QGemm` without.
fn zeros_of_signed(cx: &mut Cx<'_>, weight: &Weight, scales: Value) -> Option<Value> {
    let asked = cx.quantize == Quantize::StaticInt8 && cx.options.signed;
    let shape = cx.edit.model[scales].constant().filter(|_| asked)?.shape().to_vec();
    let zeros = vec![0; shape.iter().product()];
    let zeros = Tensor::new(DType::I8, shape, zeros).ok()?;
    Some(cx.edit.constant(zeros, &weight.name, "zero_point"))
}

/// Adds codes and scales; these get `sizes`, if given.
pub(crate) fn store(
    cx: &mut Cx<'_>,
    weight: &Weight,
    made: Quantised,
    sizes: Option<Vec<usize>>,
) -> Option<Stored> {
    let made = Arc::new(made);
    let mut tensors = Tensors::plain(&made).ok()?;
    if let Some(sizes) = sizes {
        tensors.scales = tensors.scales.reshaped(sizes.clone())?;
        tensors.zeros = match tensors.zeros {
            Some(zeros) => Some(zeros.reshaped(sizes)?),
            None => None,
        };
    }
    cx.note(weight, &made, tensors.nbytes());
    Some(add(&mut cx.edit, weight, tensors))
}

pub(crate) fn add(edit: &mut Edit<'_>, weight: &Weight, tensors: Tensors) -> Stored {
    Stored {
        codes: edit.constant(tensors.codes, &weight.name, "quantized"),
        scales: edit.constant(tensors.scales, &weight.name, "scale"),
        zeros: tensors.zeros.map(|zeros| edit.constant(zeros, &weight.name, "zero_point")),
    }
}

/// Looks up rows of codes and their scales, instead of restoring the whole table.
pub(crate) fn look_up(edit: &mut Edit<'_>, gather: NodeId, stored: Stored, dtype: DType) {
    let (Some(indices), Some(&output)) =
        (edit.model[gather].input(1), edit.model[gather].outputs().first())
    else {
        return;
    };
    let place = (InsertPoint::Before(gather), Some(gather));
    let scale = edit.model.dtype(stored.scales).unwrap_or(DType::F32);
    let codes = edit.model.dtype(stored.codes).unwrap_or(DType::I8);
    let rows_ty = with_dtype(edit.model, output, codes);
    let rows = edit.add1(place, NewNode::of("Gather", [stored.codes, indices]), rows_ty);
    let scales_ty = with_dtype(edit.model, indices, scale);
    let wide = edit.model.rank(stored.scales).is_some_and(|rank| rank > 1);
    let wide_ty = scales_ty.clone().map(|ty| match ty {
        Type::Tensor(mut tensor) => {
            tensor.shape = tensor.shape.map(|s| s.into_iter().chain([Expr::int(1)]).collect());
            Type::Tensor(tensor)
        }
        other => other,
    });
    let scales = NewNode::of("Gather", [stored.scales, indices]);
    let mut scales = edit.add1(place, scales, if wide { wide_ty.clone() } else { scales_ty });
    if !wide {
        let last = edit.model.add_constant(Tensor::vector(&[-1_i64]));
        scales = edit.add1(place, NewNode::of("Unsqueeze", [scales, last]), wide_ty);
    }
    let mut numbers = edit.cast(place, rows, scale);
    let product_ty = with_dtype(edit.model, output, scale);
    let middle = Scalar::Int(MIDDLE.into()).to_tensor(scale).filter(|_| stored.zeros.is_some());
    if let Some(middle) = middle {
        let zero = edit.model.add_constant(middle);
        numbers = edit.add1(place, NewNode::of("Sub", [numbers, zero]), product_ty.clone());
    }
    let mut product = edit.add1(place, NewNode::of("Mul", [numbers, scales]), product_ty);
    if scale != dtype {
        product = edit.cast(place, product, dtype);
    }
    take_place(edit, output, product);
}

/// Puts a value in the place of another, with its name.
pub(crate) fn take_place(edit: &mut Edit<'_>, old: Value, new: Value) {
    let (name, ty) = (edit.model[old].name.take(), edit.model[old].ty.clone());
    let metadata = std::mem::take(&mut edit.model[old].metadata);
    edit.model.replace_all_uses(old, new);
    (edit.model[new].name, edit.model[new].ty, edit.model[new].metadata) = (name, ty, metadata);
    if let Some(node) = edit.model.producer(old) {
        edit.model.erase(node);
    }
}
