//! Known properties of values: types, sizes, constants.

use crate::eval;
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

/// At most this many nodes are between a size and the value that it is of.
const FAR: usize = 16;

/// The size that a value of one element is, a sum or difference of known sizes.
pub(crate) fn size_of(model: &Model, value: Value) -> Option<Expr> {
    size_from(model, value, FAR)
}

fn size_from(model: &Model, value: Value, far: usize) -> Option<Expr> {
    if let Some(t) = model[value].constant() {
        return t.to_vec::<i64>().filter(|v| v.len() == 1).map(|v| Expr::int(v[0]));
    }
    let node = &model[model.producer(value)?];
    let x = node.input(0).filter(|_| node.domain.is_empty())?;
    let size = |source: Value, i: i64| {
        let shape = model.shape(source)?;
        shape.get(eval::axis(i, shape.len())?).filter(|d| known(d)).cloned()
    };
    let far = far.checked_sub(1)?;
    let both = || Some((size_from(model, x, far)?, size_from(model, node.input(1)?, far)?));
    match node.op() {
        "Shape" => {
            let rank = model.rank(x)? as i64;
            let held = |i: i64| if i < 0 { i + rank } else { i };
            let (start, end) = (node.int("start").unwrap_or(0), node.int("end").unwrap_or(rank));
            (held(end) == held(start) + 1).then(|| size(x, start))?
        }
        "Gather" => {
            let all = &model[model.producer(x)?];
            let whole = all.is("Shape") && all.int("start").is_none() && all.int("end").is_none();
            match model[node.input(1)?].constant()?.to_vec::<i64>()?[..] {
                [one] if whole => size(all.input(0)?, one),
                _ => None,
            }
        }
        "Squeeze" | "Unsqueeze" | "Reshape" => size_from(model, x, far),
        "Add" => both().map(|(a, b)| a + b),
        "Sub" => both().map(|(a, b)| a - b),
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
