//! Known properties of values: types, sizes, constants.

use pt2onnx_ir::{Model, Node, NodeId, Value, attrs, is_unknown_symbol};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Tensor};
use std::ops::Range;

/// Whether a size is what its expression says: no part of it is an unknown dimension.
pub(crate) fn known(dim: &Expr) -> bool {
    dim.is_static() || dim.all_symbols(|s| !is_unknown_symbol(s))
}

/// Whether a node chooses sizes at run time: a reshape to them fails there, or leaves out
/// dimensions, if a size is not what the type says.
pub(crate) fn are_chosen(model: &Model, sizes: Value) -> bool {
    let chosen = model.producer(sizes).map(|id| &model[id]);
    chosen.is_some_and(|node| node.is("Where") || node.is("Compress"))
}

/// The dimensions that each dimension of a reshaped tensor consists of, if it only merges
/// dimensions; its last one also has those of size 1 at the end.
pub(crate) fn merged(from: &[Expr], to: &[Expr]) -> Option<Vec<Range<usize>>> {
    if !from.iter().chain(to).all(|d| known(d) && d.as_int() != Some(0)) {
        return None;
    }
    let mut at = 0;
    let mut groups = Vec::new();
    for size in to {
        let start = at;
        while Expr::product(from[start..at].iter().cloned()) != *size {
            at += 1;
            from.get(at - 1)?;
        }
        groups.push(start..at);
    }
    let ones = from[at..].iter().all(|d| d.as_int() == Some(1));
    groups.last_mut().filter(|_| ones)?.end = from.len();
    Some(groups)
}

/// How a `Transpose` moves dimensions: without the attribute, it reverses them.
pub(crate) fn perm(model: &Model, transpose: &Node) -> Option<Vec<i64>> {
    let reversed = || Some((0..model.rank(transpose.input(0)?)? as i64).rev().collect());
    attrs::Transpose::read(transpose).ok()?.perm.or_else(reversed)
}

/// The nodes that take an output of a node.
pub(crate) fn users(model: &Model, node: NodeId) -> impl Iterator<Item = NodeId> {
    model.uses_of(node).filter_map(|at| Some(at.input()?.0))
}

/// How many numbers a vector counts, if it is a `Range` from 0 in steps of 1.
pub(crate) fn counted(model: &Model, value: Value) -> Option<&Expr> {
    let range = &model[model.producer(value)?];
    let number = |i: usize| model.const_int(range.input(i)?);
    let counts = range.is("Range") && number(0) == Some(0) && number(2) == Some(1);
    match &model.shape(value).filter(|_| counts)?[..] {
        [length] => Some(length),
        _ => None,
    }
}

/// Element type and element of a float constant that has one element.
pub(crate) fn number_of(model: &Model, value: Value) -> Option<(DType, f64)> {
    let t = model[value].constant().filter(|t| t.numel() == 1 && t.dtype().is_float())?;
    Some((t.dtype(), *t.to_doubles()?.first()?))
}

/// Whether all bytes of a tensor are 0; the elements are then 0, and none is -0.
pub(crate) fn is_zero(t: &Tensor) -> bool {
    t.has_data() && t.to_bytes().iter().all(|&b| b == 0)
}

/// A number as an element of a float type.
pub(crate) fn rounded(dtype: DType, number: f64) -> f64 {
    match dtype {
        DType::F16 => f64::from(half::f16::from_f64(number)),
        DType::BF16 => f64::from(half::bf16::from_f64(number)),
        DType::F32 => f64::from(number as f32),
        _ => number,
    }
}

/// Whether it holds for all elements of a tensor of numbers.
pub(crate) fn every(t: &Tensor, holds: impl Fn(f64) -> bool) -> bool {
    t.to_doubles().is_some_and(|all| all.into_iter().all(holds))
}
