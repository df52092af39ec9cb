//! Finds and replaces the symbols in the types of a model.

use pt2onnx_ir::{Model, Type, Value};
use pt2onnx_symbolic::Expr;
use std::collections::{BTreeMap, BTreeSet};

/// All symbols in types.
pub(crate) fn symbols(model: &Model) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for (_, data) in model.values() {
        if let Some(shape) = data.ty.as_ref().and_then(shape) {
            let found = shape.iter().flat_map(Expr::symbols);
            all.extend(found.map(|s| s.to_string()));
        }
    }
    all
}

fn shape(ty: &Type) -> Option<&[Expr]> {
    match ty {
        Type::Tensor(t) | Type::Sparse(t) => t.shape.as_deref(),
        Type::Sequence(t) | Type::Optional(t) | Type::Map(_, t) => shape(t),
        Type::Opaque(..) => None,
    }
}

fn shape_mut(ty: &mut Type) -> Option<&mut Vec<Expr>> {
    match ty {
        Type::Tensor(t) | Type::Sparse(t) => t.shape.as_mut(),
        Type::Sequence(t) | Type::Optional(t) | Type::Map(_, t) => shape_mut(t),
        Type::Opaque(..) => None,
    }
}

/// Replaces symbols by expressions, in the types of all values.
pub(crate) fn substitute(model: &mut Model, with: &BTreeMap<String, Expr>) {
    if with.is_empty() {
        return;
    }
    let values: Vec<Value> = model.values().map(|(v, _)| v).collect();
    for value in values {
        let dims = model[value].ty.as_mut().and_then(shape_mut);
        for dim in dims.into_iter().flatten() {
            *dim = dim.substitute(&|s| with.get(s).cloned());
        }
    }
}
