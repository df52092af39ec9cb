//! Products of integers: weights of 8 bits, and inputs that are quantised when the model runs.
//! Convolutions of integers take longer than those of floats: only their weights are integers.

use crate::{
    Cx, Edit, Error, NewNode, Quantised,
    context::swapped_axes,
    dequantize::{self, CHANNELS, Stored, store, take_place, turned},
    weight_selection::{self, Axes, Weight, permutation, product},
    with_dtype,
};
use pt2onnx_ir::{InsertPoint, NodeId, Type, Use, Value};
use pt2onnx_tensor::DType;

/// The most terms that a product can sum up in int32: a code of 8 bits times -127 to 127 each.
const LONGEST: usize = i32::MAX as usize / (255 * 127);

/// Quantises a weight of products and tables that all take it along the same axes.
pub(crate) fn replace(cx: &mut Cx<'_>, weight: &Weight, axes: Axes) -> Result<(), Error> {
    if weight_selection::is_of_convolutions(cx.edit.model, weight) {
        return dequantize::replace(cx, weight, axes);
    }
    let opset = cx.edit.model.opset;
    let (products, tables) = uses(cx, weight, axes);
    let needs = if tables.is_empty() { 11 } else { CHANNELS };
    if opset < needs {
        let what = "products of integers with a scale for each channel".to_owned();
        return Err(Error::Opset { what, needs, opset });
    }
    let rest = weight.uses.len() - tables.len() - products.len();
    let long = weight.tensor.shape().get(axes.sum).is_none_or(|sum| *sum > LONGEST);
    if rest > 0 || weight.tensor.rank() != 2 || weight.dtype != DType::F32 || long {
        return Ok(());
    }
    if !dequantize::saves(cx, weight, Some(axes.channel), None) {
        return Ok(());
    }
    if products.is_empty() {
        return dequantize::replace(cx, weight, axes);
    }
    let (weight, axes) = if tables.is_empty() {
        turned(cx.edit.model, weight, axes)
    } else {
        (weight.clone(), axes)
    };
    let made = Quantised::new(&weight, cx.scheme(&weight), Some(axes.channel), None);
    let Some(stored) = store(cx, &weight, made, None) else {
        return Ok(());
    };
    for node in tables {
        dequantize::look_up(&mut cx.edit, node, stored, weight.dtype);
    }
    // Products take a matrix of columns.
    let mut columns = None;
    for (node, index) in uses(cx, &weight, axes).0 {
        let codes = match axes.channel {
            1 => stored.codes,
            _ => *columns.get_or_insert_with(|| transposed(cx, &weight, axes, stored)),
        };
        if cx.edit.model[node].is("Transpose") {
            for_each_user(cx, node, |cx, user| multiply(cx, user, Stored { codes, ..stored }));
        } else if index == 1 {
            multiply(cx, node, Stored { codes, ..stored });
        }
    }
    Ok(())
}

type Uses = Vec<(NodeId, usize)>;

/// The uses of a weight with these axes that are products, perhaps transposed, and the tables.
fn uses(cx: &Cx<'_>, weight: &Weight, own: Axes) -> (Uses, Vec<NodeId>) {
    let model = &*cx.edit.model;
    let is_float = |(x, _): (Value, Option<Value>)| model.dtype(x) == Some(DType::F32);
    let is_product = |node, index| product(model, node, index).is_some_and(is_float);
    let has = |node, index, axes| weight_selection::axes(model, node, index, 2) == Some(axes);
    let (mut products, mut tables) = (Vec::new(), Vec::new());
    for &(node, index) in weight.uses.iter().filter(|(node, _)| model.contains(*node)) {
        let turned = |perm: Vec<usize>| {
            let output = model[node].outputs().first()?;
            let all = model[*output].uses().all(|at| {
                at.input().is_some_and(|(user, index)| {
                    is_product(user, index) && has(user, index, swapped_axes(own))
                })
            });
            (all && perm == [1, 0]).then_some(())
        };
        match model[node].op() {
            _ if !has(node, index, own) => {}
            "Gather" => tables.push(node),
            "Transpose" if permutation(model, node, 2).and_then(turned).is_some() => {
                products.push((node, index));
            }
            _ if is_product(node, index) => products.push((node, index)),
            _ => {}
        }
    }
    (products, tables)
}

/// Calls `each` with the nodes that use the output of a node, and removes the node.
fn for_each_user(cx: &mut Cx<'_>, node: NodeId, mut each: impl FnMut(&mut Cx<'_>, NodeId)) {
    let users: Vec<_> = cx.edit.model.uses_of(node).filter_map(Use::input).collect();
    users.into_iter().for_each(|(user, _)| each(cx, user));
    cx.edit.model.erase(node);
}

/// The codes of a matrix of rows as one of columns, for all users.
fn transposed(cx: &mut Cx<'_>, weight: &Weight, axes: Axes, stored: Stored) -> Value {
    let place = cx.edit.before(&uses(cx, weight, axes).0);
    let mut ty = cx.edit.model[stored.codes].ty.clone();
    if let Some(Type::Tensor(tensor)) = &mut ty {
        tensor.shape.iter_mut().for_each(|shape| shape.reverse());
    }
    cx.edit.add1(place, NewNode::of("Transpose", [stored.codes]), ty)
}

/// Makes a product one of integers.
fn multiply(cx: &mut Cx<'_>, node: NodeId, Stored { codes, scales, zeros }: Stored) {
    let Some((input, bias)) = product(cx.edit.model, node, 1) else { return };
    let Some(&output) = cx.edit.model[node].outputs().first() else { return };
    let edit = &mut cx.edit;
    let [x, x_scale, x_zero] = match quantised(edit, input) {
        Some(known) => known,
        None => {
            let scalar = |dtype| Some(Type::tensor(dtype, []));
            let types =
                [with_dtype(edit.model, input, DType::U8), scalar(DType::F32), scalar(DType::U8)];
            let place = (edit.after(input), Some(node));
            match edit.add(place, NewNode::of("DynamicQuantizeLinear", [input]), types)[..] {
                [x, scale, zero] => [x, scale, zero],
                _ => return,
            }
        }
    };
    let place = (InsertPoint::Before(node), Some(node));
    let ty = edit.model[output].ty.clone();
    let whole = with_dtype(edit.model, output, DType::I32);
    let inputs = [Some(x), Some(codes), Some(x_zero), zeros];
    let integers = edit.add1(place, NewNode::of("MatMulInteger", inputs), whole);
    let floats = edit.cast(place, integers, DType::F32);
    let scale_ty = edit.model[scales].ty.clone();
    let scale = edit.add1(place, NewNode::of("Mul", [x_scale, scales]), scale_ty);
    let mut result = edit.add1(place, NewNode::of("Mul", [floats, scale]), ty.clone());
    if let Some(bias) = bias {
        result = edit.add1(place, NewNode::of("Add", [result, bias]), ty);
    }
    take_place(edit, output, result);
}

/// The outputs of an existing `DynamicQuantizeLinear`, moved to where all users can see it.
fn quantised(edit: &mut Edit<'_>, input: Value) -> Option<[Value; 3]> {
    let node = edit.model[input].uses().find_map(|at| match at {
        Use::Input(node, 0) if edit.model[node].is("DynamicQuantizeLinear") => Some(node),
        _ => None,
    })?;
    if let InsertPoint::Before(next) = edit.after(input) {
        edit.model.move_before(node, next);
    }
    edit.model[node].outputs().try_into().ok()
}
