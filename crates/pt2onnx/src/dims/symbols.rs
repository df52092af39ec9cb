//! Finds and replaces the symbols in the types of a model.

use pt2onnx_ir::{Model, Type, Value};
use pt2onnx_opt::regions_of_main;
use pt2onnx_symbolic::Expr;
use std::collections::{BTreeMap, BTreeSet};

/// Where a symbol means the same size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// In the whole model: pt2onnx made it of a program.
    Model,
    /// In the main graph and the branches of its `If`: the model is of another producer, and bodies
    /// of loops and functions have other symbols. A value that a loop carries may have another size
    /// in each iteration.
    MainGraph,
}

impl Scope {
    /// The scope of a model, which may have been read from a file.
    pub fn of(imported: bool) -> Self {
        if imported { Self::MainGraph } else { Self::Model }
    }
}

/// All symbols in types, as [`substitute`] sees them.
pub(crate) fn symbols(model: &Model, scope: Scope) -> BTreeSet<String> {
    let shapes = values(model, scope).into_iter();
    let shapes = shapes.filter_map(|value| shape(model[value].ty.as_ref()?));
    shapes.flatten().flat_map(Expr::symbols).map(|s| s.to_string()).collect()
}

/// The values whose symbols are those of the main graph.
fn values(model: &Model, scope: Scope) -> Vec<Value> {
    if scope == Scope::Model {
        return model.values().map(|(value, _)| value).collect();
    }
    let regions = regions_of_main(model).into_iter();
    let values = regions.flat_map(|region| {
        let results = model.nodes(region).flat_map(|node| model[node].outputs());
        model[region].inputs().iter().chain(results).copied().collect::<Vec<_>>()
    });
    values.collect()
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

/// Replaces symbols of the main graph by expressions.
pub(crate) fn substitute(model: &mut Model, with: &BTreeMap<String, Expr>, scope: Scope) {
    if with.is_empty() {
        return;
    }
    for value in values(model, scope) {
        if let Some(ty) = &mut model[value].ty {
            replace(ty, with);
        }
    }
}

/// A type with other sizes.
pub(crate) fn substituted(ty: &Type, with: &BTreeMap<String, Expr>) -> Type {
    let mut ty = ty.clone();
    replace(&mut ty, with);
    ty
}

fn replace(ty: &mut Type, with: &BTreeMap<String, Expr>) {
    for dim in shape_mut(ty).into_iter().flatten() {
        *dim = dim.substitute(&|s| with.get(s).cloned());
    }
}
