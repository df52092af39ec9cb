//! Products of integers: weights of 8 bits, and inputs that are quantised when the model runs.

use crate::{
    blocks::Quantised,
    context::{Cx, swapped_axes},
    dequantize::{self, Stored, product, store, take_place, turned},
    edit::{Edit, NewNode, with_dtype},
    error::Error,
    weight_selection::{self, Axes, Weight, permutation},
};
use pt2onnx_ir::{InsertPoint, NodeId, Type, Use, Value};
use pt2onnx_tensor::DType;

/// The most numbers that a product can sum up in int32: each is a code of 8 bits times one from
/// -127 to 127.
const LONGEST: usize = i32::MAX as usize / (255 * 127);

/// Quantises a weight of products and tables that all take it along the same axes; others are left
/// alone.
pub(crate) fn replace(cx: &mut Cx<'_>, weight: &Weight, axes: Axes) -> Result<(), Error> {
    let opset = cx.edit.model.opset;
    if opset < 13 {
        let what = "products of integers with a scale for each channel".to_owned();
        return Err(Error::Opset { what, needs: 13, opset });
    }
    let (products, tables) = uses(cx, weight, axes);
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
    let made = Quantised::new(
        weight.name.clone(),
        weight.tensor.clone(),
        cx.scheme(weight.dtype),
        Some(axes.channel),
        None,
    );
    let Some(stored) = store(cx, &weight, made) else {
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

/// The uses of a weight with these axes that are products, perhaps after a `Transpose`, and those
/// that are tables.
fn uses(cx: &Cx<'_>, weight: &Weight, own: Axes) -> (Uses, Vec<NodeId>) {
    let model = &*cx.edit.model;
    let is_product = |node: NodeId, index: usize| {
        product(model, node, index).is_some_and(|(x, _)| model.dtype(x) == Some(DType::F32))
    };
    let has = |node, index, axes| weight_selection::axes(model, node, index, 2) == Some(axes);
    let (mut products, mut tables) = (Vec::new(), Vec::new());
    for &(node, index) in weight.uses.iter().filter(|(node, _)| model.contains(*node)) {
        let turned = |perm: Vec<usize>| {
            let output = model[node].outputs().first()?;
            let all = model[*output].uses().all(|at| match at {
                Use::Input(user, index) => {
                    let index = index as usize;
                    is_product(user, index) && has(user, index, swapped_axes(own))
                }
                Use::Output(..) => false,
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
    let outputs = cx.edit.model[node].outputs().to_vec();
    let users = outputs.iter().flat_map(|v| cx.edit.model[*v].uses()).filter_map(|at| match at {
        Use::Input(user, _) => Some(user),
        Use::Output(..) => None,
    });
    for user in users.collect::<Vec<_>>() {
        each(cx, user);
    }
    cx.edit.model.erase(node);
}

/// The codes of a matrix of rows as one of columns, for all users.
fn transposed(cx: &mut Cx<'_>, weight: &Weight, axes: Axes, stored: Stored) -> Value {
    let (at, like) = cx.edit.before(&uses(cx, weight, axes).0);
    let mut ty = cx.edit.model[stored.codes].ty.clone();
    if let Some(Type::Tensor(tensor)) = &mut ty {
        tensor.shape.iter_mut().for_each(|shape| shape.reverse());
    }
    cx.edit.add1(at, like, NewNode::of("Transpose", &[Some(stored.codes)]), ty)
}

/// Makes a product one of integers.
fn multiply(cx: &mut Cx<'_>, node: NodeId, Stored { codes, scales, zeros }: Stored) {
    let Some((input, bias)) = product(cx.edit.model, node, 1) else {
        return;
    };
    let Some(&output) = cx.edit.model[node].outputs().first() else {
        return;
    };
    let edit = &mut cx.edit;
    let [x, x_scale, x_zero] = match quantised(edit, input) {
        Some(known) => known,
        None => {
            let scalar = |dtype| Some(Type::tensor(dtype, []));
            let types =
                [with_dtype(edit.model, input, DType::U8), scalar(DType::F32), scalar(DType::U8)];
            let at = edit.after(input);
            let made = edit.add(
                at,
                Some(node),
                NewNode::of("DynamicQuantizeLinear", &[Some(input)]),
                &types,
            );
            match made[..] {
                [x, scale, zero] => [x, scale, zero],
                _ => return,
            }
        }
    };
    let (at, like) = (InsertPoint::Before(node), Some(node));
    let ty = edit.model[output].ty.clone();
    let whole = with_dtype(edit.model, output, DType::I32);
    let integers = edit.add1(
        at,
        like,
        NewNode::of("MatMulInteger", &[Some(x), Some(codes), Some(x_zero), zeros]),
        whole,
    );
    let floats = edit.cast(at, like, integers, DType::F32);
    let scale_ty = edit.model[scales].ty.clone();
    let scale = edit.add1(at, like, NewNode::of("Mul", &[Some(x_scale), Some(scales)]), scale_ty);
    let mut result =
        edit.add1(at, like, NewNode::of("Mul", &[Some(floats), Some(scale)]), ty.clone());
    if bias.is_some() {
        result = edit.add1(at, like, NewNode::of("Add", &[Some(result), bias]), ty);
    }
    take_place(edit, output, result);
}

/// The outputs of an existing `DynamicQuantizeLinear` of an input. It moves to where all users of
/// the input can see it.
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
