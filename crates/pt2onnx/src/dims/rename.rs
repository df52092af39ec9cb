//! Gives dynamic dimensions a name.

use super::{
    DimError,
    lookup::{axis_of, dim, end, symbol_of},
    symbols::{Scope, substitute, symbols},
};
use crate::options::Options;
use pt2onnx_ir::{Model, Type};
use pt2onnx_symbolic::{Constraints, Expr};
use std::collections::{BTreeMap, BTreeSet};

/// Names of dimensions, by their symbols.
type Names = BTreeMap<String, String>;

/// Gives dimensions the names that the options `rename-dim` and `dynamic_axes` ask for.
///
/// # Errors
/// There is no such dimension, it is static, or two dimensions that are never equal would have one
/// name.
pub(super) fn rename(
    model: &mut Model,
    scope: Scope,
    constraints: &Constraints,
    options: &Options,
) -> Result<(), DimError> {
    let mut names = names_of_dims(model, scope, options)?;
    if names.is_empty() && options.dynamic_axes.iter().next().is_none() {
        return Ok(());
    }
    // Axes that are called otherwise than their symbol elsewhere.
    let mut alone = Vec::new();
    for (value, axis, name) in options.dynamic_axes.iter() {
        let (index, dim) = axis_of(model, end(model, value)?, value, axis)?;
        if dim.is_static() {
            continue;
        }
        let name = valid(&format!("{value}.{axis}"), name)?;
        match dim.as_symbol() {
            Some(symbol) if names.get(symbol).is_none_or(|n| *n == name) => {
                names.insert(symbol.to_owned(), name);
            }
            _ => alone.push((end(model, value)?, index, name)),
        }
    }
    are_distinct(&names, &symbols(model, scope), constraints)?;
    let names = names.into_iter().map(|(old, new)| (old, Expr::symbol(&new))).collect();
    substitute(model, &names, scope);
    for (value, index, name) in alone {
        if let Some(Type::Tensor(t)) = &mut model[value].ty
            && let Some(dim) = t.shape.as_mut().and_then(|s| s.get_mut(index))
        {
            *dim = Expr::symbol(&name);
        }
    }
    Ok(())
}

/// The names that the option `rename-dim` gives.
fn names_of_dims(model: &Model, scope: Scope, options: &Options) -> Result<Names, DimError> {
    let mut names = Names::new();
    for (target, name) in &options.rename_dim {
        let name = &valid(target, name)?;
        let Some(dim) = dim(model, scope, target).ok().filter(|d| !d.is_static()) else {
            // It was given a size, by this name or without need of one.
            if options.fix_dim.iter().any(|(fixed, _)| fixed == name) {
                continue;
            }
            let (target, name) = (target.clone(), name.clone());
            return Err(DimError::Fixed { target, name });
        };
        let symbol = symbol_of(&dim, target)?;
        if let Some(first) = names.insert(symbol.clone(), name.clone())
            && first != *name
        {
            let second = name.clone();
            return Err(DimError::Twice { symbol, first, second });
        }
    }
    Ok(names)
}

/// Checks that no name stands for two sizes. Giving several symbols one name asserts that they are
/// equal at run time.
fn are_distinct(
    names: &Names,
    symbols: &BTreeSet<String>,
    constraints: &Constraints,
) -> Result<(), DimError> {
    for (symbol, name) in names {
        for other in symbols.iter().filter(|other| *other != symbol) {
            let equal = constraints.prove_eq(&Expr::symbol(symbol), &Expr::symbol(other));
            let (symbol, name) = (symbol.clone(), name.clone());
            match names.get(other) {
                Some(same) if *same == name && equal == Some(false) => {
                    let other = other.clone();
                    return Err(DimError::Different { symbol, other, name });
                }
                None if *other == name && equal != Some(true) => {
                    return Err(DimError::Taken { symbol, name });
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// The name, if a dimension can have it.
pub(super) fn valid(target: &str, name: &str) -> Result<String, DimError> {
    let owned = name.to_owned();
    match name.is_empty() || name.starts_with('?') {
        true => Err(DimError::Name(owned)),
        false if name.parse::<i64>().is_ok() => {
            Err(DimError::Number { target: target.to_owned(), name: owned })
        }
        false => Ok(owned),
    }
}
