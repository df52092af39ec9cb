//! Names dimensions while passes run, so that sizes computed from one input are known to be equal.
//!
//! Inputs whose dimensions have no name, or one that says nothing, get a symbol for each. Names
//! within the bodies of loops are not those of the graph around them.

use pt2onnx_ir::{Model, RegionId, TensorType, Type, Value, is_unknown, is_unknown_symbol};
use pt2onnx_symbolic::Expr;

/// Begins the names of the symbols. No file has such names.
const PREFIX: &str = "\u{1}dim";

/// Names that some exporters give to every dynamic dimension.
const VAGUE: &[&str] = &["", "-1", "?", "None", "dynamic", "unk", "unknown"];

/// The types that the inputs of the main graph had, to be given back.
pub(crate) struct Named(Vec<(Value, Option<Type>)>);

pub(crate) fn name(model: &mut Model) -> Named {
    let inputs = model.inputs().to_vec();
    let before = inputs.iter().map(|&v| (v, model[v].ty.clone())).collect();
    for (i, &value) in inputs.iter().enumerate() {
        if let Some(Type::Tensor(TensorType { shape: Some(shape), .. })) = &mut model[value].ty {
            for (axis, dim) in shape.iter_mut().enumerate() {
                if is_vague(dim) || is_unknown(dim) {
                    *dim = Expr::symbol(&format!("{PREFIX}{i}.{axis}"));
                }
            }
        }
    }
    for (region, scope) in scopes(model) {
        let own = |name: &str| {
            let known = scope != Model::MAIN && !is_unknown_symbol(name);
            known.then(|| Expr::symbol(&format!("{}{name}", prefix(scope))))
        };
        each_shape(
            model,
            region,
            |dim, unknown| if is_vague(dim) { unknown() } else { dim.substitute(&own) },
        );
    }
    Named(before)
}

fn is_vague(dim: &Expr) -> bool {
    dim.as_symbol().is_some_and(|name| VAGUE.contains(&name))
}

/// Begins the names of dimensions of a body.
fn prefix(scope: RegionId) -> String {
    format!("{PREFIX}:{}:", scope.index())
}

/// The main graph and the bodies in it whose names of dimensions are its own: those of `If`.
pub fn regions_of_main(model: &Model) -> Vec<RegionId> {
    let of_main = scopes(model).into_iter().filter(|(_, scope)| *scope == Model::MAIN);
    of_main.map(|(region, _)| region).collect()
}

/// All regions, each with that whose names of dimensions hold there: itself if it is the body of a
/// loop, which may have other sizes in each iteration, and the body of an `If` that of the graph
/// around it.
fn scopes(model: &Model) -> Vec<(RegionId, RegionId)> {
    let mut found = vec![(Model::MAIN, Model::MAIN)];
    let mut at = 0;
    while let Some(&(region, scope)) = found.get(at) {
        for node in model.nodes(region) {
            let looped = !model[node].is("If");
            found.extend(model[node].regions().map(|r| (r, if looped { r } else { scope })));
        }
        at += 1;
    }
    found
}

/// Gives the values of a region, but the inputs of the main graph, other dimensions. `renamed` gets
/// a dimension, and a function that makes unknown ones.
fn each_shape(
    model: &mut Model,
    region: RegionId,
    renamed: impl Fn(&Expr, &mut dyn FnMut() -> Expr) -> Expr,
) {
    let results = model.nodes(region).flat_map(|n| model[n].outputs().to_vec());
    let inputs = model[region].inputs().iter().copied().filter(|_| region != Model::MAIN);
    for value in inputs.chain(results).collect::<Vec<_>>() {
        let shape = model.shape(value).filter(|s| !s.iter().all(Expr::is_static));
        let Some(mut shape) = shape.cloned() else { continue };
        for dim in &mut shape {
            *dim = renamed(dim, &mut || model.unknown_dim());
        }
        if let Some(Type::Tensor(tensor)) = &mut model[value].ty {
            tensor.shape = Some(shape);
        }
    }
}

impl Named {
    /// Gives the inputs their types back, and names that hold where they are; makes other sizes
    /// with the new names unknown.
    pub fn undo(self, model: &mut Model) {
        for (region, scope) in scopes(model) {
            let prefix = prefix(scope);
            let given = |name: &str| name.strip_prefix(&prefix).map(Expr::symbol);
            each_shape(model, region, |dim, _| dim.substitute(&given));
        }
        let ours = |dim: &Expr| dim.symbols().iter().any(|s| s.starts_with(PREFIX));
        for value in model.values().map(|(value, _)| value).collect::<Vec<_>>() {
            if let Some((dtype, shape)) = model.tensor_type(value)
                && shape.iter().any(ours)
            {
                let shape = shape.clone();
                let known = |dim| if ours(&dim) { model.unknown_dim() } else { dim };
                let shape: Vec<Expr> = shape.into_iter().map(known).collect();
                model[value].ty = Some(Type::tensor(dtype, shape));
            }
        }
        for (value, ty) in self.0 {
            model[value].ty = ty;
        }
    }
}
