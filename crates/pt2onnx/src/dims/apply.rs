//! Names dimensions and makes them static, as the options say.

use super::{
    DimError,
    fix::fix,
    lookup::{axis_of, dim, end, symbol_of},
    rename::rename,
    shapes::expand,
};
use crate::Options;
use pt2onnx_ir::Model;
use pt2onnx_symbolic::{Constraints, Expr};

/// Names dimensions, and makes dimensions static that are given a size. `imported` says whether the model is of another producer.
pub(crate) fn apply(
    model: &mut Model,
    imported: bool,
    constraints: &Constraints,
    options: &Options,
) -> Result<(), DimError> {
    let options = &*expand(model, options)?;
    // Sizes are given by old or new names, and are held against what is known under the old ones.
    let mut fixed = Vec::new();
    for (target, size) in &options.fix {
        let found = dims_to_fix(model, imported, options, target)?;
        fixed.extend(found.into_iter().map(|dim| (target, dim, *size)));
    }
    for (target, _) in &options.dim {
        symbol_of(&dim(model, imported, target)?, target)?;
    }
    for (value, axis, _) in options.dynamic_axes.iter() {
        let (_, dim) = axis_of(model, end(model, value)?, value, axis)?;
        if dim.is_static() {
            return Err(DimError::Static { value: value.to_owned(), axis, dim: dim.to_string() });
        }
    }
    let mut constraints = constraints.clone();
    fix(model, imported, &mut constraints, &fixed)?;
    rename(model, imported, &constraints, options)
}

/// The dimension of that name, or all dimensions that are given it.
fn dims_to_fix(
    model: &Model,
    imported: bool,
    options: &Options,
    target: &str,
) -> Result<Vec<Expr>, DimError> {
    let error = match dim(model, imported, target) {
        Ok(dim) => return Ok(vec![dim]),
        Err(error) => error,
    };
    let mut found = Vec::new();
    for (old, _) in options.dim.iter().filter(|(_, new)| new == target) {
        found.push(dim(model, imported, old)?);
    }
    for (value, axis, _) in options.dynamic_axes.iter().filter(|(.., new)| *new == target) {
        found.push(axis_of(model, end(model, value)?, value, axis)?.1);
    }
    if found.is_empty() { Err(error) } else { Ok(found) }
}
