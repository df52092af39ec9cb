//! Inputs of a program that share memory, as tied weights do.

use crate::{
    graph::{ExportedProgram, Name},
    views::{Alias, View},
};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::Tensor;
use rustc_hash::FxHashMap;
use std::num::TryFromIntError;

/// Inputs that share memory with an earlier one.
pub(super) fn tied(program: &ExportedProgram) -> Vec<Alias> {
    let mut groups: FxHashMap<(usize, usize), Vec<(&Name, &Tensor)>> = FxHashMap::default();
    let mut order = Vec::new();
    for spec in &program.signature.inputs {
        let (Some(name), Some(tensor)) = (spec.name(), program.tensor_of(spec)) else {
            continue;
        };
        let Some(bytes) = tensor.storage().map(|s| s.bytes()) else {
            continue;
        };
        if !bytes.is_empty() {
            let key = (bytes.as_ptr().addr(), bytes.len());
            let group = groups.entry(key).or_default();
            if group.is_empty() {
                order.push(key);
            }
            group.push((name, tensor));
        }
    }
    let groups = order.iter().filter_map(|key| groups.get(key));
    groups.flat_map(|group| tie(group)).collect()
}

/// How each of the tensors views the largest contiguous one.
fn tie(group: &[(&Name, &Tensor)]) -> Vec<Alias> {
    let whole = group.iter().filter(|(_, t)| t.is_contiguous());
    // The first of the largest.
    let whole = whole.rev().max_by_key(|(_, t)| t.numel()).or(group.first());
    let Some(&(base, whole)) = whole else {
        return Vec::new();
    };
    let expr = |n: usize| i64::try_from(n).map(Expr::int);
    let exprs =
        |list: &[usize]| list.iter().map(|&n| expr(n)).collect::<Result<Vec<_>, TryFromIntError>>();
    let view = |tensor: &Tensor| {
        let (shape, strides) = (tensor.shape(), tensor.strides());
        let like = tensor.dtype() == whole.dtype();
        if like
            && shape == whole.shape()
            && strides == whole.strides()
            && tensor.offset() == whole.offset()
        {
            return Some(View::Same);
        }
        let offset = tensor.offset().checked_sub(whole.offset())?;
        let last = shape.iter().zip(strides.iter()).try_fold(offset, |at, (&n, &stride)| {
            at.checked_add(n.saturating_sub(1).checked_mul(stride)?)
        })?;
        if !like || !whole.is_contiguous() || last >= whole.numel() {
            return None;
        }
        Some(View::AsStrided {
            size: exprs(shape).ok()?,
            stride: exprs(&strides).ok()?,
            offset: expr(offset).ok()?,
        })
    };
    let others = group.iter().filter(|(name, _)| *name != base);
    others
        .map(|(name, tensor)| Alias {
            result: (*name).clone(),
            base: base.clone(),
            view: view(tensor).unwrap_or(View::Unknown),
        })
        .collect()
}
