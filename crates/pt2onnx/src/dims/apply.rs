//! Names dimensions and makes them static, as the options ask.

use super::{
    DimError,
    fix::fix,
    lookup::{axis_of, dim, end, symbol_of},
    rename::rename,
    shapes::expand,
    symbols::Scope,
};
use crate::options::Options;
use pt2onnx_ir::Model;
use pt2onnx_symbolic::{Constraints, Expr};

/// Names dimensions, and makes dimensions static that are given a size.
pub(crate) fn apply(
    model: &mut Model,
    scope: Scope,
    constraints: &Constraints,
    options: &Options,
) -> Result<(), DimError> {
    let options = &*expand(model, options)?;
    // Sizes are given by old or new names, and checked against the constraints of the old ones.
    let mut fixed = Vec::new();
    for (target, size) in &options.fix_dim {
        let found = dims_to_fix(model, scope, options, target)?;
        fixed.extend(found.into_iter().map(|dim| (target, dim, *size)));
    }
    for (target, _) in &options.rename_dim {
        symbol_of(&dim(model, scope, target)?, target)?;
    }
    for (value, axis, _) in options.dynamic_axes.iter() {
        let (_, dim) = axis_of(model, end(model, value)?, value, axis)?;
        if dim.is_static() {
            return Err(DimError::Static { value: value.to_owned(), axis, dim: dim.to_string() });
        }
    }
    let mut constraints = constraints.clone();
    fix(model, scope, &mut constraints, &fixed)?;
    rename(model, scope, &constraints, options)
}

/// The dimension of that name, or all dimensions that are given it.
fn dims_to_fix(
    model: &Model,
    scope: Scope,
    options: &Options,
    target: &str,
) -> Result<Vec<Expr>, DimError> {
    let error = match dim(model, scope, target) {
        Ok(dim) => return Ok(vec![dim]),
        Err(error) => error,
    };
    let mut found = Vec::new();
    for (old, _) in options.rename_dim.iter().filter(|(_, new)| new == target) {
        found.push(dim(model, scope, old)?);
    }
    for (value, axis, _) in options.dynamic_axes.iter().filter(|(.., new)| *new == target) {
        found.push(axis_of(model, end(model, value)?, value, axis)?.1);
    }
    if found.is_empty() { Err(error) } else { Ok(found) }
}
