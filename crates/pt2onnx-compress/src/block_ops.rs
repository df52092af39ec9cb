//! Weights of 4 and 8 bits for ONNX Runtime's own operators: `MatMulNBits` and
//! `GatherBlockQuantized`.

use crate::{
    Cx, NewNode, Quantised, Scheme,
    bytes::Tensors,
    context::swapped,
    dequantize::{Stored, add, take_place},
    weight_selection::{Axes, Weight, axes, permutation, product},
};
use pt2onnx_ir::{InsertPoint, Model, NodeId, Type};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Tensor};
use std::sync::Arc;

/// The block if none is given, as in ONNX Runtime's own tools.
pub(crate) const BLOCK: usize = 32;

/// Rows and columns of a weight, bits of a code, and codes that share a scale.
#[derive(Clone, Copy)]
struct Sizes {
    n: usize,
    k: usize,
    bits: usize,
    block: usize,
}

/// The nodes that a weight's uses become.
#[derive(Default)]
struct Plan {
    products: Vec<NodeId>,
    tables: Vec<NodeId>,
    /// Nodes `Transpose` that disappear.
    transposes: Vec<NodeId>,
}

/// Replaces the nodes that use a weight; false, and no change, if one has no counterpart.
pub(crate) fn replace(cx: &mut Cx<'_>, weight: &Weight, own: Axes) -> bool {
    let block = cx.options.block_size.unwrap_or(BLOCK);
    let Some(plan) = planned(cx.edit.model, weight, own) else { return false };
    // One row for each output.
    let rows = match own.sum {
        1 => Some(weight.tensor.clone()),
        _ => swapped(&weight.tensor),
    };
    let Some(rows) = rows.filter(|rows| {
        plan.tables.is_empty() || rows.shape().get(1).is_some_and(|n| n.is_multiple_of(block))
    }) else {
        return false;
    };
    let scheme = Scheme { unsigned: true, scale: weight.dtype, ..cx.scheme(weight) };
    let mut made = Quantised::in_order(weight.name.clone(), rows, scheme, Some(1), Some(block));
    made.feedback = cx.feedback.get(&weight.value).cloned();
    made.inputs = cx.inputs(weight);
    let (n, k, bits) = (made.outer, made.axis, made.scheme.bits());
    let made = Arc::new(made);
    let only_tables = plan.products.is_empty();
    let Ok(tensors) = Tensors::bits(made.clone(), only_tables) else { return false };
    if !cx.saves(weight, &tensors) {
        return false;
    }
    cx.note(weight, &made, tensors.nbytes());
    let stored = add(&mut cx.edit, weight, tensors);
    for node in plan.products {
        multiply(cx, node, stored, Sizes { n, k, bits, block });
    }
    for node in plan.transposes {
        cx.edit.model.erase(node);
    }
    for node in plan.tables {
        look_up(cx, node, stored, Sizes { n, k, bits, block }, !only_tables);
    }
    true
}

/// The possible rewriting of each use of a weight.
fn planned(model: &Model, weight: &Weight, own: Axes) -> Option<Plan> {
    let mut plan = Plan::default();
    if weight.tensor.rank() != 2 || !matches!(weight.dtype, DType::F32 | DType::F16) {
        return None;
    }
    let is_product = |node: NodeId, index: usize| {
        let input = product(model, node, index)?.0;
        (model.dtype(input)? == weight.dtype).then_some(node)
    };
    for &(node, index) in &weight.uses {
        match model[node].op() {
            "Gather" if index == 0 && own.sum == 1 && axes(model, node, index, 2) == Some(own) => {
                plan.tables.push(node);
            }
            "Transpose" if own.sum == 1 && permutation(model, node, 2)? == [1, 0] => {
                for at in model[*model[node].outputs().first()?].uses() {
                    let (user, index) = at.input()?;
                    let inner = axes(model, user, index, 2)?;
                    plan.products.push(is_product(user, index).filter(|_| inner.sum == 0)?);
                }
                plan.transposes.push(node);
            }
            _ if axes(model, node, index, 2) == Some(own) => {
                plan.products.push(is_product(node, index)?);
            }
            _ => return None,
        }
    }
    Some(plan)
}

/// Makes a product a `MatMulNBits`.
fn multiply(cx: &mut Cx<'_>, node: NodeId, stored: Stored, sizes: Sizes) {
    let Some((input, bias)) = product(cx.edit.model, node, 1) else { return };
    let Some(&output) = cx.edit.model[node].outputs().first() else { return };
    let ty = cx.edit.model[output].ty.clone();
    let inputs = [Some(input), Some(stored.codes), Some(stored.scales), stored.zeros];
    let mut bits = NewNode::of("MatMulNBits", inputs)
        .ort()
        .int("K", sizes.k)
        .int("N", sizes.n)
        .int("bits", sizes.bits)
        .int("block_size", sizes.block);
    if let Some(level) = cx.options.accuracy_level {
        bits = bits.int("accuracy_level", level.into());
    }
    let place = (InsertPoint::Before(node), Some(node));
    let mut result = cx.edit.add1(place, bits, ty.clone());
    if let Some(bias) = bias {
        result = cx.edit.add1(place, NewNode::of("Add", [result, bias]), ty);
    }
    take_place(&mut cx.edit, output, result);
}

/// Makes a `Gather` a `GatherBlockQuantized`.
fn look_up(
    cx: &mut Cx<'_>,
    node: NodeId,
    stored: Stored,
    Sizes { n, k, bits, block }: Sizes,
    shared: bool,
) {
    let (Some(indices), Some(&output)) =
        (cx.edit.model[node].input(1), cx.edit.model[node].outputs().first())
    else {
        return;
    };
    let place = (InsertPoint::Before(node), Some(node));
    let mut codes = stored.codes;
    if shared {
        // The same bytes as a matrix.
        let sizes = [n, k * bits / 8].map(|s| i64::try_from(s).unwrap_or(i64::MAX));
        let ty = Type::tensor(DType::U8, sizes.map(Expr::int));
        let sizes = cx.edit.model.add_constant(Tensor::vector(&sizes));
        codes = cx.edit.add1(place, NewNode::of("Reshape", [codes, sizes]), Some(ty));
    }
    let inputs = [Some(codes), Some(indices), Some(stored.scales), stored.zeros];
    let lookup = NewNode::of("GatherBlockQuantized", inputs)
        .ort()
        .int("bits", bits)
        .int("block_size", block)
        .int("gather_axis", 0)
        .int("quantize_axis", 1);
    let ty = cx.edit.model[output].ty.clone();
    let result = cx.edit.add1(place, lookup, ty);
    take_place(&mut cx.edit, output, result);
}
