//! Stores weights of int8 as uint8 for ONNX Runtime, whose products of uint8 and int8 saturate on
//! some processors.
//!
//! These are x86 processors without VNNI; products of uint8 and uint8 do not saturate. A number and
//! the zero point move by 128, so that values stay what they are.

use crate::{eval::evaluate, folded_constants::FoldedConstants};
use pt2onnx_ir::{Model, Node, NodeId, Traits, Use, Value};
use pt2onnx_tensor::{Compute, DType, Tensor};
use rustc_hash::FxHashMap;
use std::{io, sync::Arc};

/// Operators on integers that take a weight: the inputs that are the weight and its zero point.
const PRODUCTS: &[(&str, usize, usize)] =
    &[("MatMulInteger", 1, 3), ("QLinearConv", 3, 5), ("QLinearMatMul", 3, 5)];

/// The most nodes that only move a weight or activation, between `DequantizeLinear` and its user.
const MAX_VIEWS: usize = 5;

/// Whether ONNX Runtime fuses a node with the `DequantizeLinear` of both operands.
fn is_fused(node: &Node) -> bool {
    node.traits().contains(Traits::LAYER) && !node.is("ConvTranspose")
}

/// Whether ONNX Runtime moves a node out of the way of that fusion.
fn is_view(node: &Node) -> bool {
    node.is("Transpose") || node.traits().contains(Traits::SHAPE_ONLY)
}

/// The offset of codes: the highest bit of a byte.
const MIDDLE: u8 = 128;

/// Gives products weights of uint8, where all uses of a weight are such products.
pub(super) fn run(model: &mut Model) {
    let mut moved: FxHashMap<Value, Value> = FxHashMap::default();
    let constants = FoldedConstants::default();
    for id in model.nodes_in(&[Model::MAIN]) {
        let Some((weight, zero)) = operands(model, id) else { continue };
        let Some(codes) = model[id].input(weight).filter(|v| is_weight(model, *v)) else {
            continue;
        };
        let zeros = match model[id].input(zero) {
            Some(given) => known(model, given).and_then(|t| Some((Some(given), unsigned(&t)?))),
            None => sizes_of_zeros(model, id).and_then(middles).map(|t| (None, t)),
        };
        let codes_of = model[codes].constant().and_then(|t| Some((Some(codes), unsigned(t)?)));
        let (Some(codes), Some(zeros)) = (codes_of, zeros) else { continue };
        let mut moved_of = |model: &mut Model, (of, tensor): (Option<Value>, Tensor)| match of {
            Some(old) => *moved.entry(old).or_insert_with(|| constants.add(model, tensor, of)),
            None => model.add_constant(tensor),
        };
        let (codes, zeros) = (moved_of(model, codes), moved_of(model, zeros));
        let mut inputs = model[id].inputs().to_vec();
        inputs.resize(inputs.len().max(zero + 1), None);
        (inputs[weight], inputs[zero]) = (Some(codes), Some(zeros));
        let old = model[id].input(zero).and_then(|v| model.producer(v));
        model.set_inputs(id, &inputs);
        // Nothing happens where others use it.
        old.into_iter().for_each(|cast| _ = model.erase(cast));
    }
}

/// The inputs that are a product's weight and zero point, of the node or of what restores it.
fn operands(model: &Model, id: NodeId) -> Option<(usize, usize)> {
    let node = &model[id];
    if node.is("DequantizeLinear") {
        return is_joined(model, *node.outputs().first()?, MAX_VIEWS).then_some((0, 2));
    }
    let row = PRODUCTS.iter().find(|row| node.is(row.0))?;
    Some((row.1, row.2))
}

/// Whether a restored weight is that of a product with a restored activation.
fn is_joined(model: &Model, value: Value, depth: usize) -> bool {
    model[value].uses().any(|at| match at {
        Use::Input(user, 1) if is_fused(&model[user]) => {
            model[user].input(0).is_some_and(|x| is_restored(model, x, MAX_VIEWS))
        }
        Use::Input(user, 0) if depth > 0 && is_view(&model[user]) => {
            model[user].outputs().iter().any(|v| is_joined(model, *v, depth - 1))
        }
        _ => false,
    })
}

/// Whether a value is an activation that a `DequantizeLinear` restores.
fn is_restored(model: &Model, value: Value, depth: usize) -> bool {
    let Some(node) = model.producer(value).map(|id| &model[id]) else { return false };
    match node.input(0) {
        Some(codes) if node.is("DequantizeLinear") => model[codes].constant().is_none(),
        Some(x) if depth > 0 && is_view(node) => is_restored(model, x, depth - 1),
        _ => false,
    }
}

fn known(model: &Model, value: Value) -> Option<Tensor> {
    let found = match model.producer(value).map(|id| &model[id]) {
        Some(cast) if cast.is("Cast") => {
            let number = model[cast.input(0)?].constant().filter(|t| t.has_data())?;
            evaluate(cast, &[Some(number)], number.nbytes())?.into_iter().next()
        }
        _ => model[value].constant().cloned(),
    };
    found.filter(|t| t.dtype() == DType::I8 && t.has_data())
}

/// Whether a value is a constant of int8 whose elements are known, and only a weight.
fn is_weight(model: &Model, value: Value) -> bool {
    let only = |at| match at {
        Use::Input(node, index) => {
            operands(model, node).is_some_and(|(weight, _)| weight == index as usize)
        }
        Use::Output(..) => false,
    };
    let codes = model[value].constant().filter(|t| t.dtype() == DType::I8 && t.has_data());
    codes.is_some() && model[value].uses().all(only)
}

/// The sizes of the zero points that a node does without: those of the scales.
fn sizes_of_zeros(model: &Model, id: NodeId) -> Option<Vec<usize>> {
    let node = &model[id];
    if !node.is("DequantizeLinear") {
        return Some(Vec::new());
    }
    let sizes = model.shape(node.input(1)?)?.iter();
    sizes.map(|size| size.as_int().and_then(|n| usize::try_from(n).ok())).collect()
}

fn middles(sizes: Vec<usize>) -> Option<Tensor> {
    let count = sizes.iter().try_fold(1_usize, |n, size| n.checked_mul(*size))?;
    Tensor::new(DType::U8, sizes, vec![MIDDLE; count]).ok()
}

/// Numbers of int8, moved by 128.
fn unsigned(tensor: &Tensor) -> Option<Tensor> {
    Tensor::computed(DType::U8, tensor.shape(), Arc::new(Moved(tensor.clone()))).ok()
}

/// Moves the numbers on demand.
#[derive(Debug)]
struct Moved(Tensor);

impl Compute for Moved {
    fn operands(&self) -> Vec<Tensor> {
        vec![self.0.clone()]
    }

    fn unit(&self) -> usize {
        self.0.compute().map_or(1, |compute| compute.unit())
    }

    fn fill(&self, start: usize, out: &mut [u8]) -> io::Result<()> {
        self.0.read(start, out)?;
        out.iter_mut().for_each(|byte| *byte ^= MIDDLE);
        Ok(())
    }
}
